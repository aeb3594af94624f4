"""How much two profiles differ (OSprof section 3.2, paper section 3.4).

The Earth Mover's Distance says by how much; whether that is more than chance is asked of each peak
by itself, as a rare one weighs nothing in a distance: has its share of the calls changed, has it
moved? Slow calls come in bursts, so calls are no independent draws: by how much more their
numbers vary than those of draws would, the time slices of each run tell (the overdispersion φ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from darc.model.errors import ProfileError
from darc.model.peaks import Peak, find_peaks
from darc.model.profile import OCTAVES, Profile, format_cycles, format_share

ALARMS = 0.01
"""How often profiles of one distribution may count as different, all peaks together (Holm)."""

POWER = 0.9
"""How sure a change is to be seen with as many calls as are said to be needed."""

LEAST_PEAK_CALLS = 5
"""Calls that a peak must have in one of the runs."""

NOTABLE_FACTOR = 1.5
"""A share that has grown or shrunk by this factor is worth telling, """

NOTABLE_POINTS = 0.005
"""and one that has by this part of all calls; """

NOTABLE_BINS = 1.0
"""and a peak that has moved by so many octaves."""

_ROUNDING = 1 / 12
"""Variance of a latency within its bin, in bins."""

Slices = Sequence[Mapping[int, int]]
"""The calls of a run by bin, in turns of about the same time."""


class ChangeVerdict(Enum):
    """What can be said of a peak."""

    CHANGED = "changed"
    NOTHING_SEEN = "nothing seen"
    """No change worth telling was seen: there may be one all the same."""
    CANNOT_TELL = "cannot tell"
    """What was seen may be chance."""


class ChangeFigures(NamedTuple):
    """What a change of a peak is told by."""

    where: str
    """The latencies that the peak lies between."""
    before: str
    """Its share of the calls,"""
    now: str
    """and that of this run."""
    octaves: str
    """How far it has moved, if it has,"""
    side: str
    """and to which side of a histogram."""


@dataclass(frozen=True, kw_only=True)
class PeakChange:
    """One peak of two runs together, before and now."""

    peak: Peak
    before: float
    """Its share of the calls."""
    now: float
    moved: float
    """By how many octaves its mean is further to the right."""
    verdict: ChangeVerdict
    has_moved: bool = False
    """Whether the change is that it has moved."""
    calls_to_tell: int = 0
    """With how many calls in each run a change as large as the one that was seen could be told."""

    def figures(self, profile: Profile) -> ChangeFigures:
        """By the bins of ``profile``, with its clock."""
        ends = profile.low(self.peak.first_bin), profile.high(self.peak.last_bin)
        return ChangeFigures(
            where=" – ".join(format_cycles(cycles, profile.hz) for cycles in ends),
            before=format_share(self.before),
            now=format_share(self.now),
            octaves=f"{abs(self.moved):.1f} octaves",
            side="right" if self.moved > 0 else "left",
        )


def emd(a: Profile, b: Profile) -> float:
    """The Earth Mover's Distance between two profiles, in bins.

    Both are normalised to one call; the result is the least work that turns one into the other,
    where a unit of work moves a whole call by one bin. 0 for profiles of one shape, 1 when every
    latency has doubled at resolution 1. Profiles of different resolutions are compared in the bins
    of the finest resolution that both can be brought to. Symmetric, and a metric.

    Raises :class:`~darc.model.errors.ProfileError` when one of them is empty.
    """
    if not any(a.bins.values()) or not any(b.bins.values()):
        raise ProfileError("a profile without calls cannot be compared; collect some calls first")
    resolution = math.gcd(a.resolution, b.resolution)
    a, b = a.coarsened(resolution), b.coarsened(resolution)
    a_calls, b_calls = sum(a.bins.values()), sum(b.bins.values())
    # On a line, what has to cross from one bin to the next is the difference of the sums so far.
    # In integers, so that equal shapes are at a distance of exactly 0.
    crossing, work = 0, 0
    for bin_number in range(OCTAVES * resolution + 1):
        crossing += a.bins.get(bin_number, 0) * b_calls - b.bins.get(bin_number, 0) * a_calls
        work += abs(crossing)
    return work / (a_calls * b_calls)


def compare(
    before: Profile, now: Profile, slices_before: Slices = (), slices_now: Slices = ()
) -> tuple[PeakChange, ...]:
    """Each peak of both runs together, from the left.

    Raises :class:`~darc.model.errors.ProfileError` when one of them is empty.
    """
    (found,) = compare_all([Pair(before, now, slices_before, slices_now)])
    return found


@dataclass(frozen=True)
class Pair:
    """A function's profiles of two runs."""

    before: Profile
    now: Profile
    slices_before: Slices = ()
    slices_now: Slices = ()


