"""Whom ``darc why`` looks into, and what it can say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from darc.model.functionset import FunctionProfile
from darc.model.peaks import PeakRange
from darc.model.profile import time_above

_SPARE_BINS = 2
"""Slow calls that make tens of thousands of calls, each of which was timed, have taken up to four
times as long."""


class Verdict(str, Enum):
    """What is known in the end. The values are those of the report."""

    FOUND = "found"
    NOTHING = "nothing stands out"
    WAITS = "nothing but waits for work"
    """What stands out was left out, as it waits for what comes next."""
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class Suspect:
    """A function that is slow now and then."""

    row: FunctionProfile
    peak: PeakRange
    """Its slow calls: those of this peak."""
    slow: int
    """How many they are."""
    seconds: float
    """For how long the function was timed."""
    slow_mean: float
    """What they take, in cycles, as far as bins tell,"""
    fast_mean: float
    """and what those of the fastest peak do."""
    share: float
    """What its slow calls take beyond the fast ones, by what one thread has of time: above 1 where
    several threads call it."""
    delay: float
    """In seconds: what is left of a slow call, on average over all moments, where one goes on; so
    long waits who comes at any moment for it to end. Of two functions that take as much time, it is
    longer for that with fewer and longer calls."""

    @property
    def name(self) -> str:
        """Of the function."""
        return self.row.function.name

    @property
    def gap(self) -> int:
        """How many bins right before the peak have no call at all."""
        before = [number for number in self.row.profile.bins if number < self.peak.first_bin]
        return self.peak.first_bin - 1 - max(before, default=-1)

    def spec(self, resolution: int, last: int) -> str:
        """The peak by its bins, at a ``resolution`` whose last bin is ``last``, with some of the
        gap before it: by as much as the probes of all that they call have made them longer, slow
        calls take less where the function is timed alone."""
        spare = min(self.gap // 2, _SPARE_BINS)
        first, end = (self.peak.first_bin - spare) * resolution, self.peak.last_bin
        return f"{first}-{last if end is None else (end + 1) * resolution - 1}"


@dataclass(frozen=True)
class Tail:
    """A function some of whose calls take far longer than others, though no valley parts them."""

    row: FunctionProfile
    slow: int
    """How many do."""
    median: float
    """What most take, in cycles, as far as bins tell."""
    threshold: int
    """From how many cycles on those take that do."""
    share: float
    """What they take beyond the median, by what one thread has of time."""

    @property
    def peak(self) -> str:
        """Them, as one types it."""
        return f">{time_above(self.threshold / self.row.profile.hz)}"
