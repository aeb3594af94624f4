"""Collecting with jump pads: the agent in the program times and counts (docs/pad.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from darc import agent
from darc.agent.damage import DAMAGED
from darc.agent.layout import Read, Room, Write
from darc.agent.memory import AgentMemory
from darc.agent.rows import RunningOp, Stale
from darc.code.architecture import FunctionCode
from darc.code.faults import FAULTS
from darc.code.program import NotNowError
from darc.collectors.callees import Callees
from darc.collectors.collector import Collector, Context, Running
from darc.collectors.instrumentation import Instrumentation
from darc.collectors.standstill import Standstill, Suspended
from darc.debuggee import clock
from darc.model.errors import DarcError, PadsImpossibleError, TargetError, UnsupportedError
from darc.model.ftree import Fnode
from darc.model.ops import Event, KeptOps
from darc.model.parameters import Loops, Probes
from darc.model.profile import Profile
from darc.pads.backend import Bell, batch_size
from darc.pads.guards import Guard
from darc.pads.installer import PadInstaller
from darc.search.contest import Vote
from darc.search.descent import Orders
from darc.target.target import Outcome

_LOSSES = {
    "lost_records": "calls were not timed: there were more stack depths than darc can tell apart",
    "lost_callers": "calls were not timed: there was no landing left for a caller of theirs, and "
    "each function takes one for each place that calls it (docs/pad.md)",
    "lost_foreign": "calls were not timed: they came from code that was generated, and its runtime "
    "may look for the return addresses",
    "lost_contexts": "calls were not timed: there were more threads than darc can tell apart",
    "lost_ops": "calls were not measured: their exceptions were caught where darc cannot see it",
}
"""What the agent counts of calls that it could not measure, and what is told of it."""

_LEFT = "which may know instructions by their places: those that may fault stay there"

_CARE_SECONDS = 1.0
"""Between two looks at what may change while the program runs."""

_COMPACT_SECONDS = 1.0
"""When records run short again that soon, it was not for those of calls that are over."""

_MOST_EARLIER = 8
"""Footholds of earlier analyses that may be there beside the one in use: 2 MiB each, as a rule."""

_NEVER = (1 << 63) - 1
"""So many calls are never seen: the agent does not ring until the user has chosen."""


class PadCollector(Collector):
    """Pads and the agent in a process or a kernel."""

    kind = Probes.PAD

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._backend = context.debuggee.pads
        self._faults: frozenset[int] = frozenset()
        """Signals of faults that the program is known to handle."""
        self._seen_stale: frozenset[Stale] = frozenset()
        self._lost = dict.fromkeys(_LOSSES, 0)
        self._cut_short = 0
        self._sees_waits = False
        self._is_set_up = False
        self._alive = True
        self._cared = 0.0
        self._bell_is_lost = False
        self._compacted = -_COMPACT_SECONDS
        self._stood: tuple[int | None, int] | None = None
        """The number of the latest stop for the user, and the time-stamp counter when it began."""
        self._users: tuple[int, ...] = ()
        """Where the user's breakpoints stood when the program went on."""
        self._plan: Iterator[None] | None = None
        """What is left to be prepared while the program runs."""
        self._passing = False
        """Whether the probes were left in at that stop."""
        self._suspended: Suspended | None = None
        """What is under way at that stop, while nothing has run since."""
        self.installer: PadInstaller
        self._instrumentation: Instrumentation

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

    # ------------------------------------------------------------- begin and end

    def install(self, code: FunctionCode, needed: int) -> list[str]:
        debuggee = self._debuggee
        notes = self._check()
        debuggee.begin()
        self.installer = self._stand()
        assert self.foothold is not None
        notes += self.foothold.free_stuck()
        self.callees = Callees(self._program, self.installer, self._note)
        self._instrumentation = Instrumentation(self.installer, self.callees, self._root)
        notes += self._look_for_handlers(self._backend.own_handlers(self._program, self.foothold))
        self._prepare(code)
        notes += self.installer.guard() + self._tell_code()
        self._backend.configure(
            self.tables,
            self._parameters,
            needed=needed,
            watches_sandboxes=self.installer.watches_sandboxes,
        )
        self._enable()
        self._is_set_up = True
        self._backend.arm_bell(self.foothold, self.on_bell)
        return notes

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
        problem = self.installer.prepare_f0(code)
        if problem is not None:
            danger = self._debuggee.danger_of_breakpoints()
            raise UnsupportedError(
                f"cannot time {self._spec}: {problem}; '--probes breakpoint' can, but stops the "
                "program at every call" + ("" if danger is None else f", and {danger}")
            )

    def _enable(self) -> None:
        """Lets the program lead there."""
        self.installer.prepare_waits(self._debuggee.wait_places)
        self.tables.set(loops=int(self._parameters.loops is Loops.PAPER))
        self.installer.enable()

    def _room(self) -> Room:
        """What the tables must hold."""
        return self._backend.room(self._parameters)

    def _look_for_handlers(self, own: Mapping[int, int]) -> list[str]:
        """What may raise a signal that the program handles itself is left where it is."""
        program = self._program
        self._faults = self._backend.faults()
        program.handled = frozenset(own)
        if not own:
            return []
        modules = {m.name for at in own.values() if (m := program.module_at(at)) is not None}
        where = f" in {', '.join(sorted(modules))}" if modules else ""
        names = ", ".join(FAULTS[signal] for signal in sorted(own))
        return [f"the program handles {names} by a handler{where}, {_LEFT}"]

    def _see_handlers(self) -> str | None:
        """The program has, or is about to have, another handler of faults. Whosever that is cannot
        be asked now. A string says why f0 cannot be timed any more."""
        program, tables = self._program, self.tables
        announced = tables.faults
        tables.set(faults=0)
        self._faults = self._backend.faults() | {n for n in FAULTS if announced >> n & 1}
        handled = program.handled | self._faults
        if handled == program.handled:
            return None
        program.handled = handled
        self._forget_ahead()
        self._note(f"the program has other handlers of faults from now on, {_LEFT}")
        why = self.installer.leave_faults()
        if why is None:
            self._instrumentation.apply_again()
        return why

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
        self._target.show_pads(agent.elf_file(), known.agent_base, known.caller)
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
        self._give_up_suspended()
        self._alive = False
        with contextlib.ExitStack() as last:
            last.callback(self._debuggee.leave)
            last.callback(self._target.flush)  # what it undoes may be needed for that
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
        number = self._target.stop_number
        if self._stood is None or number is None or self._stood[0] != number:
            self._stood = number, self._target.stopped_since or clock.tsc_now()

    def pause(self) -> None:
        self._count_losses()
        tables, patcher = self.tables, self.installer.patcher
        passing, self._passing = self._passing, False
        suspended = self._suspended
        if suspended is not None and not passing:
            if not suspended.is_over(self._target, tables, patcher.in_use):
                return  # the same stop once more
            self._give_up_suspended()
        self._suspended = None
        self.stands()
        was = self._standstill()
        if was is None:
            self._cut_short += tables.ops.count()
        tables.begin_epoch()
        self._forget_ahead()
        words = self.installer.pause()
        if was is not None:
            self._suspended = Suspended.of(was, self._target, words)

    def passes(self) -> bool:
        if self.paused or not self._debuggee.is_readable_while_it_runs:
            return False
        self.stands()
        was = self._standstill(closes=False)
        self._passing = True
        self._suspended = None if was is None else Suspended.of(was, self._target, None)
        return True

    @property
    def passing(self) -> bool:
        return self._passing

    def _standstill(self, *, closes: bool = True) -> Standstill | None:
        if not self._debuggee.is_readable_while_it_runs:
            return None
        assert self._stood is not None
        assert self.foothold is not None
        return Standstill.take(
            self._target,
            self.tables,
            is_inside=self.foothold.holds,
            in_system_call=self._backend.is_in_system_call,
            patches=self.installer.patcher.in_use,
            since=self._stood[1],
            closes=closes,
        )

    def _give_up_suspended(self) -> None:
        """What was under way at the last stop for the user is measured no more."""
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            self._cut_short += len(suspended.was.operations)

    def resume(self) -> list[str]:
        target, tables, patcher = self._target, self.tables, self.installer.patcher
        suspended, passing, self._passing = self._suspended, self._passing, False
        if suspended is None and not self.paused:
            return []  # nothing was taken out, and no call is known to be under way
        if suspended is None or suspended.is_over(target, tables, patcher.in_use):
            self._give_up_suspended()
            suspended = None
            tables.begin_epoch()
        self._give_sign()
        problems = []
        if not passing:
            self._backend.change_bell(tables)
            problems = self.installer.resume()
        if suspended is not None and (self.paused or patcher.in_use != suspended.was.patches):
            self._give_up_suspended()  # some of its calls would not be seen
        elif suspended is not None:
            self._cut_short += suspended.undo(target, tables)
            self._suspended = None
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
        if self.installer.knows_waits:
            self.installer.prepare_waits(self._debuggee.wait_places)
        return self.installer.guard() + self._tell_code()

    def _tell_code(self) -> list[str]:
        """Tells the agent whose calls of f0 are timed."""
        if self.tables.set_code(self._program.ordinary_code()):
            return ["calls from some libraries are not timed: they are more than fit the tables"]
        return []

    # ------------------------------------------------------------------ doorbell

    def on_bell(self) -> Bell:
        """The agent has seen enough, or time is up, or the program is to get its pads back."""
        self._target.turn.claim()
        if not self._alive:
            return Bell()
        if (why := self.lost()) is not None:
            return Bell(self._listener.vanished(why))
        if (why := self.damage()) is not None:
            return Bell(self._listener.damaged(why))
        self._bell_is_lost = False
        self._plan = None
        self._backend.change_bell(self.tables)
        if self.tables.short_of:
            self._make_more_room()  # by calls in the program: what is written is not to wait
        with _no_garbage_collection(), self.installer.patcher.together():
            answer = self._answer()
        if self._alive:
            self._give_sign()
        return answer

    def _answer(self) -> Bell:
        tables, listener = self.tables, self._listener
        if tables.exiting:
            listener.exits()
            return Bell()
        if tables.faults and (why := self._see_handlers()) is not None:
            return Bell(listener.give_up(f"{self._spec} is not timed any more: {why}"))
        if self.paused and not tables.bell:
            if self._target.is_between_steps():
                listener.before_resume()
            return Bell()
        if not tables.bell and not listener.is_due():
            return Bell()  # the signal was the program's own
        tables.begin_epoch()
        self._see_losses()
        outcome = listener.decide()
        back, slot = tables.bell_return, tables.bell_slot
        rang = bool(tables.bell)
        tables.set(bell=0)
        if outcome is Outcome.CONTINUE or not rang:
            return Bell(outcome)
        return Bell(outcome, back, slot)

    def _count_losses(self) -> None:
        """Counts what the agent could not measure."""
        for name in self._lost:
            self._lost[name] += self.tables.take(name)

    def _see_losses(self) -> None:
        """Counts what the agent could not measure, and makes room."""
        tables = self.tables
        self._count_losses()
        limit = tables.layout.room.records // 2
        if tables.record_count > limit and self._threads_inside() <= 1:
            tables.records.compact()

    def _make_more_room(self) -> None:
        """Threads, or calls, have found no room in the tables: larger ones are taken, as far as the
        program's limits let them. The calls that are under way span the stop."""
        tables = self.tables
        limits, short = tables.blob.constants, tables.short_of
        self._count_losses()
        tables.begin_epoch()
        why: str | None = None
        if short & limits["DARC_SHORT_OF_CONTEXTS"]:
            short -= limits["DARC_SHORT_OF_CONTEXTS"]
            contexts = tables.contexts.room
            why = self._more_contexts()
            if tables.contexts.room > contexts:  # their calls are soon going to want records
                short |= limits["DARC_SHORT_OF_RECORDS"]
                self._compacted = time.monotonic()
        if short & limits["DARC_SHORT_OF_RECORDS"] and self._threads_inside() <= 1:
            short -= limits["DARC_SHORT_OF_RECORDS"]
            why = self._more_records() or why
        tables.set(short_of=short)  # else it is tried again: the monitor knocks
        if why is not None:
            tables.set(may_grow=0, short_of=0)
            self._note(f"no room for more threads or calls, which pass untimed from now on: {why}")

    def _more_contexts(self) -> str | None:
        tables = self.tables
        tables.contexts.free_ended(self._backend.living)
        if tables.contexts.held() <= tables.contexts.room // 2:
            return None  # those of threads that have ended are enough
        assert self.foothold is not None
        return self.foothold.add_contexts(len(self._backend.living()))

    def _more_records(self) -> str | None:
        now = time.monotonic()
        is_enough = now - self._compacted > _COMPACT_SECONDS
        self._compacted = now
        if is_enough:
            self.tables.records.compact()
            return None
        assert self.foothold is not None
        self.installer.show_own_stack()
        why = self.foothold.add_records(len(self._backend.living()))
        if why is not None:
            self.tables.records.compact()
        return why

    def _threads_inside(self) -> int:
        """How many threads stand in the agent or a pad."""
        counters, foothold = self._target.program_counters().values(), self.foothold
        return sum(foothold is not None and foothold.holds(pc) for pc in counters)

    def damage(self) -> str | None:
        # A kernel's memory is far away, and a kernel that writes over it does not live long.
        if not self._is_set_up or not self._debuggee.is_readable_while_it_runs:
            return None
        assert self.foothold is not None
        return DAMAGED if self.foothold.is_damaged() else None

    def _give_sign(self) -> None:
        """Also from here, as the monitor may not get to run while the program does."""
        self._backend.give_sign(self.tables, self._listener.seconds_left)

    def beat(self) -> None:
        self._give_sign()
        now = time.monotonic()
        if now - self._cared < _CARE_SECONDS:
            return
        self._cared = now
        tables = self.tables
        if not tables.enabled:
            tables.enabled = True
        self._seen_stale = tables.ops.watch_stale(self._seen_stale)
        for signal in self._backend.faults() - self._faults:  # set in a way that no guard sees
            tables.set(faults=tables.faults | 1 << signal)
        tables.contexts.free_ended(self._backend.living)
        self._bell_is_lost = self._backend.bell_is_lost
        self._backend.beat(tables)

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        memory = None if self.foothold is None else self.foothold.memory_beside
        if memory is None or not self._alive or self.paused or self._debuggee.is_stopped():
            return False
        end = time.monotonic() + seconds
        with self._helping(memory):
            try:
                if self._plan is None:
                    self._plan = self._instrumentation.ahead(nodes(), levels)
                for _ in self._plan:
                    if self._is_over() or time.monotonic() >= end:
                        return True
            except NotNowError:
                pass
            self._plan = None
            return False

    @contextlib.contextmanager
    def _helping(self, memory: tuple[Read, Write]) -> Iterator[None]:
        """This thread prepares something beside the program, which runs."""
        beside = _Beside(*memory, self._is_over, self._users)
        with self._target.turn.taken(beside), self._program.ahead():
            yield

    def _is_over(self) -> bool:
        """Whether the program waits for a decision, or stands still, by now."""
        return self._target.turn.is_wanted or bool(self.tables.bell)

    def goes_on(self) -> None:
        self._users = tuple(self._target.breakpoints())

    def _forget_ahead(self) -> None:
        """What was read ahead may not hold any more."""
        self._plan = None
        self.callees.forget_ahead()
        self.installer.forget_ahead()

    @property
    def waits(self) -> bool:
        tables = self.tables
        return bool(tables.bell or tables.faults or tables.short_of or self._bell_is_lost)

    @property
    def rings_itself(self) -> bool:
        tables = self.tables
        ringing = tables.blob.constants["DARC_RINGING"]
        return bool(tables.bell_signal) and tables.bell == ringing

    @property
    def signal(self) -> int | None:
        return self._backend.signal

    def hurry(self) -> None:
        self.tables.set(needed=0, batch=1)

    @property
    def cut_short(self) -> int:
        return self._cut_short

    def losses(self) -> list[str]:
        return [f"{self._lost[name]} {text}" for name, text in _LOSSES.items() if self._lost[name]]

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

    @property
    def may_look_closer(self) -> bool:
        return self._target.stops_unseen

    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        self.tables.kept.keep(least, fast)

    def watch_waits(self) -> None:
        self._sees_waits = self.installer.has_waits
        problems = self.installer.guard_waits()
        if problems:
            self._note(f"who waits for whom is not seen everywhere: {problems[0]}")

    def kept_ops(self) -> KeptOps | None:
        sees_switches = self.installer.has_guard(Guard.SWITCH)
        kept = self._instrumentation.kept_ops(self.hz, sees_switches)
        threads = {op.thread for op in kept.ops}
        threads |= {event.thread for op in kept.ops for event in op.events}
        names = {number: self._debuggee.thread_name(number) for number in threads if number}
        known = {number: name for number, name in names.items() if name is not None}
        return dataclasses.replace(
            kept,
            threads=known,
            sees_waits=self._sees_waits,
            sees_wake_ups=self.installer.has_guard(Guard.WAKE),
        )

    def running(self) -> Sequence[Running] | None:
        if not self._debuggee.is_readable_while_it_runs:
            return None
        now, hz = clock.tsc_now(), self.hz
        return [Running(op, op.life, (now - op.start) / hz) for op in self.tables.ops.running()]

    def waits_for(self, call: Running) -> Event | None:
        assert isinstance(call.key, RunningOp)
        event = self.tables.ops.wait_of(call.key)
        return None if event is None else self._instrumentation.event(event)

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


@dataclasses.dataclass(frozen=True)
class _Beside:
    """Memory of a program that runs, as its helper may use it."""

    read_it: Read
    write_it: Write
    is_over: Callable[[], bool]
    users: Sequence[int]

    def read(self, address: int, size: int) -> bytes:
        if self.is_over():
            raise NotNowError
        return self.read_it(address, size)

    def write(self, address: int, data: bytes) -> None:
        self.write_it(address, data)

    def flush(self) -> None:
        """It is there at once."""

    def breakpoints(self) -> Sequence[int]:
        return self.users


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
