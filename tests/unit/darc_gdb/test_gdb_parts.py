"""What gdb's target makes of signals and of files that a program loads: there is no gdb here."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import darc_gdb
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn

PID = os.getpid()


class Gdb(ModuleType):
    """What these parts ask of it."""

    def __init__(self) -> None:
        super().__init__("gdb")
        self.SignalEvent = self.StopEvent = SimpleNamespace
        self.stops_at_files = False
        self.told: list[str] = []
        self.inferior = SimpleNamespace(pid=PID)

    def __getattr__(self, name: str) -> Any:
        return type(name, (Exception,), {})

    def selected_inferior(self) -> Any:
        return self.inferior

    def current_progspace(self) -> Any:
        return SimpleNamespace(filename=sys.executable)

    def parameter(self, _name: str) -> bool:
        return self.stops_at_files

    def execute(self, command: str, to_string: bool) -> None:
        assert to_string
        self.told.append(command)


@pytest.fixture
def gdb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gdb]:
    """None of what is imported with it is to be known behind a test."""
    made = Gdb()
    monkeypatch.setitem(sys.modules, "gdb", made)
    before = set(sys.modules)
    yield made
    for name in {one for one in sys.modules if one.startswith("darc_gdb.")} - before:
        del sys.modules[name]
        delattr(darc_gdb, name.partition(".")[2])


@pytest.fixture
def stop_signal(gdb: Gdb) -> Any:
    return importlib.import_module("darc_gdb.stopsignal").StopSignal()


def at_signal(name: str) -> SimpleNamespace:
    return SimpleNamespace(stop_signal=name)


def test_a_signal_that_is_the_end_of_its_process_alone(stop_signal: Any) -> None:
    stop_signal.stands(at_signal("SIGSEGV"), PID)
    assert (stop_signal.ends(PID), stop_signal.ends(PID + 1), stop_signal.ends(None)) == (
        True,
        False,
        False,
    )
    stop_signal.stands(at_signal("SIGUSR1"), PID)
    assert not stop_signal.ends(PID)


def test_until_such_a_signal_is_handled_its_thread_blocks_it(
    stop_signal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has left its handler by a jump may block it for ever, and is not waited for."""
    thread = threading.get_native_id()
    stop_signal.stands(at_signal("SIGSEGV"), PID, thread)
    assert stop_signal.is_handled is None, "it stands there"
    stop_signal.goes_on()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGSEGV})
    try:
        assert stop_signal.is_handled is False
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        assert stop_signal.is_handled is True
        monkeypatch.undo()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert stop_signal.is_handled is True
    stop_signal.stands(at_signal("SIGUSR1"), PID, thread)
    stop_signal.goes_on()
    assert stop_signal.is_handled is None, "it is no end"


def test_ctrl_c_is_no_signal_of_the_programs(stop_signal: Any) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stop_signal.stands(at_signal("SIGINT"), PID)
        assert (stop_signal.is_interrupt, stop_signal.handled(PID)) == (True, None)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_with_a_handler_is_told_with_how_to_pass_it_on(stop_signal: Any) -> None:
    stop_signal.stands(at_signal("SIGUSR2"), PID)
    assert stop_signal.handled(PID) is None
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        told = stop_signal.handled(PID)
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert (told.name, told.command) == ("SIGUSR2", "handle SIGUSR2 nostop noprint pass")
    assert stop_signal.handled(None) is None


class Files:
    """Of a program that runs, or stands at the user's."""

    def __init__(self, *, is_home: bool = True, runs: bool = True) -> None:
        module = importlib.import_module("darc_gdb.loadedfiles")
        callbacks = SimpleNamespace(guarded=lambda work: work())
        inferiors = SimpleNamespace(is_home=lambda _one: is_home, runs=runs, callbacks=callbacks)
        self.files = module.LoadedFiles(inferiors)
        self.heard = 0
        self.says = Outcome.STOP
        self.files.tell(self.hear)

    def hear(self) -> Outcome:
        self.heard += 1
        return self.says


def test_the_program_stops_at_a_file_where_it_is_to(gdb: Gdb) -> None:
    """Once for all that come with it; then gdb's setting is as it was."""
    made = Files()
    made.files.changed(None)
    made.files.changed(None)
    assert (made.heard, gdb.told) == (2, ["set stop-on-solib-events 1"])
    made.files.go_on()
    made.files.go_on()
    assert gdb.told[1:] == ["set stop-on-solib-events 0"]


