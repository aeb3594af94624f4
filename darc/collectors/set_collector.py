"""Collecting the latencies of many functions at once, each for itself (OSprof 3.1).

Every function of the set has an entry pad of its own, which counts its calls in bins of powers of
two (``darc/agent/members.c``). There are no call sites, no votes and no kept ops: what an
:class:`~darc.analyses.analysis.Analysis` may order of other collectors, it may not of this one.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from darc.agent.layout import Read, Room, Write
from darc.agent.rows import MemberCounts
from darc.code.architecture import FunctionCode
from darc.code.program import NotNowError
from darc.collectors.collector import Assignment, Way
from darc.collectors.losses import LOSSES
from darc.collectors.pad_collector import WATCHED, PadCollector
from darc.model.errors import DarcError, TargetError, UnsupportedError
from darc.model.ftree import Fnode, Function
from darc.model.profile import Profile
from darc.pads.foothold import Area
from darc.pads.installer import MAY_FAULT
from darc.pads.returns import ReturnLandings

MOST_FUNCTIONS = 2000
"""Of one set."""

_OF_A_POOL = 100
"""Functions that share a pool of landings: about 900 places that they are called from."""

_AT_ONCE = 50
"""So many pads are made at a stop, in less than a tenth of a second."""

_UNMEASURED = "it was called, and no call of it was measured to its end"
_UNPLACED = "no landing was left for its calls (docs/pad.md)"
_FOREIGN = "its calls came from code that was generated"
_JUMPED_TO = "code jumped there: no call stands before the address on top of the stack"
_UNKNOWN = "no call of it is known, and calls were lost of which darc cannot tell whose they were"

_LONGEST_STOP = 0.1
"""Seconds in which pads are made at a stop, while the program waits."""

_MOMENT = 0.002
"""Seconds after which to look again whether pads can be made."""

NO_TIME = "its pad was not made in time: fewer functions have more"
"""Why a function is left out, where making pads has taken too long."""

_LOSSES = {
    "lost_blocks": "calls were not timed: there were too many threads and functions together",
    "lost_moved": "calls were not measured: their frames moved to another thread or stack",
    "lost_tails": "tail calls were not measured: there were too many in one frame",
}


class SetCollector(PadCollector):
    """Entry pads at the functions of a set, in a process."""

    _loss_texts = LOSSES | _LOSSES
    # Calls that are under way at a stop are dropped, and counted where they return.
    _measures_over_stops = False

    @classmethod
    def of(
        cls, functions: Sequence[Function], *, runs: bool, progress: Callable[[str], None]
    ) -> Way:
        """How one for these ``functions`` is made; see there."""
        make = functools.partial(cls, functions=functions, runs=runs, progress=progress)
        return Way(cls, make)

    def __init__(
        self,
        assignment: Assignment,
        functions: Sequence[Function],
        *,
        runs: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``functions`` are at most :data:`MOST_FUNCTIONS`, those that matter most first. Of a
        program that ``runs`` already, and may have work to do, the pads of many are made while it
        does: see :meth:`put_in`. ``progress`` is told what is done before."""
        super().__init__(assignment)
        self.functions = tuple(functions)
        self._runs = runs
        self._progress = progress
        self._to_make: collections.deque[int] = collections.deque()
        self._at_stop: collections.deque[int] = collections.deque()
        """Those whose code cannot be read while the program runs."""
        self._is_in = False
        self._guarded: AbstractSet[int] = frozenset()
        self._in_interrupts: tuple[Function, ...] = ()
        """Where these are told apart: the same functions, as interrupts call them."""
        self.left_out: dict[Function, str] = {}
        """Those that are not timed, and why."""
        self._pools: dict[int, list[ReturnLandings]] = {}
        """By the modules that they are for, which share those of an area."""
        self._in_reach: collections.Counter[int] = collections.Counter()
        """Functions by the base of the area that their modules have pools in,"""
        self._sharing: collections.Counter[int] = collections.Counter()
        """and by the base of the pool that they share."""

    def _room(self) -> Room:
        room = self._backend.room_for_set(self._room_of())
        assert room is not None, "whoever chose the functions has asked"
        return room

    def _room_of(self) -> int:
        """For how many functions there is to be room."""
        return len(self.functions)

    # ------------------------------------------------------------- begin and end

    def _check(self) -> list[str]:
        why: UnsupportedError | None = None
        for function in self.functions:
            try:
                return self._debuggee.check(self._program, function, self._spec)
            except UnsupportedError as error:
                why = error  # of the program, or of this function alone
        assert why is not None
        raise why

    def _prepare(self, code: FunctionCode) -> None:
        del code
        own = 2 if self._debuggee.tells_interrupts else 1
        assert own * len(self.functions) <= self.tables.members.most
        self._guarded = {place for _, place, _ in self._debuggee.guard_places(self._program)}
        self._to_make.extend(range(len(self.functions)))
        assert self.foothold is not None
        is_later = self._runs and self.foothold.memory_beside is not None
        while self._to_make:
            if is_later and self.installer.members and len(self._to_make) > _AT_ONCE:
                break  # there is one at least
            made = len(self.functions) - len(self._to_make)
            self._progress(f"makes probe {made + 1:,} of {len(self.functions):,}")
            self._prepare_next()
        self._check_any()
        for number in self._to_make:  # memory is made at stops
            at = self.functions[number].address
            area = self.foothold.area_for(at, at + 1)
            if area is not None:
                self._pools_of(area, at)

    def _prepare_next(self) -> None:
        number = self._to_make[0]
        why = self._prepare_one(number, self.functions[number], self._guarded)
        if why is not None:
            self.left_out[self.functions[number]] = why
        self._to_make.popleft()

    # ------------------------------------------------------------- while it runs

    @property
    def is_in(self) -> bool:
        """Whether the functions are timed. Any thread."""
        return self._is_in

    @property
    def is_prepared(self) -> bool:
        """Whether what can be made while the program runs is made. Any thread."""
        return not self._to_make

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        """Makes pads, to which nothing leads. What keeps it from that for a moment is waited for:
        some programs are stopped often by the debugger itself, as for each new thread."""
        del nodes, levels
        if self.is_prepared or not self._may_look_ahead():
            return False
        memory = self._memory_beside()
        if memory is None or not self._make_beside(memory, seconds):
            time.sleep(_MOMENT)
        return not self.is_prepared

    def _make_beside(self, memory: tuple[Read, Write], seconds: float) -> bool:
        """Makes pads while the program runs. Whether it came to that."""
        before, end = len(self._to_make), time.monotonic() + seconds
        with self._ahead.helping(memory):
            while self._to_make and time.monotonic() < end and not self._ahead.is_over():
                try:
                    self._prepare_next()
                except NotNowError:
                    if self._ahead.is_over():
                        break
                    self._at_stop.append(self._to_make.popleft())
        return len(self._to_make) < before

    def make_at_stop(self) -> bool:
        """At a stop: makes some of the pads that can only be made at one. Whether these are all."""
        end = time.monotonic() + _LONGEST_STOP
        while self._at_stop and time.monotonic() < end:
            self._to_make.appendleft(self._at_stop.popleft())
            self._prepare_next()
        return not self._at_stop

    def put_in(self) -> None:
        """At a stop: all are timed from now on whose pads are made; the others are left out. Raises
        :class:`~darc.model.errors.UnsupportedError`: none can be."""
        for number in (*self._at_stop, *self._to_make):
            self.left_out[self.functions[number]] = NO_TIME
        self._at_stop.clear()
        self._to_make.clear()
        self._put_in()

    def _check_any(self) -> None:
        if not self.installer.members:
            reasons = sorted(set(self.left_out.values()))
            raise UnsupportedError(f"none of these functions can be timed: {'; '.join(reasons)}")

    def _prepare_one(self, number: int, function: Function, guards: AbstractSet[int]) -> str | None:
        """Makes its pad; a string says why there can be none."""
        program, at = self._program, function.address
        if at in guards:
            return WATCHED
        try:
            code = self._debuggee.entry_code(program, function)
            if isinstance(code, str):
                return code
            assert self.foothold is not None
            area = self.foothold.area_for(at, at + 1)
            if area is None:
                return "no room for a pad within 2 GiB of it"
            pool = self._pool_for(area, at)
            return self.installer.prepare_member(number, code, pool)
        except TargetError as error:
            return str(error)

    def _pool_for(self, area: Area, address: int) -> ReturnLandings | None:
        """That of the landings of one more function."""
        pools = self._pools_of(area, address)
        pool = min(pools, key=lambda one: self._sharing[one.base], default=None)
        if pool is not None:
            self._sharing[pool.base] += 1
        return pool

    def _pools_of(self, area: Area, address: int) -> list[ReturnLandings]:
        """The landings of the functions of a module."""
        module = self._program.module_at(address)
        start, end = (address, address + 1) if module is None else (module.start, module.end)
        if start not in self._pools:
            own = sum(start <= function.address < end for function in self.functions)
            self._in_reach[area.base] += own
            assert self.foothold is not None
            wanted = math.ceil(self._in_reach[area.base] / _OF_A_POOL)
            self._pools[start] = self.foothold.more_landings(area, start, end, wanted)
        return self._pools[start]

    def _enable(self) -> None:
        assert self.foothold is not None
        self.tables.begin_set()
        self.foothold.calibrate_members()
        self.tables.members.forget()
        if self._debuggee.tells_interrupts:
            self._in_interrupts = tuple(map(_in_interrupts, self.functions))
            self.tables.set(interrupt_members=len(self.functions))
        if self.is_prepared:
            self._put_in()
        else:
            self.tables.enabled = True  # so that the agent rings

    def _put_in(self) -> None:
        for number, why in self.installer.enable_members().items():
            self.left_out[self.functions[number]] = why
        self._check_any()
        self._is_in = True  # of all: another thread may ask while they go in

    # ---------------------------------------------------------- the user's stops

    @property
    def looks_while_it_runs(self) -> bool:
        """Whether what was counted can be read while the program runs."""
        return self._debuggee.is_readable_while_it_runs

    def _see_losses(self) -> None:
        """In a kernel no record is used for another slot: a task that was preempted in a pad may
        have nothing else that knows where it came from."""
        if self.looks_while_it_runs:
            super()._see_losses()
        else:
            self._losses.count(self.tables)

    def passes(self) -> bool:
        return False

    def make_way(self) -> str | None:
        before = self.installer.members
        why = self.installer.make_way()
        for number in before - self.installer.members:
            self.left_out[self.functions[number]] = "a breakpoint stands in its first bytes"
        if why is None and not self.installer.members:
            why = "breakpoints stand in the first bytes of all its functions"
        return why

    def _leave_faults(self) -> str | None:
        """Functions whose first instructions may fault get another pad behind these, where there
        can be one and the stop is not long for it; the others are timed no more."""
        before = self.installer.members
        why = self.installer.leave_faults()
        end = time.monotonic() + _LONGEST_STOP
        for number in sorted(before - self.installer.members):
            function, is_late = self.functions[number], time.monotonic() >= end
            problem = MAY_FAULT if is_late else self._prepare_one(number, function, self._guarded)
            if problem is not None:
                self.left_out[function] = problem
        if self._is_in:
            for number, problem in self.installer.enable_members().items():
                self.left_out[self.functions[number]] = problem
        return why or self._why_none_is_left(before)

    def _why_none_is_left(self, before: AbstractSet[int]) -> str | None:
        """Functions had been timed, or were to be, with the numbers ``before``: where none is any
        more, why."""
        if not before or self.installer.members or self._to_make or self._at_stop:
            return None
        return MAY_FAULT

    def _forget_open(self) -> None:
        self.tables.members.forget_open()

    # ------------------------------------------------------------------- counting

    def counts(self) -> Mapping[Function, MemberCounts]:
        """What was counted of each function that was called. Any thread."""
        found = self.tables.members.counts()
        functions = self.functions + self._in_interrupts
        return {
            functions[number]: counts for number, counts in found.items() if number < len(functions)
        }

    def unmeasured(self, counts: Mapping[Function, MemberCounts]) -> dict[Function, str]:
        """Functions of which ``counts`` has no call, though they were called, or may have been; and
        why. Any thread."""
        found = {function: _why(one) for function, one in counts.items() if not one.calls}
        if self._losses.has("lost_blocks", "lost_contexts"):
            seen = {function.address for function in counts}
            found |= {f: _UNKNOWN for f in self.functions if f.address not in seen}
        return found

    @property
    def call_cost(self) -> int:
        """Cycles that a call of a function takes more."""
        return self.tables.member_cost

    def give_up(self, functions: AbstractSet[Function]) -> None:
        """These are timed no more; what was counted of them stays."""
        for number in sorted(self.installer.members):
            if self.functions[number] in functions:
                self.installer.give_up_member(number)

    @property
    def timed(self) -> int:
        """How many functions are timed now. Any thread."""
        return len(self.installer.members)

    @property
    def seen(self) -> int:
        return sum(counts.calls for counts in self.tables.members.counts().values())

    def profile(self) -> Profile:
        """The calls of all functions together."""
        bins: dict[int, int] = {}
        calls = total = 0
        for counts in self.tables.members.counts().values():
            calls, total = calls + counts.calls, total + counts.sum
            for number, count in counts.bins.items():
                bins[number] = bins.get(number, 0) + count
        return Profile(1, self.hz, bins, calls, total)

    @property
    def cut_short(self) -> int:
        try:
            return sum(counts.dropped for counts in self.tables.members.counts().values())
        except DarcError:
            return 0

    @property
    def used(self) -> AbstractSet[int]:
        return frozenset(function.address for function in self.functions)


def _why(counts: MemberCounts) -> str:
    """Why no call was measured."""
    if counts.lost:
        return _UNPLACED
    if counts.foreign:
        return _FOREIGN
    return _JUMPED_TO if counts.jumps else _UNMEASURED


def _in_interrupts(function: Function) -> Function:
    return dataclasses.replace(
        function,
        name=f"{function.name} (interrupt)",
        symbol=f"{function.symbol} (interrupt)",
    )
