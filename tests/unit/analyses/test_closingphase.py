"""While the closing round lasts."""

from __future__ import annotations

import pytest

from darc.analyses.analysis import Step
from darc.analyses.phase import CHOSEN, EndPhase
from darc.model.errors import UsageError
from darc.model.status import Status
from tests.unit import samples
from tests.unit.cases import Made, closing


def test_how_long_it_lasts() -> None:
    made = Made()
    phase = closing(made)
    assert phase.begin() is Step.GO_ON
    assert (phase.status, phase.is_searching) == (Status.SEARCHING, True)
    assert (phase.needed, phase.seconds_left) == (9, 5.0)
    assert made.asked == []


def test_no_decision_rests_on_its_calls() -> None:
    """What the search had is what it has."""
    made = Made()
    phase = closing(made)
    assert not phase.is_counting
    assert (phase.tree, phase.level, phase.paths) == (made.root, 1, ())
    assert (phase.seen(True), phase.votes(True)[1]) == (3, 3)
    assert phase.used == made.collector.used


def test_it_goes_on_once_and_then_it_ends() -> None:
    made = Made()
    made.keeps()
    phase = closing(made, lasts=True)
    assert phase.decide() is Step.GO_ON
    assert made.asked == ["kept ops", "the user"]
    follows = phase.decide()
    assert isinstance(follows, EndPhase)
    assert made.asked == ["kept ops"]
    assert (follows.needed, follows.status) == (9, Status.INCONCLUSIVE)
    assert made.case.ops.of_this_run is not None


def test_it_ends_without_ops() -> None:
    made = Made()
    follows = closing(made, lasts=True).decide()
    assert isinstance(follows, EndPhase)
    assert made.case.ops.of_this_run is None


@pytest.mark.parametrize(("count", "is_cut_short"), [(3, True), (20, False)])
def test_time_ends_it(count: int, is_cut_short: bool) -> None:
    """Nothing is missing where enough ops were kept."""
    made = Made()
    made.keeps(count)
    follows, was_cut_short = closing(made).finish_early("the time is up")
    assert isinstance(follows, EndPhase)
    assert was_cut_short == is_cut_short
    told = "the time is up: the last round, which tells what causes explain, was not over"
    assert made.notes == ([told] if is_cut_short else [])


def test_time_ends_it_when_the_ops_are_gone() -> None:
    made = Made()
    made.keeps().is_gone = True
    assert not closing(made).finish_early("the time is up").is_cut_short
    assert made.notes == []


@pytest.mark.parametrize("alive", [True, False])
def test_the_program_ends(alive: bool) -> None:
    """It is what its paths say, all the same."""
    made = Made()
    made.keeps()
    follows = closing(made).close(Status.ENDED, alive)
    assert (follows.status, follows.has_counts) == (Status.INCONCLUSIVE, alive)
    assert made.asked == (["kept ops"] if alive else [])


def test_there_is_nothing_to_choose() -> None:
    made = Made()
    phase = closing(made)
    with pytest.raises(UsageError, match=CHOSEN):
        phase.takes_peak("1")
    with pytest.raises(UsageError, match="no fnode waits to be descended into"):
        phase.descend([])


def test_a_kill_leaves_what_the_latest_look_has_shown() -> None:
    """As it was while the profile grew: a search that had just begun has read no more."""
    made = Made()
    phase = closing(made)
    before = made.case.profile.grown.count
    made.case.profile.look(9.0, lambda: samples.profile({**samples.BINS, 33: 10}))
    phase.close(Status.ENDED, alive=False)
    assert made.case.profile.grown.count == before + 10


def test_the_users_end_has_no_need_of_that() -> None:
    made = Made()
    phase = closing(made)
    before = made.case.profile.grown.count
    made.case.profile.look(9.0, lambda: samples.profile({**samples.BINS, 33: 10}))
    phase.close(Status.STOPPED, alive=True)
    assert made.case.profile.grown.count == before
