"""Which calls are late: the debugger's own stops do not make them so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.analysis import Step
from darc.analyses.late import LateCalls
from darc.analyses.runclock import StopTimes
from darc.collectors.duties import Running


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_what_of_the_last_seconds_it_stood(clock: Clock) -> None:
    times = StopTimes()
    times.stops()
    clock.now += 2
    times.stops()  # the same stop
    times.goes_on()
    clock.now += 1
    assert times.within(10) == 2
    assert times.within(2) == 1
    assert times.within(0.5) == 0
    times.stops()
    clock.now += 4
    assert times.within(10) == 6


class OpenCalls:
    """One call, of thread 7, which began at 0."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.begun = clock, clock.now

    def running(self) -> Sequence[Running]:
        return [Running("call", 7, self.clock.now - self.begun)]

    def waits_for(self, call: Running) -> None: ...

    def deep_wait(self, call: Running) -> None: ...


def late_calls(clock: Clock) -> LateCalls:
    """Calls of 10 s are late."""
    made = SimpleNamespace(
        **{name: lambda *_: None for name in ("search", "await_user", "keep_ops", "watch_waits")},
        hz=1000,
    )
    subject = SimpleNamespace(
        **dict.fromkeys(("parameters", "root", "spec", "program", "note")),
        collector=SimpleNamespace(counting=made, ops=made, open_calls=OpenCalls(clock)),
        switches=SimpleNamespace(begin=lambda: None, off=lambda *_: None),
    )
    return LateCalls(cast(Any, subject), seconds=10.0)


def test_a_stop_does_not_make_a_call_late(clock: Clock) -> None:
    analysis = late_calls(clock)
    clock.now += 4
    analysis.stopped()
    clock.now += 50
    analysis.goes_on()
    clock.now += 5
    analysis.look()
    assert analysis.urgent is None
    clock.now += 2
    analysis.look()
    assert analysis.urgent == 7
    assert analysis.decide() is Step.SHOW
