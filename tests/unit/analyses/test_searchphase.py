"""While root cause paths are searched for."""

from __future__ import annotations

from typing import Any

import pytest

from darc.analyses.analysis import Step
from darc.analyses.closingphase import ClosingPhase
from darc.analyses.pathsearch import PathSearch
from darc.analyses.phase import CHOSEN, EndPhase
from darc.analyses.question import About
from darc.analyses.roundops import ENDED
from darc.analyses.searchphase import SearchPhase
from darc.model.errors import UsageError
from darc.model.status import Status
from tests.unit import samples
from tests.unit.cases import CALLS, Made, MadeCollector


def names(phase: SearchPhase | EndPhase) -> list[list[str]]:
    return [[node.function.name for node in path.nodes] for path in phase.paths]


def decided(made: Made, phase: SearchPhase) -> object:
    """What follows as the callee of f0 is slow, and calls nothing."""
    made.votes_for(made.root.children[0])
    follows = phase.decide()
    if follows is Step.GO_ON:
        made.votes_for(made.root.children[0])
        return phase.decide()
    return follows


@pytest.mark.parametrize(("seconds", "is_frequent"), [(0.5, True), (100.0, False)])
def test_what_is_asked_of_the_collector_as_it_begins(seconds: float, is_frequent: bool) -> None:
    """Ops are kept from then on; what they wait for is watched late where slow calls come often."""
    made = Made().profiled(seconds=seconds)
    made.keeps()
    phase = SearchPhase.begun(made.case, made.brief.collector, needed=100)
    waits = [] if is_frequent else ["watch waits"]
    assert made.asked == ["search", "keep ops", *waits]
    assert made.collector.fastest == made.case.profile.fastest > 0
    assert phase.begin() is Step.GO_ON
    assert made.asked == [("times", "handle"), ("in peak", 4)]
    assert (phase.status, phase.needed, phase.is_counting) == (Status.SEARCHING, 4, True)
    assert (phase.tree, phase.level, names(phase)) == (made.root, 1, [])


def test_too_few_calls_are_waited_for() -> None:
    made = Made()
    phase = made.searching()
    _ = made.asked
    assert phase.decide() is Step.GO_ON
    assert made.asked == [("more", 4)]


def test_paths_that_have_ended_end_it() -> None:
    made = Made()
    follows = decided(made, made.searching())
    assert isinstance(follows, EndPhase)
    assert follows.begin() is Step.END
    assert (follows.status, follows.is_searching) == (Status.FOUND, True)
    assert names(follows) == [["handle", "flush"]]


def test_where_ops_are_kept_a_round_closes_it() -> None:
    made = Made()
    made.keeps()
    phase = made.searching()
    _ = made.asked
    follows = decided(made, phase)
    assert isinstance(follows, ClosingPhase)
    assert "kept ops" in made.asked


def test_by_hand_the_user_says_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CALLS, "flush", ("write_out",))
    made = Made(auto=False)
    phase = made.searching()
    _ = made.asked
    assert decided(made, phase) is Step.ASK
    assert made.asked[-1] == "the user"
    question = phase.question
    assert question is not None
    assert (question.about, question.is_waited_for) == (About.FTREE, False)
    phase.descend([made.root.children[0]])
    assert phase.question is None
    assert made.asked[0] == "drops open calls"


def test_another_peak_may_be_chosen_at_the_same_stop() -> None:
    made = Made().profiled()
    phase = SearchPhase.chosen(made.case, made.brief.collector, "3", needed=100)
    phase.begin()
    _ = made.asked
    with pytest.raises(UsageError, match="there is no peak 9: the profile has 3"):
        phase.takes_peak("9")
    assert phase.takes_peak("1")
    assert isinstance(phase.search_for("1"), SearchPhase)
    assert made.asked == ["profile", "profile", "drops open calls", "search"]
    made.case.choice.is_followed()
    with pytest.raises(UsageError, match=CHOSEN):
        phase.takes_peak("2")
    assert made.asked == []


