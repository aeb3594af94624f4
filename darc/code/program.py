"""The running program as code: its modules, the names of its functions, its untouched bytes."""

from __future__ import annotations

import bisect
import dataclasses
import difflib
import functools
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iced_x86 import FlowControl, Instruction, Mnemonic, OpKind

from darc.code import x86_64
from darc.code.demangle import (
    base_symbol,
    demangle_cxx,
    display_name,
    fits,
    plain_rust,
    rust_spelling,
    without_arguments,
    without_tags,
)
from darc.code.elf import FrameRule, Image, Symbol, read_image
from darc.code.faults import may_raise
from darc.code.overlay import Overlay
from darc.model.errors import (
    AmbiguousError,
    DarcError,
    FormatError,
    NotFoundError,
    TargetError,
    UnchosenError,
)
from darc.model.ftree import CallKind, Cause, Fnode, Function
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
_CHUNK = 4096
"""Bytes of code whose jumps are read at a time."""

_LONGEST_COMPARED = 1000
"""Characters of a name that is looked at for likeness, which takes the square of them."""

_JUMP_LENGTHS = {"near": 5, "conditional": 6, "short": 2}


@dataclass(frozen=True)
class Module:
    """A file that is mapped into the program. ``bias`` is added to the file's own addresses."""

    path: str
    name: str
    bias: int
    start: int
    end: int
    image: Image


@functools.lru_cache(maxsize=256)
def _cached_image(path: str, root: str, _stamp: tuple[int, int, int]) -> Image:
    return read_image(Path(path), Path(path).name, Path(root))


