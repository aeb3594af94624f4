"""The pads of a set's functions: which there are, and when each is made."""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from darc.code.live import NotNowError
from darc.code.program import Program
from darc.collectors.ahead import Ahead
from darc.collectors.manyduties import MemberProbes
from darc.collectors.pad_collector import WATCHED
from darc.debuggee.duties import HasCode
from darc.model.errors import TargetError
from darc.model.ftree import Fnode, Function
from darc.model.functionset import making_text
from darc.model.leftout import CALLED_OFF, NO_TIME, LeftOut
from darc.model.refusal import Refusal
from darc.pads.areas import Area
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.pads.processor import NO_ROOM
from darc.pads.returns import ReturnLandings
from darc.target.memory import Read, Write

_OF_A_POOL = 100
"""Functions that share a pool of landings: about 900 places that they are called from."""

_AT_ONCE = 50
"""So many pads are made at a stop, in less than a tenth of a second."""

LONGEST_STOP = 0.1
"""Seconds in which pads are made at a stop, while the program waits."""

_MOMENT = 0.002
"""Seconds after which to look again whether pads can be made."""


class Pools:
    """The landings that calls of functions come back to, which functions of an area share."""

    def __init__(self, program: Program, foothold: Foothold) -> None:
        self._program = program
        self._foothold = foothold
        self._pools: dict[int, list[ReturnLandings]] = {}
        """By the modules that they are for, which share those of an area."""
        self._in_reach: collections.Counter[int] = collections.Counter()
        """Functions by the base of the area that their modules have pools in,"""
        self._sharing: collections.Counter[int] = collections.Counter()
        """and by the base of the pool that they share."""

    def one_for(
        self, area: Area, address: int, functions: Sequence[Function]
    ) -> ReturnLandings | None:
        """That of one more function, which is at ``address``, of these."""
        pools = self.of(area, address, functions)
        pool = min(pools, key=lambda one: self._sharing[one.base], default=None)
        if pool is not None:
            self._sharing[pool.base] += 1
        return pool

    def of(
        self, area: Area, address: int, functions: Sequence[Function]
    ) -> Sequence[ReturnLandings]:
        """Those of ``functions`` in the module of ``address``."""
        module = self._program.module_at(address)
        start, end = (address, address + 1) if module is None else (module.start, module.end)
        if start not in self._pools:
            own = sum(start <= function.address < end for function in functions)
            self._in_reach[area.base] += own
            wanted = math.ceil(self._in_reach[area.base] / _OF_A_POOL)
            self._pools[start] = self._foothold.more_landings(area, start, end, wanted)
        return self._pools[start]


