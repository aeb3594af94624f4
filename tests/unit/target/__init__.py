"""What a debugger is to offer, as far as it can be had without one.

Uses the test's own process, its threads and small programs that run beside it.
Asks nothing of gdb or lldb: what each target keeps is in :mod:`tests.contract`.
"""
