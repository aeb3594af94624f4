"""The user's stops: no probe is to be seen then, and what becomes of the search behind them."""

from __future__ import annotations

import pytest

from darc.model.status import Status
from darc.session.deadline import Deadline
from darc.session.message import Message
from tests.fake_target import FakeTarget
from tests.unit.assembly import Assemble
from tests.unit.bench import Bench
from tests.unit.machine import PLAIN


@pytest.fixture
def bench(assembled: Assemble) -> Bench:
    return Bench(assembled(PLAIN)).install()


def test_a_stop_for_the_user(bench: Bench) -> None:
    """Nothing is to be seen then, and the search goes on behind it."""
    bench.run(10)
    bench.session.pauses.begin()
    assert not bench.machine.target.breaks.on_hit
    assert bench.session.pauses.are_out
    bench.session.pauses.end()
    assert bench.machine.target.breaks.on_hit
    bench.run(400)
    assert bench.session.take_message() is Message.RESULT


def test_the_probes_make_way_no_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A breakpoint of the user's stands where f0 is timed: that ends it, and is told at once."""
    monkeypatch.setattr(bench.session.collector, "make_way", lambda: "a breakpoint stands there")
    bench.session.pauses.breakpoints_changed()
    assert "f is not timed any more: a breakpoint stands there" in bench.session.notes
    assert bench.told == [Message.RESULT]
    assert bench.is_clean


@pytest.mark.parametrize(("ends", "alive"), [(True, False), (False, True)])
def test_a_ctrl_c_ends_what_ends_with_it(
    ends: bool, alive: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(bench.session.analysis), "ends_at_interrupt", ends)
    bench.session.pauses.begin()
    bench.session.pauses.end_if_interrupted()
    assert bench.session.alive, "it is another stop"
    monkeypatch.setattr(FakeTarget, "was_interrupted", True)
    bench.session.pauses.end_if_interrupted()
    assert bench.session.alive is alive
    assert bench.session.take_message() is (Message.RESULT if ends else None)


def test_a_stop_behind_the_time_limit_is_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.run(3)
    bench.session.pauses.end_if_late()
    assert bench.session.alive
    monkeypatch.setattr(Deadline, "has_passed", True)
    bench.session.pauses.end_if_late()
    assert bench.session.snapshot().status is Status.INCONCLUSIVE
    assert bench.is_clean
