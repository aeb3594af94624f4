"""Two sets of profiles, the functions that differ most first (OSprof 3.2).

In three phases: functions that hardly count, or hardly differ, are dropped; of the others it is
told which peaks came, went, or moved; a method rates each pair, by which they are ranked. The
rating is no alarm: whether a difference is more than chance is asked of each peak by itself
(:mod:`darc.model.comparison`), over all peaks of all functions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from darc.model.comparison import (
    LEAST_PEAK_CALLS,
    NOTABLE_BINS,
    ChangeVerdict,
    Pair,
    PeakChange,
    compare_all,
    emd,
)
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.profile import same_clock

HARDLY = 0.01
"""A function whose calls are a smaller part of all, and whose latencies too, hardly counts."""

SIMILAR = 0.1
"""Total latencies that differ by a smaller part are similar."""

LEAST_DF = 8
"""Degrees of freedom by which it must be known how much a function's calls come in bursts."""


class Method(Enum):
    """How much two profiles differ."""

    EMD = "emd"
    """The Earth Mover's Distance, in bins."""
    CHI2 = "chi2"
    """χ² of the two shapes, each of one call: 0 to 1."""
    OPS = "ops"
    """The difference of the calls in a second, as a part of both: 0 to 1."""
    LATENCY = "latency"
    """The same of the latencies' sums."""


class Fate(Enum):
    """What has become of a peak."""

    CAME = "came"
    WENT = "went"
    MOVED = "moved"
    GREW = "grew"
    SHRANK = "shrank"


@dataclass(frozen=True)
class Difference:
    """One function in two sets."""

    before: FunctionProfile
    now: FunctionProfile
    peaks: tuple[PeakChange, ...]
    """Those of both runs together, from the left."""
    rating: float
    """By the method of the comparison."""

    @property
    def function(self) -> Function:
        """As it is now."""
        return self.now.function

    @property
    def is_alarm(self) -> bool:
        """Whether a peak has changed, by more than chance has it."""
        return any(change.verdict is ChangeVerdict.CHANGED for change in self.peaks)

    def fate(self, change: PeakChange) -> Fate:
        """What has become of one of the peaks, if anything has. A few calls are no peak yet."""
        if change.before * self.before.profile.count < LEAST_PEAK_CALLS:
            return Fate.CAME
        if change.now * self.now.profile.count < LEAST_PEAK_CALLS:
            return Fate.WENT
        if change.has_moved or (
            change.verdict is not ChangeVerdict.CHANGED and abs(change.moved) >= NOTABLE_BINS
        ):
            return Fate.MOVED
        return Fate.GREW if change.now > change.before else Fate.SHRANK

    @property
    def notable(self) -> tuple[PeakChange, ...]:
        """The peaks that differ by what is worth telling, be it chance or not."""
        return tuple(one for one in self.peaks if one.verdict is not ChangeVerdict.NOTHING_SEEN)


@dataclass(frozen=True, kw_only=True)
class SetDifference:
    """What tells one set from another."""

    method: Method
    before: FunctionSet
    now: FunctionSet
    rows: tuple[Difference, ...]
    """Those that have changed first, and then by their rating, the largest first."""
    small: int = 0
    """Functions that hardly count in either set."""
    similar: int = 0
    """Functions in which nothing was seen, and whose total latencies are similar."""
    only_before: tuple[Function, ...] = ()
    """Those that count and were called only then,"""
    only_now: tuple[Function, ...] = ()
    """and only now."""

    @property
    def alarms(self) -> int:
        """Functions that have changed."""
        return sum(row.is_alarm for row in self.rows)

    @property
    def clocks(self) -> tuple[int, int] | None:
        """Cycles in a second of both, where bins of one stand for other times than the other's."""
        hz = [known.rows[0].profile.hz for known in (self.before, self.now) if known.rows]
        if len(hz) < 2 or same_clock(*hz):
            return None
        return hz[0], hz[1]


