"""The foothold in a kernel: memory that its own functions give, as to a module.

It is never given back: a task may sleep for days in a call that a pad has made. Another analysis
uses it again, also that of another debugger, which finds it by the kernel's page tables. How far it
is used stands at its begin.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from darc.agent import compiled
from darc.agent.layout import Room, layout_in, plan
from darc.agent.memory import AgentMemory
from darc.code.architecture import Prologue, Site
from darc.code.processor import STACK_POINTER
from darc.code.program import Program
from darc.model.errors import TargetError, UnsupportedError
from darc.pads import processor as pads
from darc.pads.areas import Area, PlacedPads
from darc.pads.foothold import MARK, MARK_SIZE, Foothold, ThreadKey
from darc.pads.waypoints import SIZE as WAYPOINTS_SIZE
from darc.pads.waypoints import Waypoints
from darc.target.memory import PAGE
from darc.target.target import Target
from kgdb.kernel import BOOTED_ANEW
from kgdb.program import KernelProgram

_STACK_SHIFT = 14
_KERNEL_CODE = 0x10
"""The selector of the kernel's code segment (``__KERNEL_CS``)."""
_AREA_SIZE = 1 << 20
ROOMS = tuple(
    Room(sites=4096, nodes=4096, routes=8192, records=16384, contexts=contexts, moments=moments)
    for contexts, moments in ((64, 8192), (16, 512))
)
"""What the tables hold: the second where there is no memory for the first."""
_FEW_FUNCTIONS = 500


def _rooms_of_set(nodes: int, records: int, blocks: int) -> tuple[Room, ...]:
    return tuple(
        Room(
            sites=8192,
            nodes=nodes,
            routes=2 * nodes,
            records=records // part,
            contexts=512 // part,
            kept=1,
            sheets=1,
            blocks=blocks // part,
        )
        for part in (1, 4)
    )


_ROOMS_OF_FEW = _rooms_of_set(nodes=128, records=32768, blocks=16384)
_ROOMS_OF_MANY = _rooms_of_set(nodes=512, records=65536, blocks=65536)


def rooms_for_set(functions: int) -> tuple[Room, ...]:
    """What the tables hold for a set of so many functions, of which interrupts' calls are told
    apart. There are two sizes, so that one set's tables are another one's."""
    return _ROOMS_OF_FEW if functions <= _FEW_FUNCTIONS else _ROOMS_OF_MANY


def rooms_down_to(least: Room) -> tuple[Room, ...]:
    """The rooms for a set of which that is the smallest."""
    return next(rooms for rooms in (_ROOMS_OF_FEW, _ROOMS_OF_MANY) if rooms[-1] == least)


_EXECMEM_MODULE_TEXT = 0
_HEADER = struct.Struct("<8s6Q")
"""The mark, the address of the control structure, bytes and sites in use, bytes in all; where
waypoints are, and how many bytes."""

_CHUNK = 4096
_SITE_CHUNK = 64
"""What is in use is told in steps of so many bytes, and so many sites."""

Call = Callable[[int, Sequence[int]], int]
"""Calls a function of the kernel."""


@dataclass(frozen=True)
class LeftFoothold:
    """A foothold that another debugger has left."""

    base: int
    used: int
    sites: int
    size: int
    waypoints: range
    tables: AgentMemory

    @property
    def version(self) -> int:
        """Of the agent, and of its tables."""
        return self.tables.version

    def is_pad(self, address: int) -> bool:
        """Whether a patch leads there."""
        return self.base <= address < self.base + self.size or address in self.waypoints


