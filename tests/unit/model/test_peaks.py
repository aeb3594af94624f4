"""Peaks, as a person sees them."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.errors import UsageError
from darc.model.peaks import Peak, PeakRange, choose_peak, find_peaks, reach
from darc.model.profile import Profile, bin_of, possible_bins

HZ = 2_600_000_000
MIXTURE = {11: 1875, 19: 94, 23: 31}

Bins = dict[int, int]
Ranges = list[tuple[int, int]]


def ranges(bins: Bins, resolution: int = 1) -> Ranges:
    return [(peak.first_bin, peak.last_bin) for peak in find_peaks(bins, resolution)]


def profile(bins: Bins, resolution: int = 1) -> Profile:
    return Profile(resolution, HZ, bins, sum(bins.values()))


def hump(
    rng: random.Random, calls: int, centre: float, *, octaves: float, resolution: int
) -> Counter[int]:
    """Calls whose latencies scatter around 2^centre by a factor of 2^octaves."""
    latencies = (2 ** rng.gauss(centre, octaves) for _ in range(calls))
    return Counter(bin_of(int(cycles), resolution) for cycles in latencies)


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({0: 0, 5: 0}, [], id="only zeros"),
        pytest.param({7: 1}, [(7, 7)], id="one call"),
        pytest.param({10: 40, 11: 300, 12: 90, 13: 5}, [(10, 13)], id="one peak"),
        pytest.param(MIXTURE, [(11, 11), (19, 19), (23, 23)], id="three peaks"),
        pytest.param(
            {7: 300, 8: 900, 9: 40, 10: 60, 11: 200, 12: 20, 13: 7, 14: 60, 15: 4},
            [(7, 9), (10, 13), (14, 15)],
            id="the valley belongs to the peak on its left",
        ),
        pytest.param(
            {10: 100, 11: 400, 12: 50, 13: 300, 14: 80}, [(10, 12), (13, 14)], id="touching"
        ),
        pytest.param({10: 400, 11: 200, 12: 400}, [(10, 12)], id="a notch is no valley"),
        pytest.param({10: 6, 11: 2, 12: 6}, [(10, 12)], id="a dip that is noise"),
        pytest.param(
            {10: 1000, 11: 90, 12: 20, 13: 30, 14: 4}, [(10, 14)], id="a shoulder is no peak"
        ),
    ],
)
def test_hills_and_valleys(bins: Bins, expected: Ranges) -> None:
    assert ranges(bins) == expected


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        pytest.param({10: 1, 20: 1}, [(10, 10), (20, 20)], id="two calls in all"),
        pytest.param({10: 1, 13: 1}, [(10, 10), (13, 13)], id="two empty bins part"),
        pytest.param({10: 3, 11: 5, 13: 4, 14: 1}, [(10, 14)], id="one empty bin in a small hump"),
        pytest.param({10: 90, 12: 80}, [(10, 10), (12, 12)], id="one empty bin between many"),
        pytest.param({10: 60, 11: 4, 13: 2, 14: 50}, [(10, 11), (13, 14)], id="between two feet"),
    ],
)
def test_empty_bins(bins: Bins, expected: Ranges) -> None:
    assert ranges(bins) == expected


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        pytest.param({11: 1998, 25: 1, 30: 1}, [(11, 11)], id="single calls"),
        pytest.param({11: 1998, 25: 2}, [(11, 11)], id="a bin of two beside 2000"),
        pytest.param(
            {11: 1000, 17: 1, 18: 1, 19: 1, 20: 1, 21: 1}, [(11, 11)], id="a row of single calls"
        ),
        pytest.param(MIXTURE | {28: 1, 31: 1}, [(11, 11), (19, 19), (23, 23)], id="beyond peaks"),
        pytest.param({11: 1000, 12: 50, 16: 1, 19: 94}, [(11, 12), (19, 19)], id="in between"),
        pytest.param({4: 1, 11: 1000}, [(11, 11)], id="on the left"),
        pytest.param({11: 490, 23: 10}, [(11, 11), (23, 23)], id="ten of 500 are a peak"),
        pytest.param({11: 96, 23: 4}, [(11, 11), (23, 23)], id="four of 100 are a peak"),
        pytest.param(
            {11: 300, 20: 2, 21: 2, 22: 2, 23: 2, 24: 2}, [(11, 11), (20, 24)], id="a flat hill"
        ),
        pytest.param({5: 1, 9: 1, 13: 1}, [(5, 5), (9, 9), (13, 13)], id="nothing but singles"),
    ],
)
def test_outliers(bins: Bins, expected: Ranges) -> None:
    assert ranges(bins) == expected


@pytest.mark.parametrize(
    ("bins", "expected"),
    [
        (
            {10: 400, 11: 1200, 12: 150, 13: 30, 14: 9, 15: 3, 16: 1, 21: 40, 22: 55, 23: 2},
            [(10, 16), (21, 23)],
        ),
        (
            {11: 900, 12: 80, 13: 12, 14: 4, 15: 6, 16: 5, 17: 2, 22: 30},
            [(11, 17), (22, 22)],
        ),
        (
            {11: 1875, 12: 31, 13: 6, 14: 1, 16: 1, 19: 80, 20: 14, 23: 31},
            [(11, 16), (19, 20), (23, 23)],
        ),
    ],
)
def test_a_noisy_tail_belongs_to_its_peak(bins: Bins, expected: Ranges) -> None:
    assert ranges(bins) == expected


def test_the_profiles_of_the_papers() -> None:
    """The read and readdir operations (paper figures 7 and 8; counts read off the plots)."""
    read = {7: 90_000, 8: 900_000, 9: 2_000, 10: 60, 11: 200, 12: 900, 13: 150, 14: 4}
    read |= {15: 12, 16: 40, 17: 18, 18: 2}
    assert ranges(read) == [(7, 10), (11, 14), (15, 18)]
    readdir = {9: 2000, 11: 100, 12: 900, 13: 300, 14: 40, 16: 60, 17: 110, 18: 12, 19: 30}
    readdir |= {20: 70, 21: 160, 22: 90, 23: 8}
    assert ranges(readdir) == [(9, 9), (11, 14), (16, 18), (19, 23)]


@pytest.mark.parametrize("resolution", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("calls", [20, 100, 300, 2000])
@pytest.mark.parametrize("octaves", [0.2, 0.7, 1.4])
def test_one_hump_is_one_peak_at_any_resolution(
    resolution: int, calls: int, octaves: float
) -> None:
    rng = random.Random(f"{resolution} {calls} {octaves}")
    humps = [hump(rng, calls, centre=14, octaves=octaves, resolution=resolution) for _ in range(25)]
    split = sum(len(find_peaks(bins, resolution)) != 1 for bins in humps)
    assert split <= 1


@pytest.mark.parametrize("resolution", [1, 2, 4, 8])
def test_a_small_peak_beside_a_large_one_at_any_resolution(resolution: int) -> None:
    rng = random.Random(resolution)
    for _ in range(20):
        bins = hump(rng, 1900, centre=11, octaves=0.3, resolution=resolution) + hump(
            rng, 100, centre=20, octaves=0.5, resolution=resolution
        )
        fast, slow = find_peaks(bins, resolution)
        assert fast.last_bin < 15 * resolution < slow.first_bin
        assert fast.count + slow.count >= 1995


def test_a_higher_resolution_tells_near_peaks_apart() -> None:
    rng = random.Random(0)
    coarse = hump(rng, 1000, centre=11.2, octaves=0.15, resolution=1) + hump(
        rng, 1000, centre=12.6, octaves=0.15, resolution=1
    )
    fine = hump(rng, 1000, centre=11.2, octaves=0.15, resolution=4) + hump(
        rng, 1000, centre=12.6, octaves=0.15, resolution=4
    )
    assert len(find_peaks(coarse, 1)) == 1
    assert len(find_peaks(fine, 4)) == 2


def test_bins_that_hold_no_latency_are_no_gaps() -> None:
    assert possible_bins(4, 0, 10) == [0, 4, 6, 8, 9, 10]
    assert ranges({4: 500, 6: 700, 8: 600}, 4) == [(4, 8)]


histograms = st.dictionaries(
    st.integers(0, 64), st.one_of(st.integers(0, 3), st.integers(0, 5000)), max_size=30
)


@given(histograms, st.sampled_from([1, 2, 4]))
def test_peaks_agree_with_the_bins(bins: Bins, resolution: int) -> None:
    peaks = find_peaks(bins, resolution)
    assert bool(peaks) == any(bins.values())
    assert [peak.number for peak in peaks] == list(range(1, len(peaks) + 1))
    for peak in peaks:
        inside = {b: n for b, n in bins.items() if peak.first_bin <= b <= peak.last_bin}
        assert peak.count == sum(inside.values())
        assert inside[peak.first_bin] > 0
        assert inside[peak.last_bin] > 0
    for left, right in pairwise(peaks):
        assert left.last_bin < right.first_bin


@given(histograms, st.integers(1, 30))
def test_where_the_peaks_lie_does_not_matter(bins: Bins, shift: int) -> None:
    bins = {b: n for b, n in bins.items() if b <= 34}
    shifted = {b + shift: n for b, n in bins.items()}
    assert ranges(shifted) == [(first + shift, last + shift) for first, last in ranges(bins)]


@given(histograms)
def test_the_largest_bin_is_in_a_peak(bins: Bins) -> None:
    if any(bins.values()):
        most = max(bins.values())
        covered = [b for peak in find_peaks(bins) for b in range(peak.first_bin, peak.last_bin + 1)]
        assert any(bins.get(b, 0) == most for b in covered)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("1", PeakRange(1, 11, 11)),
        ("2", PeakRange(2, 19, 19)),
        ("3", PeakRange(3, 23, None)),
        ("last", PeakRange(3, 23, None)),
        ("4", None),
        ("17-19", PeakRange(None, 17, 19)),
        ("30-30", PeakRange(None, 30, 30)),
        ("17-64", PeakRange(None, 17, None)),
        ("last of 17-64", PeakRange(3, 23, None)),
        ("last of 24-64", PeakRange(None, 24, None)),
        (">4ms", PeakRange(None, 23, None)),  # 10.4 million cycles, in the bin from 3.2 ms on
        ("> 40 us", PeakRange(None, 16, None)),
        (">1h", PeakRange(None, math.floor(math.log2(3600 * HZ)), None)),
        ("p50", PeakRange(None, 11, None)),
        ("p95", PeakRange(None, 19, None)),
        ("p99.9", PeakRange(None, 23, None)),
    ],
)
def test_choosing_a_peak(spec: str, expected: PeakRange | None) -> None:
    assert choose_peak(spec, profile(MIXTURE)) == expected


def test_the_last_peak_is_not_an_outlier() -> None:
    assert choose_peak("last", profile(MIXTURE | {29: 1})) == PeakRange(3, 23, None)


def test_of_the_only_peak_the_last_is_its_tail() -> None:
    """From an octave below its end on, or as far down as it takes to have as many calls as a peak;
    never next to the summit."""
    hill = {18: 900, 19: 400, 20: 200, 21: 90, 22: 40, 23: 20, 24: 9}
    assert choose_peak("last", profile(hill)) == PeakRange(None, 23, None)
    assert choose_peak("1", profile(hill)) == PeakRange(1, 18, None)
    thin = {18: 900, 19: 400, 20: 200, 21: 90, 22: 3, 23: 2, 24: 1}
    assert choose_peak("last", profile(thin)) == PeakRange(None, 22, None)
    for none in (
        {18: 900, 19: 400, 20: 200},
        {18: 900, 19: 400, 20: 2, 21: 1},
        {18: 12000, 19: 900, 20: 100, 21: 10, 22: 4, 23: 2},  # less than a hundredth of the time
    ):
        assert choose_peak("last", profile(none)) == PeakRange(1, 18, None)


def test_the_only_peak_is_open_to_the_right() -> None:
    assert choose_peak("1", profile({11: 50})) == PeakRange(1, 11, None)


def test_bins_by_hand_are_at_the_resolution_of_the_profile() -> None:
    assert choose_peak("130-140", profile({40: 10}, 4)) == PeakRange(None, 130, 140)
    assert choose_peak(">4ms", profile({40: 10}, 4)) == PeakRange(None, 93, None)


def test_the_last_peak_of_few_calls_may_be_two_of_more() -> None:
    few, more = {11: 42, 18: 7, 20: 1, 22: 1}, {11: 926, 18: 54, 20: 1, 22: 7, 23: 10}
    assert choose_peak("last", profile(few)) == PeakRange(2, 18, None)
    assert choose_peak("last of 18-64", profile(more)) == PeakRange(3, 20, None)


@pytest.mark.parametrize("spec", ["1", "last", "p99"])
def test_an_empty_profile_has_no_peak_yet(spec: str) -> None:
    assert choose_peak(spec, Profile.empty(1, HZ)) is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("first", "'first' is not a peak; give its number, last, bins"),
        ("", "is not a peak"),
        ("-3", "is not a peak"),
        ("1.5", "is not a peak"),
        ("<4ms", "is not a peak"),
        ("0", "numbered from 1"),
        ("19-17", "as in 17-19"),
        ("17-65", "the last bin at resolution 1 is 64"),
        (">4", "is not a time"),
        (">fast", "is not a time"),
        ("p0", "percentile p0: give one between"),
        ("p100", "percentile p100: give one between"),
    ],
)
def test_what_is_not_a_peak_is_refused_with_what_to_do(spec: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        choose_peak(spec, profile(MIXTURE))
    assert "\n" not in str(error.value)


def test_a_range_knows_its_bins() -> None:
    assert [b for b in range(30) if b in PeakRange(None, 17, 19)] == [17, 18, 19]
    assert 16 not in PeakRange(1, 17, None)
    assert 64 in PeakRange(1, 17, None)


def test_peaks_are_values() -> None:
    assert find_peaks({5: 3}) == (Peak(1, 5, 5, 3),)


def test_a_short_call_that_probes_make_longer_stays_in_its_peak() -> None:
    """As far as no other calls are there, and two octaves at most."""
    profile = Profile(1, HZ, {8: 700, 10: 400, 11: 2, 18: 300}, 1402)
    assert reach(PeakRange(1, 8, 8), profile) == 9
    assert reach(PeakRange(2, 10, 11), profile) == 13
    assert reach(PeakRange(3, 18, None), profile) is None
    assert reach(PeakRange(None, 8, 8), profile) == 8  # by hand
