"""darc in lldb: its target, lldb's commands, and ``darc-lldb``, which starts lldb with both.

Imports ``lldb``, and of darc ``app``, ``debuggee``, ``target``, ``model``, ``views`` and ``code``.
Decides nothing of an analysis. Only :mod:`darc_lldb.launcher` and :mod:`darc_lldb.watcher`, which
import no ``lldb``, may be imported outside lldb.
"""
