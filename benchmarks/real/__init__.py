"""Real programs at full load: alone, looked at by other tools, beside a bare gdb, and analysed.

Servers are loaded by clients in this process; what is told of them is the clients' latency. Of the
others it is how long they take. What makes some of their calls slow is put in by the workload, and
another tool (strace, perf, the program's own log) sees it in a run of its own.
``docs/benchmarks-real.md`` is made of it.
Imports ``benchmarks.measure`` and ``fixtures``, and of darc ``debuggee`` for the clock's rate;
compiles what is in ``sources/``, starts programs, debuggers and tools, and writes the page.
Asks darc by commands and JSON reports alone: what is right is what the other tools have seen.
"""
