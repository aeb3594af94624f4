"""The foothold in a process: anonymous mappings, made by system calls that the program is let make.

They end with the process.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from signal import SIGSYS
from typing import Self

from darc.agent import compiled
from darc.agent.layout import (
    MOST_RECORDS,
    SOON_USED,
    Read,
    Room,
    Write,
    contexts_size,
    plan,
    records_for_threads,
    records_size,
    room_for_threads,
)
from darc.agent.memory import AgentMemory
from darc.code.processor import THREAD_POINTER
from darc.code.program import Program
from darc.code.system_calls import SystemCall
from darc.debuggee import limits
from darc.debuggee.detour import DispatchedError, failed
from darc.debuggee.frameholes import FrameHoles
from darc.debuggee.gaps import gaps, without
from darc.debuggee.handlers import Handler
from darc.debuggee.leftbehind import (
    NO_LANDINGS,
    Found,
    LeftBehind,
    areas_of,
    give_back,
    header,
    keep_landings,
    left_behind,
    references_of,
    tables_in,
)
from darc.debuggee.procfs import (
    MemoryFile,
    in_sandbox_of_its_own,
    is_locked,
    may_read_pointer,
    own_id,
    regions,
)
from darc.debuggee.references import (
    SEARCHED,
    extents,
    interrupted,
    references,
    restore_copies,
    with_called,
)
from darc.model.errors import DarcError, PadsImpossibleError, TargetError
from darc.pads import processor as pads
from darc.pads import returns
from darc.pads.areas import Area, Placed
from darc.pads.foothold import Foothold, ThreadKey
from darc.pads.returns import Replaced, ReturnLandings
from darc.target.memory import PAGE
from darc.target.target import Place, Target

_AREA_UNIT = PAGE
_PAD_BYTES = 104  # of one site, on average
_LONGEST_PAD = 1024
_ZEROS = bytes(1 << 20)
_MOST_POOLS = 4
"""Of landings, in reach of one library or program: some 4,000 call sites."""

_SIGNAL_SET = 8  # bytes of a set of signals in the kernel
_PROT_NONE, _PROT_READ, _PROT_WRITE, _PROT_EXEC = 0, 1, 2, 4
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 2, 0x20, 0x4000
_MAP_FIXED_NOREPLACE = 0x100000
_MADV_NOHUGEPAGE, _MADV_WIPEONFORK = 15, 18
_EEXIST = 17
_TOUCHED_PER_CONTEXT = 2 << 12
_NO_MORE = "it is as large as it can be"

_ID_PLACES = (0x2D0, 0x30)
"""Where a thread's id stands in what fs leads to: in glibc (struct pthread, since 2.4) and musl."""

_PR_GET_TSC, _PR_TSC_SIGSEGV = 25, 2
_NO_CLOCK = (
    "the program has made reading the time-stamp counter its end (prctl PR_SET_TSC), "
    "which pads would do"
)
_BOXED = "the program has entered a seccomp sandbox, which may kill it for mapping memory"
# mov eax, imm32; mov r10, rcx; syscall; ret
_SYSTEM_CALL = b"\xb8%s\x49\x89\xca\x0f\x05\xc3"


