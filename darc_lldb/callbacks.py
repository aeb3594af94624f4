"""What lldb's target calls when something has happened, of darc's commands for lldb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darc.target.callbacks import Callbacks, nobody


@dataclass(frozen=True)
class LldbCallbacks(Callbacks):
    """And those that lldb alone needs."""

    end: Callable[[], None] = nobody
    """The program has ended."""
    lost: Callable[[int, str | None], None] = lambda pid, why: None
    """lldb has the process no more, which lives; and what to tell of that, where it is known."""
