"""The foothold in a kernel: memory that its own functions give, as to a module.

It is never given back: a task may sleep for days in a call that a pad has made. Another analysis
uses it again, also that of another debugger, which finds it by the kernel's page tables. How far it
is used stands at its begin.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from darc.agent.layout import Room, plan
from darc.agent.memory import AgentMemory
from darc.agent.structures import SiteRow
from darc.code.architecture import Prologue, Site
from darc.code.processor import STACK_POINTER
from darc.code.program import Program
from darc.model.errors import TargetError
from darc.pads import processor as pads
from darc.pads.areas import Area, PlacedPads
from darc.pads.foothold import MARK_SIZE, Foothold, ThreadKey
from darc.pads.waypoints import SIZE as WAYPOINTS_SIZE
from darc.pads.waypoints import Waypoints
from darc.target.target import Target
from kgdb.allocating import KernelAllocator, MakeCall
from kgdb.kernel import BOOTED_ANEW
from kgdb.leftbehind import AREA_SIZE, LeftFoothold, header
from kgdb.program import KernelProgram
from kgdb.rooms import ROOMS

_STACK_SHIFT = 14
_KERNEL_CODE = 0x10
"""The selector of the kernel's code segment (``__KERNEL_CS``)."""
_CHUNK = 4096
_SITE_CHUNK = 64
"""What is in use is told in steps of so many bytes, and so many sites."""


class KernelFoothold(Foothold):
    """The agent's memory in one kernel; ``call`` is :meth:`kgdb.calls.KernelCalls.call`."""

    def __init__(  # noqa: PLR0913 - as many things, and none of these belong together
        self,
        target: Target,
        program: KernelProgram,
        *,
        identity: int,
        call: MakeCall,
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
        self._allocator = KernelAllocator(program, call, writes_text=writes_text)
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
        kind = blob.constants.MEMBER
        if not self.tables.room.blocks or not self._pads.numbers:
            return {}
        raw = self.tables.raw(self.tables.sites.address(0), size * self._pads.numbers)
        rows = (raw[at : at + size] for at in range(0, len(raw), size))
        found = {}
        for index, row in enumerate(rows):
            values = blob.unpack(SiteRow, row)
            if values.kind == kind and values.address:
                found[values.address] = index, values.pad_back
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
        if not MARK_SIZE <= left.used <= left.size <= AREA_SIZE:
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
            blob.constants.THE_SITE: tables.sites.address(index),
            blob.constants.THE_CONTROL: tables.control,
            blob.constants.THE_RECORDS: tables.base + tables.layout.records,
        }
        return pads.F0Code(blob.code[enter:leave], blob.code[leave:end], addresses)

    def _write_header(self, area: Area) -> None:
        known = self._waypoints
        waypoints = range(0) if known is None else range(known.base, known.base + known.size)
        raw = header(self.tables.control, *self._told, area.size, waypoints)
        self._target.memory.write(area.base, raw)

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._call(address, arguments)

    def _take_tables(self) -> AgentMemory:
        for room in self._rooms:
            layout = plan(self._blob, room)
            base = self._allocator.data(layout.size)
            if base:
                return AgentMemory(
                    blob=self._blob,
                    base=base,
                    layout=layout,
                    read=self._target.memory.read,
                    write=self._target.memory.write,
                )
        raise TargetError(f"the kernel has no {layout.size >> 20} MiB of memory to give")

    def _take_areas(self) -> None:
        if self._areas:
            return
        base = self._allocator.code(AREA_SIZE)
        start, end = _whole_block(base, base + AREA_SIZE)
        area = Area(start, end - start, MARK_SIZE)
        self._areas.append(area)
        if self._writes_text and self._kernel.has_nops_behind_calls:
            base = self._allocator.code(WAYPOINTS_SIZE)
            self._use_waypoints(range(base, base + WAYPOINTS_SIZE))
        self._write_header(area)

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
        return magic == self._blob.constants.MAGIC

    def lost(self) -> str | None:
        try:
            is_lost = self.tables.magic != self._blob.constants.MAGIC
        except TargetError:
            is_lost = self._is_another()
        return BOOTED_ANEW if is_lost else None

    def close(self) -> None:
        pass  # nothing of it is here


def _whole_block(start: int, end: int) -> tuple[int, int]:
    """The larger part of [start, end) that is in one sector of pads."""
    border = end // pads.SECTOR * pads.SECTOR
    if not start < border < end:
        return start, end
    return (start, border) if border - start > end - border else (border, end)
