"""What the user is told of an analysis at a stop, without asking."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.question import About, Question
from darc.app.current import Current
from darc.app.pursuit import Pursuit
from darc.app.telling import Telling
from darc.model.catching import Catching, CaughtCall
from darc.model.functionset import FunctionSet
from darc.model.part import parts_of
from darc.model.snapshot import Snapshot
from darc.model.standing import ThreadStanding
from darc.model.status import Status
from darc.session.message import Message
from darc.session.session import Session
from darc.target.target import Target
from darc.views.general.status import status
from darc.views.style import Style
from tests.unit import samples
from tests.unit.setrows import row

WAITS = Question(About.PROFILE, "choose a peak ('darc peak N')", "no peak is chosen")


class User:
    """Somebody who is told of one session, which a test makes up."""

    def __init__(self, question: Question | None = None, **changes: object) -> None:
        self.said: list[str] = []
        self.shown = samples.snapshot(**changes)
        self.session = SimpleNamespace(
            analysis=SimpleNamespace(question=question), alive=True, snapshot=self._snapshot
        )
        self.current = Current()
        self.current.session = cast(Session, cast(Any, self.session))
        self.target = SimpleNamespace(handled_signal=None)
        self.telling = Telling(
            cast(Target, cast(Any, self.target)), self.current, Style, self.said.append
        )

    def _snapshot(self, **_: object) -> Snapshot:
        return self.shown


def test_nothing_is_told_where_there_is_nothing_to_tell() -> None:
    user = User()
    user.telling.tell(None)
    user.current.session = None
    user.telling.tell(Message.RESULT)
    assert user.said == []


@pytest.mark.parametrize(
    ("about", "first"), [(About.PROFILE, "calls "), (About.FTREE, "● 1 handle")]
)
def test_a_question_is_told_with_what_it_is_about(about: About, first: str) -> None:
    user = User(Question(about, "choose one"))
    user.telling.tell(Message.QUESTION)
    view, asked = user.said
    assert view.lstrip().startswith(first)
    assert asked == "darc: choose one, then 'continue'"


def test_a_question_is_told_with_the_part_of_its_analysis() -> None:
    known = FunctionSet((row("put", {20: 5}),))
    user = User(Question(About.PART, "choose a row"), parts=parts_of(known))
    user.telling.tell(Message.QUESTION)
    view, asked = user.said
    assert "put" in view
    assert view == status(user.shown, Style(80))
    assert asked == "darc: choose a row, then 'continue'"


def test_a_pursuit_is_not_asked() -> None:
    """It goes on by itself: how far it is by then is told."""
    user = User(WAITS)
    answered = samples.snapshot(function="found", paths=())
    pursuit = SimpleNamespace(with_answer=lambda _session, _found: answered)
    user.current.pursuit = cast(Pursuit, cast(Any, pursuit))
    user.telling.tell(Message.QUESTION)
    (told,) = user.said
    assert told.startswith("darc: found: ")


def test_a_place_is_told_as_the_part_of_its_analysis_says() -> None:
    where = ThreadStanding(7, "worker", ("wait", "handle"), is_whole=True)
    place = CaughtCall(0.005, where, off=None, by_quota=0.0, wait=None, show=None)
    user = User(parts=parts_of(Catching(0.004, 1, 0, place)))
    user.telling.tell(Message.PLACE)
    first, cost = user.said
    assert first == 'darc: handle under way for 5.0ms in thread 7 "worker", in wait ← handle'
    assert cost.startswith("  the program stood still for ")


def test_of_a_place_that_nothing_is_known_of_it_is_told_that_it_is_over() -> None:
    user = User(parts=parts_of(Catching(0.004, 1, 0)))
    user.session.spec = "handle"
    user.telling.tell(Message.PLACE)
    assert user.said == ["darc: handle is over"]


def test_paths_are_told_and_else_how_far_it_is() -> None:
    user = User()
    user.telling.tell(Message.RESULT)
    assert "root cause" in user.said.pop()
    user.shown = samples.snapshot(paths=(), status=Status.ENDED)
    user.telling.tell(Message.RESULT)
    assert user.said.pop().startswith("darc: handle: program ended\n")
    user.telling.tell(Message.END)
    assert user.said.pop().startswith("darc: handle: program ended: ")


def test_a_profile_is_shown_as_the_debugger_leaves() -> None:
    user = User(paths=())
    user.telling.tell_as_it_leaves()
    assert len(user.said) == 2
    user = User()
    user.telling.tell_as_it_leaves()
    assert len(user.said) == 1, "the paths say more"


def test_who_goes_on_without_an_answer_is_told_so_once() -> None:
    user = User(WAITS)
    assert user.current.session is not None
    for _ in range(2):
        user.telling.tell_of_question(user.current.session)
    assert user.said == ["darc: no peak is chosen"]
    other = User(Question(About.FTREE, "choose nodes"))
    assert other.current.session is not None
    other.telling.tell_of_question(other.current.session)
    assert other.said == [], "it goes on without one"


def test_a_signal_that_the_program_handles_is_told_once() -> None:
    user = User()
    user.telling.tell_of_signal("handle")
    user.target.handled_signal = SimpleNamespace(name="SIGUSR1", command="handle SIGUSR1 nostop")
    for _ in range(2):
        user.telling.tell_of_signal("handle")
    (told,) = user.said
    assert told.startswith(
        "darc: the analysis of handle is not done: SIGUSR1, which the program has a handler for"
    )
    assert "'handle SIGUSR1 nostop'" in told


def test_where_nothing_is_analysed_yet_a_signal_does_not_say_so() -> None:
    user = User()
    user.target.handled_signal = SimpleNamespace(name="SIGUSR1", command="handle SIGUSR1 nostop")
    user.telling.tell_of_signal("handle", waits=True)
    (told,) = user.said
    assert told.startswith("darc: still waits for handle: SIGUSR1, which the program has a handler")


def test_how_far_a_descent_is_is_told_of_a_descent_alone() -> None:
    """Another analysis that searches has no level, though it may have a peak."""
    searching = dataclasses.replace(samples.snapshot(), status=Status.SEARCHING)
    assert "level" in status(searching, Style(100))
    assert "level" not in status(dataclasses.replace(searching, level=None), Style(100))
