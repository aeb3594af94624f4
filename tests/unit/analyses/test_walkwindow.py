"""The windows of a walk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses import walkwindow
from darc.analyses.walkwindow import WalkWindow
from tests.unit.movedtime import MovedTime


class TimedWindow:
    """A window of two seconds, and what it goes by."""

    def __init__(self, clock: MovedTime) -> None:
        self.clock = clock
        self.walk = SimpleNamespace(now=1000)
        self.pace = SimpleNamespace(runs_at_least=0.03)
        self.window = WalkWindow(cast(Any, self.walk), cast(Any, self.pace), 2.0)

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.walk.now += round(seconds * 1000)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> TimedWindow:
    clock = MovedTime()
    monkeypatch.setattr(walkwindow, "time", clock)
    return TimedWindow(clock)


def test_it_lasts_from_when_the_program_goes_on_until_it_stops(world: TimedWindow) -> None:
    window = world.window
    assert (window.is_open, window.seconds_left) == (False, 2.0)
    world.passes(5)
    window.begins(times_calls=True)
    world.passes(0.5)
    assert (window.is_open, window.seconds_left) == (True, 1.5)
    world.passes(1.5)
    window.ends()
    assert (window.is_open, window.was_long_enough) == (False, True)
    assert (window.start, window.end, window.took) == (6000, 8000, 2.0)
    window.ends()  # a stop for which it did not go on in between
    assert window.took == 2.0


def test_one_that_a_stop_of_the_users_has_cut_tells_nothing(world: TimedWindow) -> None:
    world.window.begins(times_calls=True)
    world.passes(1.7)
    world.window.ends()
    assert not world.window.was_long_enough


def test_where_stops_take_long_it_is_longer(world: TimedWindow) -> None:
    world.pace.runs_at_least = 9.0
    world.window.begins(times_calls=True)
    assert world.window.seconds_left == 9.0
    world.passes(2)
    world.window.ends()
    assert not world.window.was_long_enough


def test_without_calls_that_are_timed_it_is_short(world: TimedWindow) -> None:
    world.window.begins(times_calls=False)
    assert world.window.seconds_left == pytest.approx(0.2)


def test_those_that_told_something_are_counted(world: TimedWindow) -> None:
    for seconds in (2, 3, 2.5):
        world.window.begins(times_calls=True)
        world.passes(seconds)
        world.window.ends()
        if seconds != 2.5:
            world.window.is_measured()
    assert (world.window.count, world.window.longest) == (2, 3.0)
