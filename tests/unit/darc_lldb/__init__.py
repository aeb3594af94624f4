"""What of darc in lldb needs no lldb.

Uses what :mod:`darc_lldb` says may be imported outside of it, and shell scripts that stand for
lldb. What needs a real one is in :mod:`tests.lldb`.
"""
