"""Darc's foothold in a process: memory for the agent and the pads, mapped once and kept.

A foothold changes nothing that the program executes. It outlives the analyses that use it, as a
thread may still be on its way through a pad of an earlier one; the mappings end with the process.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from darc import agent
from darc.agent.memory import AgentMemory, Node, plan
from darc.code.elf import FrameRule
from darc.code.program import Program
from darc.code.x86_64 import Site, decode
from darc.errors import TargetError, UnsupportedError
from darc.ftree import CallKind
from darc.pads import x86_64 as pads
from darc.procfs import Memory, regions
from darc.target import Region, Target

_AREA_SIZE = 1 << 20
_DATA_CONTEXTS = (256, 16)
_SYS_MMAP, _SYS_MADVISE = 9, 28
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 2, 0x20, 0x4000
_MAP_FIXED_NOREPLACE = 0x100000
_MADV_WIPEONFORK = 18
_MARK = b"darc pad"
_MARK_SIZE = 64
"""Every area begins with the mark and the address of the control structure: whoever comes after a
debugger that was killed finds both."""

_LOWEST = 1 << 16
_HIGHEST = 0x7FFF_FFFF_0000
_GROWTH = 1 << 30

# mov eax, imm32; mov r10, rcx; syscall; ret
_SYSCALL_STUB = b"\xb8%s\x49\x89\xca\x0f\x05\xc3"


@dataclass
class Area:
    """A read-and-execute mapping for pads."""

    base: int
    size: int
    used: int = 0

    @property
    def block(self) -> int:
        return self.base // pads.BLOCK * pads.BLOCK


class Foothold:
    """The mappings in one process. Create it, then :meth:`install`; :meth:`reopen` for another
    analysis of the same process; :meth:`close` when the process is gone."""

    def __init__(self, target: Target, program: Program, pid: int) -> None:
        self._target = target
        self._program = program
        self.pid = pid
        self.memory = Memory(pid)
        self._blob = agent.load()
        self._areas: list[Area] = []
        self._origins: list[tuple[int, int]] = []
        self._pads: list[tuple[int, tuple[tuple[int, int], ...], int | None]] = []
        self._next_index = 0
        self._agent_base = 0
        self.tables: AgentMemory
        self.stubs: pads.Stubs

    def install(self, resolution: int) -> None:
        """Maps memory, writes the agent and measures what a pad costs here. May call functions.

        Raises:
            TargetError: the program may not map memory.
            UnsupportedError: there is no room near its code.
        """
        if not self._program.modules:
            raise UnsupportedError("the program has no mapped file with code")
        self._map_tables()
        self._map_areas()
        if not self._areas:
            raise UnsupportedError("found no room for pads near the program's code")
        first = self._areas[0]
        self._agent_base = first.base + first.used
        self._target.write(self._agent_base, self._blob.code)
        first.used += (len(self._blob.code) + 63) // 64 * 64
        self.stubs = pads.Stubs(
            *(self.symbol(f"darc_stub_{field.name}") for field in fields(pads.Stubs))
        )
        self.tables.write_control(resolution, self._threads_have_fs())
        self._calibrate()

    def reopen(self, program: Program, resolution: int) -> None:
        """Prepares for another analysis. May call functions in the program."""
        self._program = program
        self._map_areas()
        self.tables.reset(resolution)

    def is_there(self) -> bool:
        """Whether the process still has it: an exec ends it."""
        try:
            with Memory(self.pid) as memory:
                magic = int.from_bytes(memory.read(*self.tables.field("magic")), "little")
        except TargetError:
            return False
        return magic == self._blob.constants["DARC_MAGIC"]

    def is_usable(self) -> bool:
        """Whether it is still there and has room for another analysis."""
        full = self._next_index > self._blob.constants["DARC_MAX_SITES"] // 2
        full = full or any(area.used > area.size // 2 for area in self._areas)
        return self.is_there() and not full

    def close(self) -> None:
        """The process is gone."""
        self.memory.close()

    def _map_areas(self) -> None:
        self._program.update(regions(self.pid))
        for module in self._program.modules:
            if module.name != "[vdso]":
                self._area_near(module.start, module.end)

    def symbol(self, name: str) -> int:
        """Address of one of the agent's functions."""
        return self._agent_base + self._blob.symbols[name]

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in the agent or a pad."""
        return any(a.base <= address < a.base + a.size for a in self._areas)

    @property
    def agent_base(self) -> int:
        """Where the agent's code begins."""
        return self._agent_base

    def system_call(self, number: int, *arguments: int) -> int:
        """Makes a system call in the program: a few bytes of its code are borrowed for it, while
        all its threads stand still."""
        place = self._borrowed_place()
        stub = _SYSCALL_STUB.replace(b"%s", struct.pack("<I", number))
        original = self._target.read(place, len(stub))
        self._target.write(place, stub)
        try:
            result = self._target.call(place, arguments)
        finally:
            self._target.write(place, original)
        return result - (1 << 64) if result >= 1 << 63 else result

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

    def _map(self, hint: int, size: int, protection: int, flags: int) -> int:
        flags |= _MAP_PRIVATE | _MAP_ANONYMOUS
        return self.system_call(_SYS_MMAP, hint, size, protection, flags, (1 << 64) - 1, 0)

    def _map_tables(self) -> None:
        for count in _DATA_CONTEXTS:
            layout = plan(self._blob, count)
            base = self._map(0, layout.size, _PROT_READ | _PROT_WRITE, _MAP_NORESERVE)
            if base > 0:
                break
        else:
            raise TargetError(f"the program may not map {layout.size >> 20} MiB (error {-base})")
        self.system_call(_SYS_MADVISE, base + layout.live, 4096, _MADV_WIPEONFORK)
        self.tables = AgentMemory(self._blob, base, layout, self.memory.read, self.memory.write)

    def _threads_have_fs(self) -> bool:
        """Whether ``%fs:0`` may be read: a program without thread-local storage has no fs base."""
        for thread in self._target.threads():
            base = self._target.read_register(thread, "fs_base")
            try:
                if base == 0 or int.from_bytes(self.memory.read(base, 8), "little") != base:
                    return False
            except TargetError:
                return False
        return True

    def _reaching(self, low: int, high: int) -> Area | None:
        for area in self._areas:
            if max(high, area.base + area.size) - min(low, area.base) < pads.NEAR:
                return area
        return None

    def _area_near(self, low: int, high: int) -> Area | None:
        """An area from which all of [low, high) is in reach; mapped when there is none yet."""
        known = self._reaching(low, high)
        if known is not None:
            return known
        for place in _gaps(self._program.regions, low, high):
            if self._map(place, _AREA_SIZE, _PROT_READ | _PROT_EXEC, _MAP_FIXED_NOREPLACE) == place:
                area = Area(place, _AREA_SIZE, _MARK_SIZE)
                self._areas.append(area)
                self._target.write(place, _MARK + struct.pack("<Q", self.tables.control))
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
        tables.write_site(parent_index, pad_back=area.base + _MARK_SIZE, kind=limits["DARC_CALL"])
        arguments = (
            tables.control,
            tables.site(parent_index),
            origin,
            nothing,
        )
        tables.write_nodes([Node(0, 1, 1, True), Node(0, 0, 0, False)], [(0, 1)], [])
        tables.set_site(index, timed=0)
        self._target.call(self.symbol("darc_calibrate"), arguments)
        path_cost = tables.get("full_cost")
        tables.write_nodes([Node(0, 1, 1, True), Node(0, 0, 0, True)], [(0, 1)], [])
        tables.set_site(index, timed=1)
        self._target.call(self.symbol("darc_calibrate"), arguments)
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
        if not origin <= pc < origin + size:
            return None
        distance = 0
        for offset, known in frames:
            if origin + offset > pc:
                break
            distance = known
        slot = rsp + distance
        if back:
            return slot, back
        word = int.from_bytes(self.memory.read(slot, 8), "little")
        if back is None or (distance >= 0 and not self.holds(word)):
            return slot, word
        for record in self.tables.records():
            if record["slot"] == slot:
                return slot, record["back"]
        return None


