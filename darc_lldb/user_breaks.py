"""The user's breakpoints: where they are, and when they have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import lldb

from darc.target.ownthread import Turn, own_thread
from darc.target.target import State
from darc.target.user_breaks import UserBreakpoints
from darc_lldb.inferior import Inferior
from darc_lldb.ownstops import OwnBreakpoints


@own_thread
class LldbUserBreakpoints(UserBreakpoints):
    """All of ``inferior`` that are none of its ``own``."""

    def __init__(self, turn: Turn, inferior: Inferior, own: OwnBreakpoints) -> None:
        self.turn = turn
        self._inferior = inferior
        self._own = own
        self._seen: Sequence[int] = ()
        self._handler: Callable[[], None] | None = None

    def addresses(self) -> Sequence[int]:
        found: set[int] = set()
        for breakpoint_ in self._inferior.target.breakpoint_iter():
            if breakpoint_.IsEnabled() and not self._own.owns(breakpoint_.GetID()):
                for location in breakpoint_:
                    if location.IsEnabled():
                        found.add(int(location.GetLoadAddress()))
        return sorted(found - {lldb.LLDB_INVALID_ADDRESS})

    def when_changed(self, handler: Callable[[], None] | None) -> None:
        self._handler = handler

    def note(self) -> None:
        """They are known as they are now."""
        self._seen = self.addresses()

    def changed(self) -> Callable[[], None] | None:
        """Before the program goes on: lldb does not tell at once what the user has changed. What is
        to be called then."""
        if self._inferior.state is not State.STOPPED:
            return None
        before = self._seen
        self.note()
        return self._handler if before != self._seen else None
