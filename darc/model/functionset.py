"""Profiles of many functions at once, the most interesting one first (OSprof 3.1, 3.2).

Interest is *excess*: the time that calls took beyond what the function's fast calls take. Of a
function that always takes long there is little of it, of one whose calls are slow now and then
much: those can be explained by a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile, row_of
from darc.model.leftout import LeftOut
from darc.model.leftoutmany import LeftOutMany
from darc.model.part import Part
from darc.model.waitcalls import is_wait

TOP = 20
"""Rows that are shown where nobody asked for more."""


@dataclass(frozen=True)
class FunctionSet(Part):
    """What is known of a set of functions: the part of ``darc profile``."""

    key: ClassVar[str] = "set"

    rows: tuple[FunctionProfile, ...]
    """Those that were called, the most interesting one first; last those of which no call was
    counted, as all that began go on, say."""
    _: KW_ONLY
    uncalled: tuple[Function, ...] = ()
    """Those that were timed, and not called."""
    left_out: Sequence[tuple[Function, LeftOut]] = ()
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

    tick: float | None = None
    """Seconds between two ticks of the timer of the kernel that has scheduled it; ``None``: nobody
    knows."""
    making: tuple[int, int] | None = None
    """The number of the probe that is made, or was at the end, and how many there are to be, where
    none is timed until all are made; ``None``: they are timed."""

    @property
    def reasons(self) -> Counter[LeftOut]:
        """Why functions were not timed, each reason with how many they are."""
        return LeftOutMany.of(self.left_out).reasons

    def seconds_of(self, row: FunctionProfile) -> float:
        """For how long the program ran while that function was timed."""
        return self.seconds if row.until is None else row.until

    @property
    def counted(self) -> tuple[FunctionProfile, ...]:
        """The rows that have calls: those of the table."""
        return tuple(row for row in self.rows if row.has_calls)

    @property
    def profiles(self) -> tuple[FunctionProfile, ...]:
        return self.rows

    def function(self, number: int) -> Function:
        return self.row(number).function

    def with_row_alone(self, row: FunctionProfile) -> Self:
        return replace(self, rows=(row,))

    def row(self, number: int) -> FunctionProfile:
        """By its number, from 1. Raises :class:`~darc.model.errors.NotFoundError`."""
        return row_of(self.rows, number)


def making_text(number: int, many: int) -> str:
    """That a probe is made, of so many."""
    return f"makes probe {number:,} of {many:,}"


def ranked(rows: Iterable[FunctionProfile]) -> tuple[FunctionProfile, ...]:
    """The most interesting one first; of those that have no excess, the one with the most time.
    Behind them those that wait as long as their callers say, or for what comes next: nobody would
    call that slow. Last are those without a call."""

    def rank(row: FunctionProfile) -> tuple[bool, bool, int, int, int]:
        function, excess = row.function, round(row.excess)
        is_last = not row.has_calls
        return is_last, is_wait(function), -excess, -row.profile.total, function.address

    return tuple(sorted(rows, key=rank))
