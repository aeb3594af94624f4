"""The profile of f0, and the peak in it that is chosen to be explained."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from darc.model.ops import LEAST_FOR_ESTIMATES
from darc.model.peaks import (
    LAST_PEAK,
    LEAST_BEYOND,
    Peak,
    PeakRange,
    calls_for,
    choose_peak,
    far_right,
    far_right_text,
    find_peaks,
    is_most_far_right,
    percentile,
    reach,
)
from darc.model.profile import LONGEST, Profile, format_cycles, thresholds
from darc.model.slices import TimeSlices
from darc.search.lookahead import level_by_level

_LEAST_SECONDS = 1e-3

LONG_SECONDS = 1.0
"""In which calls that are slow now and then are seen as a rule."""

_RARE = 0.2
"""Of the calls, at most, are slow now and then."""

_MOST = 0.95
"""Of the calls of a peak: those beyond may be fast ones that were preempted."""

_MANY_MORE = 4
"""Times the calls beyond a percentile that its bin and those above may have, or"""

_MANY = 0.05
"""that part of all calls: slow ones that are a few more are what is asked for."""

_EXPECTED = 10
"""Calls of the peak, of which none coming is told."""

_RARER = 10
"""Times as seldom as by the profile: then the search waits for calls that hardly come any more."""

_MORE_OFTEN = 3
"""Times as often as it may be by the profile: then calls come into the peak too often for it."""


_FASTER = 2
"""Octaves below the fastest call of the profile: so short are calls of which too much was taken
out."""

_FEW = 0.01
"""Of the calls since the search began may be as short, unless more were seen before."""


class PeakProfile:
    """Two profiles of f0: that up to the beginning of the search, whose calls had no timed ones
    inside and whose peaks keep their numbers; and that of all calls."""

    def __init__(self, empty: Profile, peak: PeakRange | None) -> None:
        """``peak`` is chosen already where a session is resumed."""
        self._at_choice = self._grown = self._looked_at = empty
        self._peak = peak
        self._seconds = 0.0
        self._time_slices = TimeSlices()
        self._slices: tuple[Mapping[int, int], ...] = ()

    @property
    def at_choice(self) -> Profile:
        """Of the calls up to the beginning of the search."""
        return self._at_choice

    @property
    def grown(self) -> Profile:
        """Of all calls."""
        return self._grown

    @property
    def peak(self) -> PeakRange | None:
        """What is to be explained; ``None``: nothing was chosen yet."""
        return self._peak

    @property
    def seconds(self) -> float:
        """For how long the program ran while :attr:`at_choice` was collected."""
        return self._seconds

    @property
    def slices(self) -> tuple[Mapping[int, int], ...]:
        """The calls of :attr:`at_choice` by bin, in turns of time."""
        return self._slices

    def take(self, profile: Profile, seconds: float, *, is_searching: bool) -> None:
        """All calls up to now, after so many seconds that the program ran."""
        self._grown = profile
        if not is_searching:
            self._at_choice = profile
            self._seconds = seconds
            self._slices = self._time_slices.take(profile.bins)

    def look(self, seconds: float, profile: Callable[[], Profile]) -> float:
        """Before the search: takes down how it grows, if it is time for that; ``profile`` reads it.
        Tells in how many seconds that is. Any thread."""
        if seconds >= self._time_slices.next_look:
            self._looked_at = profile()
            self._time_slices.look(seconds, self._looked_at.bins)
        return max(0.0, self._time_slices.next_look - seconds)

    def lost(self) -> None:
        """The program has taken its counts with it: what the latest look has shown is known."""
        if self._looked_at.count > self._grown.count:
            self._grown = self._looked_at

    # ------------------------------------------------------------------ the peak

    def choose(self, spec: str) -> bool:
        """Whether there is the peak that ``spec`` means, with calls in it; then it is chosen.

        Raises:
            UsageError: that is not of the form of a peak.
        """
        peak = choose_peak(spec, self._at_choice)
        if peak is None or not any(number in peak for number in self._at_choice.bins):
            return False
        self._at_choice.check()
        self._peak = peak
        return True

    def may_lack_slow_calls(self, spec: str | None) -> bool:
        """Whether it is of so short a time that slow calls may just not have come: there is one
        peak, and no more beyond than so many of its calls that they are part of it. Where it is
        not the user who looks at it (``last``), also where there are a few that take most of the
        time, and would make a peak if they were more. Not where several peaks have shown
        themselves: a short program may end meanwhile."""
        found, profile = self._found(), self._at_choice
        far, bins = choose_peak(LAST_PEAK, profile), profile.bins
        if self._seconds >= LONG_SECONDS or len(found) > 1 or far is None:
            return False
        if spec == LAST_PEAK and is_most_far_right(found, profile):
            return True
        return far.number is not None or far.calls_in(bins) > _RARE * sum(bins.values())

    def calls_in_long(self) -> int:
        """How many calls come in :data:`LONG_SECONDS`, if they come as often as up to now."""
        return math.ceil(self._at_choice.count * LONG_SECONDS / max(self._seconds, _LEAST_SECONDS))

    def told_of_last(self, spec: str | None, function: str) -> str | None:
        """What ``last`` has taken of a profile of ``function`` that has one peak only."""
        if spec != LAST_PEAK or self._peak is None or len(self._found()) > 1:
            return None
        if self._peak.number is not None:
            far = far_right(self._found(), self._at_choice.bins)
            beyond = "without a tail to speak of"
            if far:
                beyond = f"and {far_right_text(far)} of it, too few for another one"
            told = f"{function} has one peak, {beyond}: these are all its calls"
            if self._seconds >= LONG_SECONDS and not far:
                return told
            took = format_cycles(round(self._seconds * self._at_choice.hz), self._at_choice.hz)
            return (
                f"{told}, {self._at_choice.count} in {took}; '--start-time 5s' looks for slow ones "
                "that are rarer"
            )
        low = format_cycles(self.limits()[0], self._at_choice.hz)
        calls = f"{self.in_peak} of {self._at_choice.count}"
        return (
            f"{function} has one peak, with a tail: these are the calls of the tail, "
            f"from {low} on, {calls}; '--peak 1' takes all"
        )

    def told_of_percentile(self, spec: str, function: str) -> str | None:
        """Where a percentile of a profile of ``function`` says little of slow calls."""
        percent = percentile(spec)
        if percent is None or self._peak is None:
            return None
        count, name = self._at_choice.count, spec.strip()
        beyond = count * (1 - percent / 100)
        if self.in_peak > max(_MANY_MORE * max(beyond, 1), _MANY * count):
            return (
                f"{function}: the call at {name} is about as long as many others: {self.in_peak} "
                f"of {count} calls are in its bin or beyond; '--peak last' or a higher percentile "
                "takes slower ones"
            )
        if round(beyond) < LEAST_BEYOND and self.in_peak < LEAST_BEYOND:
            return (
                f"{function}: {self.in_peak} of {count} calls are at {name} or beyond, which may "
                f"be any: '--start-ops {calls_for(percent)}' sees enough"
            )
        return None

    def told_of_search(self, function: str) -> str | None:
        """Where the calls of ``function`` since the search began come into the peak as they should
        not, by the profile: as good as never, far more seldom, or far more often."""
        if self._peak is None:
            return None
        before, count = self.in_peak, self._at_choice.count
        since = self._grown.count - count
        now = self._peak.calls_in(self._grown.bins) - before
        next_to = self._peak.first_bin - 1  # what probes take is known to an eighth
        near = self._grown.bins.get(next_to, 0) - self._at_choice.bins.get(next_to, 0)
        if not now and not near and before * since >= _EXPECTED * count > 0:
            return (
                f"{function}: none of its {since} calls since the search began came into the "
                f"peak, as {before} of {count} had done: the program does something else now, or "
                "its calls wait until a time that a clock shows, and what the probes of their "
                "calls take is taken out of that"
            )
        if before * since >= _RARER * count * (now + 3 * math.sqrt(now) + 3) > 0:
            return (
                f"{function}: {now} of its {since} calls since the search began came into the "
                f"peak, and {before} of {count} before: slow calls have become rare, or the "
                "program does something else now"
            )
        most = before + 3 * math.sqrt(before) + 3
        if now * count > _MORE_OFTEN * most * since > 0:
            return (
                f"{function}: {now} of its {since} calls since the search began came into the "
                f"peak, and {before} of {count} before: the program does something else now, or "
                "calls that are fast otherwise reach it; '--peak' of slower ones leaves these out"
            )
        return None

    def told_of_fast(self, function: str, overdrawn: int = 0) -> str | None:
        """Where many calls of ``function`` since the search began seem to take far less than any
        before it, in which nothing was timed; ``overdrawn`` are in the profile as if they took as
        long as these."""
        before, least = self._at_choice, min(self._at_choice.bins, default=0)
        since = self._grown.count - before.count
        below = least - _FASTER * before.resolution
        fast = sum(count for number, count in self._grown.bins.items() if number < below)
        fast += overdrawn
        if since <= 0 or fast < max(LEAST_FOR_ESTIMATES, _FEW * since):
            return None
        low = format_cycles(before.low(least), before.hz)
        calls = max(
            since, fast
        )  # some that were overdrawn are not counted, as they came after a stop
        return (
            f"{function}: {fast} of its {calls} calls since the search began seem to take far less "
            f"than any before, all of which took {low} or more: more is taken out of these for the "
            "probes inside than they cost, or the program does something else now"
        )

    def told_of_missing(self, peaks: Sequence[Peak], function: str) -> str | None:
        """Which of these ``peaks``, at one bin a doubling, that the user has seen of ``function``
        have none of these calls."""
        profile, each = self._at_choice, self._at_choice.resolution
        seen = {number // each for number in profile.bins}
        missing = [p for p in peaks if seen.isdisjoint(range(p.first_bin, p.last_bin + 1))]
        if not missing:
            return None
        which = ", ".join(
            f"{one.number} (from {format_cycles(2**one.first_bin, profile.hz)} on)"
            for one in missing
        )
        return (
            f"{function}: none of these {profile.count} calls is in what was peak {which} of its "
            "row: '--start-ops' takes more"
        )

    @property
    def in_peak(self) -> int:
        """Calls in it up to the beginning of the search."""
        assert self._peak is not None
        return self._peak.calls_in(self._at_choice.bins)

    @property
    def calls_per_second(self) -> float:
        """How often f0 was called meanwhile."""
        return self._at_choice.count / max(self._seconds, _LEAST_SECONDS)

    @property
    def in_peak_per_second(self) -> float:
        """How often with a latency inside the peak."""
        return self.in_peak / max(self._seconds, _LEAST_SECONDS)

    def goes_level_by_level(self, decision_ops: int | None, probe_cost: int) -> bool:
        """What ``--lookahead auto`` means for the peak (see :mod:`darc.search.lookahead`)."""
        seconds = max(self._seconds, _LEAST_SECONDS)
        return level_by_level(
            self._at_choice,
            self.in_peak,
            seconds=seconds,
            decision_ops=decision_ops,
            probe_cost=probe_cost,
        )

    def limits(self) -> tuple[int, int]:
        """Of the peak, in cycles: calls of at least the first and less than the second are in
        it."""
        assert self._peak is not None
        table = thresholds(self._at_choice.resolution)
        last = reach(self._peak, self._at_choice)
        return table[self._peak.first_bin], LONGEST if last is None else table[last + 1]

    @property
    def fastest(self) -> int:
        """Where the fastest calls of before the search begin that are a peak, in cycles; 0: there
        are none."""
        peaks = self._found()
        return self._at_choice.low(peaks[0].first_bin) if peaks else 0

    def limits_of_fastest(self) -> tuple[int, int]:
        """The same of the fastest peak, which the chosen one is held against; zeros where it is
        that itself."""
        low, _ = self.limits()
        peaks = self._found()
        table = thresholds(self._at_choice.resolution)
        if not peaks or table[peaks[0].first_bin] >= low:
            return 0, 0
        return table[peaks[0].first_bin], min(table[peaks[0].last_bin + 1], low)

    def mean_below(self) -> float:
        """What the calls that are faster than the peak take on average, in cycles."""
        assert self._peak is not None
        return self._grown.mean_below(self._peak.first_bin)

    def slow_from(self, own_times: Sequence[int] = ()) -> int:
        """Cycles from which on a call is slow, whether it reaches the chosen peak or not: beyond
        most calls of the next faster peak, and nearer to the chosen one than to that one's median,
        as factors. Slow calls that were preempted may leave what they took without that empty; and
        the few fast ones that were reach as far. On a busy machine these are many, and slow ones
        are between them and the chosen peak: ``own_times``, what some of the fastest peak's calls
        took without that, tells there how long calls are that are fast; not of a peak's own tail,
        as too few of them reach as far as most calls."""
        assert self._peak is not None
        low, _ = self.limits()
        profile = self._at_choice
        faster = [peak for peak in self._found() if profile.low(peak.first_bin) < low]
        if not faster:
            return low
        calls = {
            b: n
            for b, n in sorted(profile.bins.items())
            if faster[-1].first_bin <= b <= faster[-1].last_bin and profile.low(b) < low
        }
        middle = round(profile.mean_cycles(_quantile(calls, 0.5)))
        beyond = profile.high(_quantile(calls, _MOST)) + 1
        told = _apart(middle, beyond, low)
        is_tail = faster[0].last_bin >= self._peak.first_bin
        if is_tail or len(own_times) < LEAST_FOR_ESTIMATES:
            return told
        return min(told, _apart(statistics.median_low(own_times), max(own_times) + 1, low))

    def peaks(self) -> tuple[Peak, ...]:
        """Those that there were at the choice, which keep their numbers, with all their calls."""
        bins = self._grown.bins

        def grown(peak: Peak) -> Peak:
            inside = range(peak.first_bin, peak.last_bin + 1)
            return dataclasses.replace(peak, count=sum(bins.get(b, 0) for b in inside))

        return tuple(map(grown, self._found()))

    def _found(self) -> tuple[Peak, ...]:
        return find_peaks(self._at_choice.bins, self._at_choice.resolution)


def _apart(middle: int, beyond: int, low: int) -> int:
    """Cycles that are ``beyond`` most fast calls, and nearer to ``low``, from which on calls are in
    the peak, than to the ``middle`` of the fast ones."""
    return min(low, max(beyond, math.isqrt(middle * low)))


def _quantile(bins: Mapping[int, int], part: float) -> int:
    """The bin, of ``bins`` in order, of the call that such a part of all calls does not exceed."""
    seen, needed = 0, part * sum(bins.values())
    for number, count in bins.items():
        seen += count
        if seen >= needed:
            return number
    return max(bins)
