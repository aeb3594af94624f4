"""The foothold in a process: anonymous mappings, made by system calls that the program is let make.

They end with the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from signal import SIGSYS
from typing import Self

from darc.agent import compiled
from darc.agent.fieldnames import ControlField
from darc.agent.layout import (
    MOST_RECORDS,
    SOON_USED,
    Room,
    contexts_size,
    plan,
    records_for_threads,
    records_size,
    room_for_threads,
)
from darc.agent.memory import AgentMemory
from darc.code.processor import THREAD_POINTER
from darc.code.program import Program
from darc.debuggee import limits
from darc.debuggee.detour import DispatchedError, failed
from darc.debuggee.earlieragents import EarlierAgents, UsableAgent
from darc.debuggee.frameholes import FrameHoles
from darc.debuggee.gaps import gaps
from darc.debuggee.insidecalls import InsideCalls
from darc.debuggee.landingpools import MOST_POOLS, LandingPools
from darc.debuggee.leftbehind import (
    NO_LANDINGS,
    LeftBehind,
    areas_of,
    header,
    keep_landings,
    own_places,
)
from darc.debuggee.mappings import Mappings
from darc.debuggee.procfs import (
    MemoryFile,
    may_read_pointer,
    own_id,
    regions,
)
from darc.debuggee.references import (
    SEARCHED,
    Wanted,
    extents,
    interrupted,
    references,
    restore_copies,
    with_called,
)
from darc.model.errors import DarcError, PadsImpossibleError, TargetError
from darc.model.refusal import Refusal
from darc.pads import processor as pads
from darc.pads import returns
from darc.pads.areas import Area
from darc.pads.foothold import Foothold, ThreadKey
from darc.pads.restoring import still_hooked
from darc.pads.returns import Replaced, ReturnLandings
from darc.target.memory import PAGE, Read, Write
from darc.target.target import Target

_AREA_UNIT = PAGE
_PAD_BYTES = 104  # of one site, on average
_TOUCHED_PER_CONTEXT = 2 << 12
_NO_MORE = "it is as large as it can be"

_ID_PLACES = (0x2D0, 0x30)
"""Where a thread's id stands in what fs leads to: in glibc (struct pthread, since 2.4) and musl."""

_NO_CLOCK = (
    "the program has made reading the time-stamp counter its end (prctl PR_SET_TSC), "
    "which pads would do"
)


