"""What of darc in gdb needs no gdb.

Uses what :mod:`darc_gdb` says may be imported outside of it, and a shell script that stands for
gdb. What needs a real one is in :mod:`tests.gdb`.
"""
