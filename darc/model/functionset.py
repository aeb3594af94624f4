"""Profiles of many functions at once, the most interesting one first (OSprof 3.1, 3.2).

Interest is *excess*: the time that calls took beyond what the function's fast calls take. Of a
function that always takes long there is little of it, of one whose calls are slow now and then
much: those can be explained by a search.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from darc.model.errors import NotFoundError
from darc.model.ftree import Function
from darc.model.part import Part
from darc.model.peaks import Peak, find_peaks
from darc.model.profile import Profile

TOP = 20
"""Rows that are shown where nobody asked for more."""


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

    @functools.cached_property
    def peaks(self) -> tuple[Peak, ...]:
        """Its peaks, the fastest first."""
        return find_peaks(self.profile.bins, self.profile.resolution)

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
        that peak's mean (OSprof 3.1). Bins tell latencies to a factor of two, so their middles are
        scaled until they add up to the sum that was measured."""
        profile, peaks = self.profile, self.peaks
        if not peaks:
            return 0.0
        sums = {b: n * profile.mean_cycles(b) for b, n in profile.bins.items()}
        scale = profile.total / sum(sums.values())
        last = peaks[0].last_bin
        fast = sum(n for b, n in profile.bins.items() if b <= last)
        mean = sum(cycles for b, cycles in sums.items() if b <= last) / fast
        slow = sum(cycles - profile.bins[b] * mean for b, cycles in sums.items() if b > last)
        return scale * slow


@dataclass(frozen=True)
class FunctionSet(Part):
    """What is known of a set of functions: the part of ``darc profile``."""

    key: ClassVar[str] = "set"

    rows: tuple[FunctionProfile, ...]
    """Those that were called, the most interesting one first."""
    _: KW_ONLY
    uncalled: tuple[Function, ...] = ()
    """Those that were timed, and not called."""
    left_out: tuple[tuple[Function, str], ...] = ()
    """Those that were not timed, and why."""
    seconds: float = 0.0
    """For how long the program ran meanwhile."""
    every: float | None = None
    """Seconds of the intervals that calls were counted in; ``None``: in none."""
    top: int = TOP
    """How many rows are to be shown."""
    busy: float | None = None
    """For how many seconds of one thread the program had something to do, in each second; ``None``:
    nobody knows."""

    making: tuple[int, int] | None = None
    """The number of the probe that is made, or was at the end, and how many there are to be, where
    none is timed until all are made; ``None``: they are timed."""

    def seconds_of(self, row: FunctionProfile) -> float:
        """For how long the program ran while that function was timed."""
        return self.seconds if row.until is None else row.until

    def function(self, number: int) -> Function:
        return self.row(number).function

    def row(self, number: int) -> FunctionProfile:
        """By its number, from 1. Raises :class:`~darc.model.errors.NotFoundError`."""
        if not 1 <= number <= len(self.rows):
            there = f"1 to {len(self.rows)}" if self.rows else "none yet"
            raise NotFoundError(f"there is no row {number} of profiles: there are {there}")
        return self.rows[number - 1]

    def row_of(self, name: str) -> FunctionProfile:
        """By the function's name, the first of several. Raises
        :class:`~darc.model.errors.NotFoundError`."""
        for row in self.rows:
            if name in (row.function.name, row.function.symbol):
                return row
        raise NotFoundError(f"there is no profile of {name}: 'darc status' shows the table")


def making_text(number: int, many: int) -> str:
    """That a probe is made, of so many."""
    return f"makes probe {number:,} of {many:,}"


def ranked(rows: Iterable[FunctionProfile]) -> tuple[FunctionProfile, ...]:
    """The most interesting one first; of those that have no excess, the one with the most time."""
    return tuple(
        sorted(rows, key=lambda r: (-round(r.excess), -r.profile.total, r.function.address))
    )
