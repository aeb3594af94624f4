"""The Earth Mover's Distance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.comparison import emd
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
