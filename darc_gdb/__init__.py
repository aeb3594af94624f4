"""darc in gdb. Only :mod:`darc_gdb.launcher` may be imported outside gdb."""
