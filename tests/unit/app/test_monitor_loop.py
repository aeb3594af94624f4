"""The monitor's thread: what it does while the program runs, and when it stops that."""

from __future__ import annotations

import threading
import time

import pytest

from darc.app import monitor
from darc.app.monitor import Monitor
from darc.model.errors import TargetError
from darc.model.snapshot import ProgramFigures
from tests.unit.monitored import BELL, Analysis, ended, monitor_of


@pytest.fixture
def analysis() -> Analysis:
    return Analysis()


@pytest.fixture
def idle(analysis: Analysis) -> Monitor:
    return ended(analysis)


def test_it_gives_signs_of_life_as_long_as_it_is_there(analysis: Analysis) -> None:
    analysis.run(lambda: analysis.beats >= 2)
    assert analysis.looks > analysis.beats
    assert analysis.debuggee.sent == []
    assert analysis.shown == [None], "the live line is taken away"


def test_it_ends_with_the_analysis(analysis: Analysis) -> None:
    def looked() -> None:
        analysis.alive = analysis.looks < 3

    analysis.looked = looked
    analysis.run_out()
    assert analysis.looks == 3


def test_a_program_that_is_gone_ends_it(analysis: Analysis) -> None:
    def looked() -> None:
        analysis.debuggee.gone = True
        raise TargetError("cannot read memory")

    analysis.looked = looked
    analysis.run_out()
    assert analysis.debuggee.sent == [], "the debugger tells"


def test_tables_that_cannot_be_read_stop_the_program_once(analysis: Analysis) -> None:
    """It is for the debugger to see what has become of them."""

    def looked() -> None:
        if analysis.looks < 4:
            raise TargetError("damaged")

    analysis.looked = looked
    analysis.run(lambda: analysis.looks >= 4)
    assert analysis.debuggee.sent == [(BELL,)]


def test_errors_of_darcs_own_are_told(analysis: Analysis) -> None:
    """And the program is stopped all the same, as by what its tables may have caused."""

    def looked() -> None:
        if analysis.looks < 4:
            raise KeyError("no such thing")

    analysis.looked = looked
    analysis.run(lambda: analysis.looks >= 4)
    assert set(analysis.notes) == {
        "internal error beside the program that runs: KeyError('no such thing')"
    }
    assert analysis.debuggee.sent == [(BELL,)]


def test_who_asks_the_debugger_is_found_out(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda what: told.append(what.exc_type))

    def looked() -> None:
        raise AssertionError("read was called on another thread")

    analysis.looked = looked
    analysis.run_out()
    assert told == [AssertionError]


def test_an_agent_that_rings_is_given_its_time(analysis: Analysis, idle: Monitor) -> None:
    analysis.rings = analysis.rings_itself = True
    since = idle._knock(None, 10.0)
    assert since == 10.0
    since = idle._knock(since, 10.0 + monitor._RINGING_SECONDS / 2)
    assert analysis.debuggee.sent == []
    idle._knock(since, 10.0 + monitor._RINGING_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)]


def test_an_agent_that_may_not_ring_is_helped_soon(analysis: Analysis, idle: Monitor) -> None:
    analysis.rings = True
    since = idle._knock(None, 10.0)
    idle._knock(since, 10.0 + 2 * monitor._GRACE_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)]


def test_no_second_signal_while_one_is_on_its_way(analysis: Analysis, idle: Monitor) -> None:
    """It would come to the program, or stop it for the user, once darc does not listen."""
    analysis.rings = analysis.debuggee.signalled = True
    since = idle._knock(None, 10.0)
    again = idle._knock(since, 10.0 + 2 * monitor._GRACE_SECONDS)
    assert analysis.debuggee.sent == []
    analysis.debuggee.signalled = False
    again = idle._knock(again, 10.0 + 2.1 * monitor._GRACE_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)], "at the first look that finds none"
    idle._knock(again, 10.0 + 2.2 * monitor._GRACE_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)]


def test_the_time_limit_ends_what_waits_for_calls(analysis: Analysis, idle: Monitor) -> None:
    analysis.seconds_left = 0.5
    assert idle._knock(None, 10.0) is None
    analysis.seconds_left = 0.0
    since = idle._knock(None, 11.0)
    assert analysis.ends == 1, "the next call ends it"
    idle._knock(since, 11.0 + 2 * monitor._GRACE_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)], "f0 is not called any more"


