"""``make kills``: debuggers are killed (SIGKILL) while they analyse programs that are easily hurt.

The programs are ``fixtures/hazards``: each does something that a debugger may well disturb, and
checks its own results all the time. A debugger attaches to one, makes one analysis after the other
and is killed: at a random moment, or before or after the n-th thing that it does to the program (a
register or memory written, a thread made to go on or to stop: ``killer.c`` counts them). Then the
program has to go on: it answers, what it computes is right, nobody traces it, no thread is left
stopped. After some of the kills another debugger attaches and types ``darc stop``: the program's
code is byte for byte the file's then. After the others the next analysis begins with that.

In the same run a *bare* debugger, without darc, is killed likewise, at another copy of the
program: it attaches, has a breakpoint that is never hit, lets the program go on and stops it again.
What darc hurts that a bare debugger does not is harm.

``python -m tests.kills`` prints a line for each kill that hurt, and a table at the end.
"""
