"""The profile that a peak is chosen in, and what is counted on beside it."""

from __future__ import annotations

from typing import Any

import pytest

from darc.analyses.peakprofile import PeakProfile
from darc.model.errors import UsageError
from darc.model.parameters import Parameters
from darc.model.peaks import PeakRange, find_peaks
from darc.model.profile import Profile, thresholds
from tests.unit import samples

BINS = samples.BINS
TABLE = thresholds(1)


def taken(peak: PeakRange | None = None, seconds: float = 2.0) -> PeakProfile:
    known = PeakProfile(Profile.empty(1, samples.HZ), peak)
    known.take(samples.profile(BINS), seconds, is_searching=False)
    return known


def chosen(spec: str, bins: dict[int, int] = BINS) -> PeakProfile:
    known = PeakProfile(Profile.empty(1, samples.HZ), None)
    known.take(samples.profile(bins), 2.0, is_searching=False)
    assert known.choose(spec)
    return known


def test_what_the_search_adds_leaves_the_profile_that_the_peak_was_chosen_in() -> None:
    known = chosen("2")
    more = samples.profile(BINS | {19: 120, 30: 4})
    known.take(more, 9.0, is_searching=True)
    assert known.at_choice.bins == BINS
    assert known.seconds == 2.0
    assert known.grown is more
    assert [peak.count for peak in known.peaks()] == [1875, 120, 31]


@pytest.mark.parametrize(
    ("since", "told"),
    [
        ({12: 1500, 19: 95, 24: 20}, None),
        ({12: 1500, 19: 95, 24: 40}, None),  # they come in bursts
        ({12: 1500, 19: 95, 24: 0}, "none of its 1595 calls since the search began"),
        ({12: 1500, 19: 95, 22: 30}, None),  # they may have come short of it by what probes took
        ({12: 40000, 19: 900, 24: 20}, "20 of its 40920 calls since the search began came into"),
        ({12: 9000, 19: 900, 24: 60}, None),  # a third: they come in bursts
        ({12: 300, 19: 20, 24: 0}, None),  # so few may have none
        ({12: 500, 19: 95, 24: 1000}, "1000 of its 1595 calls since the search began came into"),
        ({}, None),
    ],
)
def test_calls_that_come_into_the_peak_as_they_had_not_are_told(
    since: dict[int, int], told: str | None
) -> None:
    known = chosen("last")
    both = {b: BINS.get(b, 0) + since.get(b, 0) for b in BINS.keys() | since.keys()}
    known.take(samples.profile(both), 9.0, is_searching=True)
    said = known.told_of_search("handle")
    assert (said is None) if told is None else (said is not None and told in said), said


@pytest.mark.parametrize(
    ("since", "is_told"),
    [
        ({4: 30, 11: 900}, True),
        ({4: 5, 8: 5, 11: 990}, True),
        ({4: 9, 11: 900}, False),  # as few as may be
        ({4: 30, 11: 9000}, False),
        ({9: 300, 11: 900}, False),  # not far enough
        ({}, False),
    ],
)
def test_calls_that_seem_to_take_less_than_any_before_the_search_are_told(
    since: dict[int, int], *, is_told: bool
) -> None:
    """No call was below 1 µs, and a hill at 10 ns stands in the histogram."""
    known = chosen("last")
    assert min(BINS) == 11
    both = {b: BINS.get(b, 0) + since.get(b, 0) for b in BINS.keys() | since.keys()}
    known.take(samples.profile(both), 9.0, is_searching=True)
    said = known.told_of_fast("handle")
    fast = sum(count for number, count in since.items() if number < 9)
    if is_told:
        assert said is not None
        assert said.startswith(f"handle: {fast} of its {sum(since.values())} calls")
    else:
        assert said is None


def test_calls_that_count_as_the_fastest_are_told_with_those_that_seem_faster() -> None:
    known = chosen("last")
    both = {b: BINS.get(b, 0) + (b == 11) * 900 for b in BINS}
    known.take(samples.profile(both), 9.0, is_searching=True)
    assert known.told_of_fast("handle") is None
    assert known.told_of_fast("handle", overdrawn=5) is None
    said = known.told_of_fast("handle", overdrawn=90)
    assert said is not None
    assert said.startswith("handle: 90 of its 900 calls since")


def test_the_fastest_calls_are_those_of_the_first_peak() -> None:
    """An outlier is none."""
    assert chosen("last").fastest == TABLE[11]
    assert chosen("last", BINS | {3: 1}).fastest == TABLE[11]
    assert PeakProfile(Profile.empty(1, samples.HZ), None).fastest == 0


