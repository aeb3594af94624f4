"""How long a program has run under analysis."""

from __future__ import annotations

from darc.analyses.runclock import RunClock
from tests.unit.movedtime import MovedTime


def test_it_goes_while_the_program_does(run_time: MovedTime) -> None:
    clock = RunClock()
    run_time.now += 5
    assert (clock.seconds, clock.goes, clock.begun) == (0.0, False, None)
    clock.goes_on()
    run_time.now += 2
    assert (clock.seconds, clock.goes, clock.begun) == (2.0, True, 105.0)
    clock.stands()
    run_time.now += 7
    assert (clock.seconds, clock.goes) == (2.0, False)
    clock.goes_on()
    run_time.now += 1
    assert (clock.seconds, clock.begun) == (3.0, 105.0)


def test_what_is_said_again_changes_nothing(run_time: MovedTime) -> None:
    clock = RunClock()
    clock.stands()
    clock.goes_on()
    run_time.now += 2
    clock.goes_on()
    run_time.now += 2
    clock.stands()
    clock.stands()
    assert clock.seconds == 4.0
