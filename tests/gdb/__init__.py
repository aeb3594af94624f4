"""End to end in gdb, and most of it in lldb as well: real programs, whose answers are known.

Starts debuggers on fixtures and on programs of a test's own, and types what a user would type.
Asserts what a user would notice; of darc's own values only what nobody can see otherwise.
"""