def test_peaks_that_are_not_there_are_not_chosen() -> None:
    known = taken()
    assert not known.choose("7")
    assert not known.choose("15-16"), "no calls are in these bins"
    with pytest.raises(UsageError):
        known.choose("the slow one")
    assert known.peak is None


def test_a_peak_that_was_chosen_before_is_kept() -> None:
    peak = PeakRange(3, 23, None)
    assert taken(peak).peak == peak


def test_limits_are_those_of_its_bins() -> None:
    low, high = chosen("19-19").limits()
    assert (low, high) == (TABLE[19], TABLE[20])


def test_the_last_peak_has_no_upper_limit() -> None:
    low, high = chosen("last").limits()
    assert low == TABLE[23]
    assert high == TABLE[-1]


def test_it_is_held_against_the_fastest_peak() -> None:
    assert chosen("2").limits_of_fastest() == (TABLE[11], TABLE[13])
    assert chosen("12-30").limits_of_fastest() == (TABLE[11], TABLE[12]), "they do not overlap"
    assert chosen("1").limits_of_fastest() == (0, 0)


@pytest.mark.parametrize(
    ("bins", "spec", "within"),
    [
        ({12: 380, 27: 20}, "last", (TABLE[19], TABLE[21])),  # halfway, as factors
        # Some fast ones were preempted as well, up to bin 23.
        ({13: 9, 14: 300, 15: 90, 16: 20, 17: 6, 18: 3, 19: 2, 20: 2, 21: 1, 22: 1, 23: 1, 26: 39},
         "last", (TABLE[20], TABLE[21])),
        ({17: 50, 18: 300, 19: 200, 20: 150, 21: 100, 24: 39}, "last", (TABLE[22], TABLE[22])),
        ({12: 380, 24: 40, 27: 20}, "last", (TABLE[25], TABLE[27])),  # slow ones that ran
        ({12: 380, 24: 40, 27: 20}, "2", (TABLE[17], TABLE[19])),
        ({18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}, "last",
         (TABLE[20], TABLE[22])),
        ({12: 380, 27: 20}, "1", (TABLE[12], TABLE[12])),
        ({12: 380, 13: 20}, "13-14", (TABLE[12], TABLE[13])),
    ],
)  # fmt: skip
def test_what_is_no_fast_call(bins: dict[int, int], spec: str, within: tuple[int, int]) -> None:
    """Also of calls that would not reach the peak if their threads had not lost the processor."""
    first, last = within
    assert first <= chosen(spec, bins).slow_from() <= last


BUSY = {15: 40, 16: 300, 17: 90, 18: 30, 19: 20, 20: 20, 21: 20, 22: 30, 23: 12, 25: 40}
"""Calls of one peak, of which every fifth lost its processor, and slow ones."""


@pytest.mark.parametrize(
    ("bins", "own_times", "within"),
    [
        (BUSY, [], (TABLE[23], TABLE[24])),
        (BUSY, [TABLE[16]] * 32, (TABLE[20], TABLE[21])),  # halfway, as factors
        (BUSY, [TABLE[16]] * 31 + [TABLE[24]], (TABLE[23], TABLE[24])),  # never later than by it
        (
            {18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9},
            [TABLE[18]] * 32,
            (TABLE[20] + 1, TABLE[22]),
        ),  # a tail
        (BUSY, [TABLE[16]] * 24 + [TABLE[22]] * 8, (TABLE[22] + 1, TABLE[22] + 1)),
        (BUSY, [TABLE[16]] * 7, (TABLE[23], TABLE[24])),  # too few
        ({12: 380, 24: 40, 27: 20}, [TABLE[12]] * 32, (TABLE[19], TABLE[21])),  # slow ones between
        ({12: 380, 27: 20}, [TABLE[26]] * 32, (TABLE[19], TABLE[21])),  # never later than by it
    ],
)
def test_what_is_no_fast_call_where_fast_ones_are_preempted_too(
    bins: dict[int, int], own_times: list[int], within: tuple[int, int]
) -> None:
    """What they took without that tells how long they are."""
    first, last = within
    assert first <= chosen("last", bins).slow_from(own_times) <= last


def test_peaks_that_the_user_has_seen_before_and_are_not_there() -> None:
    before = find_peaks({12: 99_000, 20: 200, 27: 20})
    told = chosen("1", {12: 98, 20: 2}).told_of_missing(before, "handle") or ""
    assert "none of these 100 calls is in what was peak 3 (from 52ms on) of its row" in told
    assert chosen("1", {12: 98, 20: 2, 27: 1}).told_of_missing(before, "handle") is None


