"""Whatever ends a session: what is known stays, and nothing of it is left in the program."""

from __future__ import annotations

import pytest

from darc.collectors.breakpoints import BreakpointCollector
from darc.model.errors import TargetError
from darc.model.parameters import OnFinish
from darc.model.status import Status
from darc.session.message import Message
from darc.target.outcome import Outcome
from tests.unit.assembly import Assemble
from tests.unit.bench import Bench
from tests.unit.machine import PLAIN, Debuggee


@pytest.fixture
def bench(assembled: Assemble) -> Bench:
    return Bench(assembled(PLAIN)).install()


def test_it_goes_on_at_the_end_where_it_is_to(assembled: Assemble) -> None:
    bench = Bench(assembled(PLAIN), on_finish=OnFinish.CONTINUE).install()
    bench.run(400)
    assert not bench.machine.stopped
    assert bench.told == [Message.RESULT]
    assert bench.session.take_message() is None
    assert bench.is_clean


def test_what_was_counted_is_damaged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.session.collector, "damage", lambda: "the tables are damaged")
    assert bench.session.decide() is Outcome.STOP
    assert "the tables are damaged" in bench.session.snapshot().notes
    assert bench.session.take_message() is Message.RESULT
    assert bench.is_clean


def test_the_program_ends(bench: Bench) -> None:
    bench.run(10)
    bench.machine.target.end()
    bench.session.program_ended()
    shown = bench.session.snapshot()
    assert shown.status is Status.ENDED
    assert shown.profile is not None
    assert shown.profile.count == 10
    assert bench.session.take_message() is Message.END


def test_what_was_counted_is_damaged_and_probes_stay(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is told as well, and nobody tries again."""

    def refuse(_self: BreakpointCollector) -> None:
        raise TargetError("2 probes stay")

    monkeypatch.setattr(BreakpointCollector, "remove", refuse)
    assert bench.session.ways_out.damaged("the tables are damaged") is Outcome.STOP
    assert bench.session.notes[-2:] == ["the tables are damaged", "2 probes stay"]
    assert not bench.session.alive


def test_another_program_runs_there(bench: Bench) -> None:
    bench.run(10)
    assert bench.session.ways_out.vanished("the machine was booted anew") is Outcome.STOP
    assert bench.session.take_message() is Message.RESULT
    shown = bench.session.snapshot()
    assert shown.status is Status.ENDED
    assert "the machine was booted anew" in shown.notes
    assert not bench.session.alive


def test_the_debugger_loses_a_program_that_lives_on(bench: Bench) -> None:
    """What is still in it is told for as long as that may be asked."""
    bench.run(10)
    why = "the debugger has lost process 1, which lives"
    bench.session.ways_out.abandon(why)
    assert bench.session.ways_out.left_behind == why
    assert bench.session.snapshot().status is Status.STOPPED
    bench.session.ways_out.abandon("once more")
    assert bench.session.notes[-1] == why
    assert bench.session.take_message() is None


def test_a_program_that_is_killed_while_it_stands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails then fails for that; what fails in a program that lives is an error."""

    def fail() -> bool:
        raise TargetError("cannot read memory")

    with pytest.raises(TargetError, match="cannot read memory"):
        bench.session.ways_out.unless_damaged(fail, False)
    assert bench.session.alive
    monkeypatch.setattr(Debuggee, "is_gone", lambda _self: True)
    assert not bench.session.ways_out.unless_damaged(fail, False)
    assert "the program was killed while it stood still" in bench.session.notes
    assert not bench.session.alive
