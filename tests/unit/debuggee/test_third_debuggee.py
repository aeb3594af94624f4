"""A debuggee that is neither a process of this machine nor a kernel: what is done with it, and what
is said of it, follows from what it can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from darc.app import commands
from darc.app.monitor import Monitor
from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.pad_collector import NO_PADS, PadCollector
from darc.collectors.set_collector import SetCollector
from darc.collectors.walk_collector import WalkCollector
from darc.model.errors import UnsupportedError, UsageError
from darc.model.status import Status
from darc.views.style import Style
from tests.unit.assembly import Code
from tests.unit.faraway import REMOTE, FarawayDebuggee
from tests.unit.machine import PLAIN
from tests.unit.users import UserOf


class User(UserOf[FarawayDebuggee]):
    """Somebody at a debugger that is connected to the stub."""

    def __init__(self, code: Code) -> None:
        super().__init__(code, lambda machine: FarawayDebuggee(machine.target, machine.code))
        self.target.was_attached = True


@pytest.fixture
def user(assembled: Callable[[str], Code]) -> User:
    return User(assembled(PLAIN))


def test_from_start_to_the_answer(user: User) -> None:
    """``--probes auto`` finds that there can be no pads; no machine stops as a whole."""
    user.start()
    assert "whole machine" not in user.said
    user.go_on()
    paths = user.app.snapshot().paths
    assert [node.function.name for node in paths[0].nodes] == ["f", "g", "w"]
    assert "kernel" not in user.said
    assert user.is_clean


def test_stop_takes_every_probe_out(user: User) -> None:
    user.start()
    user.go_on(10)
    _ = user.said
    user.app.stop()
    assert user.said == "darc: every probe is out\n"
    assert user.is_clean


def test_it_is_not_let_go_of_while_it_runs(user: User) -> None:
    """Its probes would stay in it."""
    user.start()
    user.app.observer.goes_on()
    user.target.running = True
    with pytest.raises(
        UsageError, match="the remote program runs, and darc's probes come out only"
    ):
        user.app.observer.check_leaving()


def test_what_is_left_in_it_is_told(user: User) -> None:
    """The debugger lets it go all the same: it lives, with probes."""
    session = user.start()
    user.app.observer.goes_on()
    user.target.running = True
    _ = user.said
    user.app.observer.on_leave()
    why = f"the remote program was let go of while it ran: {REMOTE.left_in}"
    assert user.said == f"darc: {why}\n"
    assert session.ways_out.left_behind == why
    assert user.app.snapshot().status is Status.STOPPED


def test_let_go_of_as_it_stands_it_has_none(user: User) -> None:
    session = user.start()
    user.go_on(10)
    user.app.observer.on_leave()
    assert user.is_clean
    assert session.ways_out.left_behind is None


def test_its_end_is_the_analysis_end(user: User) -> None:
    """There is no 'run' that it would begin anew with."""
    user.start()
    user.go_on(10)
    _ = user.said
    assert user.app.observer.may_be_killed()
    user.target.end()
    user.app.observer.on_exit()
    assert "begins anew" not in user.said
    assert user.app.snapshot().status is Status.ENDED


def test_its_memory_is_left_alone_while_it_runs(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = user.start()
    user.app.observer.goes_on()

    def read(*_: object) -> bytes:
        raise AssertionError("it runs")

    monkeypatch.setattr(type(user.target.memory), "read", read)
    session.background.goes_on()
    session.account.live_snapshot()
    assert session.collector.damage() is None


def test_the_time_limit_knocks(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.app.set_parameter("max-time", "1s")
    session = user.start()
    monkeypatch.setattr(type(session.deadline), "seconds_left", -1.0)
    watch = Monitor(session, user.target, Style(80, False))
    try:
        assert watch._knock(None, 10.0) == 10.0
        assert user.debuggee.knocks == 1
    finally:
        watch.stop()


@pytest.mark.parametrize("line", ["why", "walk", "walk f", "catch f --above 2ms"])
def test_what_looks_while_it_runs_says_why_it_cannot(user: User, line: str) -> None:
    command, _, arguments = line.partition(" ")
    with pytest.raises(UnsupportedError) as error:
        commands.run(user.app, command, arguments)
    assert str(error.value) == f"'darc {command}' {REMOTE.why_unread}"


def test_collectors_say_what_they_lack(user: User) -> None:
    for collector in (PadCollector, SetCollector, WalkCollector):
        assert collector.problem(user.debuggee) == NO_PADS
    assert BreakpointCollector.problem(user.debuggee) is None
    assert BreakpointCollector.risk_of_fall_back(user.debuggee) is None