def test_what_the_last_of_one_peak_is() -> None:
    tail = {18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}
    assert chosen("last", tail).told_of_last("last", "handle") == (
        "handle has one peak, with a tail: these are the calls of the tail, from 3.2ms on, 29 of "
        "1659; '--peak 1' takes all"
    )
    assert chosen("last", {18: 900}).told_of_last("last", "handle") == (
        "handle has one peak, without a tail to speak of: these are all its calls"
    )
    few = PeakProfile(Profile.empty(1, samples.HZ), None)
    few.take(samples.profile({18: 100}), 0.025, is_searching=False)
    assert few.choose("last")
    told = few.told_of_last("last", "handle") or ""
    assert "these are all its calls, 100 in 25ms; '--start-time 5s' looks for slow ones" in told
    assert (
        "has one peak, and 2 calls lie far to the right of it, too few for another one: these"
        in (chosen("last", {18: 100, 28: 2}).told_of_last("last", "handle") or "")
    )
    assert chosen("1", tail).told_of_last("1", "handle") is None
    assert chosen("last").told_of_last("last", "handle") is None, "of several"


@pytest.mark.parametrize(
    ("bins", "seconds", "expected"),
    [
        ({18: 100}, 0.027, True),
        ({18: 4000}, 1.2, False),  # long enough
        ({18: 95, 26: 5}, 0.027, False),  # slow ones were there
        ({18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}, 0.1, False),  # a tail
        ({12: 93, 13: 3, 16: 2, 24: 2}, 0.01, True),  # two, which have most of the time
        ({12: 60, 16: 39, 24: 1}, 0.01, False),  # beside two peaks, of which one is slow
        ({12: 93, 13: 3, 16: 2, 24: 2}, 1.2, False),
        ({16: 60, 20: 39, 24: 1}, 0.01, False),  # one that was preempted
        ({10: 40, 11: 26, 12: 25, 13: 24, 14: 16}, 0.01, True),  # of what is no tail
    ],
)
def test_a_hundred_calls_that_are_all_alike(
    bins: dict[int, int], seconds: float, expected: bool
) -> None:
    """They may have come in a few milliseconds: that is no reason to believe that all are so."""
    known = PeakProfile(Profile.empty(1, samples.HZ), None)
    known.take(samples.profile(bins), seconds, is_searching=False)
    assert known.may_lack_slow_calls("last") == expected


def test_who_chooses_sees_a_few_slow_calls_without_waiting_for_more() -> None:
    known = PeakProfile(Profile.empty(1, samples.HZ), None)
    known.take(samples.profile({12: 90, 13: 5, 14: 2, 15: 2, 24: 1}), 0.01, is_searching=False)
    assert known.may_lack_slow_calls("last")
    assert not known.may_lack_slow_calls(None)


def test_how_often_it_is_seen() -> None:
    known = chosen("2")
    assert known.in_peak == 94
    assert known.in_peak_per_second == 47.0
    assert known.calls_per_second == 1000.0


def test_it_is_looked_at_when_it_is_time() -> None:
    known, reads = taken(), []

    def read() -> Profile:
        reads.append(1)
        return samples.profile(BINS)

    wait = known.look(0.0, read)
    assert wait > 0
    assert not reads
    assert known.look(wait, read) > 0
    assert len(reads) == 1


def test_a_percentile_that_says_little_of_slow_calls() -> None:
    def told(spec: str, bins: dict[int, int]) -> str:
        return chosen(spec, bins).told_of_percentile(spec, "handle") or ""

    assert told("p99", {13: 1979, 23: 21}) == "", "as many as it takes"
    assert told("p99.9", {16: 19_919, 23: 81}) == "", "a peak of its own, with some more calls"
    few = told("p99", {13: 99, 23: 2})
    assert "2 of 101 calls are at p99 or beyond" in few
    assert "'--start-ops 2000'" in few
    many = told("p99", {13: 1992, 23: 8})
    assert "2000 of 2000 calls are in its bin or beyond" in many
    assert "'--peak last'" in many
    assert told("last", {13: 99, 23: 1}) == ""


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({"peak": "p99"}, 2000),
        ({"peak": "p99.9"}, 20_000),
        ({"peak": "p50"}, 100),
        ({"peak": "last"}, 100),
        ({"peak": "p99", "start_ops": 300}, 300),
    ],
)
def test_a_percentile_waits_for_calls_beyond_it(given: dict[str, Any], calls: int) -> None:
    assert Parameters(**given).profile_calls == calls
