"""What gdb's target calls when something has happened, of darc's commands for gdb."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from darc.target.callbacks import Callbacks, nobody


@dataclass(frozen=True)
class GdbCallbacks(Callbacks):
    """And those that gdb alone needs."""

    before_stop: Callable[[], None] = nobody
    """When a stop of darc's is to be one for the user, before anybody hears of it."""
    hears_stops_first: Callable[[], None] = nobody
    """The program is about to go on: darc is to hear of its next stop ahead of all others."""
    hears_stops_last: Callable[[], None] = nobody
    """darc is to hear of the next stop behind all others, and is asked to settle it then."""
    is_to_leave: Callable[[], bool] = lambda: False
    """Whether gdb was told to end, and waits until darc's command is over. Any thread."""
    stand_by: Callable[[], None] = nobody
    """darc is loaded, and hears from now on that gdb is told to end."""
    hold_still: Callable[[], None] = nobody
    """gdb believes that what it is connected to stands still: it is to, and the user hears of it
    where it did not."""
    undisturbed: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """gdb is not to leave while a command of darc's is at work."""
