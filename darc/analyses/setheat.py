"""Which functions of a set are timed no more, as their probes take too much of a processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from darc.collectors.manyduties import TimesSets
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.membercounts import MemberCounts
from darc.search.suspects import is_worth_its_probe

LOOK_SECONDS = 0.1
"""Between two looks."""

_BETWEEN_STOPS = 0.5
"""Seconds between two stops at which functions go out."""

_HOT_SHARE = 0.01
"""Of a processor: so much may the probe of one function take."""

ALL_SHARE = 0.1
"""Of a processor: so much may all of them take together,"""

_HOT_COSTS = 10
"""where its calls are not longer than that many of it."""


class SetHeat:
    """One whose probe takes more than a hundredth of a processor is too hot, or the hottest where
    all take more than a share of one, and whose calls are so short that the probe tells little of
    them, but for those that stand out. Seconds are those in which the program ran with the
    functions timed."""

    def __init__(self, timed: TimesSets, in_all: float) -> None:
        """``in_all`` is how much of a processor all probes together may take."""
        self._set = timed
        self._in_all = in_all
        self.found: frozenset[Function] = frozenset()
        """Those that are to go out at a stop. Any thread."""
        self.until: dict[Function, float] = {}
        """Those that went out, and when."""
        self._gave_up = -_BETWEEN_STOPS
        self._looked: tuple[float, Mapping[Function, MemberCounts]] = (0.0, {})
        """When the counts were looked at last, and these."""

    @property
    def next_look(self) -> float:
        """When the counts are to be looked at again. Any thread."""
        return self._looked[0] + LOOK_SECONDS

    @property
    def calls(self) -> Mapping[Function, int]:
        """Of each function, at the latest look. Any thread."""
        return {function: one.calls for function, one in self._looked[1].items()}

    def look(self, now: float, counts: Mapping[Function, MemberCounts]) -> None:
        """This was counted up to now. Any thread."""
        if self.found:
            return
        (then, before), self._looked = self._looked, (now, counts)
        if now - self._gave_up < _BETWEEN_STOPS:
            return
        cost, hz = self._set.counting.call_cost, self._set.counting.hz
        shares = {
            function: (one.passes - _passes(before.get(function))) * cost / (hz * (now - then))
            for function, one in counts.items()
            if function not in self.until
        }
        self.found = hottest(
            shares,
            lambda function: self._is_short(function, counts[function], now, cost),
            in_all=self._in_all,
        )

    def _is_short(self, function: Function, one: MemberCounts, now: float, cost: int) -> bool:
        if one.recursions > one.calls and one.sum < _HOT_COSTS * one.recursions * cost:
            return True  # what its calls seem to take is what its probe takes
        row = FunctionProfile.counted(function, one, self._set.counting.hz)
        return row.quantile(0.99) < _HOT_COSTS * cost and not is_worth_its_probe(row, now, cost)

    def go_out(self, now: float) -> frozenset[Function]:
        """At a stop: those that were found are timed no more. Returns them."""
        out, self.found = self.found, frozenset()
        if out:
            self._set.give_up(out)
            self._gave_up = now
            self.until |= dict.fromkeys(out, round(now, 3))
        return out


def _passes(known: MemberCounts | None) -> int:
    return 0 if known is None else known.passes


def hottest(
    shares: Mapping[Function, float], may_go: Callable[[Function], bool], *, in_all: float
) -> frozenset[Function]:
    """Of functions whose probes take these ``shares`` of a processor those that are to be timed no
    more, so that none takes more than a hundredth and all together no more than ``in_all``, as
    far as they ``may_go``."""
    gone = set()
    rest = sum(shares.values())
    for function in sorted(shares, key=lambda function: -shares[function]):
        if shares[function] <= _HOT_SHARE and rest <= in_all:
            break
        if may_go(function):
            gone.add(function)
            rest -= shares[function]
    return frozenset(gone)