def difference(before: FunctionSet, now: FunctionSet, method: Method = Method.EMD) -> SetDifference:
    """What tells ``now`` from ``before``. Functions are the same where module and symbol are; of
    several of one symbol, by their order in the module."""
    a, b = _by_name(before.rows), _by_name(now.rows)
    counting = _counting(a, before) | _counting(b, now)
    both = [key for key in a if key in b]
    kept = [(a[key], b[key]) for key in both if key in counting]
    tested = compare_all([_pair(*pair) for pair in kept], least_df=LEAST_DF)
    lengths = (before.seconds or 1.0, now.seconds or 1.0)
    rows = [
        Difference(one, other, changes, rate(method, one, other, lengths))
        for (one, other), changes in zip(kept, tested, strict=True)
    ]
    shown = [row for row in rows if row.notable or not _is_similar(row, lengths)]
    return SetDifference(
        method=method,
        before=before,
        now=now,
        rows=tuple(sorted(shown, key=_rank)),
        small=len(both) - len(kept),
        similar=len(rows) - len(shown),
        only_before=_only(a, b, counting),
        only_now=_only(b, a, counting),
    )


_Key = tuple[str, str, int]


def _by_name(rows: Iterable[FunctionProfile]) -> dict[_Key, FunctionProfile]:
    """Those that have calls, by module, symbol and which of these it is."""
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for row in sorted(rows, key=lambda row: row.function.offset):
        name = row.function.module, row.function.symbol
        if row.profile.count:
            found[(*name, seen[name])] = row
        seen[name] += 1
    return found


def _counting(rows: Mapping[_Key, FunctionProfile], known: FunctionSet) -> set[_Key]:
    """Those that hold so much of the set's latency, or of its calls, that they count."""
    latency = sum(row.profile.total for row in known.rows)
    calls = sum(row.profile.count for row in known.rows)
    return {
        key
        for key, row in rows.items()
        if row.profile.total >= HARDLY * latency or row.profile.count >= HARDLY * calls
    }


def _only(
    rows: Mapping[_Key, FunctionProfile],
    others: Mapping[_Key, FunctionProfile],
    counting: set[_Key],
) -> tuple[Function, ...]:
    found = [row for key, row in rows.items() if key not in others and key in counting]
    return tuple(row.function for row in sorted(found, key=lambda row: -row.profile.total))


def _pair(before: FunctionProfile, now: FunctionProfile) -> Pair:
    return Pair(before.profile, now.profile, before.slices, now.slices)


def _is_similar(row: Difference, lengths: tuple[float, float]) -> bool:
    return _apart(*_latencies(row.before, row.now, lengths)) * 2 < SIMILAR


def _rank(row: Difference) -> tuple[bool, float, int]:
    return not row.is_alarm, -row.rating, -max(row.before.profile.total, row.now.profile.total)


# ------------------------------------------------------------------------------------ methods


def rate(
    method: Method,
    before: FunctionProfile,
    now: FunctionProfile,
    lengths: tuple[float, float] = (1.0, 1.0),
) -> float:
    """How much two profiles differ by ``method``; 0 for one and the same, and the same both ways.
    ``lengths`` are the seconds of their runs."""
    return _METHODS[method](before, now, lengths)


def _distance(a: FunctionProfile, b: FunctionProfile, _lengths: tuple[float, float]) -> float:
    return emd(a.profile, b.profile)


def _chi2(a: FunctionProfile, b: FunctionProfile, _lengths: tuple[float, float]) -> float:
    shares = [{n: c / p.count for n, c in p.bins.items()} for p in (a.profile, b.profile)]
    found = []
    for number in shares[0].keys() | shares[1].keys():
        one, other = (share.get(number, 0.0) for share in shares)
        middle = (one + other) / 2
        found.append((one - middle) ** 2 / middle)
    return math.fsum(found)


def _ops(a: FunctionProfile, b: FunctionProfile, lengths: tuple[float, float]) -> float:
    return _apart(a.profile.count / lengths[0], b.profile.count / lengths[1])


def _latency(a: FunctionProfile, b: FunctionProfile, lengths: tuple[float, float]) -> float:
    return _apart(*_latencies(a, b, lengths))


def _latencies(
    a: FunctionProfile, b: FunctionProfile, lengths: tuple[float, float]
) -> tuple[float, float]:
    """Seconds of latency in a second of each run."""
    pairs = zip((a.profile, b.profile), lengths, strict=True)
    one, other = (profile.total / profile.hz / length for profile, length in pairs)
    return one, other


def _apart(one: float, other: float) -> float:
    return abs(one - other) / (one + other) if one + other else 0.0


_METHODS: Mapping[
    Method, Callable[[FunctionProfile, FunctionProfile, tuple[float, float]], float]
] = {
    Method.EMD: _distance,
    Method.CHI2: _chi2,
    Method.OPS: _ops,
    Method.LATENCY: _latency,
}
