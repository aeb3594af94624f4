"""The user's own breakpoints: where they stand, and when that changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gdb

from darc.target.ownthread import Turn, own_thread
from darc.target.user_breaks import UserBreakpoints
from darc_gdb.hits import Hits
from darc_gdb.inferiors import Inferiors
from darc_gdb.translated import translated


@own_thread
class GdbUserBreakpoints(UserBreakpoints):
    """All that gdb lists."""

    def __init__(self, turn: Turn, inferiors: Inferiors) -> None:
        self.turn = turn
        self._inferiors = inferiors
        self.hits = Hits(turn)
        self._handler: Callable[[], None] | None = None
        self._known: Sequence[int] | None = None
        self._places: dict[int, frozenset[int]] = {}
        """Where they stood when they were last heard of, by their numbers."""

    @translated
    def addresses(self) -> Sequence[int]:
        if self._known is None:
            self._known = sorted(frozenset().union(*map(_places_of, gdb.breakpoints())))
        return self._known

    def when_changed(self, handler: Callable[[], None] | None) -> None:
        self._handler = handler

    def moved(self) -> None:
        """The program has gone on, or stopped: they may stand elsewhere by now."""
        self._known = None

    def heard_of(self, breakpoint_: gdb.Breakpoint) -> None:
        """gdb tells of one: also of each hit, as it counts them, which changes nothing."""
        self._known = None
        if breakpoint_.number <= 0:
            return
        self.hits.heard_of(breakpoint_)
        places = _places_of(breakpoint_)
        if self._places.get(breakpoint_.number) == places:
            return
        self._places[breakpoint_.number] = places
        if self._handler is not None:
            self._inferiors.callbacks.guarded(self._handler)


def _places_of(breakpoint_: gdb.Breakpoint) -> frozenset[int]:
    """Where one of the user's breakpoints stands now."""
    if breakpoint_.number <= 0 or not breakpoint_.is_valid() or not breakpoint_.enabled:
        return frozenset()
    locations = getattr(breakpoint_, "locations", ())
    return frozenset(int(one.address) for one in locations if one.address)  # a catchpoint has none
