"""The profile that a peak is chosen in, and what is counted on beside it."""

from __future__ import annotations

import pytest

from darc.analyses.peakprofile import PeakProfile
from darc.model.errors import UsageError
from darc.model.peaks import PeakRange
from darc.model.profile import Profile, thresholds
from tests.unit import samples

BINS = samples.BINS
TABLE = thresholds(1)


def taken(peak: PeakRange | None = None, seconds: float = 2.0) -> PeakProfile:
    known = PeakProfile(Profile.empty(1, samples.HZ), peak)
    known.take(samples.profile(BINS), seconds, is_searching=False)
    return known


def chosen(spec: str) -> PeakProfile:
    known = taken()
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
