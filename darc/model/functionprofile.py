"""The calls of one function, as they are counted where many functions are timed at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darc.model.errors import NotFoundError
from darc.model.ftree import Function
from darc.model.membercounts import MemberCounts
from darc.model.peaks import Peak, find_peaks
from darc.model.profile import Profile


@dataclass(frozen=True, kw_only=True)
class FunctionProfile:
    """The calls of one function, in all threads. Recursion counts as its outermost call."""

    function: Function
    profile: Profile
    longest: int
    """The longest call's latency, in cycles."""
    left: int = 0
    """Calls that an exception or a longjmp has left: in no bin, and not among the calls."""
    dropped: int = 0
    """Calls that a stop has come in the middle of: likewise."""
    until: float | None = None
    """After how many seconds its probe was taken out, as it was called so often; the figures are
    of the time before. ``None``: it was not."""
    slices: tuple[Mapping[int, int], ...] = ()
    """Its calls by bin, in turns of about the same time, without those that have none: how much
    they come in bursts."""
    lapse: tuple[Mapping[int, int], ...] = ()
    """Its calls by bin, in each of the set's intervals (OSprof 3.1)."""

    @classmethod
    def counted(
        cls, function: Function, counts: MemberCounts, hz: int, until: float | None = None
    ) -> FunctionProfile:
        """What was counted, in cycles of ``hz``; as it varied in time is not in that."""
        return cls(
            function=function,
            profile=Profile(
                resolution=1,
                hz=hz,
                bins=counts.bins,
                count=sum(counts.bins.values()),
                total=counts.sum,
            ),
            longest=counts.max,
            left=counts.left,
            dropped=counts.dropped,
            until=until,
        )

    @functools.cached_property
    def peaks(self) -> tuple[Peak, ...]:
        """Its peaks, the fastest first."""
        return find_peaks(self.profile.bins, self.profile.resolution)

    @property
    def has_calls(self) -> bool:
        """Whether any that began has ended, in whichever way, and was counted."""
        return bool(self.profile.count or self.left)

    @property
    def mean(self) -> float:
        """In cycles; 0 where there was no call."""
        return self.profile.total / self.profile.count if self.profile.count else 0.0

    def quantile(self, q: float) -> float:
        """In cycles, what a part ``q`` of the calls does not exceed: the middle of that call's
        bin."""
        found = self.profile.quantile_bin(q)
        return 0.0 if found is None else min(self.profile.mean_cycles(found), float(self.longest))

    @functools.cached_property
    def excess(self) -> float:
        """In cycles, the sum over the calls to the right of the fastest peak of their latency less
        that peak's mean (:meth:`~darc.model.profile.Profile.excess_from`)."""
        return self.profile.excess_from(self.peaks[0].last_bin + 1) if self.peaks else 0.0


def row_of(rows: Sequence[FunctionProfile], which: int | str) -> FunctionProfile:
    """The one that the user calls by its number, from 1, or by its name, the first of several.

    Raises:
        NotFoundError: there is no such row.
    """
    if isinstance(which, str):
        for row in rows:
            if which in (row.function.name, row.function.symbol):
                return row
        raise NotFoundError(f"there is no profile of {which}: 'darc status' shows the table")
    if not 1 <= which <= len(rows):
        there = f"1 to {len(rows)}" if rows else "none yet"
        raise NotFoundError(f"there is no row {which} of profiles: there are {there}")
    return rows[which - 1]
