"""What breakpoints have seen of f0's calls: their profile, and the votes of those in the peak."""

from __future__ import annotations

from collections.abc import Iterable

from darc.collectors.duties import Counting
from darc.collectors.hitclock import HitClock, Instant
from darc.collectors.opencalls import OpenOp
from darc.collectors.tally import Tally
from darc.model.ftree import Fnode
from darc.model.profile import Profile

MAX_UNBINNED = 1000
"""Calls of f0 that are kept until it is known what a hit costs."""

NEVER = 1 << 62
"""So many calls are never seen."""


class OpCount(Counting):
    """Counts those of one analysis. Latencies are in cycles of ``hz``, by the ``clock``."""

    def __init__(self, clock: HitClock, resolution: int, hz: int, *, by_longest: bool) -> None:
        self._clock = clock
        self._resolution = resolution
        self._hz = hz
        self.tally = Tally(resolution, hz, by_longest=by_longest)
        self._unbinned: list[tuple[Instant, Instant]] = []
        self.peak: tuple[int, int] | None = None
        """Only calls of at least so many cycles, and less than so many, count and vote."""
        self.analyse: Iterable[Fnode] = ()
        """The fnodes whose callees vote."""
        self.needed = NEVER
        self._seen = 0
        self.ops = 0
        """All calls."""

    @property
    def hz(self) -> int:
        return self._hz

    @property
    def seen(self) -> int:
        return self._seen

    @property
    def voted(self) -> int:
        return self.tally.voted

    def await_calls(self, needed: int) -> None:
        self.needed = needed

    def await_in_peak(self, needed: int) -> None:
        self._seen, self.needed = 0, needed

    def await_more(self, needed: int) -> None:
        self._seen, self.needed = self.voted, needed

    def await_user(self) -> None:
        self.needed = NEVER

    def hurry(self) -> None:
        self.needed = 0

    def search(self, low: int, high: int) -> None:
        self.peak = (low, high)

    @property
    def is_enough(self) -> bool:
        """Whether as many were seen as are needed."""
        return self._seen >= self.needed

    def add(self, operation: OpenOp, now: Instant) -> bool:
        """A call of f0 is over. Whether it counts."""
        self.ops += 1
        begin = operation.begin
        if self.peak is None:
            self._unbinned.append((begin, now))
            self._clock.observe(begin, now)
            self._bin()
        else:
            low, high = self.peak
            latency = self._latency(begin, now)
            self.tally.add_call(latency)
            if not low <= latency < high:
                return False
            self.tally.add_votes(self.analyse, operation.sums)
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
