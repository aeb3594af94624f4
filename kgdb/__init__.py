"""The kernel as debuggee: its code, memory, tasks and interrupts, through QEMU's gdbstub or kgdb;
and virtual machines to try it on (:mod:`kgdb.vm`).

Imports of darc ``debuggee``, ``pads``, ``agent``, ``code``, ``target`` and ``model``;
asks a debugger through the seam :mod:`kgdb.remote`.
Knows no debugger, and neither analyses nor sessions; and nothing of :mod:`kgdb.vm`, which knows
nothing of it.
Gives nobody else's objects attributes: what is of a kernel alone is kept here.
"""
