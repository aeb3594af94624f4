"""Collecting with the debugger's breakpoints alone (docs/breakpoints.md).

Nothing is put into the program but the debugger's own breakpoints: at f0's entry and its returns,
at the call sites that are timed and where these calls return to. Every hit stops the program, so
this is for functions that are slow, and for programs that take no pads.

What a hit reads is the stack pointer and little more. No local process, no ``/proc`` and no signals
are needed, so that a kernel behind a serial line can be analysed with it as well.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from iced_x86 import FlowControl

from darc.code.architecture import FunctionCode, Site
from darc.code.branches import frame_slot, indirect_target, is_taken
from darc.code.processor import decode
from darc.code.program import Program
from darc.collectors.breakplaces import BreakPlaces, Place, Timed
from darc.collectors.callees import Callees
from darc.collectors.collector import Collector, Context
from darc.collectors.hitclock import HitClock, Moment
from darc.collectors.opcount import NEVER, OpCount
from darc.collectors.opencalls import Call, Operation
from darc.collectors.timedsites import MAX_TARGETS, TimedSites
from darc.model.errors import DarcError, TargetError, UnsupportedError
from darc.model.ftree import CallKind, Fnode, Function
from darc.model.parameters import Loops, Probes
from darc.model.profile import Profile, format_cycles
from darc.pads.guards import Guard
from darc.search.contest import Vote
from darc.search.descent import Orders
from darc.target.target import Outcome

MAX_CALLERS = 64
"""Return addresses of f0 that are learned, where its own returns do not tell its end."""

FREE_HITS = 2000
HITS_PER_CALL = 200
"""Hits of a call site, and more for each call of f0, before it is left alone."""

MAX_HITS = 20_000
"""Hits within calls of f0, and none comes to its end, before the analysis is given up."""

LONGEST_INSTRUCTION = 15

Act = Callable[[], Outcome]


class _Accepts:
    """Where breakpoints can stand: nearly everywhere."""

    max_targets = MAX_TARGETS
    max_tails = sys.maxsize

    def problem(self, site: Site) -> str | None:
        if site.kind is CallKind.INTERRUPT:
            return "it is no call"
        if site.slot is None:
            return "no frame information says where its caller's return address stands"
        return None

    def why_notrace(self, program: Program, callee: Function) -> str | None:
        return None


@dataclass(frozen=True)
class _Hit:
    """A thread has come to a breakpoint."""

    address: int
    thread: int
    strand: int
    """See :meth:`~darc.debuggee.debuggee.Debuggee.strand`."""
    now: Moment


class BreakpointCollector(Collector):
    """Breakpoints in whatever the debugger debugs."""

    kind = Probes.BREAKPOINT
    outlives = True

    @property
    def auto_lookahead(self) -> int | None:
        return 1  # each level more costs two hits at every call

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.callees = Callees(self._program, _Accepts(), self._note)
        self._clock = self._new_clock()
        self._hz = self._debuggee.hz
        by_longest = self._parameters.loops is Loops.PAPER
        resolution = self._parameters.resolution
        self._count = OpCount(self._clock, resolution, self._hz, by_longest=by_longest)
        self._places = BreakPlaces(
            self._target, self._on_hit, is_wanted=self._calibrates_at, cannot=self._cannot
        )
        self._sites = TimedSites(self.callees, self._places)
        self._is_watched: Callable[[int], bool]
        self._operations: dict[int, Operation] = {}
        """Of each strand (see :meth:`~darc.debuggee.debuggee.Debuggee.strand`), that which is under
        way."""
        self._cut_short = 0
        self._orders = Orders()
        self._has_limit = False
        self._signal: int | None = None
        self._pid: int | None = None
        self._first_bytes = b""
        self._entry = 0
        self._first: int | None = None
        self._second: int | None = None
        self._learns_callers = False
        self._loops_to_entry = False
        self._fruitless = 0
        self._unreturned = 0

    def _new_clock(self) -> HitClock:
        debuggee, own_clock = self._debuggee, self._debuggee.own_clock()
        make = functools.partial(
            HitClock,
            self._target.hits_stop_all,
            waited=debuggee.waited_ns,
            own_waits=self._own_waits,
        )
        if own_clock is not None:
            return make(read=own_clock, stands_still=True)
        return make(use=debuggee.use)

    # ------------------------------------------------------------- begin and end

    def install(self, code: FunctionCode, needed: int) -> list[str]:
        self._debuggee.check_supported()
        self._is_watched = self._debuggee.watch(self._parameters)
        self._debuggee.begin()
        self._pid = self._target.pid
        self._entry = code.entry
        self._first_bytes = self._target.read(code.entry, 8)
        self._count.needed = needed
        self._plan_f0(code)
        self._plan_guards()
        self._places.set_all()
        if not self._places.has(code.entry):
            raise UnsupportedError(f"cannot set a breakpoint at {self._spec}")
        if self._parameters.max_time is not None or self._parameters.start_time is not None:
            self._has_limit = True
            self._signal = self._debuggee.arm_limit(self._on_limit)
        return []

    def _plan_f0(self, code: FunctionCode) -> None:
        """f0 ends at its own return instructions. Where it may end in another way (a tail call,
        code that is not known), the places that it returns to are learned."""
        self._places.at(code.entry).entry = True
        flows = {at: i.flow_control for at, i in code.instructions.items()}
        returns = [at for at, flow in flows.items() if flow == FlowControl.RETURN]
        has_tails = any(site.kind.is_tail for site in code.sites)
        self._learns_callers = has_tails or not returns or not code.complete
        if not self._learns_callers:
            for address in returns:
                self._places.at(address).leaves = True
        self._loops_to_entry = code.entry in code.targets or any(
            site.kind.is_tail and site.target in (None, code.entry) for site in code.sites
        )
        self._measure_at(code.entry)

    def _measure_at(self, address: int) -> None:
        """The cost of a hit is to be measured between the instruction there, which has a
        breakpoint, and one soon after it; not if it leads elsewhere."""
        at = address
        for _ in range(self._debuggee.calibration_steps):
            instruction = decode(self._target.read(at, LONGEST_INSTRUCTION), at)[0]
            if instruction.flow_control != FlowControl.NEXT:
                return
            at = int(instruction.next_ip)
        self._first, self._second = address, at
        self._places.at(at)

    def _plan_guards(self) -> None:
        """Where exceptions are caught and longjmps begin: frames end there without a return."""
        try:
            for kind, address, _ in self._debuggee.guard_places(self._program):
                if kind is Guard.SHOW:
                    self._places.at(address).catches = True
                elif kind is Guard.JUMP:
                    self._places.at(address).jumps = True
        except UnsupportedError:
            pass  # an unwinder that cannot be found: it sees the program's own stack

    def remove(self) -> None:
        self._remove(is_there=True)

    def _remove(self, is_there: bool) -> None:
        self._operations.clear()
        self._places.take_back_all()
        try:
            if self._has_limit:
                self._debuggee.disarm_limit()
        finally:
            self._debuggee.leave(is_there)

    def gone(self) -> None:
        try:
            self._remove(is_there=False)
        except DarcError as error:
            self._note(str(error))

    def is_there(self) -> bool:
        try:
            return (
                self._target.pid == self._pid
                and self._target.read(self._entry, 8) == self._first_bytes
            )
        except TargetError:
            return False

    # ---------------------------------------------------------- the user's stops

    def pause(self) -> None:
        self._places.paused = True
        self._cut_short += len(self._operations)
        self.drop_open_calls()
        self._places.take_back_all()

    def resume(self) -> list[str]:
        self._places.paused = False
        self.drop_open_calls()
        self._places.set_all()
        return []

    @property
    def paused(self) -> bool:
        return self._places.paused

    def make_way(self) -> str | None:
        return None  # the debugger keeps several breakpoints at one address apart

    def modules_changed(self) -> list[str]:
        self._debuggee.refresh(self._program)
        if not self._program.is_code(self._entry):
            raise UnsupportedError("its file was unloaded")
        self._places.drop_unless(self._program.is_code)
        self._plan_guards()
        self._places.set_all()
        return []

    # ------------------------------------------------------------------------ hits

    def _on_hit(self, address: int, thread: int) -> Act | None:
        with self._clock.hit(thread) as moment:
            place = self._places.find(address)
            if place is None or self._places.paused:
                return None
            if not self._clock.is_calibrated:
                follows = self._first if address == self._second else None
                self._clock.calibrate(thread, address, follows)
            hit = _Hit(address, thread, self._debuggee.strand(thread), moment)
            try:
                act = self._react(place, hit)
            except TargetError:
                act = None
                self._operations.pop(hit.strand, None)  # who knows where it is: not measured
            if act is None and self._listener.is_due():
                act = self._decide
            act = act or self._watch_cost(place) or self._watch_progress(hit.strand)
            if act is None and address == self._second and not self._places.is_wanted(address):
                act = self._set_again
        return functools.partial(self._act, act, thread) if act is not None else None

    def _act(self, act: Act, thread: int) -> Outcome:
        with self._clock.away(thread):
            return act()

    def _react(self, place: Place, hit: _Hit) -> Act | None:
        """What the hit means: first what ends here, then what begins."""
        operation = self._operations.get(hit.strand)
        if operation is None and not place.entry:
            return None
        rsp, now = self._target.read_register(hit.thread, "rsp"), hit.now
        act = None
        if operation is not None:
            if place.returns:
                self._returned(operation, place, rsp, now)
            if place.jumps:
                operation.jumps(now)
            if place.catches and operation.caught(rsp, now):
                return self._ended(operation, hit)
            slot = rsp if place.leaves else rsp - 8
            back = hit.address if place.caller else operation.f0.back
            ends = place.leaves or place.caller
            if ends and (operation.f0.slot, operation.f0.back) == (slot, back):
                act = self._returned_from_f0(operation, hit)
        if place.entry:
            act = self._entered(hit, rsp) or act
        operation = self._operations.get(hit.strand)
        if operation is not None and place.site is not None:
            self._calls(operation, place.site, hit, rsp)
        return act

    def _entered(self, hit: _Hit, rsp: int) -> Act | None:
        if not self._is_watched(hit.thread):
            return None
        back = self._word(rsp)
        open_ = self._operations.get(hit.strand)
        if open_ is not None and self._still_runs(open_, rsp, back):
            return None  # recursion: only the outermost call is an operation
        f0 = Call(rsp, back, [(self._root, hit.now)])
        self._operations[hit.strand] = Operation(hit.now, [f0], self._count.cycles)
        if self._learns_callers and not self._places.at(back).caller:
            return functools.partial(self._learn_caller, back, hit.strand)
        return None

    def _still_runs(self, operation: Operation, rsp: int, back: int) -> bool:
        """Whether an operation is not over, as f0 is entered with its stack pointer at ``rsp``."""
        f0 = operation.f0
        if rsp == f0.slot and back == f0.back:
            return self._loops_to_entry
        try:
            return rsp < f0.slot and self._word(f0.slot) == f0.back
        except TargetError:
            return False  # its stack is gone

    def _learn_caller(self, back: int, strand: int) -> Outcome:
        if self._places.callers >= MAX_CALLERS:
            self._operations.pop(strand, None)
            return Outcome.CONTINUE
        self._places.at(back).caller = True
        if self._second is None:
            self._measure_at(back)
        self._places.set_all()
        if not self._target.hits_stop_all:
            self._operations.pop(strand, None)  # this stop has cost more than others
        return Outcome.CONTINUE

    def _returned_from_f0(self, operation: Operation, hit: _Hit) -> Act | None:
        operation.close(operation.f0, hit.now)
        self._unreturned += operation.lost
        return self._ended(operation, hit)

    def _ended(self, operation: Operation, hit: _Hit) -> Act | None:
        """f0 has returned, or an exception has left it."""
        del self._operations[hit.strand]
        self._fruitless = 0
        counts = self._count.add(operation, hit.now, self._orders.analyse)
        return self._decide if counts and self._count.is_enough else None

    def _calls(self, operation: Operation, timed: Timed, hit: _Hit, rsp: int) -> None:
        """A call site is about to call, or to jump, in a frame that may be on the path."""
        site, now = timed.site, hit.now
        register = functools.partial(self._target.read_register, hit.thread)
        assert site.slot is not None
        parent = operation.find(frame_slot(site.slot, register, self._word))
        caller = parent.node if parent is not None else None
        if parent is None or caller is None or caller not in timed.routes:
            return
        node = timed.routes[caller]
        if site.kind.is_tail and not is_taken(site.instruction, register):
            return
        if node is None:
            target = indirect_target(site.instruction, register, self._word)
            node = self._sites.learned(timed, caller, target)
        if site.kind.is_tail:
            operation.hand_over(parent, node, now)
        elif node is not None:
            operation.open(parent, Call(rsp - 8, site.back, [(node, now)]))

    def _returned(self, operation: Operation, place: Place, rsp: int, now: Moment) -> None:
        call = operation.find(rsp - 8)
        if call is None or call is operation.f0:
            return
        if any(timed.site.back == call.back for timed in place.returns):
            operation.close(call, now)

    def _own_waits(self) -> Mapping[int, int]:
        return self._debuggee.waited_by(self._target.own_threads())

    def _word(self, address: int) -> int:
        return int.from_bytes(self._target.read(address, 8), "little")

    # ------------------------------------------------------------------------ cost

    def _watch_cost(self, place: Place) -> Act | None:
        """A call site that is hit much more often than f0 is called slows the program down and
        tells nothing: it is left alone."""
        place.hits += 1
        if place.hits <= FREE_HITS + HITS_PER_CALL * (self._count.ops - place.since):
            return None
        if place.site is not None or place.returns:
            return functools.partial(self._leave_alone, place)
        if place.catches or place.jumps:
            place.catches = place.jumps = False
            self._note("exceptions or longjmps are too frequent to be followed by breakpoints")
            return self._set_again
        return None

    def _watch_progress(self, strand: int) -> Act | None:
        """Where a timer's signals come faster than a breakpoint can be stepped over, the program
        does nothing but run their handler."""
        self._fruitless += strand in self._operations
        return self._give_up_all if self._fruitless > MAX_HITS else None

    def _give_up_all(self) -> Outcome:
        self.drop_open_calls()
        why = (
            f"{MAX_HITS} hits of breakpoints and no end of a call of {self._spec}: signals may "
            "come faster than a breakpoint can be stepped over"
        )
        return self._listener.give_up(why)

    def _leave_alone(self, place: Place) -> Outcome:
        for timed in place.sites:
            self._give_up(timed, "it is called too often for a breakpoint")
        return self._set_again()

    def _give_up(self, timed: Timed, why: str) -> None:
        for node in self._sites.give_up(timed, why):
            for operation in self._operations.values():
                operation.forget(node)

    def _cannot(self, place: Place, why: str) -> None:
        """No breakpoint can be set there."""
        for timed in place.sites:
            self._give_up(timed, why)
        if place.leaves or place.caller:
            self._note(f"{self._spec} is not seen to return everywhere: {why}")

    def _calibrates_at(self, address: int) -> bool:
        """Whether the cost of a hit is still to be measured there."""
        return address == self._second and not self._clock.is_calibrated

    def _set_again(self) -> Outcome:
        self._places.set_all()
        return Outcome.CONTINUE

    # ------------------------------------------------------------------- decisions

    def _decide(self) -> Outcome:
        self.drop_open_calls()
        return self._listener.decide()

    def _on_limit(self) -> Outcome:
        """The time limit has passed, and f0 may not be called any more."""
        if not self._listener.is_due() or not self._places.are_set:
            return Outcome.CONTINUE
        return self._decide()

    def beat(self) -> None:
        pass

    @property
    def waits(self) -> bool:
        return False

    @property
    def rings_itself(self) -> bool:
        return False

    @property
    def signal(self) -> int | None:
        return self._signal

    def hurry(self) -> None:
        self._count.needed = 0

    @property
    def probe_cost(self) -> int:
        """Of both hits, which is taken out: calls much shorter than that cannot be told apart."""
        each = max(self._clock.cost, self._clock.exact_cost)
        return 2 * each * self._hz // 10**9

    @property
    def cut_short(self) -> int:
        return self._cut_short

    def losses(self) -> list[str]:
        found = []
        if self._clock.is_calibrated:
            clock = self._clock
            each, least = map(self._shown, (clock.mean_stop, max(clock.cost, clock.exact_cost)))
            found.append(
                f"collected with breakpoints: each hit stopped the program for about {each}, which "
                f"is taken out; latencies below about {least} cannot be told apart"
            )
        if self._unreturned:
            found.append(
                f"{self._unreturned} calls did not return (a jump or an exception left them): "
                "they were not measured, and the time may be theirs"
            )
        return found

    def _shown(self, ns: float) -> str:
        return format_cycles(ns * self._hz / 1e9, self._hz)

    @property
    def hits(self) -> tuple[int, float]:
        return self._clock.hits, self._clock.lost_seconds

    # ------------------------------------------------------------------- counting

    @property
    def hz(self) -> int:
        return self._hz

    @property
    def seen(self) -> int:
        return self._count.seen

    def profile(self) -> Profile:
        return self._count.profile()

    def await_calls(self, needed: int) -> None:
        self._count.needed = needed

    def await_in_peak(self, needed: int) -> None:
        self._count.seen = 0
        self._count.needed = needed

    @property
    def voted(self) -> int:
        return self._count.tally.voted

    def await_more(self, needed: int) -> None:
        self._count.seen = self.voted
        self._count.needed = needed

    def await_user(self) -> None:
        self._count.needed = NEVER

    def search(self, low: int, high: int) -> None:
        self._count.peak = (low, high)

    def drop_open_calls(self) -> None:
        self._operations.clear()

    # ----------------------------------------------------------- orders and votes

    def apply(self, orders: Orders) -> None:
        self._orders = orders
        self._count.tally.forget_votes()
        self.drop_open_calls()
        self._sites.apply(orders, self._count.ops)

    def apply_again(self) -> None:
        self.apply(self._orders)

    def votes(self) -> dict[Fnode, Vote]:
        return self._count.tally.votes()

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        self._sites.tell_overflows()
        return False

    @property
    def used(self) -> AbstractSet[int]:
        return self._sites.used
