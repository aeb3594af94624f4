"""What is debugged, as an analysis needs it: the seam, and a process of this machine.

Imports ``model``, ``target``, ``code``, ``agent`` and ``pads``. May stop at ``/proc``, borrow the
program's code for system calls, map memory, ring, and write down (:mod:`darc.debuggee.journal`)
what it changes before it changes it.
Knows nothing of peaks, votes or sessions. A kernel is the other debuggee (``kgdb/``).
"""
