"""The program that is analysed now, if there is one, whichever inferior gdb looks at."""

from __future__ import annotations

import contextlib

from darc.app.app import App
from darc_gdb.target import GdbTarget


def is_analysed(app: App) -> bool:
    """Whether there is one."""
    return app.session is not None and app.session.alive


def at_home(app: App, target: GdbTarget) -> contextlib.AbstractContextManager[object]:
    """While an inferior is analysed, what darc does is about that one."""
    return target.inferiors.at_home() if is_analysed(app) else contextlib.nullcontext()
