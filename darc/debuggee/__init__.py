"""What is debugged, as an analysis needs it: the seam, and a process of this machine.

Imports ``model``, ``target``, ``code``, ``agent`` and ``pads``. May read and write ``/proc``,
borrow the program's code for system calls, map memory, ring, and write down
(:mod:`darc.debuggee.journal`) what it changes before it changes it. May ask the kernel by
``perf_event_open`` and tracefs when threads leave their processors and who wakes them, and start a
shell that outlives the debugger, and lets a program go on that it has left stopped
(:mod:`darc.debuggee.guardian`). May hold the processes that share the program's memory
(:mod:`darc.debuggee.companions`).
Knows nothing of peaks, votes or sessions. A kernel is the other debuggee (``kgdb/``).
"""