class ProcessFoothold(Foothold):
    """The mappings in one process."""

    def __init__(self, target: Target, program: Program, pid: int, room: Room) -> None:
        super().__init__(target, program, pid)
        self._room = room
        self._layout = plan(self._blob, room)
        self._area_size = _area_size(room)
        self._mapped: list[tuple[int, int]] = []
        self.memory = MemoryFile(pid)
        self._was_boxed = in_sandbox_of_its_own(pid)
        self._kept: Found | None = None
        """What leads to the agents of earlier footholds, where that was just looked for."""

    def _is_boxed(self) -> bool:
        """Whether the program has entered a seccomp sandbox that was not there when darc began: it
        may be killed for what darc asks of the kernel."""
        return not self._was_boxed and in_sandbox_of_its_own(self.identity)

    def is_there(self) -> bool:
        # An exec ends it.
        try:
            with MemoryFile(self.identity) as memory:
                magic = int.from_bytes(memory.read(*self.tables.field("magic")), "little")
        except TargetError:
            return False
        return magic == self._blob.constants["DARC_MAGIC"]

    @property
    def memory_beside(self) -> tuple[Read, Write] | None:
        return self.memory.read, self.memory.write

    def earlier(self, after: Self | None = None, *, patient: bool = False) -> int:
        if after is not None and after._kept is not None:
            self._kept, after._kept = after._kept, None
            return len(self._kept)
        agents = left_behind(self._target, self.memory, regions(self.identity))
        others = [one for one in agents if not self._is_own(one)]
        most = None if patient else SEARCHED
        found = references_of(others, self._target, self.memory, self._program, self.identity, most)
        self._kept = give_back(others, found, self._target, self.identity)
        return len(self._kept)

    def _is_own(self, agent: LeftBehind) -> bool:
        mine = {start for start, _ in self._mapped}
        return not mine.isdisjoint(area.start for area in agent.areas)

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
        and the others make room enough. One that was killed before it had measured what pads
        cost has left nothing that can be used."""
        agents = left_behind(self._target, self.memory, regions(self.identity))
        agents = [
            one for one in agents if one.tables.is_measured and one.tables.room.holds(self._room)
        ]
        known, self._kept = self._kept, None
        if known is None or any(one.tables.control not in known for one in agents):
            known = references_of(agents, self._target, self.memory, self._program, self.identity)
        for left in agents:
            found = known[left.tables.control]
            if found is not None and self._take(left, found):
                return True
        return False

    def _take(self, left: LeftBehind, found: frozenset[int]) -> bool:
        code = self._blob.code
        wide = [area for area in left.areas if len(area) > returns.SIZE + len(code)]
        starts = enumerate(area.start + returns.SIZE for area in wide)
        first = next((number for number, place in starts if self._has_agent(place)), None)
        if first is None:
            return False  # it was killed before it had written that
        wide.insert(0, wide.pop(first))
        self.tables, self._layout = left.tables, left.tables.layout
        self._areas = [Area(area.start, len(area), returns.SIZE) for area in wide]
        self._use_agent(wide[0].start + returns.SIZE)
        self._areas[0].used += (len(code) + 63) // 64 * 64
        for area in self._areas:
            area.floor = area.used
        kept = [Placed(place, (), None, self._rows_in(place)) for place in self._around(found)]
        self._keep(kept)
        if not self._has_room():
            self._areas = []
            return False
        self._mapped += [(p.start, len(p)) for p in (*left.areas, *self.tables.mappings)]
        alive = {number for pad in kept for number in pad.rows}
        self.tables.adopt(alive.__contains__)
        return True

    def _has_agent(self, place: int) -> bool:
        """Whether this very agent is there; two words of it are a thread's that went home."""
        code = bytearray(self._blob.code)
        try:
            for name in ("darc_home_rsp", "darc_home_back"):
                at = self._blob.symbols[name]
                code[at : at + 8] = self._target.memory.read(place + at, 8)
            return self._target.memory.read(place, len(code)) == bytes(code)
        except TargetError:
            return False

    def _around(self, addresses: Iterable[int]) -> Iterator[range]:
        """The pads that these addresses are in, and what is about them: nobody knows where they
        begin and end."""
        for area in self._areas:
            low, high = area.base + area.floor, area.base + area.size
            at = low
            for address in sorted(one for one in addresses if low <= one < high):
                place = range(max(at, address - _LONGEST_PAD), min(high, address + _LONGEST_PAD))
                yield place
                at = place.stop

    def _rows_in(self, place: range) -> frozenset[int]:
        """The numbers of the sites whose rows the pads there read: they have their addresses."""
        raw, first = self._target.memory.read(place.start, len(place)), self.tables.sites.address(0)
        size, sites = self._blob.sizes["darc_site"], self.tables.layout.room.sites
        words = (struct.unpack_from("<Q", raw, at)[0] for at in range(max(0, len(raw) - 7)))
        offsets = (word - first for word in words if first <= word < first + size * sites)
        return frozenset(offset // size for offset in offsets)

    def add_contexts(self, threads: int) -> str | None:
        now, size = self.tables.contexts.room, self._layout.context_size
        if not self.tables.contexts.may_grow:
            return _NO_MORE
        why, room = _NO_MORE, max(room_for_threads(threads), 2 * now)
        while room > now:
            need = contexts_size(self._blob, size, room)
            touched = max(need // size * _TOUCHED_PER_CONTEXT, min(need, SOON_USED))
            base = self._map_tables(need, touched)
            if not isinstance(base, str):
                self.tables.contexts.add(base, room)
                return None
            why, room = base, room // 2
        return why

    def add_records(self, threads: int) -> str | None:
        tables = self.tables
        room = max(2 * tables.room.records, records_for_threads(threads))
        if room > MOST_RECORDS:
            return _NO_MORE
        before = tables.mappings
        size = sum(records_size(self._blob, room))
        base = self._map_tables(size, size)
        if isinstance(base, str):
            return base
        tables.records.use(base, room)
        after = tables.mappings
        self._unmap([(old.start, len(old)) for old in before if old not in after])
        return None

    def _map_tables(self, size: int, touched: int) -> int | str:
        """MemoryFile for more tables, all zero; a string says why there is none."""
        why = limits.problem(self.identity, limits.Need(size, size, touched))
        if why is not None:
            return why
        try:
            base = self._map_writable(size)
        except PadsImpossibleError as error:
            return str(error)
        self._populate(range(base, base + min(size, SOON_USED)))
        return base

    def _undo(self) -> None:
        """What was mapped is not needed, unless a thread stands there."""
        with contextlib.suppress(DarcError):
            pcs = self._target.threads.program_counters().values()
            if not any(start <= pc < start + size for pc in pcs for start, size in self._mapped):
                self._unmap(self._mapped)
        self.memory.close()

    @property
    def size(self) -> int:
        return sum(size for _, size in self._mapped)

    def give_back(self) -> bool:
        self._kept = None
        try:
            if not self.is_there():
                return False
            self.retire()
            may_call = not self._is_boxed() and not self._target.dispatches
            if not may_call or self.tables.sites.any_patched:
                return False
            others = self._others()
            agents = [self._as_left(), *(others or [])]
            found = references_of(agents, self._target, self.memory, self._program, self.identity)
            if found[self.tables.control] != frozenset():
                stay = give_back(agents, found, self._target, self.identity)
                self._kept = None if others is None else stay
                return False
            for one in self.landings:
                one.forget(self.holds)
            kept = keep_landings(self._target, self._own_landings())
            self._areas.clear()
            self._unmap(self._mapped, kept)
        except DarcError:
            return False
        if others is not None:
            with contextlib.suppress(DarcError):
                self._kept = give_back(others, found, self._target, self.identity)
        self.close()
        return True

    def _others(self) -> list[LeftBehind] | None:
        """The agents of earlier footholds; ``None``: what they are cannot be told."""
        try:
            agents = left_behind(self._target, self.memory, regions(self.identity))
        except DarcError:
            return None
        return [one for one in agents if not self._is_own(one)]

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
        found = references(
            self._target,
            self.memory,
            self.identity,
            besides=own,
            areas=areas,
            is_inside=self.is_inside,
            left_over=FrameHoles(self._program, self.memory, self.landings),
        )
        return with_called(found, self.landings)

    def interrupted(self) -> dict[int, int]:
        self._target.memory.flush()
        return interrupted(self._target, self.memory, self.identity)

    def _unmap(self, places: Sequence[tuple[int, int]], kept: Sequence[range] = ()) -> None:
        for start, size in list(places):
            self._target.journal.unmaps(range(start, start + size))
            for part in without(range(start, start + size), kept):
                self.system_call(SystemCall.MUNMAP, part.start, len(part))
            self._mapped.remove((start, size))

    def restore_copies(self) -> list[Replaced]:
        own = self.tables.mappings
        return restore_copies(
            self.memory,
            self.identity,
            self.landings,
            lambda mapped: [*own, *tables_in(self.memory, mapped)],
        )

    def _take_areas(self) -> None:
        self._program.update(regions(self.identity))
        for base, _, _ in areas_of(self._target, self._program.regions):
            self._complete(base)  # before anything else takes the room
        self._program.update(regions(self.identity))
        for module in self._program.modules:
            if module.name != "[vdso]":
                area = self._area_near(module.start, module.end)
                if area is not None and (area.landings is None or not area.landings.has_room):
                    self._take_landings(area, module.start, module.end)

    def system_call(self, number: SystemCall, *arguments: int) -> int:
        """Makes a system call in the program, while all its threads stand still. Where the debugger
        has no better way, a few bytes of its code are borrowed for it.

        Raises:
            PadsImpossibleError: it has entered a sandbox meanwhile, or its system calls come to
                itself.
        """
        try:
            made = self._target.system_call(number, arguments)  # which makes none in a sandbox
        except DispatchedError as error:
            raise PadsImpossibleError(str(error)) from error
        if made is not None:
            return made - (1 << 64) if made >= 1 << 63 else made
        if self._is_boxed():
            raise PadsImpossibleError(_BOXED)
        place = self._borrowed_place()
        code = _SYSTEM_CALL.replace(b"%s", struct.pack("<I", number))
        original = self._target.memory.read(place, len(code))
        self._target.journal.patches([Place(place, original, code)])
        self._target.memory.write(place, code)
        try:
            result = self._target.call(place, arguments)
        finally:
            self._target.memory.write(place, original)
        return result - (1 << 64) if result >= 1 << 63 else result

    def handler_of(self, signal: int) -> Handler:
        """The program's handler for a signal, by the kernel's ``struct sigaction``."""
        place, size = self.tables.field("handler")
        self.system_call(SystemCall.RT_SIGACTION, signal, 0, place, _SIGNAL_SET)
        return Handler(*struct.unpack_from("<QQ", self.memory.read(place, size)))

    def _borrowed_place(self) -> int:
        main = self._program.modules[0]
        executable = self._target.executable
        for module in self._program.modules:
            if executable is not None and executable.endswith("/" + module.name):
                main = module
                break
        if main.image.entry:
            return main.image.entry + main.bias
        return next(r.start for r in self._program.regions if "x" in r.permissions)

    def _map(self, hint: int, size: int, protection: int, flags: int) -> int | None:
        """Maps memory that is not locked, whatever the program has told the kernel of its own;
        ``None``: the place is taken.

        Raises:
            PadsImpossibleError: it may not.
        """
        flags |= _MAP_PRIVATE | _MAP_ANONYMOUS
        base = self.system_call(SystemCall.MMAP, hint, size, protection, flags, (1 << 64) - 1, 0)
        if base == -_EEXIST:
            return None
        if base < 0:
            raise PadsImpossibleError(limits.refused(-base))
        self._mapped.append((base, size))
        self._target.journal.maps(range(base, base + size))
        if hint and base != hint:  # a kernel that does not know that the place matters
            self._unmap([(base, size)])
            return None
        if is_locked(self.identity, base):
            self.system_call(SystemCall.MUNLOCK, base, size)
        return base

    def _map_writable(self, size: int) -> int:
        """MemoryFile for tables, all zero.

        Raises:
            PadsImpossibleError: there is none.
        """
        # Not to be used at first: memory that is locked as it is mapped would be used as a whole.
        base = self._map(0, size, _PROT_NONE, _MAP_NORESERVE)
        assert base is not None
        error = self.system_call(SystemCall.MPROTECT, base, size, _PROT_READ | _PROT_WRITE)
        if error:
            self._unmap([(base, size)])
            raise PadsImpossibleError(limits.refused(-error))
        self.system_call(SystemCall.MADVISE, base, size, _MADV_NOHUGEPAGE)
        return base

    def _populate(self, fresh: range) -> None:
        """Writes into memory that is all zero and that nobody has used: the page faults happen now,
        while the program stands still, not in the calls that are timed."""
        with contextlib.suppress(TargetError):
            for at in range(fresh.start, fresh.stop, len(_ZEROS)):
                self.memory.write(at, _ZEROS[: fresh.stop - at])

    def _take_tables(self) -> AgentMemory:
        layout = self._layout
        base = self._map_writable(layout.size)
        error = self.system_call(SystemCall.MADVISE, base + layout.live, 4096, _MADV_WIPEONFORK)
        if error:
            raise PadsImpossibleError(
                "the system is older than Linux 4.14: a child of the program would find probes on"
            )
        for part in layout.soon_used:
            self._populate(range(base + part.start, base + part.stop))
        tables = AgentMemory(self._blob, base, layout, self.memory.read, self.memory.write)
        place, _ = tables.field("handler")
        self.memory.write(place, bytes(4))
        self.system_call(SystemCall.PRCTL, _PR_GET_TSC, place)
        found = int.from_bytes(self.memory.read(place, 4), "little")
        # Were the debugger killed before it has marked the memory, that is known by being empty.
        self.memory.write(place, bytes(4))
        if found == _PR_TSC_SIGSEGV:
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
        known = self._reaching(low, high)
        if known is not None:
            return known
        size = self._area_size
        for place in gaps(self._program.regions, low, high, size):
            if self._map(place, size, _PROT_READ | _PROT_EXEC, _MAP_FIXED_NOREPLACE) is not None:
                area = Area(place, size, returns.SIZE)
                self._areas.append(area)
                self._mark(area.base, area.size, NO_LANDINGS)
                return area
        return None

    def _take_landings(self, area: Area, low: int, high: int) -> None:
        """Those in reach of the area and the module in [low, high): the first that have room, of
        whichever analysis. Where none has, there are more of them, up to a limit."""
        pools = []
        known = {one.base: one for one in self.landings}  # areas share what each knows of its cells
        for base, size, control in areas_of(self._target, self._program.regions):
            if max(high, area.base + area.size, base + returns.SIZE) - min(low, base) < pads.NEAR:
                if not control:  # else its owner is still there, and must be found
                    self._mark(base, size)
                pools.append(known.get(base) or ReturnLandings(self._target, base))
        if len(pools) < _MOST_POOLS and not any(one.has_room for one in pools):
            pools += self._more_landings(area, {one.base for one in pools}, low, high)
        area.pools = pools
        roomy = (one for one in pools if one.has_room)
        area.landings = next(roomy, None) or max(pools, key=lambda one: one.free)

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
        if module is None or area.landings is None or len(area.pools) >= _MOST_POOLS:
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
        if len(self.landings) >= self._blob.constants["DARC_MAX_AREAS"]:
            return []
        found = self._more_landings(area, {one.base for one in area.pools}, low, high)
        area.pools = [*area.pools, *found]
        for one in found:
            one.begin(self.tables.control, self.stubs.landed)
        self._program.update(regions(self.identity))
        return found

    def _more_landings(
        self, area: Area, known: AbstractSet[int], low: int, high: int
    ) -> list[ReturnLandings]:
        """At the area's front, where that is free, else in memory of their own."""
        base, size = area.base, area.size
        if base in known:
            size, access = returns.SIZE, _PROT_READ | _PROT_EXEC
            places = gaps(self._program.regions, low, high, size)
            taken = (self._map(place, size, access, _MAP_FIXED_NOREPLACE) for place in places)
            found = next((place for place in taken if place is not None), None)
            if found is None:
                return []
            base = found
        words = returns.WRITABLE
        error = self.system_call(
            SystemCall.MPROTECT, base + words.start, len(words), _PROT_READ | _PROT_WRITE
        )
        if error:
            raise PadsImpossibleError(f"the program may not write to its own memory ({-error})")
        self._populate(range(base + words.start, base + words.stop))
        self._mark(base, size)
        return [ReturnLandings(self._target, base)]

    def _complete(self, base: int) -> None:
        """Maps those pages of the landings at ``base`` that an earlier analysis has given back.

        Raises:
            PadsImpossibleError: something else is there by now.
        """
        mapped = [range(r.start, r.end) for r in self._program.regions]
        writable = range(base + returns.WRITABLE.start, base + returns.WRITABLE.stop)
        for whole, access in (
            (range(base, writable.start), _PROT_READ | _PROT_EXEC),
            (writable, _PROT_READ | _PROT_WRITE),
        ):
            for part in without(whole, mapped):
                if self._map(part.start, len(part), access, _MAP_FIXED_NOREPLACE) is None:
                    raise PadsImpossibleError("found no room for pads near the program's code")
                if access & _PROT_WRITE:
                    self._populate(part)

    def _mark(self, base: int, size: int, kind: bytes = returns.KIND) -> None:
        self._target.memory.write(base, header(self.tables.control, size, kind))


def _area_size(room: Room) -> int:
    wanted = returns.SIZE + room.sites * _PAD_BYTES + len(compiled.load().code)
    return min(-(-wanted // _AREA_UNIT) * _AREA_UNIT, pads.BLOCK)
