"""How long a program has run under analysis."""

from __future__ import annotations

import pytest

from darc.analyses import runclock
from darc.analyses.runclock import RunClock


class Time:
    """Passes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(runclock, "time", made)
    return made


def test_it_goes_while_the_program_does(time: Time) -> None:
    clock = RunClock()
    time.now += 5
    assert (clock.seconds, clock.goes, clock.begun) == (0.0, False, None)
    clock.goes_on()
    time.now += 2
    assert (clock.seconds, clock.goes, clock.begun) == (2.0, True, 105.0)
    clock.stops()
    time.now += 7
    assert (clock.seconds, clock.goes) == (2.0, False)
    clock.goes_on()
    time.now += 1
    assert (clock.seconds, clock.begun) == (3.0, 105.0)


def test_what_is_said_again_changes_nothing(time: Time) -> None:
    clock = RunClock()
    clock.stops()
    clock.goes_on()
    time.now += 2
    clock.goes_on()
    time.now += 2
    clock.stops()
    clock.stops()
    assert clock.seconds == 4.0
