"""Virtual machines to try darc on a kernel: ``darc-vm start``, ``darc-vm list``, ``darc-vm stop``.

Kernels, disks and programs are made once and kept in :mod:`kgdb.vm.cache`; a machine that runs has
a folder of its own, see :mod:`kgdb.vm.machine`. Imports of darc ``model`` and ``views``.
Downloads packages, compiles, and starts processes.
Knows nothing of the kernel as debuggee, and nothing here is imported by a debugger.
"""