def test_where_memory_cannot_be_read_the_debugger_is_knocked_at(
    analysis: Analysis, idle: Monitor
) -> None:
    """A kernel: only it can stop that."""
    analysis.debuggee.is_readable_while_it_runs, analysis.seconds_left = False, 1.0
    assert idle._knock(None, 10.0) is None
    assert analysis.debuggee.knocks == 0
    analysis.seconds_left = -0.1
    since = idle._knock(None, 11.0)
    assert (since, analysis.debuggee.knocks) == (11.0, 1)
    assert idle._knock(since, 11.0 + monitor._AGAIN / 2) == since
    assert analysis.debuggee.knocks == 1
    idle._knock(since, 11.0 + monitor._AGAIN)
    assert analysis.debuggee.knocks == 2
    assert analysis.debuggee.sent == []


def test_a_call_that_is_late_stops_its_own_thread(analysis: Analysis, idle: Monitor) -> None:
    analysis.debuggee.deep = True
    assert idle._stop_in(77, 10.0, 0.25) == 0.25
    assert analysis.debuggee.sent == [], "a thread waits in a way that no signal ends"
    analysis.debuggee.deep = False
    assert idle._stop_in(77, 10.1, 0.25) == 0.25
    assert analysis.debuggee.sent == [(BELL, 77)]
    idle._stop_in(77, 10.1 + monitor._AGAIN / 2, 0.25)
    assert len(analysis.debuggee.sent) == 1, "one is on its way"
    analysis.cost = ProgramFigures(stops=1)
    idle._stop_in(77, 10.2 + monitor._AGAIN / 2, 0.25)
    assert len(analysis.debuggee.sent) == 2, "a stop has come of that one"


def test_probes_come_back_where_a_front_end_lets_the_program_go_on(
    analysis: Analysis, idle: Monitor
) -> None:
    analysis.goes_on_unseen = analysis.are_out = True
    since = idle._knock(None, 10.0)
    idle._knock(since, 10.0 + monitor._BARE_SECONDS / 2)
    assert analysis.debuggee.sent == [], "it may be a step"
    idle._knock(since, 10.0 + monitor._BARE_SECONDS)
    assert analysis.debuggee.sent == [(BELL,)]


def test_where_there_is_no_terminal_a_line_says_now_and_then_how_far_it_is(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a script nobody knows else whether it waits for calls, or hangs."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Monitor, "_line", lambda self: "handle: profiling")
    analysis.alive = analysis.has_live_line = False
    made = monitor_of(analysis)
    made._thread.join()
    for step in range(200):
        made._show(1000.0 + step)
    assert analysis.shown == []
    assert len(analysis.left) == 5, "after 10, 20, 50, 110 and 170 seconds"


def test_a_script_is_told_once_that_all_calls_come_from_generated_code(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever: none of these is timed."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    analysis.alive = analysis.has_live_line = False
    made = monitor_of(analysis)
    made._thread.join()
    made._show(1001.0)
    assert analysis.left == []
    analysis.generated = 2_662_700
    for tenths in range(30):
        made._show(1001.1 + tenths / 10)
    (told,) = analysis.left
    assert told.startswith("darc: made: none of 2662700 calls is timed: they come from code that")
    assert "'darc profile PATTERN'" in told


def test_a_ctrl_c_that_the_program_keeps_stops_it_once(analysis: Analysis) -> None:
    def later() -> None:
        analysis.debuggee.keeps = True

    analysis.looked = later
    analysis.run(lambda: bool(analysis.debuggee.sent) and analysis.beats > 20)
    assert (analysis.called_off, analysis.debuggee.sent) == (1, [(BELL,)])


@pytest.mark.parametrize("why", ["before", "stands", "not by signals"])
def test_what_is_no_ctrl_c_to_be_heard(analysis: Analysis, why: str) -> None:
    """It was there before, the debugger has the program stopped, or is told otherwise."""
    analysis.debuggee.keeps = True
    analysis.debuggee.stopped = why == "stands"
    analysis.interrupts_by_signal = why != "not by signals"
    analysis.run(lambda: analysis.beats > 10)
    assert (analysis.called_off, analysis.debuggee.sent) == (0, [])