def load_image(path: Path, root: Path = Path("/")) -> Image:
    """An image, read once as long as its file does not change.

    Raises:
        FormatError: it cannot be read or is no ELF file.
        UnsupportedError: it is for another machine.
    """
    try:
        seen = path.stat()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    return _cached_image(str(path), str(root), (seen.st_ino, seen.st_size, seen.st_mtime_ns))


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
        self._functions: dict[int, x86_64.Function] = {}
        self._far_jumps: dict[int, frozenset[int]] = {}
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
            for parts in _loads(mappings):
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
        return Module(path, Path(path).name, bias, low.start, end, image)

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
            yield from range(
                place, min(place + length - x86_64.PATCH_LENGTH, high) + 1, x86_64.PATCH_LENGTH
            )
            place += max(length, 1)

    def _padding(self, place: int) -> int:
        """How many bytes of padding instructions stand at ``place``."""
        length = 0
        module = self.module_at(place)
        assert module is not None
        for instruction in x86_64.decode(self.read(place, 16), place):
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
        found: set[int] = set()
        for module in self.modules:
            for symbol in module.image.exported(name):
                if symbol.ifunc:
                    return None
                found.add(symbol.address + module.bias)
        return found.pop() if len(found) == 1 else None

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
        for instruction in x86_64.decode(code, address)[:2]:
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
        code = x86_64.decode(self.read(bound, 16), bound)
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
        return self.patches.over(address, self._target.read(address, size))

    def forget_code(self) -> None:
        """The program's bytes have changed: read functions anew."""
        self._functions.clear()
        self._far_jumps.clear()
        self._jump_slots.clear()
        self._jumps.clear()

    def function(self, entry: int) -> x86_64.Function:
        """The code of the function at ``entry``, read once."""
        found = self._functions.get(entry)
        if found is None:
            found = self._functions[entry] = x86_64.read_function(entry, self, self.thunks)
        return found

    may_displace = True
    """Whether relays may be made of its code: for instructions that are run elsewhere every thread
    has to be known that may stand among them, for padding that it is nothing else."""

    handled: frozenset[int] = frozenset()
    """Signals of faults for which the program has handlers that may know an instruction by its
    address: what may raise one is executed in its place (see :mod:`darc.code.faults`)."""

    thunks: x86_64.Thunks | None = None
    """How calls through thunks are told, where there are any."""

    interrupts: Sequence[x86_64.Site] = ()
    """Handlers that may interrupt any function, each as if it was called there."""

    def meaning(self, node: Fnode) -> tuple[Cause, str | None] | None:
        """Of a function that paths end at, whatever it calls: the cause, and a note."""
        return None

    def denial(self, function: Function) -> str | None:
        """Why no call of ``function`` may go through a pad here; see also
        :mod:`darc.code.denial`."""
        return None

    def site_problem(self, site: x86_64.Site) -> str | None:
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
        for instruction in x86_64.decode(code, start):
            target = x86_64.jump_target(instruction)
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
        if any(not _is_cold_name(name) for name in module.image.names_at(own)):
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
            return all(_is_cold_name(name) for name in names)
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
        code = x86_64.decode(self.read(extent[0], address - extent[0] + 16), extent[0])
        return any(instruction.ip == address for instruction in code)

    # -------------------------------------------------------------------- search

    def all_symbols(self) -> Iterator[tuple[Module, Symbol]]:
        """Every function symbol of every module."""
        for module in self.modules:
            for symbol in module.image.symbols:
                yield module, symbol

    def find(self, spec: str, *, hint: bool = True) -> int:
        """Entry address of ``f``, ``file.c:f``, ``lib.so!f``, ``Class::f`` or ``*ADDRESS``.

        Raises:
            NotFoundError: nothing has that name; near names are told where the user is to see it
                (``hint``), as to find them takes some time.
            AmbiguousError: several functions have it; their exact spellings are told.
        """
        if spec.startswith("*"):
            return self._find_address(spec)
        scope, name = split_spec(spec)
        if scope is not None and not scope.endswith("!"):
            return self._one(spec, set(self._target.functions_in(scope, name)), hint)
        modules = self.modules_called(scope)
        if scope is not None and not modules:
            raise NotFoundError(
                f"no loaded file is called {scope[:-1]}: 'info sharedlibrary' lists them"
            )
        found = find_symbols(((m.image, m.bias) for m in modules), name)
        if not found and scope is None and not name.isidentifier():
            found = set(self._target.functions_called(name))
        found = found if scope is not None else self._not_the_loaders(found)
        return self._one(spec, found, hint)

    def private_copies(self, entry: int, *, live: bool) -> list[str]:
        """What to type for the copies of a function that a compiler has made for its callers:
        clones that have a name, and what is behind a test that was put into them
        (``f.part.0``, which a stripped file does not name), to which ``f`` itself jumps then.
        Addresses are of the running program, or those of its file before it runs."""
        module = self.module_at(entry)
        found = {entry: ""}
        if module is None:
            return []
        own = tuple(module.image.names_at(entry - module.bias))
        for symbol in module.image.symbols:
            if not symbol.name.startswith(own) or symbol.name in own:
                continue  # of a hundred thousand all but a few
            if base_symbol(symbol.name) in own and not _is_cold_name(symbol.name):
                found.setdefault(symbol.address + module.bias, symbol.name)
        for site in self.function(entry).sites:
            if site.kind is CallKind.TAIL and site.target is not None:
                is_named = module.image.symbol_at(site.target - module.bias) is not None
                if not is_named and self.module_at(site.target) is module:
                    address = site.target if live else site.target - module.bias
                    found.setdefault(site.target, f"*{address:#x}")
        return [text for text in found.values() if text]

    def modules_called(self, scope: str | None) -> list[Module]:
        """The loaded files that ``lib.so!`` names; all of them for ``None``."""
        return [m for m in self.modules if scope is None or is_called(m.path, scope)]

    def _not_the_loaders(self, addresses: set[int]) -> set[int]:
        """The dynamic linker has some functions of the C library for itself alone (``memcpy``), and
        is there before that."""
        modules = {address: self.module_at(address) for address in addresses}
        others = {a for a, module in modules.items() if module is None or not _is_loader(module)}
        if others or not addresses or not self._is_loading():
            return others or addresses
        return set()

    def _is_loading(self) -> bool:
        """Whether a library that is loaded with the program is not there yet."""
        there = {name for m in self.modules for name in (m.name, m.image.soname)}
        return not self.problems and any(not m.image.needed <= there for m in self.modules)

    def _find_address(self, spec: str) -> int:
        address = address_of(spec)
        if not self.is_code(address):
            raise NotFoundError(f"no code is mapped at {address:#x}")
        return address

    def _one(self, spec: str, addresses: set[int], hint: bool) -> int:
        resolved = {self._real_entry(address) for address in addresses}
        if len(resolved) == 1:
            entry = resolved.pop()
            if entry in addresses and self._is_resolver(entry):
                raise UnchosenError(
                    f"the program chooses which {spec} it takes when it needs one (IFUNC), and has "
                    "not yet",
                    entry,
                )
            return entry
        if not resolved:
            names = (s.name for _, s in self.all_symbols() if hint)
            raise NotFoundError(not_found(spec, names))
        spelt = {address: self._spelling(address) for address in sorted(resolved)}
        often = Counter(spelt.values())
        # Versions of one symbol, say, have one name and stand in one file.
        exact = [s if often[s] == 1 else f"*{address:#x}" for address, s in spelt.items()]
        listed = ", ".join(sorted(exact))
        raise AmbiguousError(f"{spec} names {len(resolved)} functions: take one of {listed}")

    def _real_entry(self, address: int) -> int:
        """For an indirect function (IFUNC) what its resolver chose, where a GOT slot tells; else
        the resolver."""
        chosen = self._chosen(address) if self._is_resolver(address) else address
        return address if chosen is None else chosen

    def _is_resolver(self, address: int) -> bool:
        module = self.module_at(address)
        symbol = None if module is None else module.image.symbol_at(address - module.bias)
        return symbol is not None and symbol.ifunc

    def _chosen(self, resolver: int) -> int | None:
        """What a slot that ``resolver`` is responsible for leads to by now."""
        for slot in self._slots_of(resolver):
            try:
                bound = int.from_bytes(self.read(slot, 8), "little")
            except TargetError:
                continue
            # Until it is filled it leads into the middle of a PLT, to the resolver or nowhere.
            if bound != resolver and self.is_code(bound) and self.is_function_start(bound):
                return bound
        return None

    def _slots_of(self, resolver: int) -> Iterator[int]:
        own = self.module_at(resolver)
        assert own is not None
        for slot in own.image.resolver_slots.get(resolver - own.bias, ()):
            yield slot + own.bias
        names = {s.name for s in own.image.symbols_at(resolver - own.bias) if not s.is_old}
        for module in self.modules:
            for slot, name in module.image.got_names.items():
                if name in names:
                    yield slot + module.bias

    def _spelling(self, address: int) -> str:
        function = self._named(address)
        signature = rust_spelling(function.symbol) or demangle_cxx(function.symbol)
        if signature is not None and signature != function.name:
            overloads = find_symbols(((m.image, m.bias) for m in self.modules), signature)
            if {self._real_entry(a) for a in overloads} == {address}:
                return signature
        same = {
            self._real_entry(a)
            for a in find_symbols(((m.image, m.bias) for m in self.modules), function.name)
        }
        if same == {address}:
            return function.name
        module = self.module_at(address)
        if module is not None:
            inside = find_symbols([(module.image, module.bias)], function.name)
            if inside == {address}:
                return f"{module.name}!{function.name}"
        line = self._target.line_at(address)
        if line is not None:
            return f"{Path(line[0]).name}:{function.name}"
        return f"*{address:#x}"


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


