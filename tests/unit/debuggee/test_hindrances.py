"""What has kept threads from running: stops, a quota that was used up, and queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from darc.debuggee import hindrances
from darc.debuggee.hindrances import TRACER, Hindrances
from darc.debuggee.switch_history import Growth, Interval, Queued

PID, DEBUGGER = 7, 99


class HinderedProcess:
    """A process that begins at 1000 ns, as it stands; each look at the clock takes 10 ns."""

    def __init__(self) -> None:
        self.now = 1000
        self.threads = [7, 8]
        self.waited = {7: 5, 8: 0, DEBUGGER: 3}
        self.quota = SimpleNamespace(used_up_ns=0)
        quota: Any = self.quota
        self.found = Hindrances(PID, quota, self.now)

    def raw_now(self) -> int:
        self.now += 10
        return self.now


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> HinderedProcess:
    made = HinderedProcess()
    monkeypatch.setattr(hindrances, "clock", SimpleNamespace(raw_now=made.raw_now))
    procfs = SimpleNamespace(threads=lambda pid: made.threads, waited_ns=made.waited.__getitem__)
    monkeypatch.setattr(hindrances, "procfs", procfs)
    return made


def test_a_stop_lasts_until_it_goes_on(world: HinderedProcess) -> None:
    """It stands as it begins. Who says so twice says it once."""
    world.found.stands()
    world.found.goes_on()
    world.found.goes_on()
    world.now = 2000
    world.found.stands()
    world.found.stands()
    assert world.found.stops_between(0, 5000) == [Interval(1000, 1010)], "the last one lasts"
    world.now = 2500
    world.found.goes_on()
    assert world.found.stops_between(0, 5000) == [Interval(1000, 1010), Interval(2010, 2510)]
    assert world.found.stops_between(1011, 2010) == [Interval(2010, 2510)]
    assert world.found.stops_between(1011, 2009) == []


def test_a_quota_grows_between_two_looks(world: HinderedProcess) -> None:
    world.quota.used_up_ns = 400
    world.found.look(0)
    assert world.found.used_up == [], "when that was nobody knows"
    world.now = 3000
    world.quota.used_up_ns = 900
    world.found.look(0)
    assert world.found.used_up == [Growth(1010, 3010, 500)]
    world.found.look(0)
    assert len(world.found.used_up) == 1


def test_who_waits_for_a_processor_is_asked_where_the_debugger_is_known(
    world: HinderedProcess,
) -> None:
    world.found.look(0)
    assert world.found.queued(7) == ()
    world.found.look(DEBUGGER)
    (own,) = world.found.queued(7)
    assert own.total == 5
    assert len(world.found.queued(TRACER)) == 1
    assert world.found.queued(8) == (), "it has waited for none"


def test_of_a_crowd_the_debugger_alone_is_asked(world: HinderedProcess) -> None:
    world.threads = list(range(7, 7 + hindrances._MOST_QUEUED + 1))
    world.found.look(DEBUGGER)
    assert [len(world.found.queued(one)) for one in (TRACER, 7)] == [1, 0]
    assert isinstance(world.found.queued(TRACER)[0], Queued)
