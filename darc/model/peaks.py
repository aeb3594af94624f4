"""Peaks of a profile, found as a person sees them (paper section 3).

A profile is looked at with both axes logarithmic. There a peak is a hill, and two hills are two
peaks when the ground between them lies clearly lower than both, by more than chance would have it.
Nothing here knows of cycles or times: only the shape counts.

- *Valleys.* A bin parts two hills when it holds at most a third of the lower summit, and such bins
  are together too empty for a single hill (a deviance of 10, about 3 standard deviations; more at
  higher resolutions, where there are more places to look). The lowest bin of a valley that holds
  calls belongs to the peak on its left.
- *Empty bins.* More than one octave of them always parts. Less does so only where calls were to
  be expected: one empty bin between two bins with 2 calls each is chance, between two with 50 it
  is not.
- *Outliers.* A hill that is too small beside the largest one is no peak: one of m calls is too
  small beside 4^(m+1). So it is with single calls far to the right of a profile of thousands, but
  not with two calls in all. Where an outlier touches a peak it is part of it; otherwise its bins
  belong to no peak, and ``last`` passes over it.
- *Few calls* that are spread over the many bins of a high resolution are seen in wider bins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from darc.model.errors import UsageError
from darc.model.profile import OCTAVES, Profile, bin_of, parse_time, possible_bins

LAST_PEAK = "last"
"""What is typed for the slowest peak, whichever that is."""

_VALLEY = 3
_DEVIANCE = 10.0
_SHIFT = 2
"""Octaves by which probes may move a call."""

_TAIL = 3
"""Octaves from a summit on which make a tail."""

_LEAST_OF_TIME = 0.01
"""Part of the time of all calls that a tail takes. Any function has calls that an interrupt came
into."""

_ENOUGH = 100
"""Calls that are seen in bins one octave wide, whatever the resolution."""


@dataclass(frozen=True)
class Peak:
    """A hill of a profile. Bins are inclusive; peaks do not overlap."""

    number: int
    """1 is the leftmost, the fastest."""
    first_bin: int
    last_bin: int
    count: int
    """Calls in its bins."""


@dataclass(frozen=True)
class PeakRange:
    """The bins of the peak to explain."""

    number: int | None
    """The peak's number; None when the bins were given by hand."""
    first_bin: int
    last_bin: int | None
    """Inclusive; None when the range is open to the right."""

    def __contains__(self, bin_number: int) -> bool:
        return self.first_bin <= bin_number and (
            self.last_bin is None or bin_number <= self.last_bin
        )

    def calls_in(self, bins: Mapping[int, int]) -> int:
        """How many of the calls by bin number are in it."""
        return sum(count for number, count in bins.items() if number in self)


