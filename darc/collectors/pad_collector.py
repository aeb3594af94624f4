"""Collecting with jump pads: the agent in the program times and counts (docs/pad.md)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from darc.agent import compiled
from darc.agent.damage import DAMAGED
from darc.agent.layout import Room
from darc.agent.memory import AgentMemory
from darc.code.architecture import FunctionCode
from darc.code.program import Program
from darc.collectors.ahead import Ahead
from darc.collectors.callees import Callees
from darc.collectors.collector import Collector, CollectorBrief, Remains
from darc.collectors.doorbell import Doorbell
from darc.collectors.faulthandlers import FaultHandlers
from darc.collectors.footing import Footing
from darc.collectors.instrumentation import Instrumentation
from darc.collectors.keptreader import KeptReader
from darc.collectors.losses import LOSSES, WRITTEN_OVER, Losses, Unmeasured, vanished_pads
from darc.collectors.padcount import PadCounting
from darc.collectors.padstops import PadStops
from darc.collectors.settling import Settling
from darc.collectors.suspension import Suspension
from darc.collectors.tablegrowth import TableGrowth
from darc.collectors.wholeops import PadOps
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import (
    DarcError,
    EntryImpossibleError,
    PadsImpossibleError,
    TargetError,
)
from darc.model.parameters import Loops, Probes
from darc.pads.backend import BellOutcome
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.outcome import Outcome

WATCHED = "darc watches it itself"
"""Why what a guard stands at is not timed."""

NO_PADS = "there can be none in what is debugged"
"""Why, of a debuggee that has no backend for them."""


@dataclass(frozen=True)
class _PadParts:
    """What goes by the pads: all of it is there since these may be put into the program."""

    installer: PadInstaller
    timing: Instrumentation
    looks: Ahead
    doorbell: Doorbell
    growth: TableGrowth


class PadCollector(Collector):
    """Pads and the agent in a process or a kernel."""

    kind = Probes.PAD
    plural = "pads"

    _loss_texts: ClassVar[Mapping[Unmeasured, str]] = LOSSES
    _measures_over_stops: ClassVar[bool] = True
    """Whether a call that the user's stop comes in the middle of can be measured on."""

    _leaves_herds_out: ClassVar[bool] = True
    """Whether calls do not count that stops have held up."""

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        return NO_PADS if debuggee.pads is None else None

    @staticmethod
    def risk(debuggee: Debuggee) -> str | None:
        return NO_PADS if debuggee.pads is None else debuggee.pads.risk()

    def __init__(self, brief: CollectorBrief) -> None:
        super().__init__(brief)
        backend = brief.debuggee.pads
        if backend is None:
            raise PadsImpossibleError(NO_PADS)
        self._backend = backend
        self._footing = Footing(self._debuggee, backend, brief.remains, self._note)
        self._losses = Losses(self._loss_texts)
        self._handlers = FaultHandlers(self._program, self._backend, self._note)
        keeps = self._measures_over_stops and self._debuggee.shares_clock
        self._suspension = Suspension(self._target, self._backend, keeps=keeps)
        self._settling = Settling(self._backend, is_asked=self._leaves_herds_out)
        self._settling.stands(self._target.stopped_since)
        self._is_set_up = False
        self._alive = True
        self._parts: _PadParts | None = None
        self._stands_in_agent = False
        """Whether the thread has stopped as it had asked for room, in the midst of the agent: not
        so at two stops in a row, where room is asked for all the time."""

    @property
    def remains(self) -> Remains | None:
        return self._footing.remains

    @property
    def foothold(self) -> Foothold | None:
        """What its pads stand on."""
        return self._footing.foothold

    @property
    def _its(self) -> _PadParts:
        """Since :meth:`install`."""
        assert self._parts is not None
        return self._parts

    @property
    def installer(self) -> PadInstaller:
        """What is patched, since :meth:`install`."""
        return self._its.installer

    @property
    def tables(self) -> AgentMemory:
        """What the agent and the debugger share."""
        return self.installer.tables

    @property
    def most_probes(self) -> int:
        return self.tables.layout.room.nodes * 3 // 4

    @property
    def auto_lookahead(self) -> int | None:
        return self._backend.auto_lookahead

    # ------------------------------------------------------------- begin and end

    def install(self, code: FunctionCode, needed: int) -> list[str]:
        debuggee = self._debuggee
        notes = self._check()
        debuggee.begin()
        foothold = self._footing.take(self._program, self._room(), self._parameters.resolution)
        self._target.frames.show_pads(
            compiled.elf_file(), foothold.agent_base, foothold.placing.caller
        )
        places = debuggee.landmarks
        self._take(foothold, PadInstaller(self._target, self._program, foothold, places))
        notes += foothold.free_stuck()
        notes += self._handlers.look(foothold)
        self._prepare(code)
        notes += self.installer.guards.put()
        self._losses.see_code(self.tables, self._program, self._root.function)
        self._backend.configure(self.tables, self._parameters, needed)
        self._enable()
        self._is_set_up = True
        self._backend.arm_bell(foothold, self.on_bell)
        return notes

    def _take(self, foothold: Foothold, installer: PadInstaller) -> None:
        """They are there: so are the parts that go by what is put into the program."""
        self.callees = Callees(self._program, installer, self._note)
        timing = self.timing = Instrumentation(installer, self.callees, self._root)
        looks = self.ahead = Ahead(
            self._target,
            self._program,
            self._debuggee,
            foothold=foothold,
            installer=installer,
            instrumentation=timing,
            callees=self.callees,
            is_alive=lambda: self._alive,
        )
        doorbell = self.summons = Doorbell(
            self._backend,
            installer,
            self._listener,
            self._handlers,
            foothold=foothold,
            shares_clock=self._debuggee.shares_clock,
        )
        growth = TableGrowth(
            self._target,
            self._backend,
            foothold,
            installer,
            forget_open=self._forget_open,
            note=self._note,
        )
        self._parts = _PadParts(installer, timing, looks, doorbell, growth)
        self.ops = self.open_calls = PadOps(
            self._target,
            self._debuggee,
            self._program,
            installer=installer,
            reader=KeptReader(installer, timing),
            note=self._note,
            foothold=foothold,
            f0=self._root.function.name,
        )
        self.stops = PadStops(
            self._backend,
            foothold,
            installer,
            suspension=self._suspension,
            settling=self._settling,
            ahead=looks,
            doorbell=doorbell,
            losses=self._losses,
        )
        self.counting = PadCounting(self.tables, self._debuggee)

    def _forget_open(self) -> None:
        """No call that is open is measured: there is to be room for records."""

    def _check(self) -> list[str]:
        """What is to be told before anything is timed.

        Raises:
            UnsupportedError: it cannot be.
        """
        return self._debuggee.check(self._program, self._root.function, self._spec)

    def _prepare(self, code: FunctionCode) -> None:
        """Makes the pads of what is to be timed first.

        Raises:
            EntryImpossibleError: there can be none.
        """
        is_watched = _is_watched(self._debuggee, self._program, code.entry)
        problem = WATCHED if is_watched else self.installer.prepare_f0(code)
        if problem is not None:
            raise EntryImpossibleError(f"cannot time {self._spec}: {problem}")

    def _enable(self) -> None:
        """Lets the program lead there."""
        self.installer.guards.prepare_waits(self._debuggee.wait_landmarks)
        self.tables.set(loops=int(self._parameters.loops is Loops.PAPER))
        self.installer.enable()

    def _room(self) -> Room:
        """What the tables must hold."""
        return self._backend.room(self._program, self._parameters)

    def lost(self) -> str | None:
        return self._footing.lost()

    def remove(self) -> None:
        if self._alive and self._is_set_up and self.lost():
            self.gone()
            return
        if self._alive and self._is_set_up:
            with contextlib.suppress(TargetError):
                self._see_losses()
        self._suspension.give_up()
        self._alive = False
        with contextlib.ExitStack() as last:
            last.callback(self._debuggee.leave)
            last.callback(self._target.memory.flush)  # what it undoes may be needed for that
            if self._parts is not None:
                last.callback(self._parts.installer.remove)
            self._backend.disarm_bell()

    def gone(self) -> None:
        self._alive = False
        try:
            self._backend.disarm_bell()
            self._debuggee.leave(is_there=False)
        except DarcError as error:
            self._note(str(error))

    def abandon(self) -> None:
        self._alive = False
        try:
            self._backend.disarm_bell()
            if self._is_set_up and self._debuggee.is_readable_while_it_runs:
                self.tables.enabled = False  # as the agent does where the debugger was killed
        except DarcError as error:
            self._note(str(error))

    def is_there(self) -> bool:
        return self._footing.is_there()

    # ------------------------------------------------ what changes in the program

    def make_way(self) -> str | None:
        self._its.looks.forget()
        return self.installer.make_way()

    def modules_changed(self) -> list[str]:
        self._debuggee.refresh(self._program)
        self._its.looks.forget()
        if self.installer.guards.knows_waits:
            self.installer.guards.prepare_waits(self._debuggee.wait_landmarks)
        notes = self.installer.guards.put()
        self._losses.see_code(self.tables, self._program, self._root.function)
        return notes

    # ------------------------------------------------------------------ doorbell

    def on_bell(self) -> BellOutcome:
        """The agent has seen enough, or time is up, or the program is to get its pads back."""
        self._target.turn.claim()
        if not self._alive:
            return BellOutcome()
        if (why := self.lost()) is not None:
            return BellOutcome(self._listener.vanished(why))
        if (why := self.damage()) is not None:
            return BellOutcome(self._listener.damaged(why))
        doorbell = self._its.doorbell
        self._its.looks.plan_anew()
        self._settling.stands(self.tables.bell_start if self.tables.bell else None)
        doorbell.heard()
        self._stands_in_agent = bool(self.tables.short_of) and not self._stands_in_agent
        if self.tables.short_of:
            self._losses.count(self.tables)
            self._its.growth.make_more()  # by calls in the program: what is written is not to wait
        with _no_garbage_collection(), self.installer.patcher.together():
            reply = self._reply()
        if self._alive:
            if reply.outcome is Outcome.CONTINUE:
                self._settling.goes_on(self.tables)
            doorbell.beat()  # as the monitor may not get to run while the program does
            doorbell.replied()
        return reply

    def _reply(self) -> BellOutcome:
        tables, listener = self.tables, self._listener
        if tables.exiting:
            listener.exits()
            return BellOutcome()
        if tables.faults and self._handlers.change(tables):  # the program may have others now
            self._its.looks.forget()
            if (why := self._leave_faults()) is not None:
                return BellOutcome(listener.give_up(f"{self._spec} is not timed any more: {why}"))
        if self.stops.paused and not tables.bell:
            if self._target.is_between_steps():
                listener.before_resume()
            return BellOutcome()
        if not tables.bell and not listener.is_due():
            return BellOutcome()  # the signal was the program's own
        if not tables.bell and self._stands_in_agent:
            return BellOutcome()  # nobody is to see a stop there: who knocks does so again
        tables.begin_epoch()
        self._see_losses()
        return self._its.doorbell.decide()

    def _see_losses(self) -> None:
        """Counts what the agent could not measure, and makes room."""
        self._losses.count(self.tables)
        self._its.growth.keep_room()

    def _leave_faults(self) -> str | None:
        """What may fault is executed in its place from now on. A string says why f0 cannot be timed
        any more."""
        why = self.installer.leave_faults()
        if why is None:
            self._its.timing.apply_again()
        return why

    def damage(self) -> str | None:
        # Any thread asks. A kernel's memory is far away, and one that writes over it ends soon.
        if not self._is_set_up or not self._debuggee.is_readable_while_it_runs:
            return None
        assert self.foothold is not None
        return DAMAGED if self.foothold.is_damaged() else None

    @property
    def hits(self) -> tuple[int, float]:
        if not self._is_set_up:
            return 0, 0.0
        return 0, self._its.doorbell.unheard_cycles / self.counting.hz

    @property
    def unsettled_seconds(self) -> float:
        return self._settling.seconds

    @property
    def cut_short(self) -> int:
        return self._suspension.cut_short

    @property
    def overdrawn(self) -> int:
        return self._losses.count_of(Unmeasured.OVERDRAWN_OPS)

    @property
    def out_of_reach(self) -> str | None:
        return self._losses.out_of_reach

    def losses(self) -> list[str]:
        besides = {Unmeasured.OVERDRAWN_OPS}  # the profile tells of these, where they are many
        if not self._settling.is_much:
            besides.add(Unmeasured.UNSETTLED_CALLS)
        return self._losses.told(besides)

    @property
    def generated(self) -> int:
        return self._losses.count_of(Unmeasured.FOREIGN) + self.tables.lost_foreign

    def warnings(self) -> list[str]:
        if not self._is_set_up:
            return []
        patcher, nature = self.installer.patcher, self._debuggee.nature
        return [
            *vanished_pads(list(patcher.vanished), nature.puts_back),
            *vanished_pads(list(patcher.written_over), WRITTEN_OVER.format(nature.noun)),
        ]


def _is_watched(debuggee: Debuggee, program: Program, entry: int) -> bool:
    """Whether a guard is to stand there that nothing can be timed without."""
    places = debuggee.landmarks(program)
    return any(at == entry and not kind.is_of_waits for kind, at, _ in places)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A collection looks at every symbol that was ever read: with a kernel's it takes a tenth of a
    second, for which the program would stand still."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