class ProcessFoothold(Foothold):
    """The mappings in one process."""

    def __init__(self, target: Target, program: Program, pid: int, room: Room) -> None:
        super().__init__(target, program, pid)
        self._room = room
        self._layout = plan(self._blob, room)
        self._area_size = _area_size(room)
        self.memory = MemoryFile(pid)
        self._mappings = Mappings(target, lambda: self._program, pid, self.memory)
        self._pools = LandingPools(target, self._mappings, lambda: self._program, self._mark)
        self._earlier = EarlierAgents(
            target, lambda: self._program, pid, memory=self.memory, mappings=self._mappings
        )

    def is_there(self) -> bool:
        # An exec ends it.
        try:
            with MemoryFile(self.identity) as memory:
                magic = int.from_bytes(
                    memory.read(*self.tables.field(ControlField.MAGIC)), "little"
                )
        except TargetError:
            return False
        return magic == self._blob.constants.MAGIC

    @property
    def memory_beside(self) -> tuple[Read, Write] | None:
        return self.memory.read, self.memory.write

    def earlier(self, after: Self | None = None, *, patient: bool = False) -> int:
        of_before = None if after is None else after._earlier
        return self._earlier.look(of_before, None if patient else SEARCHED)

    def close(self) -> None:
        self.memory.close()

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._target.call(address, arguments)

    def install(self, resolution: int) -> None:
        if self._target.dispatches:
            raise PadsImpossibleError(str(failed(SIGSYS)))
        if self._adopt():
            self.reopen(self._program, resolution)
            return
        layout = self._layout
        areas = 2 * self._area_size
        contexts = max(layout.room.contexts * _TOUCHED_PER_CONTEXT, len(layout.soon_used[-1]))
        touched = layout.contexts + contexts + areas
        need = limits.Need(layout.size + areas, layout.size, touched)
        if (why := limits.problem(self.identity, need)) is not None:
            raise PadsImpossibleError(why)
        try:
            super().install(resolution)
        except DispatchedError as error:
            self._undo()
            raise PadsImpossibleError(str(error)) from error
        except BaseException:
            self._undo()
            raise

    def _adopt(self) -> bool:
        """Goes on with what an earlier debugger has left, where something leads to some of its pads
        and the others make room enough."""
        return any(map(self._take, self._earlier.usable(self._room)))

    def _take(self, usable: UsableAgent) -> bool:
        self.tables, self._layout = usable.tables, usable.tables.layout
        self._areas.use(Area(area.start, len(area), returns.SIZE) for area in usable.wide)
        self._use_agent(usable.wide[0].start + returns.SIZE)
        self._areas.first.fill(len(self._blob.code))
        for area in self._areas:
            area.keep_what_is_in()
        kept = usable.pads_in(self._areas, self._target.memory.read)
        self.placing.keep(kept)
        if not self.placing.has_room:
            self._areas.use([])
            return False
        self._mappings.adopt(usable.places)
        alive = {number for pad in kept for number in pad.rows}
        self.tables.adopt(alive.__contains__)
        return True

    def add_contexts(self, threads: int) -> str | None:
        now, size = self.tables.contexts.room, self._layout.context_size
        if not self.tables.contexts.may_grow:
            return _NO_MORE
        why, room = _NO_MORE, max(room_for_threads(threads), 2 * now)
        while room > now:
            need = contexts_size(self._blob, size, room)
            soon = need if need <= SOON_USED else 0  # spread by a hash: a front would serve few
            base = self._map_tables(need, max(room * _TOUCHED_PER_CONTEXT, soon), soon)
            if not isinstance(base, Refusal):
                self.tables.contexts.add(base, room)
                return None
            why, room = base.why, room // 2
        return why

    def add_records(self, threads: int) -> str | None:
        tables = self.tables
        room = max(2 * tables.room.records, records_for_threads(threads))
        if room > MOST_RECORDS:
            return _NO_MORE
        before = tables.mappings
        size = sum(records_size(self._blob, room))
        base = self._map_tables(size, size, soon=min(size, SOON_USED))
        if isinstance(base, Refusal):
            return base.why
        tables.records.use(base, room)
        after = tables.mappings
        self._mappings.unmap([old for old in before if old not in after])
        return None

    def _map_tables(self, size: int, touched: int, soon: int) -> int | Refusal:
        """Memory for more tables, all zero, so much of it to be ``touched``, its front ``soon``."""
        why = limits.problem(self.identity, limits.Need(size, size, touched))
        if why is not None:
            return Refusal(why)
        try:
            base = self._mappings.map_tables(size)
        except PadsImpossibleError as error:
            return Refusal(str(error))
        self._mappings.populate(range(base, base + soon))
        return base

    def _undo(self) -> None:
        """What was mapped is not needed, unless a thread stands there."""
        with contextlib.suppress(DarcError):
            pcs = self._target.threads.program_counters().values()
            if not any(map(self._mappings.holds, pcs)):
                self._mappings.unmap_all()
        self.memory.close()

    @property
    def size(self) -> int:
        return self._mappings.size

    def give_back(self) -> bool:
        with self._target.companions:
            return self._is_given_back()

    def _is_given_back(self) -> bool:
        self._earlier.forget()
        try:
            if not self.is_there():
                return False
            self.retire()
            may_call = not self._mappings.is_boxed and not self._target.dispatches
            if not may_call or still_hooked(self._target, self.tables.sites):
                return False
            others = self._earlier.if_known()
            agents = [self._as_left(), *(others or [])]
            found = self._earlier.references_of(agents)
            if found[self.tables.control] != frozenset():
                self._earlier.give_back(agents, found)
                if others is None:
                    self._earlier.forget()
                return False
            for one in self.landings:
                one.forget(self.holds)
            kept = keep_landings(self._target, self._own_landings())
            self._areas.use([])
            self._mappings.unmap_all(kept)
        except DarcError:
            return False
        if others is not None:
            with contextlib.suppress(DarcError):
                self._earlier.give_back(others, found)
        self.close()
        return True

    def _as_left(self) -> LeftBehind:
        """As it would be found; its tables may be damaged."""
        areas = [range(one.base, one.base + one.size) for one in self._areas]
        return LeftBehind(self.tables, areas, self.landings)

    def _own_landings(self) -> list[ReturnLandings]:
        """Those of no earlier foothold that is there still."""
        found = areas_of(self._target, regions(self.identity))
        own = {base for base, _, control in found if control == self.tables.control}
        return [one for one in self.landings if one.base in own]

    def references(self) -> frozenset[int] | None:
        landings = extents(self.landings)
        own = [*self.tables.mappings, *landings]
        areas = [*(range(one.base, one.base + one.size) for one in self._areas), *landings]
        with self._target.companions:
            found = references(
                self._target,
                self.memory,
                self.identity,
                besides=own,
                wanted=Wanted(areas, self.tables.sites.leads()),
                is_inside=self.is_inside,
                left_over=FrameHoles(self._program, self.memory, self.landings),
            )
        if found is not None and still_hooked(self._target, self.tables.sites):
            found |= self.tables.sites.awaited()
        return with_called(found, self.landings)

    def interrupted(self) -> dict[int, int]:
        self._target.memory.flush()
        return interrupted(self._target, self.memory, self.identity)

    def restore_copies(self) -> list[Replaced]:
        return restore_copies(
            self.memory,
            self.identity,
            landings=self.landings,
            find=partial(own_places, self.memory),
            besides=self.tables.mappings,
        )

    def _take_areas(self) -> None:
        self._program.update(regions(self.identity))
        self._pools.complete()  # before anything else takes the room
        self._program.update(regions(self.identity))
        for module in self._program.modules:
            if module.name != "[vdso]":
                area = self._area_near(module.start, module.end)
                if area is not None and (area.landings is None or not area.landings.has_room):
                    self._pools.take(area, module.start, module.end, self.landings)

    @property
    def inside_calls(self) -> InsideCalls:
        """What the kernel tells the program of itself."""
        return InsideCalls(self.tables, self.memory, self._mappings)

    def _take_tables(self) -> AgentMemory:
        layout = self._layout
        base = self._mappings.map_tables(layout.size)
        if self._mappings.wipe_in_children(range(base + layout.live, base + layout.live + PAGE)):
            raise PadsImpossibleError(
                "the system is older than Linux 4.14: a child of the program would find probes on"
            )
        for part in layout.soon_used:
            self._mappings.populate(range(base + part.start, base + part.stop))
        tables = AgentMemory(
            blob=self._blob,
            base=base,
            layout=layout,
            read=self.memory.read,
            write=self.memory.write,
        )
        if not InsideCalls(tables, self.memory, self._mappings).may_read_clock():
            raise PadsImpossibleError(_NO_CLOCK)
        return tables

    def _thread_key(self) -> tuple[ThreadKey, int]:
        """A program without thread-local storage has no thread pointer."""
        possible = set(_ID_PLACES)
        for thread in self._target.threads.ids():
            base = self._target.threads.read_register(thread, THREAD_POINTER)
            try:
                raw = self.memory.read(base, 8)
                if base == 0 or int.from_bytes(raw, "little") != base:
                    return ThreadKey.NONE, 0
                own = own_id(self.identity, thread)
                possible = {at for at in possible if self._is_there(base + at, own)}
            except TargetError:
                return ThreadKey.NONE, 0
        return ThreadKey.STORAGE, min(possible, default=0)

    @property
    def _may_read_pointer(self) -> bool:
        return may_read_pointer(self.identity)

    def _is_there(self, address: int, number: int) -> bool:
        return int.from_bytes(self.memory.read(address, 4), "little") == number

    def _area_near(self, low: int, high: int) -> Area | None:
        """An area from which all of [low, high) is in reach; mapped when there is none yet."""
        known = self._areas.reaching(low, high)
        if known is not None:
            return known
        size = self._area_size
        for place in gaps(self._program.regions, low, high, size):
            if self._mappings.map_code(place, size):
                area = Area(place, size, returns.SIZE)
                self._areas.add(area)
                self._mark(area.base, area.size, NO_LANDINGS)
                return area
        return None

    def more_landings(self, area: Area, low: int, high: int, pools: int) -> list[ReturnLandings]:
        self._program.update(regions(self.identity))
        roomy = [one for one in area.pools if one.has_room]
        while len(roomy) < pools:
            found = self._add_landings(area, low, high)
            if not found:
                break
            roomy += found
        self.tables.set_landings([one.base for one in self.landings])
        return roomy or ([] if area.landings is None else [area.landings])

    def more_for_sites(self, area: Area, address: int) -> bool:
        module = self._program.module_at(address)
        if module is None or area.landings is None or len(area.pools) >= MOST_POOLS:
            return False
        self._program.update(regions(self.identity))
        try:
            found = self._add_landings(area, module.start, module.end)
        except PadsImpossibleError:  # it is in a sandbox by now, or at its limit
            return False
        self.tables.set_landings([one.base for one in self.landings])
        return bool(found)

    def _add_landings(self, area: Area, low: int, high: int) -> list[ReturnLandings]:
        """To those of ``area``, while an analysis goes on."""
        if len(self.landings) >= self._blob.constants.MAX_AREAS:
            return []
        found = self._pools.more(area, {one.base for one in area.pools}, low, high)
        area.add(found)
        for one in found:
            one.begin(self.tables.control, self.placing.stubs.landed)
        self._program.update(regions(self.identity))
        return found

    def _mark(self, base: int, size: int, kind: bytes = returns.KIND) -> None:
        self._target.memory.write(base, header(self.tables.control, size, kind))


def _area_size(room: Room) -> int:
    wanted = returns.SIZE + room.sites * _PAD_BYTES + len(compiled.load().code)
    return min(-(-wanted // _AREA_UNIT) * _AREA_UNIT, pads.SECTOR)
