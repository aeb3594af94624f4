"""How darc's errors are told in lldb: by lldb, of a command; all others on darc's screen."""

from __future__ import annotations

from darc.app import failures
from darc.app.app import App
from darc_lldb.screen import fitting


def told(app: App, error: Exception) -> str:
    """The one line for the user, below a traceback where that is wanted."""
    return fitting(failures.trace_of(app) + failures.line_of(error))
