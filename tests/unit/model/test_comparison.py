"""The Earth Mover's Distance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.resume import Program, alarms
from darc.model.comparison import ChangeVerdict, PeakChange, compare, emd
from darc.model.errors import ProfileError
from darc.model.peaks import Peak
from darc.model.profile import Profile
from darc.model.slices import TimeSlices

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


# -- change or chance ---------------------------------------------------------------------------

ONE_PERCENT = ({11: 9900, 23: 100}, {11: 9990, 23: 10})


def verdicts(*args: object) -> list[ChangeVerdict]:
    return [change.verdict for change in compare(*args)]  # type: ignore[arg-type]


def even(bins: dict[int, int], slices: int = 20) -> list[dict[int, int]]:
    """Calls that come evenly."""
    return [{b: n // slices for b, n in bins.items()}] * slices


def test_a_new_rare_peak_is_a_change() -> None:
    """Its calls take most of the time, and move the mean distance by half a bin."""
    _, peak = compare(profile({11: 10000}), profile({11: 9900, 16: 100}))
    assert peak.verdict is ChangeVerdict.CHANGED
    assert (peak.before, peak.now, peak.has_moved) == (0.0, 0.01, False)
    assert emd(profile({11: 10000}), profile({11: 9900, 16: 100})) < 0.1


def test_a_share_that_grows_is_a_change_and_one_that_hardly_does_is_none() -> None:
    many = [{b: 100 * n for b, n in bins.items()} for bins in ONE_PERCENT]
    assert verdicts(*map(profile, many)) == [ChangeVerdict.CHANGED] * 2
    hardly = profile({11: 996_000, 23: 4000}), profile({11: 995_000, 23: 5000})
    assert verdicts(*hardly) == [ChangeVerdict.NOTHING_SEEN] * 2


def test_one_burst_of_slow_calls_is_no_change() -> None:
    before, now = {11: 10000}, {11: 9900, 23: 100}
    burst = [{11: 500}] * 19 + [{11: 400, 23: 100}]
    assert verdicts(profile(before), profile(now), even(before), burst) == [
        ChangeVerdict.CANNOT_TELL,
        ChangeVerdict.CANNOT_TELL,
    ]
    assert ChangeVerdict.CHANGED in verdicts(profile(before), profile(now), even(before), even(now))


def test_a_run_without_slices_is_taken_to_come_in_bursts_as_the_other_does() -> None:
    before, now = {11: 10000}, {11: 9900, 23: 100}
    burst = [{11: 500}] * 19 + [{11: 400, 23: 100}]
    assert ChangeVerdict.CHANGED not in verdicts(profile(before), profile(now), (), burst)
    assert ChangeVerdict.CHANGED not in verdicts(profile(now), profile(before), burst, ())


def test_too_few_calls_never_make_profiles_the_same() -> None:
    before, now = profile({11: 95, 23: 5}), profile({11: 85, 23: 15})
    changes = compare(before, now)
    assert [change.verdict for change in changes] == [ChangeVerdict.CANNOT_TELL] * 2
    needed = changes[1].calls_to_tell
    assert 100 < needed < 1000
    more = [profile({b: n * needed // 100 for b, n in p.bins.items()}) for p in (before, now)]
    assert ChangeVerdict.CHANGED in verdicts(*more)


def test_a_peak_that_has_moved_by_a_bin_is_a_change() -> None:
    (moved,) = compare(profile({20: 1000}), profile({21: 1000}))
    assert (moved.verdict, moved.has_moved, moved.moved) == (ChangeVerdict.CHANGED, True, 1.0)


@pytest.mark.parametrize("resolution", [1, 2, 4])
def test_a_change_counts_in_octaves(resolution: int) -> None:
    here = profile({20 * resolution: 1000}, resolution)
    assert ChangeVerdict.CHANGED in verdicts(here, profile({21 * resolution: 1000}, resolution))
    hardly = profile({20 * resolution: 600, 20 * resolution + 1: 400}, resolution)
    assert verdicts(here, hardly) == [ChangeVerdict.NOTHING_SEEN]


def test_four_calls_are_no_peak_that_has_changed() -> None:
    assert ChangeVerdict.CHANGED not in verdicts(profile({11: 20}), profile({11: 16, 23: 4}))


@given(profiles, profiles)
def test_any_two_profiles_can_be_compared(a: Profile, b: Profile) -> None:
    for change in compare(a, b):
        assert 0 <= change.before <= 1
        assert 0 <= change.now <= 1
        assert (change.calls_to_tell > 0) == (change.verdict is ChangeVerdict.CANNOT_TELL)
    assert ChangeVerdict.CHANGED not in verdicts(a, a)


@pytest.mark.parametrize("burst", [0.0, 0.02])
def test_false_alarms_and_power(burst: float) -> None:
    """Of runs that are drawn: at most 1 in 100 alarms falsely, and ten slow calls of 10,000 that
    become 110 are seen."""
    same = Program(0.01, burst)
    assert alarms(same, same, (2000, 2000), runs=100) <= 0.01
    assert alarms(same, same, (100, 3000), runs=100) <= 0.01
    power = alarms(Program(0.001, burst), Program(0.011, burst), (10_000, 10_000), runs=20)
    print(f"0.1 % to 1.1 % of 10,000 calls, alike {burst}: {power:.0%} are told")
    assert power >= 0.9


def test_time_slices_are_about_equal_however_long_the_run() -> None:
    for length in (3, 20, 41, 500, 100_000):
        slices = TimeSlices()
        now = 0.0
        for number in range(length):
            now = number * 0.001
            if now >= slices.next_look:
                slices.look(now, {11: number})
        found = slices.take({11: length})
        if length < 10:
            assert found == ()
            continue
        assert sum(one[11] for one in found) == length
        assert 10 <= len(found) <= 20
        if length > 40:
            assert len(found) >= 18
            assert max(one[11] for one in found) <= 3 * min(one[11] for one in found[:-1])
    assert TimeSlices().take({11: 100}) == ()


def test_a_change_is_told_by_the_same_figures_everywhere() -> None:
    profile = Profile(1, 10**9, {20: 3, 21: 5})
    peak = Peak(1, 20, 21, 8)
    change = PeakChange(
        peak=peak, before=0.25, now=0.5, moved=-1.25, verdict=ChangeVerdict.CHANGED, has_moved=True
    )
    told = change.figures(profile)
    assert (told.before, told.now) == ("25.0 %", "50.0 %")
    assert (told.octaves, told.side) == ("1.2 octaves", "left")
    assert told.where.count(" – ") == 1