def left_behind(target: Target, memory: Memory, mapped: Sequence[Region]) -> list[AgentMemory]:
    """The tables of agents that an earlier debugger left in the process.

    Raises:
        UnsupportedError: one is of another version, which this one cannot take out.
    """
    blob = agent.load()
    found: dict[int, AgentMemory] = {}
    for region in mapped:
        if region.path or "x" not in region.permissions:
            continue
        mark = target.read(region.start, 16)
        if not mark.startswith(_MARK):
            continue
        control = int.from_bytes(mark[8:], "little")
        if control in found:
            continue
        raw = memory.read(control, blob.sizes["darc_control"])
        values = blob.unpack("darc_control", raw)
        if values["magic"] != blob.constants["DARC_MAGIC"]:
            continue
        if values["version"] != blob.constants["DARC_ABI_VERSION"]:
            raise UnsupportedError(
                "another version of darc left its probes in the program: attach with that one and "
                "type 'darc stop'"
            )
        layout = plan(blob, values["context_mask"] + 1)
        base = control - layout.control
        found[control] = AgentMemory(blob, base, layout, memory.read, memory.write)
    return list(found.values())


def _gaps(mapped: Sequence[Region], low: int, high: int) -> Iterable[int]:
    """Free places for an area in reach of all of [low, high): blocks of their own before shared
    ones, near before far. The heap and the stack keep room to grow."""
    found: list[tuple[bool, int, int]] = []
    previous, path = _LOWEST, ""
    for region in (*mapped, Region(_HIGHEST, _HIGHEST, "", 0, "")):
        start, end = previous, region.start
        if region.start > region.end or end <= start:
            previous, path = max(previous, region.end), region.path
            continue
        if path == "[heap]" or (
            path.startswith("/") and not path.endswith(".so") and ".so." not in path
        ):
            start += _GROWTH
        if region.path == "[stack]":
            end -= _GROWTH
        previous, path = max(previous, region.end), region.path
        for candidate in _candidates(start, end, low):
            if max(high, candidate + _AREA_SIZE) - min(low, candidate) < pads.NEAR:
                shared = not start <= candidate // pads.BLOCK * pads.BLOCK <= end - pads.BLOCK
                found.append((shared, abs(candidate - low), candidate))
    return [candidate for _, _, candidate in sorted(found)[:64]]


def _candidates(start: int, end: int, low: int) -> Iterable[int]:
    """Blocks of their own at the gap's two ends and nearest to ``low``, then the gap's ends."""
    block = pads.BLOCK
    first = (start + block - 1) // block * block
    last = (end - block) // block * block
    if first <= last:
        yield from (first, last, min(max(first, (low - block) // block * block), last))
    for place in (start, (end - _AREA_SIZE) // 4096 * 4096):
        if (
            start <= place <= end - _AREA_SIZE
            and place // block == (place + _AREA_SIZE - 1) // block
        ):
            yield place