def _loads(mappings: list[Region]) -> Iterator[list[Region]]:
    """The mappings of a file, one list for each time that it is loaded: from its first bytes up.

    A file may be loaded twice (dlmopen), and a program may map parts of itself beside (node maps
    its snapshot, others read their own file).
    """
    found: list[list[Region]] = []
    for region in mappings:
        if region.offset == 0 or not found:
            found.append([])
        found[-1].append(region)
    for parts in found:
        if any("x" in part.permissions for part in parts):
            yield parts


def find_symbols(images: Iterable[tuple[Image, int]], name: str) -> set[int]:
    """Addresses of the functions called ``name``: the symbol itself, the display name, the whole
    C++ signature, or the last components of these (``f`` finds ``ns::Class::f``). Whole names win
    over parts, functions over the clones that a compiler made of them, and the version of a symbol
    that programs are linked with today over those before."""
    found: dict[int, set[int]] = {}
    last = _last_word(without_tags(name))
    wanted = _spaceless(without_tags(name))
    for image, bias in images:
        if "operator" not in name and not image.may_name(last):
            continue
        for symbol in image.symbols:
            raw = symbol.name
            if last not in raw and "operator" not in name:
                continue
            if _is_cold_name(raw):
                continue
            rank = _match(raw, name, wanted)
            if rank is not None:
                rank = 2 * rank + symbol.is_old
                found.setdefault(rank, set()).add(symbol.address + bias)
    return found[min(found)] if found else set()


def _last_word(name: str) -> str:
    """What a symbol is sure to have in it that is called so: the function's own name."""
    plain = without_arguments(name.split("(", 1)[0]).rsplit("::", 1)[-1]
    return plain.split("<", 1)[0].strip() or name


