"""What darc has put into the program, and how every bit of it is taken out again.

The implant owns the mappings, the agent in them, the pads, and each patched place with the bytes
that stood there. :meth:`Implant.remove` restores the code byte for byte and puts the program's own
return addresses back on its stacks; the pads' memory stays mapped, as a thread may still be on its
way through one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from iced_x86 import Instruction

from darc import agent
from darc.agent.memory import AgentMemory, Node, plan
from darc.code.elf import FrameRule
from darc.code.program import Program
from darc.code.x86_64 import PATCH_LENGTH, Site, decode, read_prologue
from darc.code.x86_64 import Function as Code
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
_LOWEST = 1 << 16
_HIGHEST = 0x7FFF_FFFF_0000
_GROWTH = 1 << 30

# mov eax, imm32; mov r10, rcx; syscall; ret
_SYSCALL_STUB = b"\xb8%s\x49\x89\xca\x0f\x05\xc3"

HIDE_AT = (
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",
    "_Unwind_Resume",
    "_Unwind_Backtrace",
)
"""Unwinders: before they look, every return address on the stack is the program's own again."""

EXIT_AT = ("_exit",)
"""Where a program ends: the last moment to read what the agent knows."""

JUMP_AT = ("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "__libc_siglongjmp")
"""Where frames are about to be abandoned: their calls end here."""

SHOW_AT = ("__cxa_begin_catch",)
"""Where a handler begins: the frames above it are taken up again, those below are closed."""


@dataclass
class Area:
    """A read-and-execute mapping for pads."""

    base: int
    size: int
    used: int = 0

    @property
    def block(self) -> int:
        return self.base // pads.BLOCK * pads.BLOCK


@dataclass
class Patched:
    """A place in the program's code that leads to a pad."""

    site: Site | None
    index: int
    address: int
    original: bytes
    pad: int
    pad_back: int
    area: Area
    blocks: tuple[int, ...] = ()
    active: bool = False
    bytes: bytes = b""
    cells: dict[str, int] = field(default_factory=dict)
    through: Patched | None = None
    """The padding that a short jump goes through."""
    displaced: tuple[Instruction, ...] = ()
    """Of a function's entry: the instructions that moved into the pad."""


class Implant:
    """The agent and the pads in one program. Create it, :meth:`install`, and :meth:`remove`."""

    def __init__(self, target: Target, program: Program, memory: Memory, resolution: int) -> None:
        self._target = target
        self._program = program
        self._memory = memory
        self._blob = agent.load()
        self._resolution = resolution
        self._areas: list[Area] = []
        self._sites: dict[int, Patched] = {}
        self._guards: list[Patched] = []
        self._next_index = 0
        self._f0: Patched | None = None
        self._cell_values: dict[int, bytes] = {}
        self._agent_base = 0
        self.tables: AgentMemory

    # ------------------------------------------------------------- installation

    def install(self) -> None:
        """Maps memory, writes the agent and measures what a pad costs here. May call functions."""
        self._check_room()
        self._map_tables()
        pid = self._target.pid
        if pid is not None:
            self._program.update(regions(pid))
        for module in self._program.modules:
            if module.name not in ("[vdso]",):
                self._area_near(module.start, module.end)
        if not self._areas:
            raise UnsupportedError("found no room for pads near the program's code")
        first = self._areas[0]
        self._agent_base = first.base
        self._target.write(first.base, self._blob.code)
        first.used = (len(self._blob.code) + 63) // 64 * 64
        self._stubs = pads.Stubs(
            *(self.symbol(f"darc_stub_{n}") for n in ("call", "tail", "entry", "leave"))
        )
        self.tables.write_control(self._resolution, self._threads_have_fs())
        self._calibrate()

    def symbol(self, name: str) -> int:
        """Address of one of the agent's functions."""
        return self._agent_base + self._blob.symbols[name]

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in the agent or a pad."""
        return any(a.base <= address < a.base + a.size for a in self._areas)

    @property
    def f0_back(self) -> int:
        """Where f0 returns to when its pad called it."""
        assert self._f0 is not None
        return self._f0.pad_back

    @property
    def max_targets(self) -> int:
        """How many targets an indirect site can learn."""
        return self._blob.constants["DARC_MAX_TARGETS"]

    @property
    def max_nodes(self) -> int:
        """How many fnodes the agent can hold at one time."""
        return self._blob.constants["DARC_MAX_NODES"]

    @property
    def areas(self) -> Sequence[Area]:
        """The mappings that hold code."""
        return self._areas

    @property
    def agent_base(self) -> int:
        """Where the agent's code begins."""
        return self._agent_base

    def _check_room(self) -> None:
        if not self._program.modules:
            raise UnsupportedError("the program has no mapped file with code")

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
        self.tables = AgentMemory(self._blob, base, layout, self._memory.read, self._memory.write)

    def _threads_have_fs(self) -> bool:
        """Whether ``%fs:0`` may be read: a program without thread-local storage has no fs base."""
        for thread in self._target.threads():
            base = self._target.read_register(thread, "fs_base")
            try:
                if base == 0 or int.from_bytes(self._memory.read(base, 8), "little") != base:
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
                area = Area(place, _AREA_SIZE)
                self._areas.append(area)
                return area
        return None

    # ------------------------------------------------------------------ pads

    def _place(
        self, area: Area, index: int, make: Callable[[int], pads.Pad]
    ) -> tuple[int, pads.Pad]:
        origin = area.base + area.used
        pad = make(origin)
        if area.used + len(pad.code) > area.size:
            raise TargetError("no room for more pads: set a lower 'darc max-probes'")
        self._target.write(origin, pad.code)
        area.used += len(pad.code)
        return origin, pad

    def _new_index(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def _calibrate(self) -> None:
        """Measures the pad's own cost in this program on this machine."""
        tables, limits = self.tables, self._blob.constants
        area = self._areas[0]
        nothing = self.symbol("darc_nothing")
        call = decode(pads.patch_bytes(CallKind.DIRECT, area.base, 5, nothing), area.base)[0]
        site = Site(
            area.base, CallKind.DIRECT, area.base, 5, 0, nothing, None, call, FrameRule("rsp", 8)
        )
        index = self._new_index()
        parent_index = self._new_index()
        origin, pad = self._place(
            area,
            index,
            lambda at: pads.call_pad(site, tables.site(index), (area.block,), self._stubs, at),
        )
        assert pad.back is not None
        tables.write_site(
            index,
            back=self.symbol("darc_calibrate_back"),
            pad_back=origin + pad.back,
            kind=limits["DARC_CALL"],
            timed=1,
            route_count=1,
        )
        tables.write_site(parent_index, pad_back=area.base + 64, kind=limits["DARC_CALL"])
        arguments = (
            tables.base + tables.layout.control,
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

    # --------------------------------------------------------------------- f0

    def prepare_f0(self, code: Code) -> str | None:
        """Makes f0's entry pad; a string says why none can stand there."""
        made = self._entry(code, self._blob.constants["DARC_F0"], 1)
        if isinstance(made, str):
            return made
        self._f0 = made
        return None

    def _entry(self, code: Code, kind: int, timed: int) -> Patched | str:
        cave: int | None = None
        prologue = read_prologue(code, self._program)
        if isinstance(prologue, str):
            # A short jump to padding nearby, where a long one fits.
            why = prologue
            found = self._program.cave(code.entry)
            prologue = read_prologue(code, self._program, pads.SHORT_JUMP)
            if found is None or isinstance(prologue, str):
                return why
            cave = found[0]
        low, high = prologue.entry, prologue.entry + prologue.length
        area = self._reaching_module(low, high)
        if area is None:
            return "no room for a pad within 2 GiB of it"
        index = self._new_index()
        address = self.tables.site(index)
        try:
            origin, pad = self._place(
                area, index, lambda at: pads.entry_pad(prologue, address, self._stubs, at)
            )
        except pads.OutOfReachError as error:
            return str(error)
        assert pad.back is not None
        through = None
        if cave is None:
            patch = pads.patch_bytes(None, prologue.entry, PATCH_LENGTH, origin)
        else:
            patch = pads.patch_short(prologue.entry, cave)
            through = Patched(
                None, self._new_index(), cave, self._program.read(cave, PATCH_LENGTH), origin, 0,
                area, (), False, pads.patch_bytes(None, cave, PATCH_LENGTH, origin),
            )  # fmt: skip
            self._write_site(through, kind, 0)
        made = Patched(
            None, index, prologue.entry, prologue.original[: len(patch)], origin,
            origin + pad.back, area, (), False, patch,
            {name: origin + place for name, place in pad.cells.items()}, through,
            prologue.instructions,
        )  # fmt: skip
        self._write_site(made, kind, timed)
        return made

    def _write_site(self, made: Patched, kind: int, timed: int) -> None:
        self.tables.write_site(
            made.index,
            pad_back=made.pad_back,
            kind=kind,
            timed=timed,
            address=made.address,
            original=made.original,
            length=len(made.original),
        )

    def _reaching_module(self, low: int, high: int) -> Area | None:
        module = self._program.module_at(low)
        if module is not None:
            low, high = min(low, module.start), max(high, module.end)
        return self._reaching(low, high)

    def enable(self) -> None:
        """Starts to watch f0."""
        assert self._f0 is not None
        self._apply(self._f0)
        self.tables.enabled = True

    def guard(self) -> list[str]:
        """Puts a pad at the entry of every unwinder that is loaded and not guarded yet, and of
        ``_exit``; tells which ones could not be guarded."""
        guarded = {g.address for g in self._guards}
        problems = []
        limits = self._blob.constants
        for names, kind in (
            (HIDE_AT, limits["DARC_HIDE"]),
            (SHOW_AT, limits["DARC_SHOW"]),
            (EXIT_AT, limits["DARC_EXIT"]),
            (JUMP_AT, limits["DARC_JUMP"]),
        ):
            for module, symbol in self._program.all_symbols():
                address = symbol.address + module.bias
                if symbol.name not in names or address in guarded:
                    continue
                guarded.add(address)
                made = self._entry(self._program.function(address), kind, 0)
                if isinstance(made, str):
                    problems.append(f"{module.name}!{symbol.name}: {made}")
                    continue
                try:
                    self._apply(made)
                except TargetError as error:
                    problems.append(f"{module.name}!{symbol.name}: {error}")
                    continue
                self._guards.append(made)
        return problems

    @property
    def guards(self) -> int:
        """How many unwinder entries are guarded."""
        return len(self._guards)

    # --------------------------------------------------------------- call sites

    def problem(self, site: Site) -> str | None:
        """Why ``site`` cannot be given a pad, as far as its code tells."""
        if not self._overlaps_f0(site):
            return site.problem
        return None if site.address in self._f0_cells() else "it stands in f0's first bytes"

    def prepare_site(self, site: Site, parents: Iterable[int]) -> Patched | str:
        """A pad for ``site``, whose callers' frames were entered through the pads that return to
        ``parents``. Returns a reason when there can be none."""
        problem = self.problem(site)
        if problem is not None:
            return problem
        in_f0 = self._overlaps_f0(site)
        if in_f0:
            site = replace(site, patch=site.address, displaced=(), problem=None)
        blocks = tuple(sorted({p // pads.BLOCK * pads.BLOCK for p in parents}))
        known = self._sites.get(site.address)
        if known is not None and set(blocks) <= set(known.blocks):
            return known
        area = self._reaching_module(site.patch, site.back)
        if area is None:
            return "no room for a pad within 2 GiB of it"
        index = known.index if known is not None else self._new_index()
        tail = site.kind in (CallKind.TAIL, CallKind.TAIL_INDIRECT)
        make = pads.tail_pad if tail else pads.call_pad
        data = self.tables.site(index)
        try:
            origin, pad = self._place(
                area, index, lambda at: make(site, data, blocks, self._stubs, at)
            )
            patch = b""
            if not in_f0 and tail:
                patch = pads.patch_tail(site, origin)
            elif not in_f0:
                patch = pads.patch_bytes(site.kind, site.patch, site.length, origin)
        except pads.OutOfReachError as error:
            return str(error)
        original = self._program.read(site.patch, site.length)
        back = origin + pad.back if pad.back is not None else 0
        if known is None:
            self.tables.write_site(
                index,
                back=site.back,
                pad_back=back,
                kind=self._blob.constants["DARC_TAIL" if tail else "DARC_CALL"],
                timed=1,
                indirect=0 if site.target is not None else self.max_targets,
                address=site.patch,
                original=original[:16],
                length=len(original),
            )
        else:  # what it has learned stays
            self.tables.set_site(index, pad_back=back)
        made = Patched(
            site, index, site.patch, original, origin, back, area, blocks,
            known.active if known else False, patch,
        )  # fmt: skip
        self._sites[site.address] = made
        if made.active:
            self._write_patch(made, made.bytes)
        return made

    def _f0_cells(self) -> dict[int, str]:
        """Calls and jumps among f0's displaced instructions, by address: their cell's name."""
        assert self._f0 is not None
        found = {int(i.ip): f"leave {n}" for n, i in enumerate(self._f0.displaced)}
        return {at: name for at, name in found.items() if name in self._f0.cells}

    def _overlaps_f0(self, site: Site) -> bool:
        if self._f0 is None or not self._f0.displaced:
            return False
        end = int(self._f0.displaced[-1].next_ip)
        return (site.address < end and site.back > self._f0.address) or (
            self._f0.address <= site.patch < self._f0.address + len(self._f0.original)
        )

    def activate(self, patched: Patched) -> None:
        """Lets the site lead to its pad.

        Raises:
            TargetError: a thread stands between the bytes; try again at the next stop.
        """
        if not patched.active:
            self._apply(patched)

    def deactivate(self, patched: Patched) -> None:
        """Restores the site's own bytes."""
        if patched.active:
            patched.active = False
            if not self._cell(patched):
                self._program.patches.pop(patched.address, None)
            self._write_patch(patched, patched.original)
            if patched.through is not None:
                self.deactivate(patched.through)

    def _apply(self, patched: Patched) -> None:
        if patched.through is not None and not patched.through.active:
            self._apply(patched.through)
        self._check_threads(patched)
        live = self._target.read(patched.address, len(patched.original))
        if live != patched.original and not self._cell(patched):
            raise TargetError(f"the code at {patched.address:#x} has changed since it was read")
        if not self._cell(patched):
            self._program.patches[patched.address] = patched.original
        patched.active = True
        self._write_patch(patched, patched.bytes)

    def _cell(self, patched: Patched) -> str | None:
        if patched.site is None or not self._overlaps_f0(patched.site):
            return None
        return self._f0_cells().get(patched.site.address)

    def _write_patch(self, patched: Patched, data: bytes) -> None:
        cell = self._cell(patched)
        if cell is not None:
            assert self._f0 is not None
            place = self._f0.cells[cell]
            if patched.active:
                self._cell_values.setdefault(place, self._target.read(place, 8))
                self._target.write(place, struct.pack("<Q", patched.pad))
            elif place in self._cell_values:
                self._target.write(place, self._cell_values[place])
            return
        self._target.write(patched.address, data)
        self.tables.set_site(patched.index, patched=int(patched.active))

    def _check_threads(self, patched: Patched) -> None:
        """No thread may stand behind the first of the bytes that are about to change."""
        end = patched.address + len(patched.bytes)
        for thread, pc in self._target.program_counters().items():
            if patched.address < pc < end:
                raise TargetError(f"thread {thread} stands in the bytes at {patched.address:#x}")

    # ------------------------------------------------------------------ removal

    def show_own_stack(self) -> None:
        """Puts the program's return addresses back on its stacks: whoever looks sees no pad. The
        calls that were open are measured no more."""
        for record in self.tables.open_records():
            slot, pad_back, back = record["slot"], record["pad_back"], record["back"]
            try:
                if int.from_bytes(self._memory.read(slot, 8), "little") == pad_back:
                    self._memory.write(slot, struct.pack("<Q", back))
            except TargetError:
                pass  # the stack is gone, and its thread with it
            self.tables.close_record(record["address"])

    def remove(self) -> None:
        """Takes everything back: f0 first, then the call sites, the unwinders, the stacks."""
        self.tables.enabled = False
        if self._f0 is not None:
            for patched in self._sites.values():
                if self._cell(patched):
                    self.deactivate(patched)
            self.deactivate(self._f0)
        for patched in (*self._sites.values(), *self._guards):
            self.deactivate(patched)
        self.show_own_stack()

    def patched_bytes(self) -> dict[int, bytes]:
        """The places that are patched now and what stood there."""
        return dict(self._program.patches)


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
