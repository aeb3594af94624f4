"""The engine, on made-up votes, code, programs and machines.

May compile small programs, read them and call code in them; has no debugger analyse anything.
Asserts no time, and of the system only what darc itself asks of it.
"""
