"""When the monitor does what: by a clock of the test's, on its own loop."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable

import pytest

from darc.app import monitor
from darc.app.monitor import Monitor, ring_to_leave
from darc.model.errors import TargetError
from darc.session.session import Session
from tests.debugger import WATCHDOG_SECONDS
from tests.unit.assembly import Assemble
from tests.unit.bench import Bench
from tests.unit.machine import PLAIN
from tests.unit.monitored import BELL, Analysis, Clock, ended, helpers, monitor_of

COUNTS_FOR = 2 * monitor._TICK_SECONDS
"""Seconds for which a sign of life counts."""


@pytest.fixture
def analysis() -> Analysis:
    return Analysis()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def noted(analysis: Analysis, name: str, clock: Clock) -> list[float]:
    """When that is done, from now on, beside what it does."""
    whens: list[float] = []
    what = getattr(analysis, name)

    def done(*args: object) -> object:
        whens.append(clock.passed)
        return what(*args)

    setattr(analysis, name, done)
    return whens


# ------------------------------------------------------------------------------ signs of life


@pytest.mark.parametrize("next_look", [0.0, 0.03, 10.0])
def test_signs_of_life_come_before_the_last_one_is_over(
    analysis: Analysis, clock: Clock, next_look: float
) -> None:
    """Whenever the next look is to be: there may be much to see, or nothing for long."""
    analysis.next_look = next_look
    whens = noted(analysis, "beat", clock)
    clock.run(ended(analysis), 10)
    assert max(b - a for a, b in itertools.pairwise([0.0, *whens, 10.0])) < COUNTS_FOR
    assert len(whens) <= 101, "no more than there need be"


def test_looks_are_as_often_as_is_asked_for_but_never_without_a_pause(
    analysis: Analysis, clock: Clock
) -> None:
    whens = noted(analysis, "look", clock)
    clock.run(ended(analysis), 1)
    assert len(whens) <= 1 / monitor._LEAST_WAIT + 1 / monitor._TICK_SECONDS
    first = len(whens)
    analysis.next_look = 0.05
    clock.begin = clock.now
    clock.run(ended(analysis), 1)
    assert 20 <= len(whens) - first <= 32


def test_where_memory_cannot_be_read_nobody_looks_and_nothing_is_prepared(
    analysis: Analysis, clock: Clock
) -> None:
    """In a kernel's machine: the debugger alone reads it, while it stands still."""
    analysis.debuggee.is_readable_while_it_runs, analysis.seconds_left = False, 5.0
    clock.after(6, lambda: setattr(analysis, "seconds_left", -0.1))
    clock.run(ended(analysis), 7.95)
    assert (analysis.looks, analysis.beats, analysis.aheads) == (0, 0, 0)
    assert analysis.debuggee.knocks == 2
    assert (analysis.ends, analysis.debuggee.sent) == (0, [])


# --------------------------------------------------------------------------- the line, and lines


def test_a_terminals_line_is_there_after_a_second_and_renewed(
    analysis: Analysis, clock: Clock
) -> None:
    whens = noted(analysis, "live", clock)
    clock.run(ended(analysis), 3.05)
    assert 1.0 <= whens[0] < 1.2, "what takes less needs none"
    assert 19 <= len(whens) <= 21
    assert all(str(text).startswith("darc: made: profiling") for text in analysis.shown)
    assert analysis.left == []


def test_no_line_at_a_stop(analysis: Analysis, clock: Clock) -> None:
    """The debugger may be telling of that at this moment."""
    whens = noted(analysis, "live", clock)
    clock.after(2, lambda: setattr(analysis.debuggee, "stopped", True))
    clock.after(4, lambda: setattr(analysis.debuggee, "stopped", False))
    clock.run(ended(analysis), 5)
    assert whens
    assert not [when for when in whens if 2 < when < 4]
    assert max(whens) > 4


