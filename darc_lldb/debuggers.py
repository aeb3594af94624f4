"""The debuggers of this lldb that darc is loaded in: each one's target and application."""

from __future__ import annotations

from dataclasses import dataclass

from darc.app.app import App
from darc_lldb.target import LldbTarget


@dataclass(frozen=True)
class InDebugger:
    """What darc has in one debugger: the target, and the application that its commands are of."""

    target: LldbTarget
    app: App


DEBUGGERS: dict[int, InDebugger] = {}
"""By the debugger's id."""


def target_of(app: App) -> LldbTarget:
    """That of an application."""
    return next(one.target for one in DEBUGGERS.values() if one.app is app)
