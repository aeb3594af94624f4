"""Bins, profiles and the times that people see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.errors import ProfileError, UsageError
from darc.model.profile import (
    LONGEST,
    Profile,
    bin_of,
    format_cycles,
    parse_time,
    possible_bins,
    same_clock,
    thresholds,
)

HZ = 2_600_000_000
clocks = st.integers(10**6, 10**10)
resolutions = st.integers(1, 8)
latencies = st.one_of(st.integers(0, LONGEST), st.integers(0, 2**20))


def profile_of(cycles: Iterable[int], resolution: int = 1) -> Profile:
    cycles = list(cycles)
    bins: dict[int, int] = {}
    for c in cycles:
        b = bin_of(c, resolution)
        bins[b] = bins.get(b, 0) + 1
    return Profile(resolution=resolution, hz=HZ, bins=bins, count=len(cycles), total=sum(cycles))


@pytest.mark.parametrize(
    ("cycles", "expected"),
    [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10), (LONGEST - 1, 63)],
)
def test_bins_are_powers_of_two(cycles: int, expected: int) -> None:
    assert bin_of(cycles, 1) == expected


@given(latencies, resolutions)
def test_a_bin_is_the_floor_of_the_logarithm(cycles: int, resolution: int) -> None:
    b = bin_of(cycles, resolution)
    if cycles <= 1:
        assert b == 0
    elif cycles < LONGEST:
        assert 2**b <= cycles**resolution < 2 ** (b + 1)


@given(resolutions)
def test_thresholds_cover_every_latency_once(resolution: int) -> None:
    table = thresholds(resolution)
    assert len(table) == 64 * resolution + 1
    assert table[0] == 0
    assert table[-1] == LONGEST
    assert list(table) == sorted(table)


@given(latencies, resolutions)
def test_a_latency_lies_between_low_and_high_of_its_bin(cycles: int, resolution: int) -> None:
    profile = Profile.empty(resolution, HZ)
    b = bin_of(cycles, resolution)
    assert profile.low(b) <= cycles <= profile.high(b)


def test_some_low_bins_hold_no_whole_number_at_higher_resolutions() -> None:
    assert possible_bins(1, 0, 5) == [0, 1, 2, 3, 4, 5]
    assert possible_bins(4, 0, 14) == [0, 4, 6, 8, 9, 10, 11, 12, 13, 14]


def test_a_resolution_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="give 1 or more"):
        thresholds(0)


@given(st.lists(latencies, max_size=50), resolutions)
def test_what_was_counted_passes_the_check(cycles: list[int], resolution: int) -> None:
    profile_of(cycles, resolution).check()


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (Profile(resolution=1, hz=HZ, bins={3: 2}, count=3, total=20), "hold 2 calls, but 3"),
        (Profile(resolution=1, hz=HZ, bins={3: 2}, count=2, total=15), "16 to 30 cycles, but 15"),
        (Profile(resolution=1, hz=HZ, bins={3: 2}, count=2, total=31), "16 to 30 cycles, but 31"),
        (Profile(resolution=1, hz=HZ, bins={3: 2, 4: -1}, count=1, total=16), "bin 4 holds -1"),
        (Profile(resolution=1, hz=HZ, bins={65: 1}, count=1, total=LONGEST), "bin 65"),
    ],
)
def test_a_profile_that_contradicts_its_checksum_is_refused(profile: Profile, words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        profile.check()


def test_bins_are_in_order_and_without_zeros() -> None:
    assert list(
        Profile(resolution=1, hz=HZ, bins={9: 1, 3: 2, 5: 0}, count=3, total=600).bins.items()
    ) == [(3, 2), (9, 1)]


def test_the_average_latency_of_a_bin() -> None:
    profile = Profile.empty(1, HZ)
    assert profile.mean_cycles(10) == 1536  # 3/2 · 2^10
    assert Profile.empty(2, HZ).mean_cycles(21) == (1449 + 2048) / 2
    assert profile.low(64) == profile.high(64) == LONGEST
    assert profile.mean_cycles(64) == float(LONGEST)


@given(st.lists(latencies), resolutions)
def test_scaled_bins_add_up_to_the_sum_that_was_measured(cycles: list[int], r: int) -> None:
    profile = profile_of(cycles, r)
    whole = sum(n * profile.scaled_cycles(b) for b, n in profile.bins.items())
    assert whole == pytest.approx(profile.total)


def test_calls_that_take_no_longer_than_their_probes_have_a_scale() -> None:
    """Their sum is 0."""
    nothing = profile_of([0] * 1000)
    assert (nothing.scale, nothing.scaled_cycles(0), nothing.excess_from(0)) == (0, 0, 0)
    assert Profile.empty(1, HZ).scale == 1
    assert Profile.empty(1, HZ).excess_from(0) == 0


def test_excess_is_by_the_sum_that_was_measured() -> None:
    profile = profile_of([1024] * 90 + [2**20] * 10)  # each at its bin's beginning
    assert profile.excess_from(20) == pytest.approx(10 * (2**20 - 1024))
    assert profile.excess_from(11) == profile.excess_from(20)
    assert profile.excess_from(21) == 0


@given(st.lists(latencies), resolutions, st.integers(0, 512))
def test_excess_is_part_of_the_sum(cycles: list[int], r: int, first: int) -> None:
    profile = profile_of(cycles, r)
    assert 0 <= profile.excess_from(first) <= profile.total * (1 + 1e-9)


@pytest.mark.parametrize(
    ("q", "expected"), [(0.0, 11), (0.5, 11), (0.9375, 11), (0.938, 19), (0.99, 23), (1.0, 23)]
)
def test_quantiles(q: float, expected: int) -> None:
    assert (
        Profile(
            resolution=1, hz=HZ, bins={11: 1875, 19: 94, 23: 31}, count=2000, total=0
        ).quantile_bin(q)
        == expected
    )


def test_a_quantile_lies_in_the_bin_that_completes_it() -> None:
    assert (
        Profile(resolution=1, hz=HZ, bins={1: 99, 2: 1}, count=100, total=0).quantile_bin(0.99) == 1
    )
    assert (
        Profile(resolution=1, hz=HZ, bins={1: 98, 2: 2}, count=100, total=0).quantile_bin(0.99) == 2
    )
    assert Profile.empty(1, HZ).quantile_bin(0.5) is None


@given(st.lists(latencies, max_size=30), st.lists(latencies, max_size=30), resolutions)
def test_merging_is_collecting_together(a: list[int], b: list[int], resolution: int) -> None:
    merged = profile_of(a, resolution).merged(profile_of(b, resolution))
    assert merged == profile_of(a + b, resolution)


@given(st.lists(latencies, max_size=30), st.lists(latencies, max_size=30))
def test_profiles_of_two_runs_merge(a: list[int], b: list[int]) -> None:
    """Each run measures the clock anew, and never finds quite the same."""
    here, before = profile_of(a), replace(profile_of(b), hz=HZ - 359)
    assert here.merged(before) == profile_of(a + b)
    assert before.merged(here) == replace(profile_of(a + b), hz=HZ - 359)


@given(clocks, clocks)
def test_whether_it_is_one_clock_does_not_depend_on_who_asks(one: int, other: int) -> None:
    assert same_clock(one, one)
    assert same_clock(one, other) == same_clock(other, one)
    assert same_clock(one, one + one // 200)
    assert not same_clock(one, one + one // 50)


@pytest.mark.parametrize("other", [Profile.empty(2, HZ), Profile.empty(1, HZ + HZ // 50)])
def test_profiles_of_different_kinds_do_not_merge(other: Profile) -> None:
    with pytest.raises(UsageError, match="same --resolution"):
        Profile.empty(1, HZ).merged(other)


@given(st.lists(latencies, max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_coarsening_is_collecting_coarsely(cycles: list[int], low: int, factor: int) -> None:
    assert profile_of(cycles, low * factor).coarsened(low) == profile_of(cycles, low)


def test_a_resolution_that_does_not_divide_is_refused() -> None:
    with pytest.raises(UsageError, match="divisor of 3"):
        Profile.empty(3, HZ).coarsened(2)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ns"),
        (0.4e-9, "0.4ns"),
        (26e-9, "26ns"),
        (999.7e-9, "1.0µs"),
        (1.3e-6, "1.3µs"),
        (9.97e-6, "10µs"),
        (4.1e-3, "4.1ms"),
        (250e-3, "250ms"),
        (2, "2.0s"),
        (75, "75s"),
    ],
)
def test_times_for_people(seconds: float, text: str) -> None:
    assert format_cycles(seconds * 1e12, 10**12) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4ms", 4e-3),
        ("1.5s", 1.5),
        ("250us", 250e-6),
        ("250 µs", 250e-6),
        ("7ns", 7e-9),
        ("2m", 120),
        ("1h", 3600),
        (".5s", 0.5),
    ],
)
def test_times_from_people(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "4", "ms", "4 parsecs", "-4ms", "1e3s", "nans", "4ms5"])
def test_what_is_not_a_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time; write for example 4ms"):
        parse_time(text)
