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
from darc.code.processor import STACK_POINTER
from darc.model.errors import TargetError
from darc.pads import processor as pads
from darc.pads.areas import Area, PlacedPads
from darc.pads.foothold import MARK_SIZE, Foothold, ThreadKey
from darc.pads.placing import Placing
from darc.pads.waypoints import SIZE as WAYPOINTS_SIZE
from darc.pads.waypoints import Waypoints
from darc.target.target import Target
from kgdb.allocating import KernelAllocator, MakeCall
from kgdb.kernel import BOOTED_ANEW
from kgdb.leftbehind import AREA_SIZE, LeftFoothold
from kgdb.placing import KernelPlacing, Told
from kgdb.program import KernelProgram
from kgdb.rooms import ROOMS

_STACK_SHIFT = 14
_KERNEL_CODE = 0x10
"""The selector of the kernel's code segment (``__KERNEL_CS``)."""


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
        self._writes_text = writes_text
        self._allocator = KernelAllocator(program, call, writes_text=writes_text)
        self._is_adopted = False
        self._told: Told | None = None
        """Where there are areas."""

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

    def calibrate_members(self) -> None:
        if self.tables.member_cost:
            return
        if self._is_adopted:  # nothing was called, and no task stands where something may be
            self._enter()
        with self._undivided():
            super().calibrate_members()

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
        self._areas.use([Area(left.base, left.size, left.used, floor=MARK_SIZE)])
        self._told = self._tell(left.waypoints, left.used, left.sites)
        self._use_agent(left.base + MARK_SIZE)
        if self.is_usable(self._rooms[-1]):
            return True
        self._areas.use([])
        self._pads = PlacedPads()
        return False

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
        self._areas.add(area)
        waypoints = range(0)
        if self._writes_text and self._kernel.has_nops_behind_calls:
            base = self._allocator.code(WAYPOINTS_SIZE)
            waypoints = range(base, base + WAYPOINTS_SIZE)
        self._told = self._tell(waypoints)
        self._told.write(area)

    def _tell(self, waypoints: range, used: int = 0, sites: int = 0) -> Told:
        """How far its area is used by now; it has ``waypoints`` there, if any."""
        memory, control = self._target.memory, self.tables.control
        if not waypoints:
            return Told(memory, control, None, used, sites)
        own = Waypoints(waypoints.start, len(waypoints), memory.read, memory.write)
        return Told(memory, control, own, used, sites)

    def _new_placing(self, stubs: pads.Stubs) -> Placing:
        assert self._told is not None
        return KernelPlacing(
            self._target.memory,
            self._areas,
            self._pads,
            tables=self.tables,
            stubs=stubs,
            told=self._told,
        )

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
