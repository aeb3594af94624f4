"""How many calls, or for how long, are seen before there is said to be a peak or none."""

from __future__ import annotations

import pytest

from darc.analyses.peakprofile import LONG_SECONDS, PeakProfile
from darc.analyses.profilepace import ProfilePace
from darc.model.parameters import AUTO_START_OPS, MOST_CALLS, Parameters
from darc.model.profile import Profile


def pace(
    *, threads: int = 1, may_run_longer: bool = True, parameters: Parameters | None = None
) -> ProfilePace:
    parameters = parameters or Parameters()
    return ProfilePace(parameters, threads=threads, may_run_longer=may_run_longer)


def seen(seconds: float, *bins: int) -> PeakProfile:
    """A profile in which calls of these ``bins`` came in some seconds."""
    profile = PeakProfile(Profile.empty(1, 10**9), None)
    counts = dict.fromkeys(bins, 50)
    profile.take(
        Profile(resolution=1, hz=10**9, bins=counts, count=50 * len(bins), total=0),
        seconds,
        is_searching=False,
    )
    return profile


@pytest.mark.parametrize("threads", [1, 16])
def test_few_threads_are_no_herd(threads: int) -> None:
    assert not pace(threads=threads).lets_the_herd_pass(100, 0.001)


def test_a_herd_passes_once() -> None:
    waits = pace(threads=300)
    assert waits.lets_the_herd_pass(100, 0.01)
    assert waits.calls == 8 * 300, "eight of each come sooner than what comes in a quarter second"
    assert not waits.lets_the_herd_pass(2400, 0.2)


def test_of_a_herd_that_is_slow_no_more_is_waited_for_than_comes_in_its_time() -> None:
    waits = pace(threads=300)
    assert waits.lets_the_herd_pass(100, 0.1)
    assert waits.calls == 250


def test_a_herd_that_took_its_time_has_passed() -> None:
    assert not pace(threads=300).lets_the_herd_pass(100, 0.3)


@pytest.mark.parametrize(
    "parameters", [Parameters(start_ops=50), Parameters(start_time=0.1)], ids=["ops", "time"]
)
def test_who_says_how_many_gets_so_many(parameters: Parameters) -> None:
    asked = pace(threads=300, parameters=parameters)
    assert not asked.lets_the_herd_pass(50, 0.001)
    assert not asked.looks_longer(seen(0.001, 10), "last")
    assert asked.seconds == parameters.start_time


def test_one_peak_of_a_moment_is_looked_at_longer_once() -> None:
    looks = pace()
    assert looks.looks_longer(seen(0.001, 10), "last")
    assert (looks.seconds, looks.calls) == (LONG_SECONDS, MOST_CALLS)
    assert not looks.looks_longer(seen(0.002, 10), "last")


@pytest.mark.parametrize(("seconds", "calls"), [(0.001, 800), (0.4, 125)])
def test_where_no_time_can_end_that_some_more_calls_are_looked_at(
    seconds: float, calls: int
) -> None:
    """As many as come in a second, if they are not too many: they may come no more."""
    looks = pace(may_run_longer=False)
    assert looks.looks_longer(seen(seconds, 10), "last")
    assert (looks.seconds, looks.calls) == (None, calls)
    assert not looks.looks_longer(seen(seconds, 10), "last")


@pytest.mark.parametrize(
    ("seconds", "bins"),
    [(0.001, (10, 20)), (LONG_SECONDS, (10,))],
    ids=["two peaks", "long"],
)
def test_what_has_shown_itself_is_not_looked_at_longer(
    seconds: float, bins: tuple[int, ...]
) -> None:
    looks = pace()
    assert not looks.looks_longer(seen(seconds, *bins), "last")
    assert looks.seconds is None


def test_a_percentile_takes_its_time_but_not_too_few_calls() -> None:
    percentile = pace(parameters=Parameters(peak="p99"))
    assert percentile.seconds is not None
    assert percentile.is_too_soon(AUTO_START_OPS - 1)
    assert not percentile.is_too_soon(AUTO_START_OPS)
    assert not pace().is_too_soon(1)


def test_it_doubles_up_to_what_can_be_counted() -> None:
    waits = pace(parameters=Parameters(start_ops=100, start_time=1.0))
    waits.doubles(0.2)
    assert (waits.calls, waits.seconds) == (200, 2.0)
    waits.doubles(5.0)
    assert (waits.calls, waits.seconds) == (400, 10.0)
    for _ in range(64):
        waits.doubles(1.0)
    assert waits.calls == MOST_CALLS
