"""What the numbers of calls in peaks let one suppose: peak arithmetic (OSprof 3.1, 6).

Each hint is a hypothesis. Numbers that agree may agree by chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.peaks import Peak, tail_of
from darc.model.waitcalls import is_wait

LEAST_TO_AGREE = 20
"""Fewer calls agree by chance."""

TICKS = (0.001, 1 / 300, 0.004, 0.01)
"""Seconds between two ticks of a Linux kernel's timer, as it may be built (HZ), where nobody knows
how the one is that has made the calls."""

_TICK_TOLERANCE = 0.01
_LOCK = re.compile(r"lock|mutex|sem(aphore)?_|futex|latch|acquire", re.I)
_UNLOCK = re.compile(r"un_?lock|trylock|release|clock|block", re.I)
_LEAST_WAIT_SECONDS = 1e-6
"""Who finds a lock held does not have it sooner: it is handed over by another processor, or by the
kernel."""

# ------------------------------------------------------------------------------------ periods

LEAST_INTERVALS = 12
"""That a period can be told from."""

_LEAST_LAG = 5
"""A period of fewer intervals is not told from their own jitter."""

_PERIODS = 3
"""So many times must a period fit into what was seen."""

_CERTAIN = 5.0
"""How far above chance a correlation must be, in its standard deviations."""

_LEAST = 0.4
_TOP = 0.6
"""The least lag whose correlation is this part of the largest is the period, not twice it."""


def period(calls: Sequence[int]) -> float | None:
    """After how many intervals the calls come again, by autocorrelation; ``None`` where they come
    evenly, at random, or too seldom to tell."""
    n = len(calls)
    if n < LEAST_INTERVALS or not any(calls):
        return None
    padded = [calls[0], *calls, calls[-1]]  # a call at an interval's end may be seen in the next
    smooth = [(a + 2 * b + c) / 4 for a, b, c in zip(padded, padded[1:], padded[2:], strict=False)]
    mean = sum(smooth) / n
    off = [x - mean for x in smooth]
    whole = sum(x * x for x in off)
    if whole <= 1e-9 * n:
        return None
    most = n // _PERIODS
    found = [
        sum(a * b for a, b in zip(off, off[lag:], strict=False)) / whole * n / (n - lag)
        for lag in range(most + 2)
    ]
    hills = [
        lag
        for lag in range(_LEAST_LAG, most + 1)
        if found[lag - 1] <= found[lag] >= found[lag + 1] and min(found[1:lag]) < found[lag] / 2
    ]
    if not hills:
        return None
    top = max(found[lag] for lag in hills)
    if top < max(_LEAST, _CERTAIN / math.sqrt(n)):
        return None
    first = next(lag for lag in hills if found[lag] >= _TOP * top)
    return _finer(first, found, hills)


def _finer(first: int, found: Sequence[float], hills: Sequence[int]) -> float:
    """The period to a part of an interval: by the furthest of its multiples that is there."""
    best, times = float(first), 1
    while True:
        wanted = best * (times + 1)
        near = [lag for lag in hills if abs(lag - wanted) <= 1 and found[lag] >= found[first] / 2]
        if not near:
            return best
        times += 1
        best = max(near, key=lambda lag: found[lag]) / times


# -------------------------------------------------------------------------------------- hints

_MOST_TAILS = 3
_LEAST_OF_TIME = 0.01
"""Part of one thread's time that a tail takes, for it to be told;"""

_BESIDE = 1 / 8
"""and part of the largest excess of the table."""


@dataclass(frozen=True)
class Comes:
    """A peak's calls come at equal distances of time."""

    row: int
    """Of the table, from 1."""
    peak: Peak
    seconds: float


@dataclass(frozen=True)
class CallsAnother:
    """The calls of some peaks in a row are as many as all calls of another function: each of them
    may make one."""

    row: int
    first: Peak
    last: Peak
    other: Function


@dataclass(frozen=True)
class Tick:
    """A peak's calls come, on the average, as often as a kernel's timer ticks."""

    row: int
    peak: Peak
    seconds: float


@dataclass(frozen=True)
class Contended:
    """A lock's function with two peaks: those that find it held are the slow ones."""

    row: int
    share: float
    """Of the calls that found it held,"""
    waited: float
    """and for how long these took, in cycles: until it was free."""


@dataclass(frozen=True)
class LongTail:
    """A function without a slow peak, and hence without excess, has calls that take far longer than
    most."""

    row: int
    first_bin: int
    """From which on they are such calls,"""
    slow: int
    """so many of them,"""
    delay: float
    """and what these take beyond the mean of the others, in cycles."""


