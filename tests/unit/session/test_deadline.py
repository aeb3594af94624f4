"""Until when a session watches calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.session import figures
from darc.session.deadline import Deadline
from darc.session.figures import RunFigures
from tests.fake_target import FakeTarget


class Session:
    """One that has begun at a moment of the test's own clock, and a time for its profile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.profiling: float | None = None
        monkeypatch.setattr(figures, "time", SimpleNamespace(monotonic=lambda: self.now))

    @property
    def analysis(self) -> Any:
        return SimpleNamespace(seconds_left=self.profiling)

    def deadline(self, limit: float | None, spent: float = 0.0) -> Deadline:
        return Deadline(self, RunFigures(FakeTarget(), spent), limit)  # type: ignore[arg-type]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(monkeypatch)


def test_without_any(session: Session) -> None:
    deadline = session.deadline(None)
    session.now += 1e9
    assert deadline.seconds_left is None
    assert not deadline.has_passed
    assert not deadline.is_due()


def test_the_limit_counts_what_was_spent_before(session: Session) -> None:
    deadline = session.deadline(30.0, spent=10.0)
    session.now += 19.0
    assert deadline.seconds_left == 1.0
    assert not deadline.is_due()
    session.now += 1.0
    assert deadline.is_due()
    assert deadline.has_passed


def test_the_profiles_time_is_no_end(session: Session) -> None:
    """It is due earlier than the limit; when it is over, the limit is what is left."""
    deadline = session.deadline(30.0)
    session.profiling = 0.0
    assert deadline.is_due()
    assert not deadline.has_passed
    session.profiling = None
    assert deadline.seconds_left == 30.0


def test_a_ctrl_c_is_due_at_once_and_answered_once(session: Session) -> None:
    deadline = session.deadline(30.0)
    assert not deadline.take_called_off()
    deadline.call_off()
    assert deadline.seconds_left == 0.0
    assert deadline.is_due()
    assert not deadline.has_passed
    assert deadline.is_called_off
    assert deadline.take_called_off()
    assert not deadline.is_called_off
    assert deadline.seconds_left == 30.0
