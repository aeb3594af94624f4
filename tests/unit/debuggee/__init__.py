"""What darc knows of a process and does to it, and of debuggees of another kind.

Asks the kernel about the test's own process and about small ones that it starts, and has a
made-up target for what is written. No debugger holds any of them.
"""
