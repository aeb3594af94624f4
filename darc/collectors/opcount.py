"""What breakpoints have seen of f0's calls: their profile, and the votes of those in the peak."""

from __future__ import annotations

from darc.collectors.callcount import CallCount
from darc.collectors.hitclock import HitClock, Instant
from darc.collectors.opencalls import OpenOp
from darc.collectors.tally import Tally
from darc.model.profile import Profile

MAX_UNBINNED = 1000
"""Calls of f0 that are kept until it is known what a hit costs."""


class OpCount(CallCount):
    """Counts those of one analysis. Latencies are in cycles of ``hz``, by the ``clock``."""

    def __init__(self, clock: HitClock, resolution: int, hz: int, *, by_longest: bool) -> None:
        super().__init__(resolution, hz, by_longest=by_longest)
        self._clock = clock
        self._resolution = resolution
        self._unbinned: list[tuple[Instant, Instant]] = []
        self.ops = 0
        """All calls."""

    def add(self, operation: OpenOp, now: Instant) -> bool:
        """A call of f0 is over. Whether it counts."""
        self.ops += 1
        begin = operation.begin
        if self.peak is not None:
            latency = self._latency(begin, now)
            self.tally.add_call(latency)
            return self._vote(latency, operation.sums)
        self._unbinned.append((begin, now))
        self._clock.observe(begin, now)
        self._bin()
        self._seen += 1
        return True

    def _bin(self) -> None:
        """Calls are put into bins once it is known what a hit costs."""
        if self._clock.is_calibrated or len(self._unbinned) > MAX_UNBINNED:
            pending, self._unbinned = self._unbinned, []
            for begin, end in pending:
                self.tally.add_call(self._latency(begin, end))

    def cycles(self, begin: Instant, end: Instant) -> int:
        """Between two instants of a thread, without hits."""
        return max(1, self._clock.between(begin, end) * self._hz // 10**9)

    def _latency(self, begin: Instant, end: Instant) -> int:
        """That of a call of f0. What cannot be told apart is all the same: half of a hit."""
        return max(self.cycles(begin, end), self._clock.cost * self._hz // (2 * 10**9))

    def profile(self) -> Profile:
        known = self.tally.profile()
        rest = Tally(self._resolution, self._hz)
        for begin, end in list(self._unbinned):
            rest.add_call(self._latency(begin, end))
        return known.merged(rest.profile())
