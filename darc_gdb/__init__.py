"""darc in gdb. Only :mod:`darc_gdb.launcher` may be imported outside gdb."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from darc.app.app import App

APP: App
"""darc in this gdb; there when :mod:`darc_gdb.load` has loaded all of it."""
