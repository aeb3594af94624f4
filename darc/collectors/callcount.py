"""Calls of f0 that are timed outside the program: which of them count, and when that is enough."""

from __future__ import annotations

from collections.abc import Iterable

from darc.collectors.duties import Counting
from darc.collectors.tally import Sums, Tally
from darc.model.ftree import Fnode
from darc.model.profile import Profile

NEVER = 1 << 62
"""So many calls are never seen."""


class CallCount(Counting):
    """Counts those of one analysis. Latencies are in cycles of ``hz``; ``by_longest`` is
    :class:`~darc.collectors.tally.Tally`'s. Whoever adds them asks the listener where it
    :attr:`is_enough`."""

    def __init__(self, resolution: int, hz: int, *, by_longest: bool) -> None:
        self._hz = hz
        self.tally = Tally(resolution, hz, by_longest=by_longest)
        self.peak: tuple[int, int] | None = None
        """Only calls of at least so many cycles, and less than so many, count and vote."""
        self.analyse: Iterable[Fnode] = ()
        """The fnodes whose callees vote."""
        self.needed = NEVER
        self._seen = 0

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

    def profile(self) -> Profile:
        return self.tally.profile()

    def add_call(self, latency: int, sums: Sums) -> bool:
        """A call of f0 is over, with what was timed in it. Whether it counts."""
        if self.peak is not None:
            return self._vote(latency, sums)
        self.tally.add_call(latency)
        self._seen += 1
        return True

    def _vote(self, latency: int, sums: Sums) -> bool:
        """The same, where a peak was chosen."""
        assert self.peak is not None
        low, high = self.peak
        if not low <= latency < high:
            return False
        self.tally.add_votes(self.analyse, sums)
        self._seen += 1
        return True
