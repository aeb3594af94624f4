"""One ELF file: symbols, frame information and the names behind its PLT and GOT.

Symbol tables are unpacked in one go, as pyelftools makes an object of each symbol and a library
has 100,000; everything else is pyelftools. Addresses are the file's own (add the load bias).

A file may be damaged, by accident or on purpose, and pyelftools then raises what its parsers happen
to meet: dozens of kinds of exceptions. None of them gets out of here. Without its headers a file is
refused; where one of its tables cannot be read, the file says nothing there (:func:`_or`). No table
is read that is larger than the file, and nothing is said of code that no segment holds.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import io
import lzma
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from elftools.common.exceptions import ELFError
from elftools.dwarf.callframe import CIE, FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from darc.code import lsda
from darc.errors import DarcError, FormatError, UnsupportedError

_F = TypeVar("_F", bound=Callable[..., Any])

_FUNCTION_TYPES = {2, 10}  # STT_FUNC, STT_GNU_IFUNC
_GLOBAL, _WEAK = 1, 2
_R_COPY_LIKE = {6: "GLOB_DAT", 7: "JUMP_SLOT", 1: "64"}

_LARGEST_UNPACKED = 512 << 20
"""Bytes that a compressed table may have."""

_LARGE_FUNCTION = 1 << 20
"""Bytes from which on a symbol's size is not believed without a look."""

_LARGEST_NOTE = 1 << 16
"""Bytes of a section of notes that is looked at."""


def _or(default: object) -> Callable[[_F], _F]:
    """Where the file is damaged, a function says ``default``."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except DarcError:
                raise
            except Exception:  # see the module: the parsers' kinds cannot be listed
                return default() if isinstance(default, type) else default

        return wrapper  # type: ignore[return-value]

    return decorate


def _data(section: Any) -> bytes:
    """The content of a section. Raises ValueError where it is none that a file can have."""
    if section["sh_type"] == "SHT_NOBITS":
        raise ValueError("the section has no content")
    if section.compressed and section.data_size > _LARGEST_UNPACKED:
        raise ValueError("the section unpacks to more than it can be")
    return bytes(section.data())


class _File(ELFFile):
    """Reads no hash tables: of a large library they take longer than all the rest, and nothing here
    asks for them."""

    def _make_section(self, section_header: Any) -> Section:
        if section_header["sh_type"] in ("SHT_HASH", "SHT_GNU_HASH"):
            return Section(section_header, self._get_section_name(section_header), self)
        return super()._make_section(section_header)


def _open(stream: Any, size: int) -> ELFFile:
    """The file in ``stream``, of ``size`` bytes. Raises ELFError, or whatever the parser meets, for
    one whose headers cannot be."""
    elf = _File(stream)
    for offset, count, each in (
        (elf["e_shoff"], elf.num_sections(), elf["e_shentsize"]),
        (elf["e_phoff"], elf.num_segments(), elf["e_phentsize"]),
    ):
        if count and (each < 56 or offset + count * each > size):
            raise ELFError("its headers lie outside")
    return elf


@dataclass(frozen=True)
class Symbol:
    """A function's symbol. ``address`` and ``size`` in bytes, as the file has them."""

    name: str
    address: int
    size: int
    ifunc: bool
    exported: bool
    rank: tuple[int, ...]


@dataclass(frozen=True)
class FrameRule:
    """Where a frame's CFA is: ``[register] + offset``, or with ``through`` set
    ``*([register] + through) + offset`` (a frame that realigned its stack)."""

    register: str
    offset: int
    through: int | None = None


@dataclass(frozen=True)
class Segment:
    """A loaded segment: file range, address and whether it is executable."""

    address: int
    size: int
    offset: int
    executable: bool


_X86_64 = (2, 62)
"""The class and the machine of such a file: ELFCLASS64, EM_X86_64."""


def _machine(data: bytes | mmap.mmap) -> tuple[int, int] | None:
    """The class and the machine that an ELF file is for; ``None`` where it ends before that."""
    return (data[4], int.from_bytes(data[18:20], "little")) if len(data) >= 20 else None


