"""darc in gdb: its target, gdb's commands, and ``darc-gdb``, which starts gdb with both.

Imports ``gdb``, and of darc ``app``, ``debuggee``, ``target``, ``model``, ``views`` and ``code``;
and ``kgdb``, where gdb is connected to a kernel.
Decides nothing of an analysis. Only :mod:`darc_gdb.launcher` may be imported outside gdb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from darc.app.app import App

APP: App
"""darc in this gdb; there when :mod:`darc_gdb.load` has loaded all of it."""
