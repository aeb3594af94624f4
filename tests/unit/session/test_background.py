"""What is done for a session while the program runs, and that nobody does it when that stands."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from darc.collectors.duties import Summons
from darc.debuggee.switchwatch import SwitchWatch
from darc.session import helping
from darc.session.background import Background
from darc.target.ownthread import Turn


class Session:
    """One whose collector and analysis note what they are told."""

    def __init__(self) -> None:
        self.alive = True
        self.told: list[str] = []
        self.collector = SimpleNamespace(
            ahead=SimpleNamespace(goes_on=lambda: self.told.append("ahead goes on")),
            counting=SimpleNamespace(hurry=lambda: self.told.append("hurry")),
            summons=Summons(23),
        )
        self.analysis = SimpleNamespace(
            goes_on=lambda: self.told.append("analysis goes on"),
            look=lambda: 0.5,
            look_ahead=self._look_ahead,
            urgent=7,
        )

    def _look_ahead(self, _seconds: float) -> bool:
        self.told.append("looks ahead")
        return True


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


def made_for(session: Session, *, is_readable: bool = True) -> Background:
    debuggee = SimpleNamespace(is_readable_while_it_runs=is_readable)
    return Background(session, debuggee, SwitchWatch(), Turn())  # type: ignore[arg-type]


def test_who_is_told_that_the_program_goes_on() -> None:
    session = Session()
    made_for(session).goes_on()
    assert session.told == ["analysis goes on", "ahead goes on"]


def test_a_helper_works_until_the_program_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helping, "time", Clock())
    session = Session()
    background = made_for(session)
    assert background.look_ahead() == math.inf, "it stands yet"
    background.goes_on()
    assert background.look_ahead() == 0.0
    with background.stands_for_a_moment():
        assert background.look_ahead() == math.inf
    assert background.look_ahead() == 0.0
    background.stands()
    assert background.look_ahead() == math.inf
    assert session.told.count("looks ahead") == 2


def test_no_helper_where_memory_cannot_be_read_meanwhile() -> None:
    background = made_for(Session(), is_readable=False)
    background.goes_on()
    assert background.look_ahead() == math.inf


def test_nothing_is_done_once_the_probes_are_out() -> None:
    session = Session()
    background = made_for(session)
    background.goes_on()
    assert (background.look(), background.urgent) == (0.5, 7)
    background.hurry()
    assert session.told[-1] == "hurry"
    session.alive = False
    assert (background.look(), background.look_ahead()) == (math.inf, math.inf)
    assert background.urgent is None
    assert not background.rings
    assert not background.rings_itself
    background.hurry()
    assert session.told.count("hurry") == 1
