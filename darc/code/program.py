"""The running program as code: its modules, the names of its functions, its untouched bytes."""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind

from darc.code import return_slot
from darc.code.architecture import MAX_FUNCTION, FunctionCode, Site, Thunks
from darc.code.demangle import (
    display_name,
)
from darc.code.elf import FrameRule, Image, Symbol
from darc.code.faults import may_raise
from darc.code.modules import Module, load_image, loads
from darc.code.overlay import Overlay
from darc.code.processor import PATCH_LENGTH, decode, jump_target, read_function
from darc.code.spelling import is_called, is_cold_name
from darc.model.errors import (
    DarcError,
    FormatError,
    TargetError,
)
from darc.model.ftree import Cause, Fnode, Function
from darc.target.target import Region, Target

_NEIGHBOURHOOD = 8192
"""Bytes around a piece of code in which other entries to it are looked for."""

_JUMP = re.compile(
    rb"(?=\xe9(?P<near>.{4})|\x0f[\x80-\x8f](?P<conditional>.{4})|[\xeb\x70-\x7f\xe0-\xe3](?P<short>.))",
    re.DOTALL,
)
_SEQUENCE = struct.Struct("<IIQQQ")
"""``struct rseq_cs``: version, flags, start, length, and where it is led when it is interrupted."""

_LONGEST_JUMP = 6
LOOKS = "it looks at its own return address"
"""Why a function is not called through a pad that would find that of a landing there."""

_CHUNK = 4096
"""Bytes of code whose jumps are read at a time."""

_JUMP_LENGTHS = {"near": 5, "conditional": 6, "short": 2}


_TSAN = "__tsan_func_entry"
"""Takes a return address for ThreadSanitizer's reports, and calls nobody there."""


class NotNowError(BaseException):
    """While the program runs: what was asked for cannot be told now, and is to be asked for again
    when it stands still. Nobody is to take it for an answer, as they do with an end of memory."""