class MemberPads(MemberProbes):
    """Those of one analysis; ``tell`` is told what is done before it begins, and ``is_called_off``
    says whether the user does not want to wait for that."""

    def __init__(
        self,
        program: Program,
        debuggee: HasCode,
        *,
        foothold: Foothold,
        installer: PadInstaller,
        ahead: Ahead,
        functions: Sequence[Function],
        tell: Callable[[str], None],
        is_called_off: Callable[[], bool],
    ) -> None:
        self._is_called_off = is_called_off
        self._program = program
        self._debuggee = debuggee
        self._foothold = foothold
        self._installer = installer
        self._ahead = ahead
        self._tell = tell
        self._pools = Pools(program, foothold)
        self._guarded: AbstractSet[int] = frozenset()
        self._to_make: collections.deque[int] = collections.deque()
        self._at_stop: collections.deque[int] = collections.deque()
        """Those whose code cannot be read while the program runs."""
        self.functions = tuple(functions)
        """By their numbers."""
        self.left_out: dict[Function, LeftOut] = {}
        """Those that are not timed, and why."""

    # ------------------------------------------------------------------ all at once

    def begin(self, *, runs: bool) -> None:
        """Makes all, or of many some, where the program ``runs`` and has memory that the others
        can be made in meanwhile."""
        self._see_guards()
        self._to_make.extend(range(len(self.functions)))
        is_later = runs and self._foothold.memory_beside is not None
        while self._to_make:
            if is_later and self._installer.members and len(self._to_make) > _AT_ONCE:
                break  # there is one at least
            if self._is_called_off():
                self.leave_rest_out(CALLED_OFF)
                return
            self._tell(making_text(*self.making))
            self._make_next()

    def make_ready(self) -> None:
        """Makes memory for those that are made later: it is made at stops."""
        for number in self._to_make:
            at = self.functions[number].address
            area = self._foothold.area_for(at, at + 1)
            if area is not None:
                self._pools.of(area, at, self.functions)

    def add(
        self, functions: Sequence[Function], tell: Callable[[], None], until: float = math.inf
    ) -> None:
        """More, at a stop: these are made now, and each is told. Those that are not by ``until``,
        on the monotonic clock, are left out, but for the first."""
        self._see_guards()
        first = len(self.functions)
        self.functions = (*self.functions, *functions)
        for number in range(first, len(self.functions)):
            tell()
            if number > first and time.monotonic() >= until:
                self.left_out[self.functions[number]] = NO_TIME
                continue
            self.left_out.pop(self.functions[number], None)  # there was no time for it before
            self.leave_out(number, self.make(number))

    def _see_guards(self) -> None:
        self._guarded = {place for _, place, _ in self._debuggee.landmarks(self._program)}

    # ------------------------------------------------------------------- one by one

    def make(self, number: int) -> str | None:
        """Makes the pad of one; a string says why there can be none."""
        program, function = self._program, self.functions[number]
        at = function.address
        if at in self._guarded:
            return WATCHED
        try:
            code = self._debuggee.entry_code(program, function)
            if isinstance(code, Refusal):
                return code.why
            area = self._foothold.area_for(at, at + 1)
            if area is None:
                return NO_ROOM
            pool = self._pools.one_for(area, at, self.functions)
            return self._installer.prepare_member(number, code, pool)
        except TargetError as error:
            return str(error)

    def _make_next(self) -> None:
        number = self._to_make[0]
        self.leave_out(number, self.make(number))
        self._to_make.popleft()

    def leave_out(self, number: int, why: str | None) -> None:
        """One is not timed, if there is a reason for that."""
        if why is not None:
            self.left_out[self.functions[number]] = LeftOut(why)

    # ------------------------------------------------------------- while it runs

    @property
    def is_prepared(self) -> bool:
        """Whether what can be made while the program runs is made. Any thread."""
        return not self._to_make

    @property
    def is_all_made(self) -> bool:
        """Whether none is to be made any more."""
        return not self._to_make and not self._at_stop

    @property
    def making(self) -> tuple[int, int]:
        """The number of the pad that is made now, and of how many. Any thread."""
        number = len(self.functions) - len(self._to_make) - len(self._at_stop) + 1
        return min(number, len(self.functions)), len(self.functions)

    def goes_on(self) -> None:
        self._ahead.goes_on()

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        """Makes pads, to which nothing leads. What keeps it from that for a moment is waited for:
        some programs are stopped often by the debugger itself, as for each new thread."""
        del nodes, levels
        if self.is_prepared or not self._ahead.may_look:
            return False
        memory = self._ahead.memory()
        if memory is None or not self._make_beside(memory, seconds):
            time.sleep(_MOMENT)
        return not self.is_prepared

    def _make_beside(self, memory: tuple[Read, Write], seconds: float) -> bool:
        """Makes pads while the program runs. Whether it came to that."""
        before, end = len(self._to_make), time.monotonic() + seconds
        with self._ahead.helping(memory):
            while self._to_make and time.monotonic() < end and not self._ahead.is_over():
                try:
                    self._make_next()
                except NotNowError:
                    if self._ahead.is_over():
                        break
                    self._at_stop.append(self._to_make.popleft())
        return len(self._to_make) < before

    def make_at_stop(self) -> bool:
        """At a stop: makes some of the pads that can only be made at one. Whether these are all."""
        end = time.monotonic() + LONGEST_STOP
        while self._at_stop and time.monotonic() < end:
            self._to_make.appendleft(self._at_stop.popleft())
            self._make_next()
        return not self._at_stop

    def leave_rest_out(self, why: LeftOut = NO_TIME) -> None:
        """No more are made."""
        for number in (*self._at_stop, *self._to_make):
            self.left_out[self.functions[number]] = why
        self._at_stop.clear()
        self._to_make.clear()
