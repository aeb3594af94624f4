"""The kernel: QEMU's gdbstub and kgdb, tasks, interrupts, and a VM to try it on."""
