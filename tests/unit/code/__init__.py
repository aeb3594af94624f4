"""What is read of code, symbols and files of programs.

Compiles small programs, reads libraries of this machine, and compares with what ``nm``, ``c++filt``
and the compiler say. Runs code where that tells best, and writes into none.
"""