def test_the_users_own_setting_stays(gdb: Gdb) -> None:
    gdb.stops_at_files = True
    made = Files()
    made.files.changed(None)
    gdb.told.clear()
    made.files.go_on()
    assert gdb.told == []


@pytest.mark.parametrize(("runs", "says"), [(False, Outcome.STOP), (True, Outcome.CONTINUE)])
def test_it_goes_on_or_stands_already(gdb: Gdb, runs: bool, says: Outcome) -> None:
    made = Files(runs=runs)
    made.says = says
    made.files.changed(None)
    assert (made.heard, gdb.told) == (1, [])


def test_files_of_others_are_no_concern(gdb: Gdb) -> None:
    other = Files(is_home=False)
    other.files.changed(None)
    gone = Files()
    gdb.inferior.pid = 0
    gone.files.changed(None)
    assert (other.heard, gone.heard) == (0, 0)


class Part:
    """One that hears of something: which, in the order in which it did."""

    def __init__(self, told: list[str], **more: Any) -> None:
        self._told = told
        vars(self).update(more)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self._told.append(name)


class Handlers:
    """Of gdb's events, and of parts that own these breakpoints."""

    def __init__(self, *own: str) -> None:
        self.told: list[str] = []
        self.asked: list[bool] = []
        module = importlib.import_module("darc_gdb.handlers")
        part = Part(self.told)
        self.handlers = module.EventHandlers(
            Turn(),
            screen=part,
            inferiors=part,
            threads=part,
            deciding=Part(self.told, take_stop=self.take),
            bell=Part(self.told, owns=lambda _: False, is_owed=lambda event: event.is_owed),
            breaks=Part(self.told, owns=lambda one: one in own),
            user_breaks=Part(self.told, hits=part),
            files=part,
        )

    def take(self, is_own: bool) -> Outcome:
        self.asked.append(is_own)
        return Outcome.CONTINUE if is_own else Outcome.STOP

    def goes_on(self) -> None:
        """gdb tells that the program does."""
        events = sys.modules["gdb"].events
        for registry, handler in self.handlers.all():
            if registry is events.cont:
                handler(None)


@pytest.fixture
def events(gdb: Any) -> Any:
    """Kinds of what gdb tells, of a gdb that tells of no more than it must."""
    gdb.BreakpointEvent = type("BreakpointEvent", (SimpleNamespace,), {})
    gdb.SignalEvent = type("SignalEvent", (SimpleNamespace,), {})
    names = "new_objfile breakpoint_created breakpoint_deleted breakpoint_modified memory_changed"
    gdb.events = SimpleNamespace(**{name: object() for name in (*names.split(), "cont")})
    return gdb


def test_a_stop_is_darcs_where_nothing_else_has_stopped_the_program(events: Any) -> None:
    made = Handlers("own", "another")
    for stop in (
        events.BreakpointEvent(breakpoints=["own", "another"]),
        events.BreakpointEvent(breakpoints=["own", "the user's"]),
        events.SignalEvent(is_owed=True),
        events.SignalEvent(is_owed=False),
        SimpleNamespace(),
    ):
        made.handlers.take_stop(stop)
    assert made.asked == [True, False, True, False, False]


def test_a_jump_goes_on_unseen_until_the_program_stands_for_the_user(events: Any) -> None:
    made = Handlers().handlers
    made.lets_go()
    assert made.is_let_go
    made.at_prompt()
    assert not made.is_let_go
    made.lets_go()
    made.at_prompt(runs=True)
    assert made.is_let_go, "'jump &' has the prompt at once"
    made.continues()
    assert not made.is_let_go


def test_each_time_that_the_program_goes_on_counts_and_is_told(events: Any) -> None:
    made = Handlers()
    made.goes_on()
    made.goes_on()
    assert made.handlers.resumed == 2
    assert made.told == 2 * ["pass_again", "moved", "moved", "went_on", "forget", "went_on"]


def test_what_was_set_in_a_program_that_is_gone_is_forgotten(events: Any) -> None:
    made = Handlers()
    made.handlers.ended()
    assert made.told == ["moved", "go_on", "forget", "forget", "forget"]
