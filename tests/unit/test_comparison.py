"""The Earth Mover's Distance."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.comparison import chance, emd, has_changed
from darc.errors import ProfileError
from darc.profile import Profile

HZ = 2_600_000_000


def profile(bins: dict[int, int], resolution: int = 1) -> Profile:
    return Profile(resolution, HZ, bins, sum(bins.values()))


profiles = (
    st.dictionaries(st.integers(0, 64), st.integers(0, 1000), min_size=1)
    .filter(lambda bins: any(bins.values()))
    .map(profile)
)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ({10: 5}, {10: 5}, 0),
        ({10: 1, 12: 3}, {10: 100, 12: 300}, 0),
        ({10: 7}, {11: 3}, 1),
        ({10: 1}, {0: 1}, 10),
        ({10: 1, 20: 1}, {10: 1, 24: 1}, 2),
        ({10: 3, 20: 1}, {10: 4}, 2.5),
    ],
)
def test_work_is_calls_times_bins(a: dict[int, int], b: dict[int, int], distance: float) -> None:
    assert emd(profile(a), profile(b)) == distance


@given(profiles)
def test_nothing_lies_between_a_profile_and_itself(a: Profile) -> None:
    assert emd(a, a) == 0.0


@given(profiles, profiles)
def test_there_and_back_are_as_far(a: Profile, b: Profile) -> None:
    assert emd(a, b) == emd(b, a)


@given(profiles, profiles, profiles)
def test_no_detour_is_shorter(a: Profile, b: Profile, c: Profile) -> None:
    assert emd(a, c) <= emd(a, b) + emd(b, c) + 1e-9


@given(profiles, profiles, st.integers(1, 50))
def test_only_the_shape_counts(a: Profile, b: Profile, times: int) -> None:
    more = profile({bin_number: n * times for bin_number, n in a.bins.items()})
    assert emd(more, b) == pytest.approx(emd(a, b))


@given(profiles, st.integers(0, 20))
def test_moving_all_by_some_bins(a: Profile, bins: int) -> None:
    low = profile({b // 2: n for b, n in a.bins.items()})
    moved = profile({b + bins: n for b, n in low.bins.items()})
    assert emd(low, moved) == pytest.approx(bins)


def test_different_resolutions_meet_where_they_can() -> None:
    coarse = profile({10: 4})
    assert emd(coarse, profile({20: 1, 21: 1}, 2)) == 0.0
    assert emd(coarse, profile({22: 1}, 2)) == 1.0
    assert emd(profile({24: 1}, 4), profile({42: 1}, 6)) == 2.0  # in half octaves: 12 and 14


@pytest.mark.parametrize("bins", [{}, {3: 0}])
def test_an_empty_profile_is_at_no_distance(bins: dict[int, int]) -> None:
    with pytest.raises(ProfileError, match="collect some calls first"):
        emd(profile(bins), profile({1: 1}))
    with pytest.raises(ProfileError, match="collect some calls first"):
        emd(profile({1: 1}), profile(bins))


def drawn(calls: int, seed: int) -> Profile:
    """Calls of a program that is slow once in 20 times."""
    chosen = random.Random(seed)
    bins: dict[int, int] = {}
    for _ in range(calls):
        b = 23 if chosen.random() < 0.05 else chosen.choice([11, 11, 12])
        bins[b] = bins.get(b, 0) + 1
    return profile(bins)


def test_chance_is_the_mean_distance_of_two_samples() -> None:
    pairs = [(drawn(200, seed), drawn(500, -seed - 1)) for seed in range(300)]
    seen = sum(emd(*pair) for pair in pairs) / len(pairs)
    assert sum(chance(*pair) for pair in pairs) / len(pairs) == pytest.approx(seen, rel=0.1)


@given(profiles)
def test_chance_moves_nothing_in_a_single_bin(a: Profile) -> None:
    single = profile({7: 12})
    assert chance(single, single) == 0.0
    assert chance(a, profile({})) == 0.0


def test_samples_of_one_distribution_have_not_changed() -> None:
    assert not any(has_changed(drawn(100, n), drawn(100, -n - 1)) for n in range(200))


def test_a_few_calls_more_in_a_rare_mode_are_told_from_chance_when_there_are_enough() -> None:
    before, now = {11: 95, 23: 5}, {11: 85, 23: 15}
    assert not has_changed(profile(before), profile(now))
    more = [profile({b: 20 * n for b, n in bins.items()}) for bins in (before, now)]
    assert has_changed(*more)


@pytest.mark.parametrize("resolution", [1, 2, 4])
def test_a_change_counts_in_octaves(resolution: int) -> None:
    here = profile({20 * resolution: 10**6}, resolution)
    twice = profile({21 * resolution: 10**6}, resolution)
    hardly = profile({20 * resolution: 6 * 10**5, 21 * resolution: 4 * 10**5}, resolution)
    assert has_changed(here, twice)
    assert not has_changed(here, hardly)