Hint = Comes | CallsAnother | Tick | Contended | LongTail


def hints(known: FunctionSet, top: int) -> Iterator[Hint]:
    """What may be supposed of the first ``top`` rows; and the tails that the table
    does not show by its order, of all rows."""
    by_count: dict[int, list[FunctionProfile]] = {}
    for row in known.rows:
        if row.profile.count >= LEAST_TO_AGREE:
            by_count.setdefault(row.profile.count, []).append(row)
    for number, row in enumerate(known.rows[:top], 1):
        yield from _comes(number, row, known)
        yield from _calls(number, row, by_count)
        yield from _tick(number, row, known)
        yield from _contended(number, row)
    yield from _tails(known)


def _comes(number: int, row: FunctionProfile, known: FunctionSet) -> Iterator[Hint]:
    if known.every is None:
        return
    # The fast calls give way to the slow ones, whenever these come.
    for peak in row.peaks[1:] or row.peaks:
        found = period([_inside(one, peak) for one in row.lapse])
        if found is not None:
            yield Comes(number, peak, found * known.every)


def _inside(bins: Mapping[int, int], peak: Peak) -> int:
    return sum(n for b, n in bins.items() if peak.first_bin <= b <= peak.last_bin)


def _calls(
    number: int, row: FunctionProfile, by_count: Mapping[int, Sequence[FunctionProfile]]
) -> Iterator[Hint]:
    """The longest runs of peaks first; not all peaks, which are as many as any callee's calls."""
    peaks, taken = row.peaks, set[int]()
    for size in range(len(peaks) - 1, 0, -1):
        for at in range(len(peaks) - size + 1):
            own = peaks[at : at + size]
            if taken & {one.number for one in own}:
                continue
            time = sum(row.profile.bins[b] * row.profile.high(b) for b in _bins(row, own))
            fits = [
                other
                for other in by_count.get(sum(one.count for one in own), ())
                if other is not row and other.profile.total <= time
            ]
            if fits:
                other = max(fits, key=lambda other: other.profile.total)
                taken |= {one.number for one in own}
                yield CallsAnother(number, own[0], own[-1], other.function)


def _bins(row: FunctionProfile, peaks: Sequence[Peak]) -> Iterator[int]:
    first, last = peaks[0].first_bin, peaks[-1].last_bin
    return (b for b in row.profile.bins if first <= b <= last)


def _tick(number: int, row: FunctionProfile, known: FunctionSet) -> Iterator[Hint]:
    for peak in row.peaks[1:]:
        if peak.count < 10 * LEAST_TO_AGREE or row.until is not None:
            continue
        between = known.seconds / peak.count
        for tick in TICKS if known.tick is None else (known.tick,):
            if abs(between / tick - 1) <= _TICK_TOLERANCE:
                yield Tick(number, peak, tick)


def _contended(number: int, row: FunctionProfile) -> Iterator[Hint]:
    name = row.function.name
    if len(row.peaks) != 2 or not _LOCK.search(name) or _UNLOCK.search(name):
        return
    left, right = row.peaks
    profile = row.profile
    cycles = sum(profile.bins[b] * profile.mean_cycles(b) for b in _bins(row, [right]))
    if right.count < LEAST_TO_AGREE or cycles < _LEAST_WAIT_SECONDS * profile.hz * right.count:
        return
    yield Contended(number, right.count / (left.count + right.count), cycles / right.count)


def _tails(known: FunctionSet) -> list[LongTail]:
    """The longest delay first; what waits for what comes next has none."""
    rows = [(n, row) for n, row in enumerate(known.rows, 1) if not is_wait(row.function)]
    excess = max((row.excess for _, row in rows), default=0.0)
    found = []
    for number, row in rows:
        tail = _tail(number, row)
        least = _LEAST_OF_TIME * known.seconds_of(row) * row.profile.hz
        if tail is not None and tail.delay >= max(least, _BESIDE * excess):
            found.append(tail)
    return sorted(found, key=lambda one: -one.delay)[:_MOST_TAILS]


def _tail(number: int, row: FunctionProfile) -> LongTail | None:
    profile, tail = row.profile, tail_of(row.peaks, row.profile)
    if tail is None:
        return None
    first = tail[1]
    slow = sum(n for b, n in profile.bins.items() if b >= first)
    return LongTail(number, first, slow, profile.excess_from(first))
