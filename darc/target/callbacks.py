"""What a debugger's target calls when something has happened: who is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darc.target.outcome import Outcome, carry_out


def nobody() -> None:
    """Is told nothing."""


@dataclass(frozen=True)
class Callbacks:
    """What each debugger's has. All do nothing where nobody is to be told."""

    failed: Callable[[Exception], None] = lambda error: None
    """Tells the user of an error, in one place."""
    on_user_stop: Callable[[], None] = nobody
    """The program stands still for the user."""
    follow_up: Callable[[], Outcome] = lambda: Outcome.STOP
    """At a stop that is to be one for the user, as darc has decided, before anybody hears of it:
    the program goes on where another analysis has begun."""
    goes_on: Callable[[], None] = nobody
    """Before the program goes on, and not step by step."""
    went_on: Callable[[], None] = nobody
    """It goes on, also by darc's own doing."""

    def guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of an event, where nobody would see its exception."""
        carry_out(function, failed=self.failed, instead=None)