def find_peaks(bins: Mapping[int, int], resolution: int = 1) -> tuple[Peak, ...]:
    """The peaks of a histogram of latencies, leftmost first.

    ``bins`` are calls by bin number at ``resolution`` (bins for each doubling of the latency). A
    histogram that holds any call has a peak. Calls in bins that are in no peak are outliers.
    """
    filled = {b: n for b, n in bins.items() if n > 0}
    if not filled:
        return ()
    width = _width(sum(filled.values()), resolution)
    # Bins that no latency can fall into are no gaps.
    possible = {*possible_bins(resolution, min(filled), max(filled)), *filled}
    columns = [list(group) for _, group in groupby(sorted(possible), lambda b: b // width)]
    counts = [sum(filled.get(b, 0) for b in column) for column in columns]
    octave = max(1, round(resolution / width))
    hills = _without_outliers(_find_hills(counts, octave), counts, octave)
    peaks = []
    for number, hill in enumerate(hills, 1):
        inside = [
            b for column in columns[hill.first : hill.last + 1] for b in column if b in filled
        ]
        peaks.append(Peak(number, inside[0], inside[-1], hill.count(counts)))
    return tuple(peaks)


LEAST_BEYOND = 20
"""Calls that a peak by a percentile is to have behind it: the slowest one of 100 is any call that
was preempted."""


def _width(calls: int, resolution: int) -> int:
    """How many bins to look at as one: few calls, spread over many bins, are all noise."""
    return min(resolution, max(1, round(resolution * math.sqrt(_ENOUGH / calls))))


def choose_peak(spec: str, profile: Profile) -> PeakRange | None:
    """The bins that ``spec`` means in ``profile``; None when that peak is not there (yet).

    - ``3``: the third peak from the left; open to the right when it is the last one.
    - ``last``: the last peak, open to the right; where there is only one, its tail, if it has one.
    - ``last of 17-64``: the last peak, if it begins in these bins, else these bins: what was the
      last peak of fewer calls may be several of more.
    - ``17-19``: these bins, inclusive, whether they hold calls or not. Open to the right when they
      reach up to the last bin that there is.
    - ``>4ms``: from the bin that contains this time on, so that no slower call is missed; that
      bin also holds calls that are somewhat faster. Open to the right.
    - ``p99``: from the bin of the call that 99 % of the calls do not exceed. Open to the right.

    Raises :class:`~darc.model.errors.UsageError` for anything else and for bins that do not exist.
    """
    text = spec.strip()
    if text == LAST_PEAK:
        peaks = find_peaks(profile.bins, profile.resolution)
        tail = tail_of(peaks, profile)
        return _nth(peaks, -1) if tail is None else PeakRange(None, tail[1], None)
    if re.fullmatch(r"[0-9]+", text):
        if int(text) < 1:
            raise UsageError("there is no peak 0; peaks are numbered from 1, the leftmost")
        return _nth(find_peaks(profile.bins, profile.resolution), int(text) - 1)
    if match := re.fullmatch(r"(last of )?([0-9]+)\s*-\s*([0-9]+)", text):
        bins = _by_hand(int(match[2]), int(match[3]), profile)
        last = _nth(find_peaks(profile.bins, profile.resolution), -1) if match[1] else None
        return bins if last is None or last.first_bin not in bins else last
    if text.startswith(">"):
        cycles = parse_time(text[1:]) * profile.hz
        return PeakRange(None, bin_of(round(cycles), profile.resolution), None)
    if (percent := percentile(text)) is not None:
        first = profile.quantile_bin(percent / 100)
        return None if first is None else PeakRange(None, first, None)
    raise UsageError(
        f"'{spec}' is not a peak; give its number, last, bins as in 17-19, a time as in >4ms, "
        "or a percentile as in p99"
    )


def percentile(spec: str) -> float | None:
    """The 99 of ``p99``; ``None`` where the spec is no percentile. Raises UsageError: there is no
    such one."""
    text = spec.strip()
    if (match := re.fullmatch(r"p([0-9]+(?:\.[0-9]+)?)", text)) is None:
        return None
    percent = float(match[1])
    if not 0 < percent < 100:
        raise UsageError(f"percentile {text}: give one between p0 and p100, such as p99.9")
    return percent


def calls_for(percent: float) -> int:
    """How many calls to see for :data:`LEAST_BEYOND` beyond this percentile."""
    return math.ceil(LEAST_BEYOND / (1 - percent / 100) - 1e-6)


def _nth(peaks: Sequence[Peak], index: int) -> PeakRange | None:
    if index >= len(peaks) or not peaks:
        return None
    peak = peaks[index]
    return PeakRange(peak.number, peak.first_bin, None if peak is peaks[-1] else peak.last_bin)


def reach(peak: PeakRange, profile: Profile) -> int | None:
    """The last bin whose calls are in-peak during the search; None when there is no last one.

    Empty bins on the right of a peak that was found, up to two octaves, are its own: what probes
    inside a call leave of their cost makes short calls longer than they were in the profile.
    """
    last = peak.last_bin
    if last is None or peak.number is None:
        return last
    beyond = [number for number, count in profile.bins.items() if count and number > last]
    return min([last + _SHIFT * profile.resolution, *(number - 1 for number in beyond)])


def far_right(peaks: Sequence[Peak], bins: Mapping[int, int]) -> int:
    """Calls to the right of the last peak, too few for one of their own."""
    return sum(count for number, count in bins.items() if number > peaks[-1].last_bin)


def far_right_text(count: int) -> str:
    """That so many lie there."""
    return f"{'1 call lies' if count == 1 else f'{count} calls lie'} far to the right"


def is_most_far_right(peaks: Sequence[Peak], profile: Profile) -> bool:
    """Whether calls to the right of the last peak, too few for one of their own, take most of the
    time."""
    far = {b: n for b, n in profile.bins.items() if peaks and b > peaks[-1].last_bin}
    return bool(far) and 2 * _time(far, profile) >= _time(profile.bins, profile)


def least_calls(largest: int) -> int:
    """How many calls a peak has at least, beside a largest one of so many."""
    return max(1, (largest.bit_length() - 1) // 2)


def tail_of(peaks: Sequence[Peak], profile: Profile) -> tuple[int, int] | None:
    """Where the only peak goes on far to the right of its summit: its last bin, and the one from
    which on calls may be called slow, an octave below; or more, for as many calls as make a peak.
    ``None`` where there are not as many, or where they take next to none of the time."""
    if len(peaks) != 1:
        return None
    peak = peaks[0]
    inside = {b: n for b, n in profile.bins.items() if peak.first_bin <= b <= peak.last_bin}
    summit = max(inside, key=lambda b: (inside[b], -b))
    if peak.last_bin - summit < _TAIL * profile.resolution:
        return None
    for first in range(peak.last_bin - profile.resolution, summit + profile.resolution, -1):
        tail = {b: n for b, n in inside.items() if b >= first}
        if sum(tail.values()) >= least_calls(peak.count):
            is_much = _time(tail, profile) >= _LEAST_OF_TIME * _time(inside, profile)
            return (peak.last_bin, first) if is_much else None
    return None


def _time(bins: Mapping[int, int], profile: Profile) -> float:
    return sum(count * profile.mean_cycles(number) for number, count in bins.items())


def _by_hand(first: int, last: int, profile: Profile) -> PeakRange:
    largest = OCTAVES * profile.resolution
    if first > last:
        raise UsageError(f"bins {first}-{last}: give the lower one first, as in {last}-{first}")
    if last > largest:
        raise UsageError(
            f"bins {first}-{last}: the last bin at resolution {profile.resolution} is {largest}"
        )
    return PeakRange(None, first, None if last == largest else last)


@dataclass
class _Hill:
    """Bins in a row, as indices into the counts."""

    first: int
    last: int
    summit: int

    def count(self, counts: Sequence[int]) -> int:
        return sum(counts[self.first : self.last + 1])

    def densest(self, counts: Sequence[int], width: int) -> int:
        """Most calls in ``width`` bins in a row."""
        return max(
            sum(counts[i : min(i + width, self.last + 1)]) for i in range(self.first, self.last + 1)
        )


def _find_hills(counts: Sequence[int], octave: int) -> list[_Hill]:
    """Let the water sink: each bin that comes up joins the hills beside it, or parts them."""
    owner: list[_Hill | None] = [None] * len(counts)

    def join(first: int, last: int) -> None:
        left = owner[first - 1] if first > 0 else None
        right = owner[last + 1] if last + 1 < len(counts) else None
        gap = 0 if counts[first] else last - first + 1
        if left and right and (gap > octave or _parted(left, right, counts, octave)):
            if gap:
                return
            right = None
        summits = [first, *(hill.summit for hill in (left, right) if hill)]
        hill = _Hill(
            first=left.first if left else first,
            last=right.last if right else last,
            summit=max(summits, key=lambda i: counts[i]),
        )
        owner[hill.first : hill.last + 1] = [hill] * (hill.last - hill.first + 1)

    filled = [i for i, n in enumerate(counts) if n]
    for i in sorted(filled, key=lambda i: (-counts[i], i)):
        join(i, i)
    gaps = [(a + 1, b - 1) for a, b in pairwise(filled) if b - a > 1]
    for first, last in sorted(gaps, key=lambda gap: gap[1] - gap[0]):
        join(first, last)
    return list({id(hill): hill for hill in owner if hill}.values())


def _parted(left: _Hill, right: _Hill, counts: Sequence[int], octave: int) -> bool:
    """Whether the bins between two summits are too low for these to be one hill."""
    lower = min(counts[left.summit], counts[right.summit])
    evidence = 0.0
    for i in range(left.summit + 1, right.summit):
        expected = max(lower, _chord(counts, i)) if not counts[i] else lower
        if counts[i] * _VALLEY <= expected:
            evidence += _deviance(counts[i], expected)
    return evidence >= _DEVIANCE * math.sqrt(octave)


def _chord(counts: Sequence[int], empty: int) -> float:
    """What an empty bin would hold on a straight line, on the logarithmic axis, across its gap."""
    first = next(i for i in range(empty, -1, -1) if counts[i])
    last = next(i for i in range(empty, len(counts)) if counts[i])
    part = (empty - first) / (last - first)
    return math.exp((1 - part) * math.log(counts[first]) + part * math.log(counts[last]))


def _deviance(seen: int, expected: float) -> float:
    """How unlikely a count is, as Poisson deviance: about a squared standard score."""
    return 2 * (expected - seen + (seen * math.log(seen / expected) if seen else 0.0))


def _without_outliers(hills: Sequence[_Hill], counts: Sequence[int], octave: int) -> list[_Hill]:
    largest = max(hill.count(counts) for hill in hills)
    needed = least_calls(largest)
    # On the logarithmic axis a single call has no height: a row of them is no hill either.
    height = 1 if needed == 1 else max(2, (needed + 1) // 2)
    peaks: list[_Hill] = []
    loose: _Hill | None = None
    for hill in hills:
        if hill.count(counts) < needed or hill.densest(counts, octave) < height:
            if peaks and peaks[-1].last + 1 == hill.first:
                peaks[-1].last = hill.last
            else:
                loose = hill
        else:
            if loose and loose.last + 1 == hill.first:
                hill.first = loose.first
            peaks.append(hill)
    return peaks
