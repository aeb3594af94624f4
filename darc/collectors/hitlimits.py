"""What is left alone, or given up, as its breakpoints are hit too often."""

from __future__ import annotations

import functools
from collections.abc import Callable

from darc.collectors.breakplaces import BreakPlace, BreakPlaces
from darc.collectors.opcount import OpCount
from darc.collectors.reactions import Act, Hit, Reactions
from darc.target.outcome import Outcome

FREE_HITS = 2000
HITS_PER_CALL = 200
"""Hits of a call site, and more for each call of f0, before it is left alone."""

MAX_HITS = 20_000
"""Hits within calls of f0, and none comes to its end, before the analysis is given up."""


class HitLimits:
    """Watches the hits of one analysis. ``note`` takes what is not followed any more; ``give_up``
    ends the analysis."""

    def __init__(
        self,
        places: BreakPlaces,
        reactions: Reactions,
        count: OpCount,
        *,
        note: Callable[[str], None],
        give_up: Act,
    ) -> None:
        self._places = places
        self._reactions = reactions
        self._count = count
        self._note = note
        self._give_up = give_up
        self._fruitless = 0
        self._ops = 0
        """Calls of f0 that were over when the fruitless hits began to be counted."""

    def watch(self, place: BreakPlace, hit: Hit) -> Act | None:
        """After a hit that has no other consequence."""
        return self._watch_cost(place) or self._watch_progress(hit.strand)

    def _watch_cost(self, place: BreakPlace) -> Act | None:
        """A call site that is hit much more often than f0 is called slows the program down and
        tells nothing: it is left alone."""
        place.hits += 1
        if place.hits <= FREE_HITS + HITS_PER_CALL * (self._count.ops - place.since):
            return None
        if place.site is not None or place.returns:
            return functools.partial(self._leave_alone, place)
        if place.catches or place.jumps:
            place.catches = place.jumps = False
            self._note("exceptions or longjmps are too frequent to be followed by breakpoints")
            return self._places.set_again
        return None

    def _watch_progress(self, strand: int) -> Act | None:
        """Where a timer's signals come faster than a breakpoint can be stepped over, the program
        does nothing but run their handler."""
        if self._ops != self._count.ops:
            self._ops, self._fruitless = self._count.ops, 0
        self._fruitless += self._reactions.is_inside(strand)
        return self._give_up if self._fruitless > MAX_HITS else None

    def _leave_alone(self, place: BreakPlace) -> Outcome:
        for timed in place.sites:
            self._reactions.give_up(timed, "it is called too often for a breakpoint")
        return self._places.set_again()
