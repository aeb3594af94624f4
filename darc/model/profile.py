"""Latency profiles: histograms with logarithmic bins (OSprof section 3).

Bin b at resolution r holds the latencies with b = floor(r · log2(cycles)); 0 and 1 cycles are in
bin 0. The agent and the engine sort by the same table of integers, so they never disagree.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

from darc.model.errors import ProfileError, UsageError

OCTAVES = 64
"""Powers of two that a latency can reach; bins are numbered 0 to OCTAVES · resolution."""

LONGEST = 2**OCTAVES - 1
"""The longest latency that there is, in cycles."""

CLOCK_TOLERANCE = 0.01
"""How much of their rate two clocks may differ and count as the same: each run measures it anew,
and measuring is not exact."""

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}


@lru_cache
def thresholds(resolution: int) -> tuple[int, ...]:
    """The shortest latency of each bin, in cycles, for bins 0 to 64 · ``resolution``.

    Exact: entry b is the least c with c ** resolution >= 2 ** b. The first entry is 0, the last
    is 2 ** 64 - 1. At resolutions above 1 some of the lowest bins hold no whole number of cycles;
    they have the same entry as the bin above. Raises :class:`~darc.model.errors.UsageError` when
    the resolution is not a positive number.
    """
    if resolution < 1:
        raise UsageError(f"resolution {resolution}: give 1 or more")
    exact = (_root(1 << b, resolution) for b in range(1, OCTAVES * resolution))
    return (0, *exact, LONGEST)


def _root(power: int, degree: int) -> int:
    """The least c with c ** degree >= power."""
    low, high = 0, 1 << (power.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree >= power:
            high = middle
        else:
            low = middle + 1
    return low


def bin_of(cycles: int, resolution: int) -> int:
    """The bin of a latency: the largest one whose threshold is not above it."""
    return max(0, bisect_right(thresholds(resolution), cycles) - 1)


def same_clock(hz: int, other: int) -> bool:
    """Whether cycles of the two, told by how many there are in a second, are of one clock."""
    return abs(hz - other) <= CLOCK_TOLERANCE * min(hz, other)


@dataclass(frozen=True)
class Profile:
    """How often a function took how long.

    ``count`` and ``total`` were counted apart from the bins and serve as OSprof's checksum.
    """

    resolution: int
    """Bins for each doubling of the latency."""
    hz: int
    """Cycles per second."""
    bins: Mapping[int, int] = field(default_factory=dict)
    """Calls in each bin, by rising bin; a bin that is not there has none."""
    count: int = 0
    """Number of calls."""
    total: int = 0
    """Sum of their latencies in cycles."""

    def __post_init__(self) -> None:
        filled = {b: n for b, n in sorted(self.bins.items()) if n}
        object.__setattr__(self, "bins", filled)

    @classmethod
    def empty(cls, resolution: int, hz: int) -> Profile:
        """The profile of no calls."""
        return cls(resolution, hz)

    def check(self) -> None:
        """Compare the bins with the checksum (OSprof section 4).

        Raises :class:`~darc.model.errors.ProfileError` when a bin does not exist or its count is
        negative, when ``count`` is not the sum of the bins, or when no latencies in these bins
        could add up to ``total``.
        """
        last = OCTAVES * self.resolution
        for b, n in self.bins.items():
            if not 0 <= b <= last or n < 0:
                raise ProfileError(
                    f"the profile is damaged: bin {b} holds {n} calls; collect a new one"
                )
        counted = sum(self.bins.values())
        if counted != self.count:
            raise ProfileError(
                f"the profile is damaged: its bins hold {counted} calls, but {self.count} were "
                "counted; collect a new one"
            )
        least = sum(n * self.low(b) for b, n in self.bins.items())
        most = sum(n * self.high(b) for b, n in self.bins.items())
        if not least <= self.total <= most:
            raise ProfileError(
                f"the profile is damaged: its bins allow a sum of {least} to {most} cycles, but "
                f"{self.total} were counted; collect a new one"
            )

    def low(self, bin_number: int) -> int:
        """The shortest latency of a bin, in cycles."""
        return thresholds(self.resolution)[bin_number]

    def high(self, bin_number: int) -> int:
        """The longest latency of a bin, in cycles.

        Below :meth:`low` for a bin that no whole number of cycles falls into.
        """
        table = thresholds(self.resolution)
        return table[bin_number + 1] - 1 if bin_number + 1 < len(table) else LONGEST

    def mean_cycles(self, bin_number: int) -> float:
        """The average latency of a bin in cycles: 3/2 · 2^b at resolution 1 (OSprof section 3.3).

        It is the middle of the bin, not the mean of the calls that fell into it.
        """
        return max(self.low(bin_number), (self.low(bin_number) + self.high(bin_number) + 1) / 2)

    @cached_property
    def scale(self) -> float:
        """Bins tell latencies to a factor of two at resolution 1: by this factor all of their
        middles together are off from the sum that was measured. 0 where that is 0, as of calls
        that take no longer than their probes; 1 where there is no call."""
        middles = sum(n * self.mean_cycles(b) for b, n in self.bins.items())
        return self.total / middles if middles else 1.0

    def scaled_cycles(self, bin_number: int) -> float:
        """The average latency of a bin in cycles, so that all calls add up to the sum that was
        measured."""
        return self.scale * self.mean_cycles(bin_number)

    def excess_from(self, bin_number: int) -> float:
        """In cycles, the sum over the calls in this bin and all higher ones of their latency less
        the mean of the calls in lower bins (OSprof 3.1), by :attr:`scale`."""
        slow = {b: n for b, n in self.bins.items() if b >= bin_number}
        fast = self.mean_below(bin_number)
        return self.scale * sum(n * (self.mean_cycles(b) - fast) for b, n in slow.items())

    def mean_below(self, bin_number: int) -> float:
        """The average latency in cycles, as bins tell, of the calls in lower bins than this one; 0
        where there are none."""
        below = {b: n for b, n in self.bins.items() if b < bin_number}
        whole = sum(self.mean_cycles(b) * n for b, n in below.items())
        return whole / sum(below.values()) if below else 0.0

    def quantile_bin(self, q: float) -> int | None:
        """The bin of the call that a part ``q`` (0 to 1) of all calls does not exceed.

        None when the profile is empty.
        """
        seen = 0
        # A part such as 0.99 is not exact in binary; do not let it cross a whole number.
        rank = max(1, math.ceil(q * self.count - 1e-9 * self.count))
        for b, n in self.bins.items():
            seen += n
            if seen >= rank:
                return b
        return None

    def merged(self, other: Profile) -> Profile:
        """The profile of the calls of both, at this one's clock, which may be of another run (see
        :data:`CLOCK_TOLERANCE`).

        Raises :class:`~darc.model.errors.UsageError` when the two differ in resolution or clock.
        """
        if self.resolution != other.resolution or not same_clock(self.hz, other.hz):
            raise UsageError(
                "profiles of different resolutions or clocks cannot be merged; "
                "collect both with the same --resolution on one machine"
            )
        bins = {
            b: self.bins.get(b, 0) + other.bins.get(b, 0)
            for b in self.bins.keys() | other.bins.keys()
        }
        return Profile(
            resolution=self.resolution,
            hz=self.hz,
            bins=bins,
            count=self.count + other.count,
            total=self.total + other.total,
        )

    def coarsened(self, resolution: int) -> Profile:
        """The same calls at a lower resolution, exactly.

        Raises :class:`~darc.model.errors.UsageError` when this profile's resolution is no multiple
        of it.
        """
        if resolution < 1 or self.resolution % resolution:
            raise UsageError(
                f"resolution {self.resolution} cannot be brought to {resolution}; "
                f"give a divisor of {self.resolution}"
            )
        width = self.resolution // resolution
        bins: dict[int, int] = {}
        for b, n in self.bins.items():
            bins[b // width] = bins.get(b // width, 0) + n
        return Profile(
            resolution=resolution, hz=self.hz, bins=bins, count=self.count, total=self.total
        )


def possible_bins(resolution: int, first: int, last: int) -> list[int]:
    """The bins from ``first`` to ``last`` that some whole number of cycles falls into."""
    table = (*thresholds(resolution), LONGEST + 1)
    edges = pairwise(table[first : last + 2])
    return [b for b, (low, high) in enumerate(edges, first) if low < high]


def format_cycles(cycles: float, hz: int) -> str:
    """A time for people, to two digits: ``26ns``, ``1.3µs``, ``4.1ms``, ``2.0s``."""
    value, unit = cycles / hz * 1e9, "ns"
    for larger in ("µs", "ms", "s"):
        if round(value) < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f}{unit}" if 0 < value < 9.95 else f"{value:.0f}{unit}"


def format_share(share: float) -> str:
    """A share of 1 for people, in percent: ``0.52 %``, ``5.2 %``, ``52.1 %``."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.1f} %"


