"""When a helper works beside the program."""

from __future__ import annotations

import math

import pytest

from darc.model.errors import TargetError
from darc.session import helping
from darc.session.helping import Helping


class Bench:
    """Work beside the program that takes the whole of its time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.worked: list[float] = []
        self.is_more = True

    def monotonic(self) -> float:
        return self.now

    def step(self, seconds: float) -> bool:
        self.worked.append(seconds)
        self.now += seconds
        return self.is_more


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(helping, "time", made)
    return made


def test_it_begins_when_the_debugger_has_let_the_program_go_on(bench: Bench) -> None:
    turns = Helping()
    assert turns.work(bench.step) == math.inf
    turns.goes_on(is_readable=True)
    wait = turns.work(bench.step)
    assert wait > 0
    assert not bench.worked
    bench.now += wait
    assert turns.work(bench.step) == 0.0, "there is more to be done"
    assert len(bench.worked) == 1


def test_what_is_done_is_asked_for_again_ever_later(bench: Bench) -> None:
    turns, bench.is_more = Helping(), False
    turns.goes_on(is_readable=True)
    waits = []
    for _ in range(4):
        bench.now += 1
        waits.append(turns.work(bench.step))
    assert len(bench.worked) == 4
    assert waits == sorted(waits)
    assert waits[-1] > waits[0] > 0


def test_at_a_stop_nobody_helps(bench: Bench) -> None:
    turns = Helping()
    turns.goes_on(is_readable=True)
    bench.now += 1
    turns.stands()
    assert turns.work(bench.step) == math.inf
    turns.goes_on(is_readable=True)
    bench.now += 1

    def stopped(seconds: float) -> bool:
        turns.stands()
        return bench.step(seconds)

    turns.work(stopped)
    assert turns.work(bench.step) == math.inf, "also where it stopped meanwhile"


def test_memory_that_cannot_be_read_is_no_place_for_it(bench: Bench) -> None:
    turns = Helping()
    turns.goes_on(is_readable=False)
    bench.now += 1
    assert turns.work(bench.step) == math.inf


def test_what_fails_is_met_at_the_stop(bench: Bench) -> None:
    def fails(seconds: float) -> bool:
        raise TargetError("cannot read memory")

    turns = Helping()
    turns.goes_on(is_readable=True)
    bench.now += 1
    assert 0 < turns.work(fails) < 1


def test_it_goes_on_after_a_stop_of_the_debuggers_own(bench: Bench) -> None:
    """As for each file that the program loads; not where the program stood before."""
    turns = Helping()
    turns.goes_on(is_readable=True)
    with turns.interrupted():
        bench.now += 1
        assert turns.work(bench.step) == math.inf
    bench.now += 1
    assert turns.work(bench.step) == 0.0
    turns.stands()
    with turns.interrupted():
        pass
    bench.now += 1
    assert turns.work(bench.step) == math.inf
