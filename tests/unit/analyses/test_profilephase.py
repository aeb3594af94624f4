"""While f0's profile grows: until there is a peak to explain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.analyses import warming
from darc.analyses.analysis import Step
from darc.analyses.phase import CHOSEN, EndPhase
from darc.analyses.profilephase import PeakPhase
from darc.analyses.question import About
from darc.analyses.searchphase import SearchPhase
from darc.model.errors import UsageError
from darc.model.functionprofile import FunctionProfile
from darc.model.parameters import Probes
from darc.model.status import Status
from darc.saved.descents import SavedDescent
from tests.unit import samples, stored
from tests.unit.cases import PEAK, Made, profiling


def asking(made: Made, profiled: FunctionProfile | None = None) -> PeakPhase:
    phase = profiling(made, profiled).decide()
    assert isinstance(phase, PeakPhase)
    return phase


def resumed(**parameters: Any) -> Made:
    return Made(SavedDescent(stored.sample()), **parameters)


def test_it_begins_with_calls_that_are_awaited_already() -> None:
    made = Made()
    phase = profiling(made)
    assert phase.begin() is Step.GO_ON
    assert (phase.status, phase.is_searching, phase.needed) == (Status.PROFILING, False, 100)
    assert made.asked == []


def test_where_no_call_came_more_are_awaited() -> None:
    made = Made()
    made.collector.bins = {}
    phase = profiling(made)
    assert phase.decide() is Step.GO_ON
    assert made.asked == ["profile", ("calls", 200)]
    assert phase.needed == 200


def test_the_search_follows_where_the_peak_is_there() -> None:
    made = Made(peak=PEAK)
    phase = profiling(made).decide()
    assert isinstance(phase, SearchPhase)
    assert phase.needed == 100, "until its orders say how many"
    assert made.asked == ["profile", "search"]


def test_a_peak_that_is_not_there_is_waited_for() -> None:
    made = Made(peak=">1s")
    phase = profiling(made)
    assert phase.decide() is Step.GO_ON
    assert made.asked == ["profile", ("calls", 200)]


def test_the_time_for_it_may_be_limited() -> None:
    assert profiling(Made(start_time=5.0)).seconds_left == 3.0
    assert profiling(Made()).seconds_left is None


def test_the_user_is_asked_where_nobody_has_said_which() -> None:
    made = Made()
    phase = asking(made)
    assert made.asked == ["profile"]
    assert phase.begin() is Step.ASK
    assert made.asked == ["the user"]
    assert (phase.status, phase.is_searching, phase.seconds_left) == (Status.NO_PEAK, False, None)
    question = phase.question
    assert question is not None
    assert (question.about, question.is_waited_for) == (About.PROFILE, True)
    assert profiling(made).question is None


def test_a_peak_that_was_seen_before_and_is_missing_is_told() -> None:
    made = Made()
    row = FunctionProfile(
        function=samples.function("handle"),
        profile=samples.profile({11: 1000, 30: 100}),
        longest=1 << 31,
    )
    asking(made, row).begin()
    (note,) = made.notes
    assert "none of these 2000 calls is in what was peak 2" in note


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_the_user_chooses(is_asked: bool) -> None:
    made = Made()
    phase = asking(made) if is_asked else profiling(made)
    _ = made.asked
    assert phase.takes_peak(PEAK)
    follows = phase.search_for(PEAK)
    assert isinstance(follows, SearchPhase)
    assert made.asked == ["profile", "drops open calls", "search"]
    assert made.case.choice.is_fresh


def test_what_the_user_chooses_before_it_is_there_is_waited_for() -> None:
    made = Made()
    phase = profiling(made)
    assert not phase.takes_peak(">1s")
    assert phase.decide() is Step.GO_ON
    made.collector.bins = {**samples.BINS, 33: 10}
    assert isinstance(phase.decide(), SearchPhase)


def test_who_is_asked_chooses_one_that_is_there() -> None:
    phase = asking(Made())
    with pytest.raises(UsageError, match="there is no peak 9: the profile has 3"):
        phase.takes_peak("9")


def test_a_session_that_goes_on_has_its_peak() -> None:
    made = resumed()
    phase = profiling(made)
    with pytest.raises(UsageError, match=CHOSEN):
        phase.takes_peak("1")
    assert isinstance(phase.decide(), SearchPhase)


def test_there_is_no_tree_to_descend_in() -> None:
    with pytest.raises(UsageError, match="choose a peak first"):
        profiling(Made()).descend([])


def test_what_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files first, and then what f0 calls."""
    monkeypatch.setattr(warming, "time", SimpleNamespace(thread_time=lambda: 0.0))
    made = Made()
    phase = profiling(made)
    nodes: list[object] = []

    class Ahead:
        def look_ahead(self, likely: Any, levels: int, seconds: float) -> bool:
            nodes.extend(likely())
            return levels == 1

    made.collector.ahead = Ahead()
    assert phase.look_ahead(0.01)
    assert (made.program.read, nodes) == (["mixture"], [])
    assert phase.look_ahead(0.01)
    assert (made.program.read, nodes) == (["mixture"], [made.root])


