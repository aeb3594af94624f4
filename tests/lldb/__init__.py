"""End to end in lldb, as far as it is not the same in both debuggers (``tests/gdb``).

Starts lldb on programs, and types what a user would type.
Imports no ``gdb``; what runs inside lldb is :mod:`tests.lldb.inside_lldb`.
"""
