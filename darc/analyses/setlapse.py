"""How the calls of each function of a set come in time: in slices, and in intervals."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterable, Mapping

from darc.model.ftree import Function
from darc.model.membercounts import MemberCounts
from darc.model.slices import TimeSlices, less

_FIRST_SLICE = 0.02
"""Seconds of the first time slices: to read what was counted takes some milliseconds."""


class SetLapse:
    """What was counted is :meth:`mark`-ed by whoever has read it. Seconds are those in which the
    program ran with the functions timed."""

    def __init__(self, functions: Iterable[Function], every: float | None) -> None:
        """``every`` is how long an interval is; ``None``: there are none."""
        self.every = every
        self._slices = collections.defaultdict[Function, TimeSlices](
            lambda: TimeSlices(_FIRST_SLICE),
            {function: TimeSlices(_FIRST_SLICE) for function in functions},
        )
        self._next_slice = _FIRST_SLICE
        self._intervals: list[Mapping[Function, Mapping[int, int]]] = []
        """The calls by bin at the end of each interval."""
        self._slices_until: dict[Function, tuple[Mapping[int, int], ...]] = {}
        """Of those that went out: later looks at the others would merge them."""
        self._marks = threading.Lock()

    @property
    def next_interval(self) -> float | None:
        """When the one ends that is under way. Any thread."""
        return None if self.every is None else (len(self._intervals) + 1) * self.every

    @property
    def next_mark(self) -> float:
        """When the counts are to be read again, for slices and intervals. Any thread."""
        until = self.next_interval
        return self._next_slice if until is None else min(self._next_slice, until)

    def mark(self, now: float, counts: Mapping[Function, MemberCounts]) -> None:
        """What was counted up to now is the end of a slice, or of intervals, where one is due.
        Any thread."""
        with self._marks:
            if now >= self._next_slice:
                for function, slices in self._slices.items():
                    slices.look(now, counts[function].bins if function in counts else {})
                self._next_slice = next(iter(self._slices.values())).next_look
            if self.every is not None:
                bins = {function: one.bins for function, one in counts.items()}
                while len(self._intervals) < int(now / self.every):
                    self._intervals.append(bins)

    def goes_out(self, function: Function, bins: Mapping[int, int]) -> None:
        """It is timed no more: these are all of its calls."""
        self._slices_until[function] = self._slices[function].take(bins, least=2)

    def slices_of(
        self, function: Function, bins: Mapping[int, int]
    ) -> tuple[Mapping[int, int], ...]:
        """Those of its calls up to now, which are these by bin."""
        known = self._slices_until.get(function)
        return self._slices[function].take(bins, least=2) if known is None else known

    def intervals_of(self, function: Function) -> tuple[Mapping[int, int], ...]:
        """Its calls by bin in each that is over."""
        before: Mapping[int, int] = {}
        found = []
        for ends in list(self._intervals):
            bins = ends.get(function, {})
            found.append(less(bins, before))
            before = bins
        return tuple(found)
