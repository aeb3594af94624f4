"""The foothold in a process: anonymous mappings, made by system calls that the program is let make.

They end with the process.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from darc import agent
from darc.agent.memory import AgentMemory, plan
from darc.code.program import Program
from darc.errors import PadsImpossibleError, TargetError, UnsupportedError
from darc.foothold import MARK, MARK_SIZE, Area, Foothold, ThreadKey
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

_LOWEST = 1 << 16
_HIGHEST = 0x7FFF_FFFF_0000
_GROWTH = 1 << 30

# mov eax, imm32; mov r10, rcx; syscall; ret
_SYSCALL_STUB = b"\xb8%s\x49\x89\xca\x0f\x05\xc3"


class ProcessFoothold(Foothold):
    """The mappings in one process."""

    def __init__(self, target: Target, program: Program, pid: int) -> None:
        super().__init__(target, program, pid)
        self.memory = Memory(pid)

    def is_there(self) -> bool:
        # An exec ends it.
        try:
            with Memory(self.identity) as memory:
                magic = int.from_bytes(memory.read(*self.tables.field("magic")), "little")
        except TargetError:
            return False
        return magic == self._blob.constants["DARC_MAGIC"]

    def close(self) -> None:
        self.memory.close()

    def call(self, address: int, arguments: Sequence[int]) -> int:
        return self._target.call(address, arguments)

    def _take_areas(self) -> None:
        self._program.update(regions(self.identity))
        for module in self._program.modules:
            if module.name != "[vdso]":
                self._area_near(module.start, module.end)

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

    def _take_tables(self) -> AgentMemory:
        for count in _DATA_CONTEXTS:
            layout = plan(self._blob, count)
            base = self._map(0, layout.size, _PROT_READ | _PROT_WRITE, _MAP_NORESERVE)
            if base > 0:
                break
        else:
            raise PadsImpossibleError(
                f"the program may not map {layout.size >> 20} MiB (error {-base})"
            )
        self.system_call(_SYS_MADVISE, base + layout.live, 4096, _MADV_WIPEONFORK)
        return AgentMemory(self._blob, base, layout, self.memory.read, self.memory.write)

    def _thread_key(self) -> ThreadKey:
        """A program without thread-local storage has no fs base."""
        for thread in self._target.threads():
            base = self._target.read_register(thread, "fs_base")
            try:
                if base == 0 or int.from_bytes(self.memory.read(base, 8), "little") != base:
                    return ThreadKey.NONE
            except TargetError:
                return ThreadKey.NONE
        return ThreadKey.FS_BASE

    def _area_near(self, low: int, high: int) -> Area | None:
        """An area from which all of [low, high) is in reach; mapped when there is none yet."""
        known = self._reaching(low, high)
        if known is not None:
            return known
        for place in _gaps(self._program.regions, low, high):
            if self._map(place, _AREA_SIZE, _PROT_READ | _PROT_EXEC, _MAP_FIXED_NOREPLACE) == place:
                area = Area(place, _AREA_SIZE, MARK_SIZE)
                self._areas.append(area)
                self._target.write(place, MARK + struct.pack("<Q", self.tables.control))
                return area
        return None


@dataclass(frozen=True)
class LeftBehind:
    """An agent that an earlier debugger left in the process."""

    tables: AgentMemory
    areas: list[Region]
    """Where its pads are."""

    def is_pad(self, address: int) -> bool:
        """Whether ``address`` is in one of its pads."""
        return any(area.start <= address < area.end for area in self.areas)


def left_behind(target: Target, memory: Memory, mapped: Sequence[Region]) -> list[LeftBehind]:
    """The agents that an earlier debugger left in the process.

    Raises:
        UnsupportedError: one is of another version, which this one cannot take out.
    """
    blob = agent.load()
    found: dict[int, LeftBehind] = {}
    for region in mapped:
        if region.path or "x" not in region.permissions:
            continue
        mark = target.read(region.start, 16)
        if not mark.startswith(MARK):
            continue
        control = int.from_bytes(mark[8:], "little")
        if control in found:
            found[control].areas.append(region)
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
        tables = AgentMemory(blob, base, layout, memory.read, memory.write)
        found[control] = LeftBehind(tables, [region])
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
