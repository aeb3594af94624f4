"""Darc's foothold: memory for the agent and the pads, taken once and kept.

A foothold changes nothing that the program executes. It outlives the analyses that use it, as a
thread may still be on its way through a pad of an earlier one. Where the memory comes from differs:
see :class:`darc.process_foothold.ProcessFoothold` for a process.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

from darc import agent
from darc.agent.memory import AgentMemory, Node
from darc.code.elf import FrameRule
from darc.code.program import Program
from darc.code.x86_64 import Site, decode
from darc.errors import PadsImpossibleError, TargetError, UnsupportedError
from darc.ftree import CallKind
from darc.pads import x86_64 as pads
from darc.target import Target

MARK = b"darc pad"
MARK_SIZE = 64
"""Every area begins with the mark and the address of the control structure: whoever comes after a
debugger that was killed finds both."""


class ThreadKey(IntEnum):
    """How the agent tells threads apart."""

    NONE = 0
    """Not at all: there is one."""
    FS_BASE = 1
    """By their thread-local storage."""
    STACK = 2
    """By their kernel stacks."""


@dataclass
class Area:
    """Executable memory for pads."""

    base: int
    size: int
    used: int = 0

    @property
    def block(self) -> int:
        return self.base // pads.BLOCK * pads.BLOCK


class Foothold(ABC):
    """Create it, then :meth:`install`; :meth:`reopen` for another analysis on the same ground;
    :meth:`close` when that is gone."""

    def __init__(self, target: Target, program: Program, identity: int) -> None:
        """``identity`` is that of the :class:`~darc.ground.Ground` that it is on."""
        self._target = target
        self._program = program
        self.identity = identity
        self._blob = agent.load()
        self._areas: list[Area] = []
        self._origins: list[tuple[int, int]] = []
        self._pads: list[tuple[int, tuple[tuple[int, int], ...], int | None]] = []
        self._next_index = 0
        self._agent_base = 0
        self.tables: AgentMemory
        self.stubs: pads.Stubs

    # --------------------------------------------------------- where memory comes from

    @abstractmethod
    def _take_tables(self) -> AgentMemory:
        """Memory for what the agent and the debugger share, all zero."""

    @abstractmethod
    def _take_areas(self) -> None:
        """Sees to it that there is an area in reach of each module."""

    @abstractmethod
    def _thread_key(self) -> ThreadKey:
        """How the agent is to tell threads apart."""

    @abstractmethod
    def call(self, address: int, arguments: Sequence[int]) -> int:
        """Calls a function there."""

    @abstractmethod
    def is_there(self) -> bool:
        """Whether it has not gone with what it stood in."""

    def lost(self) -> str | None:
        """At a stop: why what it stood in is not there any more, where nothing else tells."""
        return None

    @abstractmethod
    def close(self) -> None:
        """What it stood in is gone."""

    # ------------------------------------------------------------------ the agent

    def install(self, resolution: int) -> None:
        """Takes memory, writes the agent and measures what a pad costs here. May call functions.

        Raises:
            TargetError: there is no memory.
            UnsupportedError: there is no room near its code.
        """
        if not self._program.modules:
            raise UnsupportedError("the program has no mapped file with code")
        self.tables = self._take_tables()
        self._take_areas()
        if not self._areas:
            raise PadsImpossibleError("found no room for pads near the program's code")
        first = self._areas[0]
        self._use_agent(first.base + first.used)
        self._target.write(self._agent_base, self._blob.code)
        first.used += (len(self._blob.code) + 63) // 64 * 64
        self.tables.write_control(
            resolution,
            self._thread_key(),
            enter=self.symbol("darc_from_pad_enter"),
            leave=self.symbol("darc_from_pad_leave"),
        )
        self._calibrate()

    def _use_agent(self, base: int) -> None:
        """The agent's code is, or will be, at ``base``."""
        self._agent_base = base
        self.stubs = pads.Stubs(
            *(self.symbol(f"darc_stub_{field.name}") for field in fields(pads.Stubs))
        )

    def reopen(self, program: Program, resolution: int) -> None:
        """Prepares for another analysis. May call functions in the program."""
        self._program = program
        self._take_areas()
        self.tables.reset(resolution)

    def is_usable(self) -> bool:
        """Whether it is still there and has room for another analysis."""
        full = self._next_index > self._blob.constants["DARC_MAX_SITES"] // 2
        full = full or any(area.used > area.size // 2 for area in self._areas)
        return self.is_there() and not full

    def symbol(self, name: str) -> int:
        """Address of one of the agent's functions."""
        return self._agent_base + self._blob.symbols[name]

    def f0_code(self, index: int) -> pads.F0Code | None:
        """What the pad of f0, which is site ``index``, does itself, where that is worth it."""
        del index
        return None

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in the agent or a pad."""
        return any(a.base <= address < a.base + a.size for a in self._areas)

    @property
    def agent_base(self) -> int:
        """Where the agent's code begins."""
        return self._agent_base

    def _reaching(self, low: int, high: int) -> Area | None:
        for area in self._areas:
            if max(high, area.base + area.size) - min(low, area.base) < pads.NEAR:
                return area
        return None

    # ------------------------------------------------------------------ pads

    def place(
        self, area: Area, back: int | None, make: Callable[[int], pads.Pad]
    ) -> tuple[int, pads.Pad]:
        """Writes the pad that ``make`` makes for an address; ``back`` is the return address of the
        site it serves, 0 where that differs from call to call, ``None`` where the pad leaves it
        on the stack.

        Raises:
            TargetError: there is no more room.
            OutOfReachError: the program's code or data is too far away.
        """
        origin = area.base + area.used
        pad = make(origin)
        if area.used + len(pad.code) > area.size:
            raise TargetError("no room for more pads: set a lower 'darc max-probes'")
        self._target.write(origin, pad.code)
        area.used += len(pad.code)
        bisect.insort(self._origins, (origin, len(self._pads)))
        self._pads.append((len(pad.code), pad.frames, back))
        return origin, pad

    def lead(self, site: Site, pad: int) -> bytes | None:
        """What to write over a site that has a nop behind it, to lead to its pad; ``None`` where
        that cannot be."""
        del site, pad
        return None

    def new_index(self) -> int:
        """The number of a site that was never used before."""
        self._next_index += 1
        return self._next_index - 1

    def _calibrate(self) -> None:
        """Measures the pad's own cost in this program on this machine."""
        tables, limits = self.tables, self._blob.constants
        area = self._areas[0]
        nothing, back = self.symbol("darc_nothing"), self.symbol("darc_calibrate_back")
        call = decode(pads.patch_bytes(CallKind.DIRECT, area.base, 5, nothing), area.base)[0]
        site = Site(
            area.base, CallKind.DIRECT, area.base, 5, back, nothing, None, call, FrameRule("rsp", 8)
        )
        index = self.new_index()
        parent_index = self.new_index()
        origin, pad = self.place(
            area,
            back,
            lambda at: pads.call_pad(site, tables.site(index), (area.block,), self.stubs, at),
        )
        assert pad.back is not None
        tables.write_site(
            index,
            back=back,
            pad_back=origin + pad.back,
            kind=limits["DARC_CALL"],
            timed=1,
            route_count=1,
        )
        tables.write_site(parent_index, pad_back=area.base + MARK_SIZE, kind=limits["DARC_CALL"])
        arguments = (
            tables.control,
            tables.site(parent_index),
            origin,
            nothing,
        )
        tables.write_nodes([Node(0, 1, 1, True), Node(0, 0, 0, False)], [(0, 1)], [])
        tables.set_site(index, timed=0)
        self.call(self.symbol("darc_calibrate"), arguments)
        path_cost = tables.get("full_cost")
        tables.write_nodes([Node(0, 1, 1, True), Node(0, 0, 0, True)], [(0, 1)], [])
        tables.set_site(index, timed=1)
        self.call(self.symbol("darc_calibrate"), arguments)
        tables.set(path_cost=path_cost)
        tables.set_site(index, route_count=0)

    def area_for(self, low: int, high: int) -> Area | None:
        """An area from which the module around [low, high) is in reach, if there is one."""
        module = self._program.module_at(low)
        if module is not None:
            low, high = min(low, module.start), max(high, module.end)
        return self._reaching(low, high)

    def caller(self, pc: int, rsp: int) -> tuple[int, int] | None:
        """For unwinders: where ``pc`` is in a pad, the address of the stack word of the return
        address, and that address."""
        index = bisect.bisect_right(self._origins, (pc, 1 << 64)) - 1
        if index < 0:
            return None
        origin, number = self._origins[index]
        size, frames, back = self._pads[number]
        if not origin <= pc < origin + size or not frames:
            return None
        distance = 0
        for offset, known in frames:
            if origin + offset > pc:
                break
            distance = known
        slot = rsp + distance
        if back:
            return slot, back
        word = int.from_bytes(self.tables.raw(slot, 8), "little")
        if back is None or (distance >= 0 and not self.holds(word)):
            return slot, word
        for record in self.tables.records():
            if record["slot"] == slot:
                return slot, record["back"]
        return None
