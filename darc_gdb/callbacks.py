"""What gdb's target calls when something has happened, of darc's commands for gdb."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from darc.target.outcome import Outcome, carry_out


@dataclass
class Callbacks:
    """Each does nothing until somebody sets it."""

    failed: Callable[[Exception], None] = lambda error: None
    """Tells the user of an error, in one place."""
    before_stop: Callable[[], None] = lambda: None
    """When a stop of darc's is to be one for the user, before anybody hears of it."""
    on_user_stop: Callable[[], None] = lambda: None
    """The program stands still for the user."""
    goes_on: Callable[[], None] = lambda: None
    """Before the program goes on, and not step by step."""
    went_on: Callable[[], None] = lambda: None
    """It goes on by darc's doing: gdb tells of users' commands alone."""
    hears_stops_first: Callable[[], None] = lambda: None
    """The program is about to go on: darc is to hear of its next stop ahead of all others."""
    hears_stops_last: Callable[[], None] = lambda: None
    """darc is to hear of the next stop behind all others, and is asked to settle it then."""
    follow_up: Callable[[], Outcome] = lambda: Outcome.STOP
    """At a stop that is to be one for the user, as darc has decided, before anybody hears of it:
    the program goes on where another analysis has begun."""
    is_to_leave: Callable[[], bool] = lambda: False
    """Whether gdb was told to end, and waits until darc's command is over. Any thread."""
    stand_by: Callable[[], None] = lambda: None
    """darc is loaded, and hears from now on that gdb is told to end."""
    hold_still: Callable[[], None] = lambda: None
    """gdb believes that what it is connected to stands still: it is to, and the user hears of it
    where it did not."""
    undisturbed: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """gdb is not to leave while a command of darc's is at work."""

    def stand_by_itself(self, how: Callable[[], None]) -> None:
        """:attr:`hold_still` is done so, as gdb is connected to a machine that may go on without
        it."""
        self.hold_still = how

    def guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of an event, where nobody would see its exception."""
        carry_out(function, failed=self.failed, instead=None)