def test_how_it_grows_is_looked_at() -> None:
    made = Made()
    assert 0 < profiling(made).look() < 10
    assert made.asked == ["profile"]


def test_time_ends_it_with_the_choice_that_is_the_users() -> None:
    made = Made()
    made.keeps()
    phase = profiling(made)
    phase.collect()
    _ = made.asked
    follows, is_cut_short = phase.finish_early("the time is up")
    assert isinstance(follows, PeakPhase)
    assert is_cut_short
    assert made.asked == ["kept ops"], "and nobody is asked"
    assert made.notes == ["the time is up: this is what was known by then"]


@pytest.mark.parametrize(("peak", "bins"), [(">1s", samples.BINS), (None, {})])
def test_time_ends_it_without_a_peak(peak: str | None, bins: dict[int, int]) -> None:
    made = Made(peak=peak)
    made.collector.bins = bins
    phase = profiling(made)
    phase.collect()
    follows, is_cut_short = phase.finish_early("the time is up")
    assert isinstance(follows, EndPhase)
    assert (follows.status, follows.is_searching) == (Status.INCONCLUSIVE, False)
    assert is_cut_short


def test_a_task_that_has_not_called_it_is_told() -> None:
    made = Made(task=7, probes=Probes.BREAKPOINT)
    profiling(made).finish_early("the time is up")
    assert made.notes[0].endswith("by then; task 7 has not called it")


@pytest.mark.parametrize("is_asked", [False, True])
def test_what_a_program_takes_with_it(is_asked: bool) -> None:
    """Where the user is to choose, the profile is what is asked for."""
    made = Made()
    made.keeps()
    phase = asking(made) if is_asked else profiling(made)
    _ = made.asked
    follows = phase.close(Status.ENDED, alive=False)
    assert follows.status is Status.ENDED
    assert follows.has_counts == is_asked
    assert made.asked == [], "there is nothing to read any more"


def test_the_user_ends_it() -> None:
    made = Made()
    made.keeps()
    follows = profiling(made).close(Status.STOPPED, alive=True)
    assert (follows.status, follows.has_counts) == (Status.STOPPED, True)
    assert made.asked == ["kept ops"]


@pytest.mark.parametrize(("is_asked", "more"), [(False, 10), (True, 0)])
def test_a_kill_leaves_what_the_latest_look_has_shown(is_asked: bool, more: int) -> None:
    """Where the user is to choose, the profile is that in which the peaks are."""
    made = Made()
    phase = asking(made) if is_asked else profiling(made)
    phase.collect()
    before = made.case.profile.grown.count
    made.collector.bins = {**samples.BINS, 33: 10}
    phase.look()
    assert made.case.profile.grown.count == before
    phase.close(Status.ENDED, alive=False)
    assert made.case.profile.grown.count == before + more


def test_the_user_ends_it_instead_of_choosing() -> None:
    made = Made()
    made.keeps()
    phase = asking(made)
    _ = made.asked
    follows = phase.close(Status.STOPPED, alive=True)
    assert isinstance(follows, EndPhase)
    assert (follows.status, follows.has_counts, follows.is_searching) == (
        Status.STOPPED,
        True,
        False,
    )
    assert made.asked == ["kept ops"]


def test_the_users_end_has_no_need_of_that() -> None:
    made = Made()
    phase = profiling(made)
    made.collector.bins = {**samples.BINS, 33: 10}
    phase.look()
    phase.close(Status.STOPPED, alive=True)
    assert not made.case.profile.grown.count
