"""Which peak is explained, and when it is looked for."""

from __future__ import annotations

from darc.analyses.peakchoice import Choice, PeakChoice
from darc.analyses.peakprofile import PeakProfile
from darc.analyses.profilepace import ProfilePace
from darc.model.parameters import Parameters
from darc.model.profile import Profile

ASKED = Parameters(start_ops=100)
"""Who says how many calls to see gets so many."""


def choice(*bins: int, parameters: Parameters = ASKED, seconds: float = 1.0) -> PeakChoice:
    """That of a profile in which calls of these ``bins`` came, in so many seconds."""
    profile = PeakProfile(Profile.empty(1, 10**9), None)
    counts = dict.fromkeys(bins, 50)
    total = sum(50 << one for one in bins)
    seen = Profile(resolution=1, hz=10**9, bins=counts, count=50 * len(bins), total=total)
    profile.take(seen, seconds, is_searching=False)
    return PeakChoice(profile, ProfilePace(parameters, threads=1, may_run_longer=True), "f")


def test_where_no_call_came_it_is_looked_for_at_each_doubling() -> None:
    made = choice()
    assert not made.has_seen_enough(1.0)
    assert made.pace.calls == 200


def test_a_herd_is_not_looked_at() -> None:
    made = choice(10, 20)
    made.pace = ProfilePace(Parameters(), threads=300, may_run_longer=True)
    assert not made.has_seen_enough(0.01)
    assert made.has_seen_enough(0.01), "it passes once"


def test_a_peak_that_is_there() -> None:
    made = choice(10, 20)
    assert made.has_seen_enough(1.0)
    assert made.look("2", 1.0) is Choice.IS_MADE
    assert not made.is_fresh, "the user has not made it at this stop"


def test_a_peak_that_is_not_there_yet() -> None:
    made = choice(10, 20)
    assert made.look("3", 1.0) is Choice.WAITS
    assert made.pace.calls == 200


def test_nobody_has_said_which() -> None:
    assert choice(10, 20).look(None, 1.0) is Choice.IS_USERS


def test_who_does_not_say_how_many_is_shown_slow_calls_as_well() -> None:
    """Once: a hundred calls may come in a moment."""
    made = choice(10, parameters=Parameters(), seconds=0.001)
    assert made.look(None, 0.001) is Choice.WAITS
    assert made.look(None, 0.001) is Choice.IS_USERS


def test_the_user_thinks_again() -> None:
    """At the same stop: what was doubtful of the first peak is not of the second."""
    made = choice(10, 20)
    made.doubts.append("of the first")
    made.made_by_user("1")
    assert made.is_fresh
    assert made.doubts == ["of the first"]
    made.made_by_user("2")
    assert made.doubts == []
