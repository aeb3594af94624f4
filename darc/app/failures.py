"""How a command's error is told: one line, below a traceback where that is wanted."""

from __future__ import annotations

import traceback

from darc.app.app import App
from darc.model.errors import DarcError
from darc.views import words


def line_of(error: Exception) -> str:
    """The one line for the user."""
    text = f"darc: {error}"
    if not isinstance(error, DarcError):
        text = f"darc: internal error: {error!r} ('set darc verbose on' shows where)"
    return words.message(text)


def trace_of(app: App) -> str:
    """Where the error that is handled now was raised, with ``set darc verbose on``."""
    return words.lines(traceback.format_exc()) if app.parameters.verbose else ""
