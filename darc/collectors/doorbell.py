"""The agent's bell, and the signs of life that the agent waits for."""

from __future__ import annotations

import time

from darc.agent.memory import AgentMemory
from darc.agent.rows import Stale
from darc.collectors.collector import Listener
from darc.collectors.duties import Summons
from darc.collectors.faulthandlers import FaultHandlers
from darc.debuggee import clock
from darc.pads.backend import BellOutcome, PadBackend
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.outcome import Outcome

_CARE_SECONDS = 1.0
"""Between two looks at what may change while the program runs."""


class Doorbell(Summons):
    """That of one analysis, whose ``listener`` decides."""

    def __init__(
        self,
        backend: PadBackend,
        installer: PadInstaller,
        listener: Listener,
        handlers: FaultHandlers,
        *,
        foothold: Foothold,
        shares_clock: bool,
    ) -> None:
        """``shares_clock`` says that the program's time-stamp counter is the debugger's."""
        super().__init__()
        self._backend = backend
        self._installer = installer
        self._listener = listener
        self._handlers = handlers
        self._foothold = foothold
        self._seen_stale: frozenset[Stale] = frozenset()
        self._cared = 0.0
        self._is_lost = False
        self._shares_clock = shares_clock
        self._replied: int | None = None
        """When the debugger's last look was over, by the counter."""
        self.unheard_cycles = 0
        """For how long the threads that rang have waited until the debugger looked, and from then
        on that it had looked until they went on: the last one's going on is not known."""

    @property
    def _tables(self) -> AgentMemory:
        return self._installer.tables

    @property
    def waits(self) -> bool:
        tables = self._tables
        return bool(tables.bell or tables.faults or tables.short_of or self._is_lost)

    @property
    def rings_itself(self) -> bool:
        tables = self._tables
        ringing = tables.blob.constants.RINGING
        return bool(tables.bell_signal) and tables.bell == ringing

    @property
    def signal(self) -> int | None:
        return self._backend.signal

    def take_interrupt(self) -> bool:
        return self._backend.take_interrupt(self._foothold)

    def heard(self) -> None:
        """The debugger looks."""
        self._is_lost = False
        tables = self._tables
        if self._shares_clock and tables.bell:
            rang = tables.bell_start
            if self._replied is not None:  # where the thread was led on at once it has no end
                self.unheard_cycles += max(0, min(tables.bell_end, rang) - self._replied)
            self.unheard_cycles += max(0, clock.tsc_now() - rang)
        self._replied = None
        self._backend.change_bell(tables)

    def replied(self) -> None:
        """The debugger has looked, and lets the program go on, or not."""
        self._replied = clock.tsc_now() if self._shares_clock else None

    def decide(self) -> BellOutcome:
        """The listener's reply; the agent may ring again."""
        tables = self._tables
        outcome = self._listener.decide()
        back, slot = tables.bell_return, tables.bell_slot
        rang = bool(tables.bell)
        tables.set(bell=0)
        if outcome is Outcome.CONTINUE or not rang:
            return BellOutcome(outcome)
        return BellOutcome(outcome, back, slot)

    def beat(self) -> None:
        self._backend.beat(self._tables, self._listener.seconds_left)

    def look_after(self) -> None:
        now = time.monotonic()
        if now - self._cared < _CARE_SECONDS:
            return
        self._cared = now
        tables = self._tables
        if not tables.enabled:
            tables.enabled = True
        self._seen_stale = tables.ops.watch_stale(self._seen_stale)
        self._handlers.announce(tables)
        tables.contexts.free_ended(self._backend.living)
        self._is_lost = self._backend.bell_is_lost
        self._backend.look_after(tables)