class Image:
    """What one ELF file says. Built from bytes, so that live memory (the vdso) serves as well."""

    def __init__(self, data: bytes | mmap.mmap, name: str, debug: ELFFile | None = None) -> None:
        if bytes(data[:4]) == b"\x7fELF" and _machine(data) not in (None, _X86_64):
            raise UnsupportedError(f"{name} is not a 64-bit x86 program, which darc needs")
        try:
            # A mapped file is as good a stream.
            stream: Any = data if isinstance(data, mmap.mmap) else io.BytesIO(data)
            self._elf = _open(stream, len(data))
            machine = self._elf.get_machine_arch()
        except Exception:  # see the module
            raise FormatError(f"{name} is not an ELF file, or it is damaged") from None
        if machine != "x64":
            raise UnsupportedError(f"{name} is not a 64-bit x86 program, which darc needs")
        self.name = name
        self._debug = debug
        self.segments = tuple(self._read_segments())
        if not self.segments:
            raise FormatError(f"{name} has nothing to load: it is damaged, or no program")
        self.entry: int = self._elf["e_entry"]
        self.is_position_independent = self._elf["e_type"] == "ET_DYN"
        self._symbols: list[Symbol] = sorted(self._all_symbols(), key=lambda s: (s.address, s.rank))
        self._addresses = [s.address for s in self._symbols]

    @_or(list)
    def _read_segments(self) -> list[Segment]:
        return [
            Segment(s["p_vaddr"], s["p_memsz"], s["p_offset"], bool(s["p_flags"] & 1))
            for s in self._elf.iter_segments()
            if s["p_type"] == "PT_LOAD" and s["p_vaddr"] + s["p_memsz"] <= _ADDRESSES
        ]

    def _all_symbols(self) -> list[Symbol]:
        """As many as can be read."""
        found: list[Symbol] = []
        with contextlib.suppress(Exception):  # see the module
            for symbol in self._read_symbols():
                found.append(symbol)  # those before the damage are kept
        return found

    # ------------------------------------------------------------------ symbols

    def _read_symbols(self) -> Iterator[Symbol]:
        seen: set[tuple[str, int]] = set()
        exported = set()
        for elf, section_name in (
            (self._elf, ".dynsym"),
            (self._elf, ".symtab"),
            (self._debug, ".symtab"),
        ):
            found = None if elf is None else self._symbol_table(elf, section_name)
            if found is None:
                continue
            table, strings, executable = found
            usable = len(table) - len(table) % 24
            for name, info, _other, index, value, size in struct.iter_unpack(
                "<IBBHQQ", table[:usable]
            ):
                kind, binding = info & 15, info >> 4
                if kind not in _FUNCTION_TYPES and not (kind == 0 and index in executable and name):
                    continue
                if index == 0 or value == 0:
                    continue
                end = strings.find(b"\0", name)
                text = strings[name:end].decode("utf-8", "surrogateescape")
                text = text.split("@", 1)[0]
                if not text or (text, value) in seen:
                    continue
                seen.add((text, value))
                if section_name == ".dynsym":
                    exported.add((text, value))
                rank = (
                    kind == 0,
                    (text, value) not in exported,
                    len(text) - len(text.lstrip("_")),
                    {_GLOBAL: 0, _WEAK: 1}.get(binding, 2),
                    len(text),
                )
                if size > _LARGE_FUNCTION:
                    size = self._room(value, size)
                yield Symbol(text, value, size, kind == 10, (text, value) in exported, rank)

    def _room(self, address: int, size: int) -> int:
        """How much of a function that large its segment can hold."""
        segment = self.segment_of(address)
        return 0 if segment is None else min(size, segment.address + segment.size - address)

    @classmethod
    @_or(None)
    def _symbol_table(cls, elf: ELFFile, name: str) -> tuple[bytes, bytes, set[int]] | None:
        """A table, its strings, and which sections are code."""
        section = elf.get_section_by_name(name)
        if section is None or section["sh_type"] == "SHT_NOBITS":
            return None
        strings = _data(elf.get_section(section["sh_link"]))
        return _data(section), strings, cls._executable_sections(elf)

    @staticmethod
    def _executable_sections(elf: ELFFile) -> set[int]:
        return {i for i, s in enumerate(elf.iter_sections()) if s["sh_flags"] & 4}

    @property
    def symbols(self) -> list[Symbol]:
        """All function symbols, by address, the best name of an address first."""
        return self._symbols

    def symbol_at(self, address: int) -> Symbol | None:
        """The best symbol whose extent holds ``address``."""
        index = bisect.bisect_right(self._addresses, address) - 1
        if index < 0:
            return None
        start = self._addresses[index]
        first = bisect.bisect_left(self._addresses, start)
        best = self._symbols[first]
        sized = next((s for s in self._symbols[first : index + 1] if s.size), best)
        if sized.size and address >= start + sized.size:
            return None
        if not sized.size and self._section_end(start) <= address:
            return None
        return best

    @functools.cached_property
    @_or(list)
    def _section_bounds(self) -> list[tuple[int, int]]:
        return sorted(
            (s["sh_addr"], s["sh_addr"] + s["sh_size"])
            for s in self._elf.iter_sections()
            if s["sh_flags"] & 2 and s["sh_size"]
        )

    def _section_end(self, address: int) -> int:
        """Where the section that holds ``address`` ends (``.init`` is not ``.plt``)."""
        bounds = self._section_bounds
        index = bisect.bisect_right(bounds, (address, 1 << 64)) - 1
        return bounds[index][1] if index >= 0 else address + 1

    def names_at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``, best first."""
        first = bisect.bisect_left(self._addresses, address)
        last = bisect.bisect_right(self._addresses, address)
        return [s.name for s in self._symbols[first:last]]

    @functools.cached_property
    def _exports(self) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for symbol in self._symbols:
            if symbol.exported:
                found.setdefault(symbol.name, []).append(symbol)
        return found

    def exported(self, name: str) -> list[Symbol]:
        """The dynamic symbols called ``name``."""
        return self._exports.get(name, [])

    def next_symbol(self, address: int) -> int | None:
        """Address of the first symbol above ``address``."""
        index = bisect.bisect_right(self._addresses, address)
        return self._addresses[index] if index < len(self._addresses) else None

    def segment_of(self, address: int) -> Segment | None:
        """The loaded segment that holds ``address``."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.size:
                return segment
        return None

    @functools.cached_property
    def identity(self) -> str:
        """Tells builds apart: the build id in hexadecimal digits, or ``sha256:`` and the digest of
        the whole file where the linker left none."""
        build_id = _build_id(self._elf)
        if build_id is not None:
            return build_id
        stream = self._elf.stream
        stream.seek(0)
        return f"sha256:{hashlib.sha256(stream.read()).hexdigest()}"

    @_or(False)
    def has_section(self, name: str) -> bool:
        """Whether the file has a section of that name."""
        return self._elf.get_section_by_name(name) is not None

    @functools.cached_property
    @_or(dict)
    def got_names(self) -> dict[int, str]:
        """Names behind GOT slots, by the slot's address, from the dynamic relocations."""
        names: dict[int, str] = {}
        dynsym = self._elf.get_section_by_name(".dynsym")
        for section_name in (".rela.plt", ".rela.dyn"):
            section = self._elf.get_section_by_name(section_name)
            if section is None or dynsym is None or section["sh_type"] != "SHT_RELA":
                continue
            strings = _data(self._elf.get_section(dynsym["sh_link"]))
            table, symbols = _data(section), _data(dynsym)
            for offset, info, _addend in struct.iter_unpack("<QQq", table[: len(table) // 24 * 24]):
                index = info >> 32
                if (info & 0xFFFFFFFF) not in _R_COPY_LIKE or not index:
                    continue
                if index * 24 + 4 > len(symbols):
                    continue
                name = struct.unpack_from("<I", symbols, index * 24)[0]
                text = strings[name : strings.find(b"\0", name)].decode("utf-8", "surrogateescape")
                names[offset] = text.split("@", 1)[0]
        return names

    @functools.cached_property
    def _imports(self) -> frozenset[str]:
        return frozenset(self.got_names.values())

    def imports_any(self, names: Iterable[str]) -> bool:
        """Whether the file calls one of ``names`` in another file."""
        return not self._imports.isdisjoint(names)

    # -------------------------------------------------------- frame information

    @functools.cached_property
    @_or(None)
    def _frames(self) -> tuple[CallFrameInfo, int, bytes, int, int] | None:
        section = self._elf.get_section_by_name(".eh_frame")
        header = self._elf.get_section_by_name(".eh_frame_hdr")
        if section is None or section["sh_type"] == "SHT_NOBITS":
            return None
        data = _data(section)
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
        info = CallFrameInfo(io.BytesIO(data), len(data), section["sh_addr"], structs, True)
        table = b"" if header is None or header["sh_type"] == "SHT_NOBITS" else _data(header)
        if table[:4] != b"\x01\x1b\x03\x3b":  # sdata4 pcrel pointer, udata4 count, sdata4 datarel
            return info, section["sh_addr"], b"", 0, 0
        count = min(struct.unpack_from("<I", table, 8)[0], (len(table) - 12) // 8)
        assert header is not None
        return info, section["sh_addr"], table, count, header["sh_addr"]

    @functools.cached_property
    @_or(list)
    def _all_fdes(self) -> list[tuple[int, int, FDE | int]]:
        """For files without a search table (or with .debug_frame alone): start, end, and the entry
        or its offset in .eh_frame."""
        found: list[tuple[int, int, FDE | int]] = []
        entries: list[Any] = []
        if self._frames is not None:
            info, address = self._frames[:2]
            scanned = _scan(info, address)
            if scanned:
                return sorted(scanned)
            entries = info.get_entries()
        for elf in (self._elf, self._debug):
            if not entries and elf is not None and elf.has_dwarf_info() and _has_sane_dwarf(elf):
                dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
                if dwarf.has_CFI():
                    entries = dwarf.CFI_entries()
        for entry in entries:
            if isinstance(entry, FDE):
                start = entry["initial_location"]
                found.append((start, start + entry["address_range"], entry))
        return sorted(found, key=lambda f: f[0])

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - images live as long as the session
    @_or(None)
    def _fde(self, address: int) -> tuple[int, int, FDE] | None:
        found = self._find_fde(address)
        if found is None:
            return None
        segment = self.segment_of(found[0])
        inside = segment is not None and found[1] <= segment.address + segment.size
        return found if inside else None

    def _find_fde(self, address: int) -> tuple[int, int, FDE] | None:
        frames = self._frames
        if frames is None or not frames[3]:
            fdes = self._all_fdes
            index = bisect.bisect_right(fdes, address, key=lambda f: f[0]) - 1
            if index < 0 or address >= fdes[index][1]:
                return None
            start, end, known = fdes[index]
            parsed: object = known
            if isinstance(known, int):
                assert frames is not None
                parsed = frames[0]._parse_entry_at(known)
            return (start, end, parsed) if isinstance(parsed, FDE) else None
        info, frame_address, table, count, header_address = frames
        low, high = 0, count
        wanted = address - header_address
        while low < high:
            middle = (low + high) // 2
            if struct.unpack_from("<i", table, 12 + middle * 8)[0] <= wanted:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        place = struct.unpack_from("<i", table, 12 + (low - 1) * 8 + 4)[0] + header_address
        entry = info._parse_entry_at(place - frame_address)
        if not isinstance(entry, FDE):
            return None
        start = entry["initial_location"]
        end = start + entry["address_range"]
        return (start, end, entry) if start <= address < end else None

    def frame_range(self, address: int) -> tuple[int, int] | None:
        """The extent that one frame description covers around ``address``."""
        found = self._fde(address)
        return found[:2] if found else None

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @_or(list)
    def _frame_rows(self, start: int) -> list[tuple[int, Any, bool]]:
        """Where a row begins, its CFA, and whether there is a caller to return to."""
        found = self._fde(start)
        if found is None:
            return []
        # pyelftools decodes no table that holds this one, which says nothing of the CFA.
        instructions = found[2].instructions
        instructions[:] = [i for i in instructions if i.opcode != _GNU_ARGS_SIZE]
        rows = found[2].get_decoded().table  # fails at an operation that pyelftools does not know
        returns = [getattr(row.get(_RETURN_COLUMN), "type", None) for row in rows]
        return [
            (row["pc"], row["cfa"], kind != RegisterRule.UNDEFINED)
            for row, kind in zip(rows, returns, strict=True)
        ]

    @_or(None)
    def frame_rule(self, address: int) -> FrameRule | None:
        """How to find the CFA at ``address``; ``None`` when the file does not say, or says it in a
        form that pads do not follow."""
        extent = self.frame_range(address)
        if extent is None:
            return None
        current = None
        for pc, rule, _ in self._frame_rows(extent[0]):
            if pc > address:
                break
            current = rule
        if current is None:
            return None
        if current.expr is not None:
            return _expression_rule(bytes(current.expr))
        register = _REGISTERS.get(current.reg)
        return FrameRule(register, current.offset) if register else None

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @_or(None)
    def landing_pads(self, address: int) -> frozenset[int] | None:
        """Where exceptions come back to in the code that one frame description covers around
        ``address``; ``None`` when the file has it in a form that is not known."""
        found = self._fde(address)
        if found is None or not any(found[2].augmentation_bytes or b""):
            return frozenset()
        pointer = found[2].lsda_pointer
        if pointer is None:
            return frozenset()
        for section in self._elf.iter_sections():
            start = section["sh_addr"]
            if start <= pointer < start + section["sh_size"] and section["sh_type"] != "SHT_NOBITS":
                return lsda.landing_pads(_data(section), start, pointer, found[0])
        return None

    @_or(True)
    def may_be_called(self, address: int) -> bool:
        """Whether a call may lead to ``address``, as far as the file tells: frame information of a
        program's or a thread's first code says that there is no caller, that of trampolines that
        more than a return address lies on the stack."""
        extent = self.frame_range(address)
        rows = [] if extent is None else self._frame_rows(extent[0])
        before = [row for row in rows if row[0] <= address]
        if not before:
            return True
        _, cfa, returns = before[-1]
        if cfa.expr is not None:
            return False
        return returns and (cfa.reg is None or (cfa.reg, cfa.offset) == (_STACK_POINTER, 8))

    @functools.cached_property
    def brings_its_unwinder(self) -> bool:
        """Whether it handles exceptions (C++, Rust) and takes the unwinder from no other file."""
        if not self.has_section(".gcc_except_table"):
            return False
        if any(name.startswith(_UNWINDING) for name in self.got_names.values()):
            return False
        return not self.name.startswith(("libc.so", "libc-", "libpthread", "ld-"))

    @_or(list)
    def exception_returns(self) -> list[int]:
        """Entries of the functions that end as only gcc's ``__builtin_eh_return`` does: the
        unwinder's, which a stripped program does not name."""
        found: set[int] = set()
        for section in self._elf.iter_sections():
            if not section["sh_flags"] & 4 or section["sh_type"] == "SHT_NOBITS":
                continue
            data, at = _data(section), -1
            while (at := data.find(_EH_RETURN, at + 1)) >= 0:
                extent = self.frame_range(section["sh_addr"] + at)
                if extent is not None:
                    found.add(extent[0])
        return sorted(found)


def _scan(info: CallFrameInfo, address: int) -> list[tuple[int, int, FDE | int]] | None:
    """Start, end and offset of each entry of .eh_frame, where all have the form that compilers
    give them; ``None``: they have not. pyelftools alone takes a second for each megabyte."""
    info.stream.seek(0)
    data = info.stream.read()
    found: list[tuple[int, int, FDE | int]] = []
    is_usual: dict[int, bool] = {}
    at = 0
    while at + 16 <= len(data):
        length, above, distance, size = struct.unpack_from("<IIiI", data, at)
        if length == 0:
            at += 4
            continue
        if length >= len(data) - at:
            return None  # also the mark of 64 bits
        if above:
            common = at + 4 - above
            if common not in is_usual:
                parsed = info._parse_entry_at(common)
                encoding = isinstance(parsed, CIE) and parsed.augmentation_dict.get("FDE_encoding")
                is_usual[common] = encoding == _PCREL_SDATA4
            if not is_usual[common]:
                return None
            start = address + at + 8 + distance
            found.append((start, start + size, at))
        at += 4 + length
    return found


_PCREL_SDATA4 = 0x1B

_ADDRESSES = 1 << 64

_GNU_ARGS_SIZE = 0x2E  # DW_CFA_GNU_args_size
_UNWINDING = ("_Unwind_", "__cxa_throw", "__gxx_personality", "__gcc_personality", "unw_")
_EH_RETURN = bytes.fromhex("4889cc59ffe1")  # mov rsp, rcx; pop rcx; jmp rcx

_STACK_POINTER = 7
_RETURN_COLUMN = 16
"""The return address in rows of frame information."""

_REGISTERS = {
    0: "rax", 1: "rdx", 2: "rcx", 3: "rbx", 4: "rsi", 5: "rdi", 6: "rbp", 7: "rsp",
    8: "r8", 9: "r9", 10: "r10", 11: "r11", 12: "r12", 13: "r13", 14: "r14", 15: "r15",
}  # fmt: skip


def _sleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise IndexError("no number of 64 bits")
        if not byte & 0x80:
            return value - (1 << shift if byte & 0x40 else 0), at


def _expression_rule(expression: bytes) -> FrameRule | None:
    """``breg r, n; deref`` with an optional constant added: gcc's realigned frames."""
    try:
        if not 0x70 <= expression[0] <= 0x7F:
            return None
        register = _REGISTERS[expression[0] - 0x70]
        through, at = _sleb(expression, 1)
        if expression[at] != 0x06:
            return None
        rest = expression[at + 1 :]
        if not rest:
            return FrameRule(register, 0, through)
        if rest[0] == 0x23:  # plus_uconst; small values only
            value, end = _sleb(rest, 1)
            return FrameRule(register, value, through) if end == len(rest) and value >= 0 else None
    except IndexError:
        pass
    return None


def read_image(path: Path, name: str, root: Path = Path("/")) -> Image:
    """Reads a file as the process sees it (``root`` is ``/proc/PID/root`` or ``/``), with its
    separate debug file where there is one (build id, debug link, MiniDebugInfo).

    Raises:
        FormatError: it cannot be read or is no ELF file.
        UnsupportedError: it is for another machine.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "it is too large"
        raise FormatError(f"cannot read {path}: {reason}") from None
    debug = None
    with contextlib.suppress(Exception):  # welcome, never needed; and see the module
        debug = _debug_file(_read(data), path, root)
    return Image(data, name, debug)


def _read(data: bytes) -> ELFFile:
    return _open(io.BytesIO(data), len(data))


@_or(None)
def _build_id(elf: ELFFile) -> str | None:
    section = elf.get_section_by_name(".note.gnu.build-id")
    if section is None or section["sh_size"] > _LARGEST_NOTE:
        return None
    for note in section.iter_notes():  # type: ignore[attr-defined]
        if note["n_type"] == "NT_GNU_BUILD_ID" and isinstance(note["n_desc"], str):
            return str(note["n_desc"]) or None
    return None


def _has_sane_dwarf(elf: ELFFile) -> bool:
    """Whether the sections that pyelftools reads for ``.debug_frame`` can be what they say."""
    return all(
        section["sh_type"] != "SHT_NOBITS"
        and (not section.compressed or section.data_size <= _LARGEST_UNPACKED)
        for section in elf.iter_sections()
        if section.name.startswith((".debug_", ".zdebug_", ".eh_frame"))
    )


def _debug_file(elf: ELFFile, path: Path, root: Path) -> ELFFile | None:
    candidates: list[Path] = []
    build_id = _build_id(elf)
    if build_id is not None:
        tail = f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        candidates += [root / tail, Path("/") / tail]
    link = elf.get_section_by_name(".gnu_debuglink")
    if link is not None:
        name = os.fsdecode(_data(link).split(b"\0", 1)[0])
        if name and "/" not in name:
            candidates += [path.parent / name, path.parent / ".debug" / name]
    for candidate in candidates:
        if candidate.is_file() and candidate != path:
            return _read(candidate.read_bytes())
    mini = elf.get_section_by_name(".gnu_debugdata")
    if mini is not None:
        return _read(lzma.LZMADecompressor().decompress(_data(mini), _LARGEST_UNPACKED))
    return None