def test_time_ends_it_with_how_far_it_had_come() -> None:
    made = Made()
    phase = made.searching()
    flush = made.root.children[0]
    made.votes_for(flush, 3)
    assert (flush.maxcount, flush.compared_in) == (0, 0)
    follows, is_cut_short = phase.finish_early("the time is up")
    assert (flush.maxcount, flush.compared_in) == (3, 3), "it is seen in the tree"
    assert made.notes[0].startswith(
        "the time is up: this is what was known by then; level 1 had 3 of 4 calls inside the peak"
    )
    assert (follows.status, is_cut_short) == (Status.INCONCLUSIVE, True)
    contests, in_peak = follows.votes(True)
    assert (len(contests), in_peak) == (1, 3), "another run goes on with them"


@pytest.mark.parametrize("alive", [True, False])
def test_the_program_ends(alive: bool) -> None:
    made = Made()
    made.keeps()
    phase = made.searching()
    made.votes_for(made.root, 3)
    _ = made.asked
    follows = phase.close(Status.ENDED, alive)
    assert (follows.status, follows.has_counts) == (Status.ENDED, alive)
    assert made.asked == (["kept ops"] if alive else [])
    assert follows.votes(False)[1] == (3 if alive else 0)


def test_calls_that_took_no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are to time them; or not, and then it ends."""
    monkeypatch.setattr(PathSearch, "may_fall_back", True)
    made = Made()
    phase = made.searching()
    assert decided(made, phase) is Step.FALL_BACK
    assert phase.why_no_fall_back() == "it takes less than 2 ms"
    assert isinstance(phase.stay("they would spoil more"), EndPhase)


def test_another_collector_goes_on() -> None:
    made = Made()
    phase = made.searching()
    decided(made, phase)
    other: Any = MadeCollector()
    follows = phase.fall_back(other)
    assert other.asked == ["takes over", "search"]
    assert isinstance(follows, EndPhase), "it finds no more"
    assert (phase.collector, follows.collector) == (other, other)
    follows.collect()
    assert other.asked == ["takes over", "search"], "its profile is another one"


@pytest.mark.parametrize(
    ("looks_twice", "ends_as"), [(True, Status.FOUND), (False, Status.STOPPED)]
)
def test_what_a_first_look_had_found_stands(
    looks_twice: bool, ends_as: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the second one ends."""
    monkeypatch.setattr(PathSearch, "looks_twice", looks_twice)
    made = Made()
    phase = made.searching()
    decided(made, phase)
    assert phase.close(Status.STOPPED, alive=True).status is ends_as


def test_what_is_seen_of_a_program_that_lives() -> None:
    made = Made()
    phase = made.searching()
    made.votes_for(made.root, 3)
    assert (phase.seen(True), phase.seen(False)) == (3, 0)
    assert phase.votes(True)[1] == 3
    assert phase.used == made.collector.used


@pytest.mark.parametrize(("status", "why"), [(Status.ENDED, ENDED), (Status.STOPPED, None)])
def test_whether_its_ops_can_still_be_asked_of(status: Status, why: str | None) -> None:
    """Nobody knows any more what they waited for, once the program is about to be gone."""
    made = Made()
    made.keeps()
    made.searching().close(status, alive=True)
    kept = made.case.ops.of_this_run
    assert kept is not None
    assert kept.why_no_waits == why


def test_the_ops_that_were_kept_before_a_kill_are_of_one_that_is_gone() -> None:
    made = Made()
    made.keeps()
    phase = made.searching()
    made.case.take_ops(made.brief.collector)
    phase.close(Status.STOPPED, alive=False)
    kept = made.case.ops.of_this_run
    assert kept is not None
    assert kept.why_no_waits == ENDED


def test_a_kill_leaves_what_the_latest_look_has_shown() -> None:
    """As it was while the profile grew: a search that had just begun has read no more."""
    made = Made()
    phase = made.searching()
    before = made.case.profile.grown.count
    made.case.profile.look(9.0, lambda: samples.profile({**samples.BINS, 33: 10}))
    phase.close(Status.ENDED, alive=False)
    assert made.case.profile.grown.count == before + 10


def test_the_users_end_has_no_need_of_that() -> None:
    made = Made()
    phase = made.searching()
    before = made.case.profile.grown.count
    made.case.profile.look(9.0, lambda: samples.profile({**samples.BINS, 33: 10}))
    phase.close(Status.STOPPED, alive=True)
    assert made.case.profile.grown.count == before