def time_above(seconds: float) -> str:
    """The next time above that has one digit: ``4ms`` for 3.2 ms."""
    return _one_digit(seconds, 1)


def time_below(seconds: float) -> str:
    """The next time that is no longer and has one digit: ``3ms`` for 3.2 ms."""
    return _one_digit(seconds, 0)


def _one_digit(seconds: float, more: int) -> str:
    value, unit = seconds * 1e9, "ns"
    for larger in ("us", "ms", "s"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    digit = 10 ** max(0, math.floor(math.log10(max(value, 1))))
    return f"{math.floor(value / digit + more) * digit:.0f}{unit}"


def longer_time(seconds: float) -> str:
    """A round time that is no shorter: ``10s``, ``5min``, ``2h``."""
    for unit, length in (("s", 1), ("min", 60)):
        for value in (1, 2, 5, 10, 20, 30):
            if seconds <= value * length:
                return f"{value}{unit}"
    return f"{math.ceil(seconds / 3600)}h"


def parse_time(text: str) -> float:
    """The seconds that a time such as ``4ms``, ``1.5s`` or ``2m`` stands for.

    Units are ns, us (or µs), ms, s, m (or min) and h. Raises
    :class:`~darc.model.errors.UsageError` for anything else; a number without a unit is refused,
    since a wrong guess would go unnoticed.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµμ]+)\s*", text)
    if match is None or match[2] not in _UNITS:
        raise UsageError(f"'{text}' is not a time; write for example 4ms, 250us or 2s")
    return float(match[1]) * _UNITS[match[2]]