def compare_all(pairs: Sequence[Pair], *, least_df: int = 0) -> list[tuple[PeakChange, ...]]:
    """The peaks of each pair, from the left. A change of any one is told only where it is none of
    chance among all peaks of all pairs (Holm).

    How much calls come in bursts must be known by ``least_df`` degrees of freedom for a peak to be
    told: where many functions are looked at, there are always some that were called all at once.

    Raises :class:`~darc.model.errors.ProfileError` when a profile is empty.
    """
    tests = [_tests(pair, least_df) for pair in pairs]
    flat = [test for own in tests for test in own]
    asked = sorted(
        (p, number, is_move)
        for number, test in enumerate(flat)
        for is_move, p in ((False, test.share_p), (True, test.move_p))
        if p is not None
    )
    found: set[tuple[_Tested, bool]] = set()
    for rank, (p, number, is_move) in enumerate(asked):
        if p > ALARMS / (len(asked) - rank):
            break
        found.add((flat[number], is_move))
    return [
        tuple(test.result((test, False) in found, (test, True) in found) for test in own)
        for own in tests
    ]


def _tests(pair: Pair, least_df: int) -> list[_Tested]:
    before, now = pair.before, pair.now
    if not any(before.bins.values()) or not any(now.bins.values()):
        raise ProfileError("a profile without calls cannot be compared; collect some calls first")
    resolution = math.gcd(before.resolution, now.resolution)
    runs = (
        _Run(before.coarsened(resolution).bins, _coarse(pair.slices_before, before, resolution)),
        _Run(now.coarsened(resolution).bins, _coarse(pair.slices_now, now, resolution)),
    )
    together = {
        b: runs[0].bins.get(b, 0) + runs[1].bins.get(b, 0)
        for b in sorted(runs[0].bins.keys() | runs[1].bins.keys())
    }
    return [_Tested(peak, runs, resolution, least_df) for peak in find_peaks(together, resolution)]


