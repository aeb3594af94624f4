"""Collecting with jump pads: the agent in the program times and counts (docs/pad.md)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from darc import agent
from darc.agent.damage import DAMAGED
from darc.agent.layout import Read, Room, Write
from darc.agent.memory import AgentMemory
from darc.code.architecture import FunctionCode
from darc.collectors.ahead import Ahead
from darc.collectors.callees import Callees
from darc.collectors.collector import Assignment, Collector
from darc.collectors.doorbell import Doorbell
from darc.collectors.faulthandlers import FaultHandlers
from darc.collectors.instrumentation import Instrumentation
from darc.collectors.losses import LOSSES, Losses
from darc.collectors.suspension import Suspension
from darc.collectors.tablegrowth import TableGrowth
from darc.collectors.wholeops import PadOps
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import DarcError, PadsImpossibleError, TargetError, UnsupportedError
from darc.model.ftree import Fnode
from darc.model.parameters import Loops, Probes
from darc.model.profile import Profile
from darc.pads.backend import BellAnswer, batch_size
from darc.pads.installer import PadInstaller
from darc.search.contest import Vote
from darc.search.descent import Orders

WATCHED = "darc watches it itself"
"""Why what a guard stands at is not timed."""

_MOST_EARLIER = 8
"""Footholds of earlier analyses that may be there beside the one in use: 2 MiB each, as a rule."""

_NEVER = (1 << 63) - 1
"""So many calls are never seen: the agent does not ring until the user has chosen."""


class PadCollector(Collector):
    """Pads and the agent in a process or a kernel."""

    kind = Probes.PAD
    plural = "pads"

    _loss_texts: ClassVar[Mapping[str, str]] = LOSSES
    _measures_over_stops: ClassVar[bool] = True
    """Whether a call that the user's stop comes in the middle of can be measured on."""

    @staticmethod
    def risk(debuggee: Debuggee) -> str | None:
        return debuggee.pads.risk()

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.foothold = assignment.foothold
        """What stays there for the next analysis."""
        self._backend = assignment.debuggee.pads
        self._losses = Losses(self._loss_texts)
        self._handlers = FaultHandlers(self._program, self._backend, self._note)
        keeps = self._measures_over_stops and self._debuggee.is_readable_while_it_runs
        self._suspension = Suspension(self._target, self._backend, keeps=keeps)
        self._is_set_up = False
        self._alive = True
        self.installer: PadInstaller
        self._instrumentation: Instrumentation
        self._ops: PadOps
        self._growth: TableGrowth
        self._ahead: Ahead
        self._doorbell: Doorbell

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

    @property
    def probe_cost(self) -> int:
        return self.tables.full_cost

    @property
    def ops(self) -> PadOps:
        return self._ops

    @property
    def open_calls(self) -> PadOps:
        return self._ops

    # ------------------------------------------------------------- begin and end

    def install(self, code: FunctionCode, needed: int) -> list[str]:
        debuggee = self._debuggee
        notes = self._check()
        debuggee.begin()
        self._take(self._stand())
        assert self.foothold is not None
        notes += self.foothold.free_stuck()
        self.callees = Callees(self._program, self.installer, self._note)
        self._instrumentation = Instrumentation(self.installer, self.callees, self._root)
        self._ops = PadOps(
            self._target,
            debuggee,
            self._program,
            installer=self.installer,
            instrumentation=self._instrumentation,
            note=self._note,
        )
        notes += self._handlers.look(self.foothold)
        self._prepare(code)
        notes += self.installer.guards.put() + self._tell_code()
        self._backend.configure(self.tables, self._parameters, needed)
        self._enable()
        self._is_set_up = True
        self._backend.arm_bell(self.foothold, self.on_bell)
        return notes

    def _take(self, installer: PadInstaller) -> None:
        """It is there: so are the parts that go by what is put into the program."""
        assert self.foothold is not None
        self.installer = installer
        self._ahead = Ahead(self._target, self._program, installer)
        self._doorbell = Doorbell(
            self._backend,
            installer,
            self._listener,
            self._handlers,
            shares_clock=self._debuggee.is_readable_while_it_runs,
        )
        self._growth = TableGrowth(
            self._target,
            self._backend,
            self.foothold,
            installer,
            forget_open=self._forget_open,
            note=self._note,
        )

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
            UnsupportedError: there can be none.
        """
        problem = WATCHED if self._is_watched(code.entry) else self.installer.prepare_f0(code)
        if problem is not None:
            danger = self._debuggee.danger_of_breakpoints()
            raise UnsupportedError(
                f"cannot time {self._spec}: {problem}; '--probes breakpoint' can, but stops the "
                "program at every call" + ("" if danger is None else f", and {danger}")
            )

    def _is_watched(self, entry: int) -> bool:
        """Whether a guard is to stand there that nothing can be timed without."""
        places = self._debuggee.guard_places(self._program)
        return any(at == entry and not kind.is_of_waits for kind, at, _ in places)

    def _enable(self) -> None:
        """Lets the program lead there."""
        self.installer.guards.prepare_waits(self._debuggee.wait_places)
        self.tables.set(loops=int(self._parameters.loops is Loops.PAPER))
        self.installer.enable()

    def _room(self) -> Room:
        """What the tables must hold."""
        return self._backend.room(self._parameters)

    def _stand(self) -> PadInstaller:
        """An agent in the debuggee: that of the analysis before, or a new one."""
        resolution, known = self._parameters.resolution, self.foothold
        room = self._room()
        is_ours = known is not None and known.identity == self._debuggee.identity
        if known is not None and is_ours and known.is_usable(room):
            known.earlier()
            known.reopen(self._program, resolution)
        else:
            if known is not None and is_ours and not known.give_back():
                known.close()
            self.foothold = None  # also where there is to be no other one
            known = self._backend.new_foothold(self._program, room)
            earlier = known.earlier()
            if earlier >= _MOST_EARLIER:
                earlier = known.earlier(patient=True)
            self._tell_earlier(earlier)
            known.install(resolution)
            self.foothold = known
        self._target.frames.show_pads(agent.elf_file(), known.agent_base, known.caller)
        return PadInstaller(self._target, self._program, known, self._debuggee.guard_places)

    def _tell_earlier(self, number: int) -> None:
        """``number`` of earlier footholds are still there, and another one is to be."""
        if number >= _MOST_EARLIER:
            raise PadsImpossibleError(
                f"the memory of {number} earlier analyses is still in the program, as something "
                "may lead there: 'darc stop' gives it back as soon as nothing does"
            )
        if number:
            self._note(
                f"the memory of {number} earlier {'analysis' if number == 1 else 'analyses'} stays "
                "in the program for now, as something may lead there"
            )

    def lost(self) -> str | None:
        return self.foothold.lost() if self.foothold is not None else None

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
            with contextlib.suppress(AttributeError):  # nothing stands there yet
                last.callback(self.installer.remove)
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
            if self._is_set_up:
                self.tables.enabled = False  # as the agent does where the debugger was killed
        except DarcError as error:
            self._note(str(error))

    def is_there(self) -> bool:
        foothold = self.foothold
        return (
            foothold is not None
            and foothold.identity == self._debuggee.identity
            and foothold.is_there()
        )

    # ---------------------------------------------------------- the user's stops

    def stands(self) -> None:
        self._suspension.stands()

    def pause(self) -> None:
        self._losses.count(self.tables)
        passing, self._suspension.passing = self._suspension.passing, False
        if not passing and self._suspension.lasts(self.installer):
            return  # the same stop once more
        assert self.foothold is not None
        self._forget_ahead()
        self._suspension.take_out(self.installer, self.foothold)

    def passes(self) -> bool:
        if self.paused or not self._debuggee.is_readable_while_it_runs:
            return False
        assert self.foothold is not None
        self._suspension.leave_in(self.installer, self.foothold)
        return True

    @property
    def passing(self) -> bool:
        return self._suspension.passing

    def resume(self) -> list[str]:
        suspension = self._suspension
        passing, suspension.passing = suspension.passing, False
        if not suspension.is_any and not self.paused:
            return []  # nothing was taken out, and no call is known to be under way
        if not suspension.lasts(self.installer):
            self.tables.begin_epoch()
        self._doorbell.give_sign()
        problems = []
        if not passing:
            self._backend.change_bell(self.tables)
            problems = self.installer.resume()
        suspension.undo(self.installer)
        return problems

    @property
    def paused(self) -> bool:
        return self.installer.patcher.paused

    def make_way(self) -> str | None:
        self._forget_ahead()
        return self.installer.make_way()

    def modules_changed(self) -> list[str]:
        self._debuggee.refresh(self._program)
        self._forget_ahead()
        if self.installer.guards.knows_waits:
            self.installer.guards.prepare_waits(self._debuggee.wait_places)
        return self.installer.guards.put() + self._tell_code()

    def _tell_code(self) -> list[str]:
        """Tells the agent whose calls of f0 are timed."""
        if self.tables.set_code(self._program.ordinary_code()):
            return ["calls from some libraries are not timed: they are more than fit the tables"]
        return []

    # ------------------------------------------------------------------ doorbell

    def on_bell(self) -> BellAnswer:
        """The agent has seen enough, or time is up, or the program is to get its pads back."""
        self._target.turn.claim()
        if not self._alive:
            return BellAnswer()
        if (why := self.lost()) is not None:
            return BellAnswer(self._listener.vanished(why))
        if (why := self.damage()) is not None:
            return BellAnswer(self._listener.damaged(why))
        self._ahead.plan_anew()
        self._doorbell.heard()
        if self.tables.short_of:
            self._losses.count(self.tables)
            self._growth.make_more()  # by calls in the program: what is written is not to wait
        with _no_garbage_collection(), self.installer.patcher.together():
            answer = self._answer()
        if self._alive:
            self._doorbell.give_sign()  # as the monitor may not get to run while the program does
            self._doorbell.answered()
        return answer

    def _answer(self) -> BellAnswer:
        tables, listener = self.tables, self._listener
        if tables.exiting:
            listener.exits()
            return BellAnswer()
        if tables.faults and (why := self._see_handlers()) is not None:
            return BellAnswer(listener.give_up(f"{self._spec} is not timed any more: {why}"))
        if self.paused and not tables.bell:
            if self._target.is_between_steps():
                listener.before_resume()
            return BellAnswer()
        if not tables.bell and not listener.is_due():
            return BellAnswer()  # the signal was the program's own
        tables.begin_epoch()
        self._see_losses()
        return self._doorbell.decide()

    def _see_losses(self) -> None:
        """Counts what the agent could not measure, and makes room."""
        self._losses.count(self.tables)
        self._growth.keep_room()

    def _see_handlers(self) -> str | None:
        """The program may have other handlers of faults. A string says why f0 cannot be timed any
        more."""
        if not self._handlers.change(self.tables):
            return None
        self._forget_ahead()
        return self._leave_faults()

    def _leave_faults(self) -> str | None:
        """What may fault is executed in its place from now on; as :meth:`_see_handlers`."""
        why = self.installer.leave_faults()
        if why is None:
            self._instrumentation.apply_again()
        return why

    def damage(self) -> str | None:
        # A kernel's memory is far away, and a kernel that writes over it does not live long.
        if not self._is_set_up or not self._debuggee.is_readable_while_it_runs:
            return None
        assert self.foothold is not None
        return DAMAGED if self.foothold.is_damaged() else None

    def beat(self) -> None:
        self._doorbell.beat()

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        memory = self._memory_beside()
        if memory is None:
            return False
        return self._ahead.work(
            memory, lambda: self._instrumentation.ahead(nodes(), levels), seconds
        )

    def _memory_beside(self) -> tuple[Read, Write] | None:
        """Where something can be prepared now, as the program runs."""
        if self.foothold is None or not self._may_look_ahead() or self._debuggee.is_stopped():
            return None
        return self.foothold.memory_beside

    def _may_look_ahead(self) -> bool:
        """Whether there is a program that runs but for moments, whose memory can be reached."""
        foothold = self.foothold
        can = foothold is not None and foothold.memory_beside is not None
        return can and self._alive and not self.paused

    def goes_on(self) -> None:
        self._ahead.goes_on()

    def _forget_ahead(self) -> None:
        """What was read ahead may not hold any more."""
        self._ahead.plan_anew()
        self.callees.forget_ahead()
        self.installer.forget_ahead()

    @property
    def waits(self) -> bool:
        return self._doorbell.waits

    @property
    def rings_itself(self) -> bool:
        return self._doorbell.rings_itself

    @property
    def hits(self) -> tuple[int, float]:
        return 0, self._doorbell.unheard_cycles / self.hz

    @property
    def signal(self) -> int | None:
        return self._backend.signal

    def hurry(self) -> None:
        self.tables.set(needed=0, batch=1)

    @property
    def cut_short(self) -> int:
        return self._suspension.cut_short

    def losses(self) -> list[str]:
        return self._losses.told()

    # ------------------------------------------------------------------- counting

    @property
    def hz(self) -> int:
        return self._debuggee.hz

    @property
    def seen(self) -> int:
        return self.tables.seen

    def profile(self) -> Profile:
        return self.tables.contexts.profile(self.hz)[0]

    def await_calls(self, needed: int) -> None:
        self.tables.set(needed=needed, batch=batch_size(needed))

    def await_in_peak(self, needed: int) -> None:
        self.tables.set(seen=0, needed=needed, batch=1)

    @property
    def voted(self) -> int:
        return self.tables.contexts.voted()

    def await_more(self, needed: int) -> None:
        self.tables.set(seen=self.voted, needed=needed, batch=1)

    def await_user(self) -> None:
        self.tables.set(needed=_NEVER, batch=64)

    def search(self, low: int, high: int) -> None:
        self.tables.set(mode=1, peak_low=low, peak_high=high)

    def drop_open_calls(self) -> None:
        self.tables.begin_epoch()

    # ----------------------------------------------------------- orders and votes

    def apply(self, orders: Orders) -> None:
        self._instrumentation.apply(orders)

    def apply_again(self) -> None:
        self._instrumentation.apply_again()

    def votes(self) -> dict[Fnode, Vote]:
        return self._instrumentation.votes()

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        return self._instrumentation.make_room(votes)

    @property
    def used(self) -> AbstractSet[int]:
        return self._instrumentation.used


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
