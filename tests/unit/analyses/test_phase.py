"""What every phase has, and the last one."""

from __future__ import annotations

import pytest

from darc.analyses.analysis import Step
from darc.analyses.phase import CHOSEN, EndPhase
from darc.analyses.profilephase import ProfilePhase
from darc.model.errors import UsageError
from darc.model.status import Status
from tests.unit.cases import Made


def test_the_end_shows_what_had_been_come_to() -> None:
    made = Made()
    before = made.searching()
    made.votes_for(made.root, 3)
    ended = EndPhase(before, Status.STOPPED)
    assert ended.begin() is ended.decide() is Step.END
    assert (ended.status, ended.is_searching, ended.has_counts) == (Status.STOPPED, True, True)
    assert (ended.tree, ended.level, ended.paths) == (made.root, 1, ())
    assert (ended.needed, ended.seen(True), ended.used) == (4, 3, before.used)
    assert not ended.is_counting


def test_the_end_of_what_had_not_begun() -> None:
    ended = EndPhase(ProfilePhase.of(Made().case, None), Status.STOPPED)
    assert (ended.tree, ended.level, ended.paths, ended.is_searching) == (None, 0, (), False)
    assert (ended.needed, ended.seen(True)) == (100, 0)


def test_it_stays_as_it_ended_first() -> None:
    made = Made()
    ended = EndPhase(made.searching(), Status.FOUND)
    assert ended.close(Status.ENDED, alive=False) is ended
    assert ended.finish_early("the time is up") == (ended, False)
    assert made.notes == []


def test_nothing_is_due_behind_the_end() -> None:
    ended = EndPhase(Made().searching(), Status.FOUND)
    assert (ended.seconds_left, ended.question, ended.look()) == (None, None, float("inf"))
    assert not ended.look_ahead(0.01)
    with pytest.raises(UsageError, match=CHOSEN):
        ended.takes_peak("1")


def test_votes_are_those_that_were_kept() -> None:
    made = Made()
    before = made.searching()
    made.votes_for(made.root, 3)
    assert before.votes(True)[1] == 3
    assert EndPhase(before, Status.INCONCLUSIVE).votes(True) == ((), 0)
