"""What the monitor's thread sees in tests: an analysis, a debuggee and a target that are made up,
and a clock that stands still but for the monitor's waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from darc.app.monitor import Monitor
from darc.collectors.duties import Summons
from darc.model.bare import Bare
from darc.model.parameters import Probes
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.session.session import Session
from darc.target.target import Target
from darc.views.style import Style
from tests.debugger import WATCHDOG_SECONDS

BELL = 23


class Debuggee:
    """A process that is asked and sent signals."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, ...]] = []
        self.signalled = self.stopped = self.gone = self.deep = self.writes = False
        self.is_readable_while_it_runs = True
        self.keeps = False
        self.knocks = 0

    def is_signalled(self, number: int) -> bool:
        return self.signalled and number == BELL

    def is_stopped(self) -> bool:
        return self.stopped

    def writes_on(self, descriptor: int) -> bool:
        assert descriptor == 2
        return self.writes

    def is_gone(self) -> bool:
        return self.gone

    def keeps_interrupt(self) -> bool:
        return self.keeps

    def waits_deeply(self) -> bool:
        return self.deep

    def knock(self) -> None:
        self.knocks += 1

    def send(self, number: int, *thread: int) -> None:
        self.sent.append((number, *thread))


class Collector:
    """Its bell is a signal, or none."""

    def __init__(self) -> None:
        self.summons = Summons(BELL)

    def has_no_bell(self) -> None:
        self.summons = Summons()


class Analysis:
    """What the monitor asks of a session, and of a target."""

    def __init__(self) -> None:
        self.alive = True
        self.screen = self.account = self.background = self.deadline = self.pauses = self
        self.has_live_line = True
        self.interrupts_by_signal = True
        self.called_off = 0
        self.rings = self.rings_itself = self.are_out = self.goes_on_unseen = False
        self.bare = Bare.STEPS
        self.urgent: int | None = None
        self.collector = Collector()
        self.cost = ProgramFigures()
        self.seconds_left: float | None = None
        self.debuggee = Debuggee()
        self.beats = self.looks = self.ends = 0
        self.notes: list[str] = []
        self.shown: list[str | None] = []
        self.left: list[str] = []
        self.generated = 0
        self.looked: Callable[[], None] = lambda: None
        self.next_look = 0.0
        """In how many seconds to look again, as a look says."""
        self.looked_ahead: Callable[[], None] = lambda: None
        self.aheads = 0
        self.reached = threading.Event()
        self.wanted: Callable[[], bool] = lambda: False

    def look(self) -> float:
        self.looks += 1
        if self.wanted():
            self.reached.set()
        self.looked()
        return self.next_look

    def look_ahead(self) -> float:
        self.aheads += 1
        self.looked_ahead()
        return 0.001

    def beat(self) -> None:
        self.beats += 1

    def hurry(self) -> None:
        self.ends += 1

    def call_off(self) -> None:
        self.called_off += 1

    def note(self, text: str) -> None:
        self.notes.append(text)

    def live_snapshot(self) -> Snapshot:
        return Snapshot("made", Status.PROFILING, Probes.PAD, generated=self.generated)

    def live(self, text: str | None) -> None:
        self.shown.append(text)

    def leave(self, text: str) -> None:
        self.left.append(text)

    def run(self, wanted: Callable[[], bool]) -> None:
        """A monitor at work until that holds."""
        self.wanted = wanted
        made = monitor_of(self)
        try:
            assert self.reached.wait(WATCHDOG_SECONDS), "never came to that"
        finally:
            made.stop()
        assert not made._thread.is_alive()

    def run_out(self) -> None:
        """A monitor that ends by itself."""
        made = monitor_of(self)
        made._thread.join(WATCHDOG_SECONDS)
        assert not made._thread.is_alive(), "does not end"
        made.stop()


def monitor_of(analysis: Analysis) -> Monitor:
    return Monitor(cast(Session, cast(Any, analysis)), cast(Target, cast(Any, analysis)), Style())


def helpers() -> list[threading.Thread]:
    """The threads beside monitors that prepare decisions."""
    return [one for one in threading.enumerate() if one.name == "darc ahead"]


def ended(analysis: Analysis) -> Monitor:
    """One whose threads have ended: its steps are called by the test, by a clock of its own."""
    analysis.alive = False
    made = monitor_of(analysis)
    for one in (made._thread, *helpers()):
        one.join(WATCHDOG_SECONDS)
    analysis.alive = True
    return made


class Clock(threading.Event):
    """Time passes while the monitor waits, and no more than that; what is to happen by then does.
    The monitor is asked to end when it is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, begin: float = 1000.0) -> None:
        super().__init__()
        self.now = self.begin = begin
        self.end = begin
        self._due: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    @property
    def passed(self) -> float:
        """Seconds since it began."""
        return round(self.now - self.begin, 6)

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """To be done then."""
        self._due.append((self.begin + seconds, do))
        self._due.sort(key=lambda one: one[0])

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert timeout > 0, "the monitor does not wait"
        self.now += timeout
        while self._due and self._due[0][0] <= self.now:
            self._due.pop(0)[1]()
        return self.now >= self.end

    def run(self, made: Monitor, seconds: float) -> None:
        """What the monitor does in so long, here and now."""
        self.end = self.begin + seconds
        made._done = self
        made._run()