class Program:
    """Modules, symbols and original bytes of a stopped program.

    ``patches`` are the bytes that darc itself wrote over: readers see what stood there before.
    """

    def __init__(self, target: Target, root: Path, regions: Iterable[Region]) -> None:
        self._target = target
        self._root = root
        self.patches = Overlay()
        self.modules: list[Module] = []
        self.problems: list[str] = []
        self._functions: dict[int, FunctionCode] = {}
        self._far_jumps: dict[int, frozenset[int]] = {}
        self._looks: dict[int, bool] = {}
        self.notrace: dict[tuple[int, str], str | None] = {}
        """What :func:`darc.code.notrace.why_notrace` has said, by address and symbol."""
        self.unbound = 0
        """How often a PLT entry was met that is not bound yet, which may tell more later."""
        self._is_ahead = False
        self._exports: dict[str, int | None] = {}
        self._jump_slots: dict[int, int | None] = {}
        self._jumps: dict[int, list[tuple[int, int]]] = {}
        self.update(regions)

    # ------------------------------------------------------------------ modules

    def update(self, regions: Iterable[Region]) -> None:
        """Looks at the mappings again, after something was loaded or unloaded."""
        self.regions = tuple(regions)
        self._code = sorted((r for r in self.regions if "x" in r.permissions), key=_start)
        self._code_starts = [r.start for r in self._code]
        known = {(m.path, m.start): m for m in self.modules}
        self.modules = sorted(self._find_modules(known), key=lambda m: m.start)
        self._starts = [m.start for m in self.modules]
        self.forget_code()
        self._named.cache_clear()
        self._exports.clear()
        self._known_sequences: list[tuple[range, int]] | None = None

    def _find_modules(self, known: dict[tuple[str, int], Module]) -> Iterator[Module]:
        groups: dict[str, list[Region]] = {}
        for region in self.regions:
            if region.path.startswith("/") or region.path == "[vdso]":
                groups.setdefault(region.path, []).append(region)
        for path, mappings in groups.items():
            for parts in loads(mappings):
                first = parts[0]
                module = known.get((path, first.start)) or self._module(path, parts)
                if module is not None:
                    yield module

    def _module(self, path: str, parts: list[Region]) -> Module | None:
        try:
            if path == "[vdso]":
                data = self._target.read(parts[0].start, parts[0].end - parts[0].start)
                image = Image(data, "[vdso]")
            else:
                image = load_image(self._file_of(path, parts[0]), self._root)
        except (DarcError, OSError) as error:
            self.problems.append(f"{path}: {error}")
            return None
        low = parts[0]
        for segment in image.segments:
            if segment.offset <= low.offset < segment.offset + max(segment.size, 1):
                bias = low.start - (segment.address + low.offset - segment.offset)
                break
        else:
            bias = low.start - low.offset
        bias &= ~0xFFF
        end = max(bias + s.address + s.size for s in image.segments)
        return Module(
            path=path, name=Path(path).name, bias=bias, start=low.start, end=end, image=image
        )

    def _file_of(self, path: str, part: Region) -> Path:
        """Where to read a mapped file: one that was replaced since, through the mapping itself."""
        pid = self._target.pid
        if not path.endswith(" (deleted)") or pid is None:
            inside, outside = self._root / path.lstrip("/"), Path(path)
            # Of a program in another root folder of the same file system (chroot) the kernel
            # tells paths as this process sees them, in containers as the program does.
            if not inside.exists() and outside.exists() and outside.stat().st_ino == part.inode:
                return outside
            return inside
        mapped = Path(f"/proc/{pid}/map_files/{part.start:x}-{part.end:x}")
        if not os.access(mapped, os.R_OK):
            raise FormatError("the file was replaced while the program runs, and root may read it")
        return mapped

    def module_at(self, address: int) -> Module | None:
        """The module whose mappings hold ``address``."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self.modules[index].end:
            return self.modules[index]
        return None

    def modules_near(self, address: int) -> Iterator[Module]:
        """All modules: the one at ``address`` first, then those that it needs, then what these
        need. The others come last, which it may call indirectly."""
        first, others = self.module_at(address), list(self.modules)
        named = {name: m for m in self.modules for name in (m.name, m.image.soname) if name}
        ready = [] if first is None else [first]
        for module in ready:
            yield module
            needed = (named[name] for name in sorted(module.image.needed) if name in named)
            ready += [other for other in dict.fromkeys(needed) if other not in ready]
        yield from (other for other in others if other not in ready)

    # -------------------------------------------------------------------- names

    def function_at(self, address: int, name: str | None = None) -> Function:
        """The function that starts at or holds ``address``; ``name`` is the one its caller used."""
        found = self._named(address)
        if name is not None and name != found.symbol:
            module = self.module_at(address)
            if module is not None and name in module.image.names_at(address - module.bias):
                shown = display_name(name)
                return Function(shown, name, found.module, found.address, found.offset)
        return found

    @functools.lru_cache(maxsize=65536)  # noqa: B019 - a program lives as long as its session
    def _named(self, address: int) -> Function:
        module = self.module_at(address)
        if module is None:
            return Function(f"{address:#x}", f"{address:#x}", "", address, address)
        symbol = module.image.symbol_at(address - module.bias)
        if symbol is None:
            start = address
            extent = module.image.frame_range(address - module.bias)
            if extent is not None:
                start = extent[0] + module.bias
            offset = start - module.bias
            name = f"{module.name}+{offset:#x}"
            return Function(name, name, module.name, start, offset)
        start = symbol.address + module.bias
        shown = display_name(symbol.name)
        return Function(shown, symbol.name, module.name, start, symbol.address)

    def resolve(self, address: int, depth: int = 0) -> tuple[int, str | None] | None:
        """The function that a call to ``address`` reaches, through PLT entries, with the name
        under which it was called; ``None`` while that is not bound."""
        if depth > 3:
            return None
        slot = self.jump_slot(address)
        if slot is None:
            return address, None
        name = self.slot_name(slot)
        try:
            bound = int.from_bytes(self.read(slot, 8), "little")
        except TargetError:
            return None
        module = self.module_at(address)
        if bound == 0 or (module is not None and self._is_unbound(module, bound)):
            self.unbound += 1
            found = self._exported(name) if name is not None else None
            return None if found is None else (found, name)
        further = self.resolve(bound, depth + 1)
        return None if further is None else (further[0], name or further[1])

    def way_in(self, entry: int) -> int:
        """Where the first instruction of a function is that may be led to a pad."""
        return entry

    def caves(self, low: int, high: int) -> Iterator[int]:
        """Where :data:`~darc.code.x86_64.PATCH_LENGTH` bytes of padding between functions begin,
        from ``low`` to ``high``."""
        module = self.module_at(low)
        place = low
        while module is not None and place <= high:
            extent = module.image.frame_range(place - module.bias)
            if extent is not None:
                place = extent[1] + module.bias
                continue
            if module.image.symbol_at(place - module.bias) is not None or not self.is_code(place):
                place += 1
                continue
            length = self._padding(place)
            yield from range(place, min(place + length - PATCH_LENGTH, high) + 1, PATCH_LENGTH)
            place += max(length, 1)

    def _padding(self, place: int) -> int:
        """How many bytes of padding instructions stand at ``place``."""
        length = 0
        module = self.module_at(place)
        assert module is not None
        for instruction in decode(self.read(place, 16), place):
            at = int(instruction.ip)
            if instruction.mnemonic not in (Mnemonic.NOP, Mnemonic.INT3):
                break
            if module.image.frame_range(at - module.bias) is not None:
                break
            length += instruction.len
        return length

    def _exported(self, name: str) -> int | None:
        """Where a symbol that is not bound yet will be bound to, if only one module has it."""
        if name not in self._exports:
            self._exports[name] = self._read_exported(name)
        return self._exports[name]

    def _read_exported(self, name: str) -> int | None:
        for module in self.modules:
            if any(symbol.ifunc for symbol in module.image.exported(name)):
                return None
        found = self._exporting(name)
        return found[0] if len(found) == 1 else None

    def _exporting(self, name: str) -> list[int]:
        """Wherever a module has a symbol of that name for others."""
        found = {
            symbol.address + module.bias
            for module in self.modules
            for symbol in module.image.exported(name)
        }
        return sorted(found)

    def jump_slot(self, address: int) -> int | None:
        """The GOT slot that a PLT entry at ``address`` jumps through; ``None`` for real code."""
        if address not in self._jump_slots:
            self._jump_slots[address] = self._read_jump_slot(address)
        return self._jump_slots[address]

    def _read_jump_slot(self, address: int) -> int | None:
        module = self.module_at(address)
        if module is None or module.image.symbol_at(address - module.bias) is not None:
            return None
        try:
            code = self.read(address, 16)
        except TargetError:
            return None
        for instruction in decode(code, address)[:2]:
            if instruction.flow_control == FlowControl.INDIRECT_BRANCH:
                if instruction.is_ip_rel_memory_operand:
                    return int(instruction.memory_displacement)
                return None
            if instruction.mnemonic != Mnemonic.ENDBR64:
                return None
        return None

    def slot_name(self, slot: int) -> str | None:
        """The symbol that a GOT slot was made for."""
        module = self.module_at(slot)
        return module.image.got_names.get(slot - module.bias) if module is not None else None

    def _is_unbound(self, module: Module, bound: int) -> bool:
        """Lazy binding: the slot still leads back into its own module's PLT."""
        if not module.start <= bound < module.end:
            return False
        if module.image.symbol_at(bound - module.bias) is not None:
            return False
        code = decode(self.read(bound, 16), bound)
        if code and code[0].mnemonic == Mnemonic.ENDBR64:
            code = code[1:]
        return (
            bool(code)
            and code[0].mnemonic == Mnemonic.PUSH
            and bool(code[0].op0_kind in (OpKind.IMMEDIATE32TO64, OpKind.IMMEDIATE8TO64))
        )

    def callee_at(self, target: int) -> Function:
        """The function that a call to ``target`` enters, through a PLT entry where that is bound;
        one that is not bound yet has the name that it will be bound to."""
        resolved = self.resolve(target)
        if resolved is not None:
            address, name = resolved
            found = self.function_at(address, name)
            if found.address != address:  # into the middle: do not claim the whole function
                return dataclasses.replace(found, address=address)
            return found
        slot = self.jump_slot(target)
        name = self.slot_name(slot) if slot is not None else None
        found = self.function_at(target)
        if name is not None:
            return dataclasses.replace(found, name=display_name(name), symbol=name, address=target)
        return found

    def names_of(self, target: int) -> frozenset[str]:
        """What a call to ``target`` may be a call of, by symbol, as far as files tell."""
        slot = self.jump_slot(target)
        if slot is not None:
            name = self.slot_name(slot)
            return frozenset(() if name is None else (name,))
        module = self.module_at(target)
        return frozenset(() if module is None else module.image.names_at(target - module.bias))

    # --------------------------------------------------------------------- code

    def read(self, address: int, size: int) -> bytes:
        """Memory as it was before darc touched it."""
        found = self.patches.over(address, self._target.read(address, size))
        is_code = self._is_ahead and (self.is_code(address) or self.is_code(address + size - 1))
        if is_code and found != self._in_file(address, size):
            raise NotNowError
        return found

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """While the program runs, whose memory is read beside the debugger: code counts as read
        only where it is what its file has, as breakpoints stand in that memory.

        Raises:
            NotNowError: code is not.
        """
        self._is_ahead = True
        try:
            yield
        finally:
            self._is_ahead = False

    def _in_file(self, address: int, size: int) -> bytes | None:
        """What a module's file has there."""
        module = self.module_at(address)
        return None if module is None else module.image.loaded(address - module.bias, size)

    def forget_code(self) -> None:
        """The program's bytes have changed: read functions anew."""
        self._functions.clear()
        self._far_jumps.clear()
        self._looks.clear()
        self.notrace.clear()
        self._jump_slots.clear()
        self._jumps.clear()

    def function(self, entry: int) -> FunctionCode:
        """The code of the function at ``entry``, read once."""
        found = self._functions.get(entry)
        if found is None:
            found = self._functions[entry] = read_function(entry, self, self.thunks)
        return found

    may_displace = True
    """Whether relays may be made of its code: for instructions that are run elsewhere every thread
    has to be known that may stand among them, for padding that it is nothing else."""

    handled: frozenset[int] = frozenset()
    """Signals of faults for which the program has handlers that may know an instruction by its
    address: what may raise one is executed in its place (see :mod:`darc.code.faults`)."""

    thunks: Thunks | None = None
    """How calls through thunks are told, where there are any."""

    interrupts: Sequence[Site] = ()
    """Handlers that may interrupt any function, each as if it was called there."""

    def meaning(self, node: Fnode) -> tuple[Cause, str | None] | None:
        """Of a function that paths end at, whatever it calls: the cause, and a note."""
        return None

    sees_callers = True
    """Whether functions here that look at their own return address are to find the program's."""

    def why_notrace(self, function: Function) -> str | None:
        """Why no call of ``function`` may go through a pad here; see also
        :mod:`darc.code.notrace`."""
        if self.sees_callers and any(map(self.looks_at_caller, self._bodies(function))):
            return LOOKS
        return None

    def _bodies(self, function: Function) -> list[int]:
        """Where it has its code; behind a PLT entry that is not bound yet, wherever it may be."""
        slot = self.jump_slot(function.address)
        name = self.slot_name(slot) if slot is not None else None
        return [function.address] if name is None else self._exporting(name)

    def looks_at_caller(self, address: int) -> bool:
        """Whether the function, or part of one, at ``address`` looks at its return address itself.
        What it jumps to is asked by itself (:meth:`far_jumps`)."""
        found = self._looks.get(address)
        if found is None:
            found = self._looks[address] = self._read_looks(address)
        return found

    def part_around(self, target: int) -> int:
        """Where the part of a function begins that a jump to ``target`` leads into with the frame
        that the frame information tells of; ``target`` where that tells nothing."""
        module = self.module_at(target)
        own = None if module is None else module.image.frame_range(target - module.bias)
        return target if module is None or own is None else own[0] + module.bias

    def _read_looks(self, address: int) -> bool:
        extent = self.extent(address)
        if extent is None or extent[1] - extent[0] > MAX_FUNCTION:
            return False
        try:
            code = decode(self.read(address, extent[1] - address), address)
        except TargetError:
            return False
        rules = self.frame_rule if address == extent[0] else None
        return return_slot.is_looked_at(address, code, rules, self._only_notes)

    def _only_notes(self, target: int) -> bool:
        return _TSAN in self.names_of(target)

    def site_problem(self, site: Site) -> str | None:
        """Why a call site may not be patched here, whatever its code."""
        if self.in_sequence(site.patch, max(site.back, site.patch + site.length)):
            return "a restartable sequence (rseq) stands in its bytes"
        if self._is_generated(site.address):
            return "its code is generated: the runtime may look for its return addresses"
        return None

    def in_sequence(self, start: int, end: int) -> bool:
        """Whether code of a restartable sequence (``rseq(2)``) lies between the two, or begins
        there where one goes on that was interrupted: the kernel tells by its address whether a
        thread is in the middle of one, so no instruction may be executed elsewhere."""
        return any(
            (one.start < end and start < one.stop) or start < aborted < end
            for one, aborted in self._sequences()
        )

    def _sequences(self) -> list[tuple[range, int]]:
        """All that the files tell of (``__rseq_cs``), and where each is led when it is
        interrupted. What is in memory counts, which is relocated."""
        if self._known_sequences is None:
            self._known_sequences = [one for m in self.modules for one in self._sequences_of(m)]
        return self._known_sequences

    def _sequences_of(self, module: Module) -> Iterator[tuple[range, int]]:
        places = module.image.section_range("__rseq_cs")
        if places is None or places.stop + module.bias > module.end:
            return  # none, or the file is damaged
        size = len(places) // _SEQUENCE.size * _SEQUENCE.size
        rows = self._target.read(places.start + module.bias, size)
        for _, _, start, length, aborted in _SEQUENCE.iter_unpack(rows):
            yield range(start, start + length), aborted

    def _is_generated(self, address: int) -> bool:
        module = self.module_at(address)
        if module is None:
            return True
        own = address - module.bias
        return any(low <= own < high for low, high in module.image.unframed)

    def ordinary_code(self) -> list[range]:
        """Code that compilers have made, by address: not what a runtime makes, which it may know by
        return addresses on stacks."""
        found: list[range] = []
        for module in self.modules:
            bias, unframed = module.bias, module.image.unframed
            for segment in module.image.segments:
                at, last = segment.address, segment.address + segment.size
                if not segment.executable:
                    continue
                for low, high in (*unframed, (last, last)):
                    if at <= low <= last:
                        found.append(range(bias + at, bias + low))
                        at = high
        return sorted((one for one in found if one), key=lambda one: one.start)

    def far_jumps(self, entry: int) -> frozenset[int]:
        """Code outside the function part at ``entry`` that its direct jumps lead to, as its bytes
        tell from the first one on: cheaper than :meth:`function`, as it is asked of thousands."""
        found = self._far_jumps.get(entry)
        if found is None:
            found = self._far_jumps[entry] = frozenset(self._read_far_jumps(entry))
        return found

    def _read_far_jumps(self, entry: int) -> Iterator[int]:
        extent = self.extent(entry)
        if extent is None:
            return
        start, end = extent
        try:
            code = self.read(start, end - start)
        except TargetError:
            return
        for instruction in decode(code, start):
            target = jump_target(instruction)
            if target is not None and not start <= target < end and self.is_code(target):
                yield target

    def extent(self, address: int) -> tuple[int, int] | None:
        """The bytes of the function part around ``address``."""
        module = self.module_at(address)
        if module is None:
            return None
        own = address - module.bias
        extent = module.image.frame_range(own)
        symbol = module.image.symbol_at(own)
        if extent is None and symbol is not None and symbol.size:
            extent = symbol.address, symbol.address + symbol.size
        if extent is None:
            segment = module.image.segment_of(own)
            if segment is None:
                return None
            end = module.image.next_symbol(own) or segment.address + segment.size
            extent = own, min(end, segment.address + segment.size)
        elif symbol is not None and symbol.size and extent[0] < symbol.address < extent[1]:
            # One description over several functions (assembly): the symbols know better.
            extent = symbol.address, min(extent[1], symbol.address + symbol.size)
        return extent[0] + module.bias, extent[1] + module.bias

    def frame_rule(self, address: int) -> FrameRule | None:
        """Where the frame that executes ``address`` has its CFA."""
        module = self.module_at(address)
        return module.image.frame_rule(address - module.bias) if module is not None else None

    def may_fault(self, instruction: Instruction) -> bool:
        """Whether it is to be executed in its place, as the program may know that place when the
        instruction faults (see :attr:`handled`)."""
        if not self.handled:
            return False
        rule = self.frame_rule(int(instruction.ip))
        has_frame = rule is not None and rule.register == "rbp"
        return may_raise(instruction, self.handled, has_frame=has_frame)

    def landing_pads(self, address: int) -> frozenset[int] | None:
        """Where exceptions come back to in the function part around ``address``; ``None`` when
        that is not known."""
        module = self.module_at(address)
        if module is None:
            return frozenset()
        found = module.image.landing_pads(address - module.bias)
        return None if found is None else frozenset(pad + module.bias for pad in found)

    def is_function_start(self, address: int) -> bool:
        """Whether a function, not a part of one, begins at ``address``."""
        module = self.module_at(address)
        if module is None:
            return False
        own = address - module.bias
        if any(not is_cold_name(name) for name in module.image.names_at(own)):
            return True
        extent = module.image.frame_range(own)
        return extent is not None and extent[0] == own and not self.is_cold_part(address)

    def is_cold_part(self, address: int) -> bool:
        """Whether ``address`` begins a part that the compiler split off a function."""
        module = self.module_at(address)
        if module is None:
            return False
        names = module.image.names_at(address - module.bias)
        if names:
            return all(is_cold_name(name) for name in names)
        if self.jump_slot(address) is not None:
            return False
        rule = module.image.frame_rule(address - module.bias)
        return rule is not None and rule != FrameRule("rsp", 8)

    def is_code(self, address: int) -> bool:
        """Whether ``address`` lies in an executable mapping."""
        at = bisect.bisect_right(self._code_starts, address) - 1
        return at >= 0 and address < self._code[at].end

    def is_jumped_into(self, start: int, end: int) -> bool:
        """Whether some function nearby jumps between ``start`` and ``end``, both excluded.

        Compilers do not make such jumps, but hand-written assembly has several entries to one
        piece of code (memcpy's and memmove's, in the C library).
        """
        module = self.module_at(start)
        if module is None:
            return False
        if self.in_sequence(start, end):
            return True
        low = max(start - _NEIGHBOURHOOD, module.start) // _CHUNK * _CHUNK
        high = min(end + _NEIGHBOURHOOD, module.end)
        try:
            for chunk in range(low, high, _CHUNK):
                found = self._jumps_of(chunk, module)
                first = bisect.bisect_left(found, (start + 1, 0))
                last = bisect.bisect_left(found, (end, 0))
                if any(self._is_instruction(place) for _, place in found[first:last]):
                    return True
        except TargetError:
            return True  # who knows
        return False

    def _jumps_of(self, chunk: int, module: Module) -> list[tuple[int, int]]:
        """Targets and places of all that could be a jump in a piece of the module's code."""
        found = self._jumps.get(chunk)
        if found is None:
            start, end = max(chunk, module.start), min(chunk + _CHUNK + _LONGEST_JUMP, module.end)
            seen = jumps(self.read(start, end - start), start)
            found = sorted((target, at) for at, target in seen if at < chunk + _CHUNK)
            self._jumps[chunk] = found
        return found

    def _is_instruction(self, address: int) -> bool:
        """Whether an instruction begins at ``address``, seen from its function's start."""
        extent = self.extent(address)
        if extent is None:
            return False
        code = decode(self.read(extent[0], address - extent[0] + 16), extent[0])
        return any(instruction.ip == address for instruction in code)

    @property
    def has_more(self) -> bool:
        """Whether there are modules that are looked for only when they are needed."""
        return False

    def look_further(self) -> None:
        """Looks for those."""

    def untold(self, spec: str) -> str:
        """What its files cannot tell of a function that was not found, for the end of a line."""
        del spec
        return ""

    def all_symbols(self) -> Iterator[tuple[Module, Symbol]]:
        """Every function symbol of every module."""
        for module in self.modules:
            for symbol in module.image.symbols:
                yield module, symbol

    def modules_called(self, scope: str | None) -> list[Module]:
        """The loaded files that ``lib.so!`` names; all of them for ``None``."""
        return [m for m in self.modules if scope is None or is_called(m.path, scope)]


def _start(region: Region) -> int:
    return region.start


def jumps(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Everything in ``code`` that could be a jump: its place and target."""
    for match in _JUMP.finditer(code):
        kind = match.lastgroup
        assert kind is not None
        place = address + match.start()
        distance = int.from_bytes(match.group(kind), "little", signed=True)
        yield place, place + _JUMP_LENGTHS[kind] + distance
