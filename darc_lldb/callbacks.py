"""What lldb's target calls when something has happened, of darc's commands for lldb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darc.target.outcome import Outcome


def _nobody() -> None:
    """Is told nothing."""


@dataclass
class Callbacks:
    """Who is told of what becomes of the program."""

    failed: Callable[[Exception], None] = lambda error: None
    on_user_stop: Callable[[], None] = _nobody
    follow_up: Callable[[], Outcome] = lambda: Outcome.STOP
    """At a stop that darc has decided is one for the user: goes on where another analysis has
    begun."""
    goes_on: Callable[[], None] = _nobody
    """Before the program goes on, and not step by step."""
    went_on: Callable[[], None] = _nobody
    end: Callable[[], None] = _nobody
    lost: Callable[[int, str | None], None] = lambda pid, why: None
    """lldb has the process no more, which lives; and what to tell of that, where it is known."""
