"""How much of a stop goes to what no decision needs yet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from darc.analyses import guesstime
from darc.analyses.guesstime import GuessTime


class Clock:
    """Of this thread's time on its processor."""

    now = 10.0

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(guesstime, "time", SimpleNamespace(thread_time=lambda: made.now))
    return made


def test_each_stop_has_as_much(clock: Clock) -> None:
    time = GuessTime()
    assert time.is_left()
    clock.spend(0.005)
    assert not time.is_left()
    time.stands()
    assert time.is_left()


def test_what_is_done_once_does_not_count(clock: Clock) -> None:
    time = GuessTime()
    with time.uncounted():
        clock.spend(1.0)
    assert time.is_left()
    clock.spend(0.005)
    assert not time.is_left()


def test_a_stop_for_the_user_lasts_anyway(clock: Clock) -> None:
    time = GuessTime()
    time.stands_for_user()
    clock.spend(100.0)
    assert time.is_left()
    with time.uncounted():
        clock.spend(1.0)
    assert time.is_left()
    time.stands()
    clock.spend(0.005)
    assert not time.is_left()