def test_a_line_that_stays_where_the_program_writes_on_the_terminal(
    analysis: Analysis, clock: Clock
) -> None:
    """One that is written over would be torn by what the program writes."""
    analysis.debuggee.writes = True
    lines = noted(analysis, "leave", clock)
    clock.run(ended(analysis), 30)
    assert analysis.shown == []
    assert [round(when) for when in lines] == [1, 4, 13], "ever more rarely"


def test_lines_in_scripts(analysis: Analysis, clock: Clock) -> None:
    """Most searches are over before the first of them."""
    analysis.has_live_line = False
    whens = noted(analysis, "leave", clock)
    clock.run(ended(analysis), 200)
    assert analysis.shown == []
    assert [round(when) for when in whens] == [10, 20, 50, 110, 170]
    assert all(line.startswith("darc: made: profiling") for line in analysis.left)


def test_the_line_is_as_wide_as_the_terminal_is_now(
    analysis: Analysis, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = 80
    monkeypatch.setattr(monitor, "_columns", lambda: columns)
    made = ended(analysis)
    long = "a_function_whose_name_is_long"
    snapshot = analysis.live_snapshot
    monkeypatch.setattr(
        Analysis, "live_snapshot", lambda _: dataclasses.replace(snapshot(), function=long)
    )
    made._show(clock.now)
    columns = 30
    made._show(clock.now)
    wide, narrow = analysis.shown
    assert wide is not None
    assert narrow is not None
    assert long in wide
    assert len(narrow) <= 30 < len(wide)


def test_stepping_is_told(analysis: Analysis, clock: Clock) -> None:
    analysis.are_out = True
    ended(analysis)._show(clock.now)
    assert "without probes while you step" in str(analysis.shown)


# --------------------------------------------------------------------- the program is stopped


def test_at_the_time_limit_the_next_call_ends_it_or_else_a_signal(
    analysis: Analysis, clock: Clock
) -> None:
    analysis.rings_itself, analysis.seconds_left = True, 2.0
    clock.after(2, lambda: setattr(analysis, "seconds_left", 0.0))
    sent = noted_signals(analysis, clock)
    hurried = noted(analysis, "hurry", clock)
    clock.run(ended(analysis), 5.5)
    assert 2 <= hurried[0] < 2.2
    (when,) = sent
    assert hurried[0] + monitor._RINGING_SECONDS <= when < 5.5


def noted_signals(analysis: Analysis, clock: Clock) -> list[float]:
    """When the bell's signal is sent."""
    whens: list[float] = []
    send = analysis.debuggee.send

    def sent(number: int, *thread: int) -> None:
        assert number == BELL
        whens.append(clock.passed)
        send(number, *thread)

    analysis.debuggee.send = sent  # type: ignore[method-assign]
    return whens


def test_a_deep_wait_puts_a_stop_off_for_a_second_and_is_told(
    analysis: Analysis, clock: Clock
) -> None:
    """All of the program would stand still until it is over."""
    analysis.rings = analysis.debuggee.deep = True
    sent = noted_signals(analysis, clock)
    clock.run(ended(analysis), 1.5)
    late = monitor._TICK_SECONDS + monitor._GRACE_SECONDS
    assert late + monitor._DEEP_SECONDS <= sent[0] < late + monitor._DEEP_SECONDS + 0.3
    assert analysis.notes[0] == monitor._DEEP_NOTE


def test_a_deep_wait_that_is_over_makes_the_next_one_wait_as_long(
    analysis: Analysis, clock: Clock
) -> None:
    analysis.rings = analysis.debuggee.deep = True
    made = ended(analysis)
    assert made._is_awaited(10.0)
    analysis.debuggee.deep = False
    assert not made._is_awaited(10.9)
    analysis.debuggee.deep = True
    assert made._is_awaited(11.1), "another one: a second of its own"
    assert not made._is_awaited(12.1)
    assert analysis.notes == [monitor._DEEP_NOTE]


def test_a_call_that_is_late_stops_its_thread_once_a_second_until_a_stop_comes(
    analysis: Analysis, clock: Clock
) -> None:
    analysis.urgent, analysis.next_look = 77, 0.02
    clock.after(2.5, lambda: setattr(analysis, "urgent", None))
    sent = noted_signals(analysis, clock)
    clock.run(ended(analysis), 4)
    assert [round(when) for when in sent] == [0, 1, 2]
    assert set(analysis.debuggee.sent) == {(BELL, 77)}


def test_without_a_bell_nothing_is_sent(analysis: Analysis, clock: Clock) -> None:
    """Its probes stop the program by themselves."""
    analysis.collector.has_no_bell()
    analysis.rings, analysis.urgent = True, 77
    clock.after(1, lambda: setattr(analysis.debuggee, "keeps", True))
    clock.after(3, lambda: setattr(analysis, "looked", damaged))
    clock.run(ended(analysis), 9)
    assert (analysis.debuggee.sent, analysis.called_off) == ([], 0)


def damaged() -> None:
    raise TargetError("damaged")


# ------------------------------------------------------------------------------------ errors


def test_tables_that_stay_damaged_stop_the_program_again_with_patience(
    analysis: Analysis, clock: Clock
) -> None:
    """Each stop may be one that the debugger did not come to look at."""
    analysis.looked = damaged
    sent = noted_signals(analysis, clock)
    clock.after(4, lambda: setattr(analysis.debuggee, "signalled", True))
    clock.run(ended(analysis), 8)
    assert [round(when) for when in sent] == [0, 3], "at 6 s one is on its way"
    assert analysis.notes == [], "the debugger tells what it finds"
    assert analysis.beats == 0, "what stands there is not written to"


def test_where_memory_cannot_be_read_an_error_ends_it(analysis: Analysis) -> None:
    """The connection is gone: the debugger will tell."""

    def gone() -> None:
        raise TargetError("connection closed")

    analysis.debuggee.is_readable_while_it_runs, analysis.seconds_left = False, -1.0
    analysis.debuggee.knock = gone  # type: ignore[method-assign]
    analysis.run_out()
    assert (analysis.notes, analysis.debuggee.sent) == ([], [])


@pytest.mark.parametrize("error", [OSError("no such process"), TargetError("damaged")])
def test_what_the_program_may_cause_is_no_error_of_darcs(
    analysis: Analysis, clock: Clock, error: Exception
) -> None:
    def looked() -> None:
        raise error

    analysis.looked = looked
    clock.run(ended(analysis), 1)
    assert analysis.notes == []


def test_an_error_of_darcs_own_is_told_once(
    analysis: Analysis, clock: Clock, assembled: Assemble
) -> None:
    """However often it is met while the program runs."""
    session = Bench(assembled(PLAIN)).install().session

    def looked() -> None:
        raise KeyError("no such thing")

    analysis.looked = looked
    analysis.note = session.note  # type: ignore[method-assign]
    clock.run(ended(analysis), 2)
    assert analysis.looks > 10
    told = [note for note in session.snapshot().notes if "internal error" in note]
    assert told == ["internal error beside the program that runs: KeyError('no such thing')"]


# ------------------------------------------------------------------------- the user's Ctrl-C


def test_a_ctrl_c_that_a_thread_takes_in_time_is_none_of_its(
    analysis: Analysis, clock: Clock
) -> None:
    """It waits in the program for a moment, as each does."""
    clock.after(1, lambda: setattr(analysis.debuggee, "keeps", True))
    clock.after(1.25, lambda: setattr(analysis.debuggee, "keeps", False))
    clock.run(ended(analysis), 3)
    assert (analysis.called_off, analysis.debuggee.sent) == (0, [])


def test_each_ctrl_c_that_waits_counts_once(analysis: Analysis, clock: Clock) -> None:
    sent = noted_signals(analysis, clock)
    for begin, end in ((1.0, 4.0), (5.0, 9.0)):
        clock.after(begin, lambda: setattr(analysis.debuggee, "keeps", True))
        clock.after(end, lambda: setattr(analysis.debuggee, "keeps", False))
    clock.run(ended(analysis), 9)
    assert analysis.called_off == 2
    for when, begin in zip(sent, (1.0, 5.0), strict=True):
        assert begin + monitor._KEPT_SECONDS <= when < begin + monitor._KEPT_SECONDS + 0.3


# ------------------------------------------------------------------------------- its threads


@pytest.fixture
def no_helper_yet() -> None:
    for one in helpers():  # of a test before
        one.join(WATCHDOG_SECONDS)


@pytest.mark.usefixtures("no_helper_yet")
@pytest.mark.parametrize("by", ["stop", "the analysis' end"])
def test_help_goes_on_behind_an_error_and_ends(analysis: Analysis, by: str) -> None:
    """What it reads may be gone, or damaged: it is for the debugger to see that."""
    often = threading.Event()

    def looked_ahead() -> None:
        if analysis.aheads == 3:
            often.set()
        raise TargetError("cannot read memory")

    analysis.looked_ahead = looked_ahead
    made = monitor_of(analysis)
    (helper,) = helpers()
    assert often.wait(WATCHDOG_SECONDS)
    if by == "stop":
        made.stop()
    else:
        analysis.alive = False
    helper.join(WATCHDOG_SECONDS)
    assert not helper.is_alive()
    made.stop()
    assert (analysis.notes, analysis.debuggee.sent) == ([], [])


@pytest.mark.usefixtures("no_helper_yet")
def test_nobody_helps_where_memory_cannot_be_read(analysis: Analysis) -> None:
    analysis.debuggee.is_readable_while_it_runs = False
    made = monitor_of(analysis)
    assert helpers() == []
    made.stop()


def test_it_may_be_stopped_by_itself(analysis: Analysis) -> None:
    """A session that ends on its thread does not wait for that thread."""
    made: list[Monitor] = []
    is_made = threading.Event()

    def looked() -> None:
        assert is_made.wait(WATCHDOG_SECONDS)
        made[0].stop()

    analysis.looked = looked
    made.append(monitor_of(analysis))
    is_made.set()
    made[0]._thread.join(WATCHDOG_SECONDS)
    assert not made[0]._thread.is_alive()
    assert analysis.shown == [None]


# ------------------------------------------------------------------------ the debugger leaves


def of_session(analysis: Analysis) -> Session:
    return analysis  # type: ignore[return-value]


def test_the_debugger_leaves_at_the_bell_when_it_has_said_what_that_is_to_do(
    analysis: Analysis,
) -> None:
    done: list[str] = []
    send = analysis.debuggee.send

    def sent(number: int, *thread: int) -> None:
        done.append("sent")
        send(number, *thread)

    analysis.debuggee.send = sent  # type: ignore[method-assign]
    assert ring_to_leave(of_session(analysis), lambda: done.append("prepared"))
    assert done == ["prepared", "sent"]
    assert analysis.debuggee.sent == [(BELL,)]


def test_where_the_bell_takes_no_signal_the_debugger_interrupts(analysis: Analysis) -> None:
    analysis.collector.has_no_bell()
    interrupted: list[None] = []
    prepared: list[None] = []
    assert ring_to_leave(
        of_session(analysis), lambda: prepared.append(None), lambda: interrupted.append(None)
    )
    assert (len(interrupted), prepared) == (1, [])
    assert not ring_to_leave(of_session(analysis))


def _is_over(analysis: Analysis) -> None:
    analysis.alive = False


def _is_bare(analysis: Analysis) -> None:
    analysis.are_out = True


def _is_gone(analysis: Analysis) -> None:
    analysis.debuggee.gone = True


@pytest.mark.parametrize("because", [_is_over, _is_bare, _is_gone])
def test_no_bell_where_no_probes_are(
    analysis: Analysis, because: Callable[[Analysis], None]
) -> None:
    because(analysis)
    prepared: list[None] = []
    assert not ring_to_leave(of_session(analysis), lambda: prepared.append(None))
    assert not ring_to_leave(None, lambda: prepared.append(None))
    assert (prepared, analysis.debuggee.sent) == ([], [])