def symbol_spelling(raw: str) -> str:
    """What to type for a symbol: its C++ signature, its name in Rust, or itself."""
    return rust_spelling(raw) or demangle_cxx(base_symbol(raw)) or raw


def _match(raw: str, name: str, wanted: str) -> int | None:
    """How well a symbol fits: 0 is best; ``None`` when it does not.

    In this order: the symbol itself, the name that is shown, the end of that (``get`` for
    ``Cache::get``), and without the arguments of templates. A clone that the compiler made fits
    less than what it was made of.
    """
    if raw == name:
        return 0
    base = base_symbol(raw)
    clone = 0 if base == raw else 1
    shown = without_tags(display_name(raw))
    if _is_named(shown, wanted):
        return clone if _spaceless(shown) == wanted else 2 + clone
    if "(" in name and (signature := demangle_cxx(base)) is not None:
        # Overloads are told apart by their parameters.
        if _spaceless(without_tags(signature)) == wanted:
            return clone
        if _spaceless(without_tags(signature)).endswith("::" + wanted):
            return 2 + clone
    spelling = rust_spelling(raw)
    if spelling is not None and _is_named(spelling, wanted):
        return clone if _spaceless(spelling) == wanted else 2 + clone
    if "<" in shown:
        plain = shown if spelling is None else plain_rust(shown)
        if _is_named(plain, wanted.replace("::<", "<")):
            return 2 + clone
        if fits(_spaceless(plain), wanted.replace("::<", "<")):
            return 4 + clone
        if _is_named(without_arguments(plain), wanted):
            return 4 + clone
    return None


def _is_named(shown: str, wanted: str) -> bool:
    """Whether that is its name, or the last parts of it."""
    return ("::" + _spaceless(shown)).endswith("::" + wanted)


def _spaceless(text: str) -> str:
    return text.replace(" ", "")


def not_found(spec: str, names: Iterable[str]) -> str:
    """The error line for a function that does not exist, with near names."""
    wanted = split_spec(spec)[1]
    shown = {display_name(name) for name in names if _worth_showing(name, wanted)}
    near = difflib.get_close_matches(wanted, shown, 3, 0.6)
    hint = f" (near names: {', '.join(near)})" if near else ""
    return f"no function is called {spec}{hint}"


_MOST_HOSTS = 5


def inlined_only(spec: str, hosts: Sequence[str]) -> str:
    """The error line for a function that has no code of its own, but copies in ``hosts``."""
    named = ", ".join(hosts[:_MOST_HOSTS])
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    instead = "these" if len(hosts) > 1 else "that"
    return f"{spec} was inlined into {named}{more}: analyse {instead}"


def instead(copies: Sequence[str]) -> str:
    """What to do about a function that was not called, for the end of a line: ``copies`` is what
    compilers may have made its callers call."""
    if not copies:
        return ""
    listed = " or ".join(f"'darc start {copy}'" for copy in copies)
    return f": its callers may call a copy of it that is private to them: {listed}"


def _worth_showing(name: str, wanted: str) -> bool:
    if max(len(name), len(wanted)) > _LONGEST_COMPARED:
        return False
    return abs(len(name) - len(wanted)) < 12 or wanted[:4] in name


def address_of(spec: str) -> int:
    """``*0x401000`` as a number. Raises NotFoundError: it is none."""
    try:
        return int(spec[1:], 0)
    except ValueError:
        raise NotFoundError(f"{spec} is no address: type it as *0x401000") from None


def split_spec(spec: str) -> tuple[str | None, str]:
    """``lib.so!f`` → (``lib.so!``, ``f``); ``file.c:f`` → (``file.c``, ``f``)."""
    if "!" in spec and "operator!" not in spec:
        scope, name = spec.split("!", 1)
        return scope + "!", name
    head, colon, tail = spec.partition(":")
    if colon and not tail.startswith(":") and "::" not in head and "." in head:
        return head, tail
    return None, spec


def is_called(path: str, scope: str) -> bool:
    """Whether a file is the one that is meant by ``lib.so!``, with or without its version."""
    name, wanted = Path(path).name, scope.removesuffix("!")
    return wanted in (name, path) or name.split(".so", 1)[0] == wanted.split(".so", 1)[0]


def _is_loader(module: Module) -> bool:
    return module.name.startswith("ld-linux") or module.name.startswith("ld-musl")


def _is_cold_name(name: str) -> bool:
    return name.endswith(".cold") or ".cold." in name