class KernelFoothold(Foothold):
    """The agent's memory in one kernel; ``call`` is :meth:`kgdb.calls.KernelCalls.call`."""

    def __init__(
        self,
        target: Target,
        program: KernelProgram,
        *,
        identity: int,
        call: Call,
        enter: Callable[[], None],
        undivided: Callable[[], AbstractContextManager[None]],
        is_another: Callable[[], bool],
        left: Sequence[LeftFoothold] = (),
        rooms: Sequence[Room] = ROOMS,
        writes_text: bool = True,
    ) -> None:
        """``enter`` brings a task to where functions may be called; what they give is taken
        ``undivided`` (:meth:`kgdb.remote.Remote.undivided`); ``is_another`` says, where the
        tables cannot be read, whether that is since another kernel runs; ``left`` may be used
        again; the tables are to have one of ``rooms``, the last of which is the smallest;
        ``writes_text``: the debugger writes also what is read-only."""
        super().__init__(target, program, identity)
        self._kernel = program
        self._call = call
        self._enter = enter
        self._undivided = undivided
        self._is_another = is_another
        self._left = left
        self._rooms = rooms
        self._entries: dict[int, tuple[int, int]] = {}
        """Where functions of sets are entered: the number of the site whose pad is there, and where
        that is returned to."""
        self._writes_text = writes_text
        self._is_adopted = False
        self._told = (0, 0)
        self._waypoints: Waypoints | None = None

    def install(self, resolution: int) -> None:
        self._is_adopted = any(map(self._adopt, self._left))
        if self._is_adopted:
            self.reopen(self._program, resolution)
            return
        self._enter()
        with self._undivided():  # what breaks that off would leave memory that nobody finds
            super().install(resolution)
            if self.tables.room.blocks:  # while a task stands where functions may be called
                self.tables.begin_set()
                self.calibrate_members()
                self.tables.reset(resolution)

    def reopen(self, program: Program, resolution: int) -> None:
        super().reopen(program, resolution)
        self._entries = self._known_entries()

    def calibrate_members(self) -> None:
        if self.tables.member_cost:
            return
        if self._is_adopted:  # nothing was called, and no task stands where something may be
            self._enter()
        with self._undivided():
            super().calibrate_members()

    def _known_entries(self) -> dict[int, tuple[int, int]]:
        """Of earlier sets, also those of other debuggers."""
        blob, size = self._blob, self._blob.sizes["darc_site"]
        kind = blob.constants["DARC_MEMBER"]
        if not self.tables.room.blocks or not self._pads.numbers:
            return {}
        raw = self.tables.raw(self.tables.sites.address(0), size * self._pads.numbers)
        rows = (raw[at : at + size] for at in range(0, len(raw), size))
        found = {}
        for index, row in enumerate(rows):
            values = blob.unpack("darc_site", row)
            if values["kind"] == kind and values["address"]:
                found[values["address"]] = index, values["pad_back"]
        return found

    def entered_before(self, prologue: Prologue) -> tuple[int, int, pads.Pad] | None:
        known = self._entries.get(prologue.entry)
        if known is None:
            return None
        index, back = known
        data, read = self.tables.sites.address(index), self._target.memory.read
        somewhere = pads.entry_pad(prologue, data, self.stubs, back)
        if somewhere.back is None:
            return None
        origin = back - somewhere.back
        pad = pads.entry_pad(prologue, data, self.stubs, origin)
        if not self.holds(origin) or read(origin, len(pad.code)) != pad.code:
            return None
        return index, origin, pad

    def _adopt(self, left: LeftFoothold) -> bool:
        """Goes on with what another debugger has left, where that was of this version and there is
        room."""
        code = self._blob.code
        if not MARK_SIZE <= left.used <= left.size <= _AREA_SIZE:
            return False  # it was killed before it had written that
        if self._target.memory.read(left.base + MARK_SIZE, len(code)) != code:
            return False
        self.tables = left.tables
        self._pads = PlacedPads(left.sites)
        self._areas = [Area(left.base, left.size, left.used, floor=MARK_SIZE)]
        self._told = (left.used, left.sites)
        self._use_agent(left.base + MARK_SIZE)
        self._use_waypoints(left.waypoints)
        if self.is_usable(self._rooms[-1]):
            return True
        self._areas, self._pads, self._told = [], PlacedPads(), (0, 0)
        self._waypoints = None
        return False

    def place(
        self,
        area: Area,
        index: int | None,
        back: int | None,
        make: Callable[[int], pads.Pad],
    ) -> tuple[int, pads.Pad]:
        placed = super().place(area, index, back, make)
        if area.used > self._told[0] or self._pads.numbers > self._told[1]:
            used = (area.used // _CHUNK + 1) * _CHUNK
            sites = (self._pads.numbers // _SITE_CHUNK + 1) * _SITE_CHUNK
            self._told = (min(used, area.size), sites)
            self._write_header(area)
        return placed

    def f0_code(self, index: int) -> pads.F0Code:
        blob, tables = self._blob, self.tables
        enter, leave, end = (blob.symbols[f"darc_{part}_f0"] for part in ("enter", "leave", "end"))
        addresses = {
            blob.constants["DARC_THE_SITE"]: tables.sites.address(index),
            blob.constants["DARC_THE_CONTROL"]: tables.control,
            blob.constants["DARC_THE_RECORDS"]: tables.base + tables.layout.records,
        }
        return pads.F0Code(blob.code[enter:leave], blob.code[leave:end], addresses)

    def _write_header(self, area: Area) -> None:
        waypoints = self._waypoints
        more = (0, 0) if waypoints is None else (waypoints.base, waypoints.size)
        raw = _HEADER.pack(MARK, self.tables.control, *self._told, area.size, *more)
        self._target.memory.write(area.base, raw)

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._call(address, arguments)

    def _kernels(self, *names: str) -> int:
        """The first of the functions that the kernel has."""
        for name in names:
            found = self._kernel.value(name)
            if found is not None:
                return found
        raise UnsupportedError(f"the kernel has no function {names[0]}: darc finds no memory there")

    def _take_tables(self) -> AgentMemory:
        allocate = self._kernels("vzalloc_noprof", "vzalloc")
        for room in self._rooms:
            layout = plan(self._blob, room)
            base = self.call(allocate, [layout.size])
            if base:
                return AgentMemory(
                    self._blob, base, layout, self._target.memory.read, self._target.memory.write
                )
        raise TargetError(f"the kernel has no {layout.size >> 20} MiB of memory to give")

    def _take_areas(self) -> None:
        if self._areas:
            return
        base = self._module_memory(_AREA_SIZE)
        start, end = _whole_block(base, base + _AREA_SIZE)
        area = Area(start, end - start, MARK_SIZE)
        self._areas.append(area)
        if self._writes_text and self._kernel.has_nops_behind_calls:
            base = self._module_memory(WAYPOINTS_SIZE)
            self._use_waypoints(range(base, base + WAYPOINTS_SIZE))
        self._write_header(area)

    def _module_memory(self, size: int) -> int:
        """Memory in reach of the kernel's code, to be executed."""
        if self._kernel.value("module_alloc") is not None:
            base = self.call(self._kernels("module_alloc"), [size])
        else:
            base = self.call(self._kernels("execmem_alloc"), [_EXECMEM_MODULE_TEXT, size])
        if not base:
            raise TargetError(f"the kernel has no {size >> 20} MiB of memory for modules")
        for name in ("set_memory_ro", "set_memory_x")[not self._writes_text :]:
            error = self.call(self._kernels(name), [base, size // PAGE])
            if error & 0xFFFFFFFF:
                raise TargetError(f"the kernel's {name} failed for the memory of the pads")
        return base

    def _use_waypoints(self, memory: range) -> None:
        read, write = self._target.memory.read, self._target.memory.write
        self._waypoints = Waypoints(memory.start, len(memory), read, write) if memory else None

    def lead(self, site: Site, pad: int) -> bytes | None:
        return None if self._waypoints is None else self._waypoints.lead(site, pad)

    def _thread_key(self) -> tuple[ThreadKey, int]:
        return ThreadKey.STACK, 0

    def free_stuck(self) -> list[str]:
        inside = {
            self._target.threads.read_register(thread, STACK_POINTER) >> _STACK_SHIFT
            for thread, pc in self._target.threads.program_counters().items()
            if self.holds(pc)
        }

        def is_inside(key: int) -> bool:
            stack = key - 1
            return stack in inside or self._is_interrupted_inside(stack << _STACK_SHIFT)

        freed = self.tables.ops.free_stuck(is_inside)
        if not freed:
            return []
        tasks = "a task's calls were" if freed == 1 else f"the calls of {freed} tasks were"
        return [f"{tasks} seen no more since an earlier analysis: they are again"]

    def _is_interrupted_inside(self, stack: int) -> bool:
        """Whether a task may have been interrupted in the agent or a pad, and then preempted: its
        stack has what the processor leaves there."""
        try:
            raw = self._target.memory.read(stack, 1 << _STACK_SHIFT)
        except TargetError:
            return False  # the task has ended
        words = struct.unpack(f"<{len(raw) // 8}Q", raw)
        return any(
            code == _KERNEL_CODE and rsp >> _STACK_SHIFT == stack >> _STACK_SHIFT and self.holds(pc)
            for pc, code, _, rsp in zip(words, words[1:], words[2:], words[3:], strict=False)
        )

    def is_there(self) -> bool:
        try:
            magic = self.tables.magic
        except TargetError:
            return False
        return magic == self._blob.constants["DARC_MAGIC"]

    def lost(self) -> str | None:
        try:
            is_lost = self.tables.magic != self._blob.constants["DARC_MAGIC"]
        except TargetError:
            is_lost = self._is_another()
        return BOOTED_ANEW if is_lost else None

    def close(self) -> None:
        pass  # nothing of it is here


def _whole_block(start: int, end: int) -> tuple[int, int]:
    """The larger part of [start, end) that is in one block of pads."""
    border = end // pads.BLOCK * pads.BLOCK
    if not start < border < end:
        return start, end
    return (start, border) if border - start > end - border else (border, end)


def left_behind(target: Target, areas: Iterator[int]) -> Iterator[LeftFoothold]:
    """The footholds among ``areas``, where executable memory begins. The mark may stand at a later
    page, where the first ones are of another block of pads."""
    blob = compiled.load()
    seen: set[int] = set()
    for first in areas:
        border = (first // pads.BLOCK + 1) * pads.BLOCK
        for base in (first, border) if border < first + _AREA_SIZE else (first,):
            if base in seen:
                continue
            seen.add(base)
            try:
                raw = target.memory.read(base, _HEADER.size)
                mark, control, used, sites, size, waypoints, extent = _HEADER.unpack(raw)
                if mark != MARK or target.memory.read(control, 8) != _magic(blob):
                    continue
                raw = target.memory.read(control, blob.sizes["darc_control"])
            except TargetError:
                continue
            layout = plan(blob, ROOMS[0])
            if blob.unpack("darc_control", raw)["version"] == compiled.ABI_VERSION:
                layout = layout_in(blob, control, raw, target.memory.read)
            tables = AgentMemory(
                blob, control - layout.control, layout, target.memory.read, target.memory.write
            )
            memory = range(waypoints, waypoints + extent)
            yield LeftFoothold(base, used, sites, size, memory, tables)


def _magic(blob: compiled.Blob) -> bytes:
    return blob.constants["DARC_MAGIC"].to_bytes(8, "little")