def _coarse(slices: Slices, profile: Profile, resolution: int) -> Slices:
    width = profile.resolution // resolution
    found = []
    for one in slices:
        bins: dict[int, int] = {}
        for b, n in one.items():
            bins[b // width] = bins.get(b // width, 0) + n
        if any(bins.values()):
            found.append(bins)
    return found


@dataclass(frozen=True)
class _Run:
    bins: Mapping[int, int]
    slices: Slices

    @property
    def calls(self) -> int:
        return sum(self.bins.values())


class _Tested:
    """One peak, asked whether its share has changed and whether it has moved."""

    def __init__(self, peak: Peak, runs: tuple[_Run, _Run], resolution: int, least_df: int) -> None:
        self.peak = peak
        self._calls = [run.calls for run in runs]
        inside = [_inside(run.bins, peak) for run in runs]
        self._counts = [sum(bins.values()) for bins in inside]
        self._shares = [k / n for k, n in zip(self._counts, self._calls, strict=True)]
        self._phi, self._df = _dispersion(
            [_share_scatter(run.slices, peak) for run in runs if run.slices]
        )
        self.share_p: float | None = None
        self.move_p: float | None = None
        self._moved = 0.0
        self._is_enough = max(self._counts) >= LEAST_PEAK_CALLS
        if self._is_enough and min(self._shares) < 1 and self._df >= least_df:
            z = _proportions_z(self._counts, self._calls) / math.sqrt(self._phi)
            self.share_p = _two_sided(z, self._df)
        if min(self._counts) >= LEAST_PEAK_CALLS:
            means, variance = _means(inside)
            self._moved = (means[1] - means[0]) / resolution
            phi, df = _dispersion([_mean_scatter(run.slices, peak) for run in runs if run.slices])
            error = math.sqrt(phi * variance * sum(1 / k for k in self._counts))
            if df >= least_df:
                self.move_p = _two_sided(abs(means[1] - means[0]) / error, df)
            self._move_error = error / resolution

    def result(self, share_differs: bool, place_differs: bool) -> PeakChange:
        before, now = self._shares
        has_effect = (
            abs(now - before) >= NOTABLE_POINTS
            or max(before, now) >= NOTABLE_FACTOR * min(before, now)
        ) and before != now
        moves = abs(self._moved) >= NOTABLE_BINS
        has_moved = place_differs and moves
        verdict, calls = ChangeVerdict.NOTHING_SEEN, 0
        if has_moved or (share_differs and has_effect):
            verdict = ChangeVerdict.CHANGED
        elif has_effect or moves:
            verdict, calls = ChangeVerdict.CANNOT_TELL, self._calls_to_tell(has_effect)
        return PeakChange(
            peak=self.peak,
            before=before,
            now=now,
            moved=self._moved,
            verdict=verdict,
            has_moved=has_moved,
            calls_to_tell=calls,
        )

    def _calls_to_tell(self, is_share: bool) -> int:
        """Calls in each run that would tell what was seen from chance, if it is there."""
        factor = (_quantile(1 - ALARMS / 4) + _quantile(POWER)) ** 2
        if not is_share:
            in_peak = factor * (self._move_error / self._moved) ** 2 * min(self._counts)
            return _rounded_up(in_peak / max(min(self._shares), 1e-9))
        before, now = self._shares
        spread = before * (1 - before) + now * (1 - now)
        calls = factor * self._phi * spread / (now - before) ** 2
        return _rounded_up(max(calls, LEAST_PEAK_CALLS / max(before, now)))


def _inside(bins: Mapping[int, int], peak: Peak) -> dict[int, int]:
    return {b: n for b, n in bins.items() if peak.first_bin <= b <= peak.last_bin}


def _proportions_z(counts: Sequence[int], calls: Sequence[int]) -> float:
    """How far two shares are apart, in standard deviations.

    By the normal approximation, or by the likelihood ratio, whatever says less: the one errs where
    few calls are expected in the smaller run, the other where one run has none.
    """
    share = sum(counts) / sum(calls)
    if not 0 < share < 1:
        return 0.0
    apart = counts[0] / calls[0] - counts[1] / calls[1]
    pearson = apart**2 / (share * (1 - share) * (1 / calls[0] + 1 / calls[1]))
    deviance = 0.0
    for k, n in zip(counts, calls, strict=True):
        for seen, expected in ((k, n * share), (n - k, n * (1 - share))):
            deviance += 2 * seen * math.log(seen / expected) if seen else 0.0
    return math.sqrt(max(0.0, min(pearson, deviance)))


def _means(inside: Sequence[Mapping[int, int]]) -> tuple[list[float], float]:
    """The mean bin of each run, and the variance within both."""
    means, squares, df = [], 0.0, 0
    for bins in inside:
        count = sum(bins.values())
        mean = sum(b * n for b, n in bins.items()) / count
        means.append(mean)
        squares += sum(n * (b - mean) ** 2 for b, n in bins.items())
        df += count - 1
    return means, max(_ROUNDING, squares / df)


_Scatter = tuple[float, int]
"""χ² of slices and its degrees of freedom."""


def _share_scatter(slices: Slices, peak: Peak) -> _Scatter:
    """Pearson's χ² of a peak's calls over the time slices of one run."""
    rows = [(sum(_inside(one, peak).values()), sum(one.values())) for one in slices]
    share = sum(k for k, _ in rows) / sum(n for _, n in rows)
    if not 0 < share < 1:
        return 0.0, 0
    chi = sum((k - n * share) ** 2 / (n * share * (1 - share)) for k, n in rows)
    return chi, len(rows) - 1


def _mean_scatter(slices: Slices, peak: Peak) -> _Scatter:
    """The same for the mean bin of these calls."""
    rows = [inside for one in slices if (inside := _inside(one, peak))]
    rows = [inside for inside in rows if sum(inside.values())]
    if len(rows) < 2:
        return 0.0, 0
    counts = [sum(row.values()) for row in rows]
    means = [sum(b * n for b, n in row.items()) / k for row, k in zip(rows, counts, strict=True)]
    mean = sum(m * k for m, k in zip(means, counts, strict=True)) / sum(counts)
    within = sum(
        n * (b - m) ** 2 for row, m in zip(rows, means, strict=True) for b, n in row.items()
    )
    variance = max(_ROUNDING, within / max(1, sum(counts) - len(rows)))
    between = sum(k * (m - mean) ** 2 for m, k in zip(means, counts, strict=True))
    return between / variance, len(rows) - 1


def _dispersion(scatters: Sequence[_Scatter]) -> tuple[float, int]:
    """φ = max(1, χ²/df) of both runs, or of the one that has slices, and how well it is known; a
    df of 0 where nothing tells."""
    df = sum(one for _, one in scatters)
    if not df:
        return 1.0, 0
    return max(1.0, sum(chi for chi, _ in scatters) / df), df


def _two_sided(t: float, df: int) -> float:
    """The chance of a value that is as far from 0. ``df`` says how well φ is known, by which it
    was divided (Student's t; Wallace's approximation)."""
    z = (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t * t / df)) if df else t
    return math.erfc(z / math.sqrt(2))


def _quantile(p: float) -> float:
    """Of the normal distribution, by halving."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        if 0.5 * math.erfc(-middle / math.sqrt(2)) < p:
            low = middle
        else:
            high = middle
    return high


def _rounded_up(calls: float) -> int:
    """To one digit: what is needed is an estimate."""
    digit: int = 10 ** math.floor(math.log10(max(calls, 1.0)))
    return math.ceil(calls / digit) * digit
