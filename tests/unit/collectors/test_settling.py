"""For how long calls do not count after a stop."""

from __future__ import annotations

from typing import cast

import pytest

from darc.agent.memory import AgentMemory
from darc.collectors import settling
from darc.collectors.settling import Settling
from darc.pads.backend import PadBackend

HZ = 1_000_000


class Clock:
    """That of a made-up program."""

    now = 0

    def tsc_now(self) -> int:
        return self.now

    def tsc_hz(self) -> int:
        return HZ


class Tables:
    """What the agent is told."""

    window = 0

    def set(self, *, resumed: int, settled: int) -> None:
        self.window = settled - resumed


class StoppedThreads:
    """One with so many threads, that runs and stops."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
        self.clock, self.tables = Clock(), Tables()
        monkeypatch.setattr(settling, "clock", self.clock)
        self.threads = threads
        self.settling = Settling(cast(PadBackend, self), is_asked=True)

    def thread_count(self) -> int:
        return self.threads

    def stop(self, seconds: float) -> float:
        """For how many seconds calls do not count behind a stop that takes so long."""
        self.settling.stands()
        self.clock.now += int(seconds * HZ)
        self.settling.goes_on(cast(AgentMemory, self.tables))
        return self.tables.window / HZ

    def run(self, seconds: float) -> None:
        self.clock.now += int(seconds * HZ)


def test_a_longer_stop_has_more_to_be_caught_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    program = StoppedThreads(monkeypatch, threads=300)
    assert program.stop(0.1) == pytest.approx(0.2)
    program.run(10)
    assert program.stop(0.2) == pytest.approx(0.4)
    program.run(10)
    assert program.stop(60) == pytest.approx(2)
    assert program.settling.seconds == pytest.approx(0.6)
    program.run(10)
    assert program.settling.seconds == pytest.approx(2.6)
    assert not program.settling.is_much


def test_a_few_threads_are_no_herd(monkeypatch: pytest.MonkeyPatch) -> None:
    assert StoppedThreads(monkeypatch, threads=1).stop(60) == 0
    assert StoppedThreads(monkeypatch, threads=0).stop(60) == 0
    assert StoppedThreads(monkeypatch, threads=8).stop(60) == 0
    assert StoppedThreads(monkeypatch, threads=12).stop(60) == pytest.approx(0.11)


def test_a_program_that_stops_all_the_time_is_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one with a breakpoint whose commands let it go on: it would never come to what counts."""
    program = StoppedThreads(monkeypatch, threads=300)
    counted = 0.0
    for _ in range(1000):
        window = program.stop(0.05)
        program.run(0.05)
        counted += max(0.0, 0.05 - window)
    assert counted > 0.2 * 1000 * 0.05
    assert program.settling.is_much


def test_a_stop_has_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bell's stop becomes one for the user."""
    program = StoppedThreads(monkeypatch, threads=300)
    program.settling.stands()
    program.clock.now += int(0.1 * HZ)
    assert program.stop(0.1) == pytest.approx(0.4)
