"""Virtual machines to try darc on a kernel: ``darc-vm start``, ``darc-vm list``, ``darc-vm stop``.

Nothing here is imported by a debugger. Kernels, disks and programs are made once and kept in
:mod:`kgdb.vm.cache`; a machine that runs has a folder of its own, see :mod:`kgdb.vm.machine`.
"""
