"""The engine, on made-up votes, code, programs and machines.

May compile small programs, read them and call code in them; has no debugger analyse anything.
Asserts no time, and of the system only what darc itself asks of it.

A test lies in the folder that has the name of the floor of ``darc/``, or of the package, that it is
about. What tests share lies here, at the top, and nothing else does: machines, sessions and calls
that are made up are for tests of several floors, and who adds one finds all of them at one place.
"""
