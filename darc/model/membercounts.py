"""What was counted of one function of a set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MemberCounts:
    """Latencies in cycles, calls by bins of powers of two."""

    calls: int
    sum: int
    max: int
    left: int
    """Calls that an exception or a longjmp has left: in no other figure."""
    dropped: int
    """Calls that spanned a stop: in no other figure."""
    lost: int
    """Calls that found no landing left: in no other figure."""
    foreign: int
    """Calls by other than ordinary code, which get none: likewise."""
    jumps: int
    """How often code had jumped there, and no call was to come back: likewise."""
    bins: Mapping[int, int]
    recursions: int = 0
    """Calls within a call of its own: in no other figure, but each passes a probe."""

    @property
    def passes(self) -> int:
        """How often its probe was passed."""
        return self.calls + self.recursions

    def merged(self, other: MemberCounts) -> MemberCounts:
        """The calls of both."""
        bins = dict(self.bins)
        for number, calls in other.bins.items():
            bins[number] = bins.get(number, 0) + calls
        return MemberCounts(
            calls=self.calls + other.calls,
            sum=self.sum + other.sum,
            max=max(self.max, other.max),
            left=self.left + other.left,
            dropped=self.dropped + other.dropped,
            lost=self.lost + other.lost,
            foreign=self.foreign + other.foreign,
            jumps=self.jumps + other.jumps,
            recursions=self.recursions + other.recursions,
            bins=bins,
        )
