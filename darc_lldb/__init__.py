"""darc in lldb. Only :mod:`darc_lldb.launcher` may be imported outside lldb."""
