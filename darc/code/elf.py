"""One ELF file: symbols, frame information and the names behind its PLT and GOT.

Headers (:mod:`darc.code.headers`) and symbol tables are unpacked in one go, as pyelftools makes an
object of each and a library has 100,000; frames are pyelftools'. A table is read when it is asked
for: of most of a program's files none is. Addresses are the file's own (add the load bias).

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
import itertools
import lzma
import mmap
import os
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from elftools.dwarf.callframe import CIE, FDE, CallFrameInfo, RegisterRule
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from darc.code import lsda
from darc.code.gnu_hash import GnuHash
from darc.code.headers import (
    MACHINE,
    NOBITS,
    Content,
    FileContent,
    Headers,
    HeldContent,
    Segment,
)
from darc.model.errors import DarcError, FormatError, UnsupportedError

_F = TypeVar("_F", bound=Callable[..., Any])

_FUNCTION_TYPES = {2, 10}  # STT_FUNC, STT_GNU_IFUNC
_OBJECT_TYPE = 1  # STT_OBJECT
_GLOBAL, _WEAK = 1, 2
_R_IRELATIVE = 37
_DT_NEEDED, _DT_SONAME = 1, 14
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


@dataclass(frozen=True)
class Symbol:
    """A function's symbol. ``address`` and ``size`` in bytes, as the file has them."""

    name: str
    address: int
    size: int
    ifunc: bool
    exported: bool
    rank: tuple[int, ...]
    is_old: bool = False
    """Whether it is a version for programs that were linked long ago (``memcpy@GLIBC_2.2.5``)."""


@dataclass(frozen=True)
class FrameRule:
    """Where a frame's CFA is: ``[register] + offset``, or with ``through`` set
    ``*([register] + through) + offset`` (a frame that realigned its stack)."""

    register: str
    offset: int
    through: int | None = None


@dataclass(frozen=True)
class _Table:
    """A table of symbols, their names, and which sections are code."""

    section: str
    rows: bytes
    strings: bytes
    code: frozenset[int]

    def may_define(self, name: bytes, *, is_end: bool) -> bool:
        """Whether a symbol is defined here that is called ``name``, before any version; or whose
        name ends so, with ``is_end``."""
        at = -1
        while (at := self.strings.find(name, at + 1)) >= 0:
            if self.strings[at + len(name) : at + len(name) + 1] not in (b"\0", b"@"):
                continue
            # Rows tell where a name begins, and linkers let names share their ends.
            start = self.strings.rfind(b"\0", 0, at) + 1 if is_end else at
            if any(map(self._is_defined, range(start, at + 1))):
                return True
        return False

    def _is_defined(self, name: int) -> bool:
        wanted, at = struct.pack("<I", name), -1
        while (at := self.rows.find(wanted, at + 1)) >= 0:
            if at % 24 == 0 and self.rows[at + 6 : at + 8] not in (b"", b"\0\0"):
                return True
        return False


class Image:
    """What one ELF file says. Built from bytes, so that live memory (the vdso) serves as well."""

    def __init__(
        self, data: bytes | mmap.mmap | Content, name: str, root: Path = Path("/")
    ) -> None:
        """``root`` is where a file's separate debug file is looked for.

        Raises:
            FormatError: it is no ELF file, or damaged.
            UnsupportedError: it is for another machine.
        """
        content = HeldContent(data) if isinstance(data, (bytes, mmap.mmap)) else data
        start = content.read(0, 20)
        machine = (start[4], int.from_bytes(start[18:20], "little")) if len(start) == 20 else None
        if start[:4] == b"\x7fELF" and machine not in (None, MACHINE):
            raise UnsupportedError(f"{name} is not a 64-bit x86 program, which darc needs")
        try:
            self._headers = Headers(content)
        except Exception:  # see the module
            raise FormatError(f"{name} is not an ELF file, or it is damaged") from None
        self.name = name
        self._root = root
        self.segments = self._read_segments()
        if not self.segments:
            raise FormatError(f"{name} has nothing to load: it is damaged, or no program")
        self.entry: int = self._headers.entry
        self._latest_rules: tuple[range, list[tuple[int, FrameRule | None]]] = range(0), []

    @_or(tuple)
    def _read_segments(self) -> tuple[Segment, ...]:
        return self._headers.segments

    @functools.cached_property
    @_or(None)
    def _debug(self) -> Headers | None:
        """Its separate debug file: welcome, never needed."""
        content = self._headers.content
        path = content.path if isinstance(content, FileContent) else None
        return None if path is None else _debug_file(self._headers, path, self._root)

    def _all_symbols(self) -> list[Symbol]:
        """As many as can be read."""
        found: list[Symbol] = []
        with contextlib.suppress(Exception):  # see the module
            for symbol in self._read_symbols():
                found.append(symbol)  # those before the damage are kept
        return found

    # ------------------------------------------------------------------ symbols

    @functools.cached_property
    def _tables(self) -> list[_Table]:
        wanted = (
            (self._headers, ".dynsym"),
            (self._headers, ".symtab"),
            (self._debug, ".symtab"),
        )
        found = [_symbol_table(one, name) for one, name in wanted if one is not None]
        return [table for table in found if table is not None]

    def may_name(self, part: str) -> bool:
        """Whether any symbol can have ``part`` in its name: asked before they are all unpacked."""
        wanted = part.encode("utf-8", "surrogateescape")
        return any(wanted in table.strings for table in self._tables)

    def symbols_if_any(self, names: Iterable[str], end: str | None = None) -> list[Symbol]:
        """All symbols, where any of ``names`` is defined here, or a name that ends with ``end``;
        else none. Most files only use what others define, and need not be unpacked for that."""
        for table in self._tables:
            if end is not None and table.may_define(end.encode(), is_end=True):
                return self.symbols
            if any(table.may_define(name.encode(), is_end=False) for name in names):
                return self.symbols
        return []

    def object_at(self, address: int) -> tuple[str, int] | None:
        """The variable that holds ``address`` (as the file has it), and how many bytes into it that
        is; ``None`` where no symbol tells."""
        starts = [start for start, _, _ in self._objects]
        index = bisect.bisect_right(starts, address) - 1
        if index < 0:
            return None
        start, end, name = self._objects[index]
        return (name, address - start) if address < end else None

    @functools.cached_property
    @_or(list)
    def _objects(self) -> list[tuple[int, int, str]]:
        found = {}
        for table in self._tables:
            usable = len(table.rows) - len(table.rows) % 24
            for name, info, _other, index, value, size in struct.iter_unpack(
                "<IBBHQQ", table.rows[:usable]
            ):
                if info & 15 == _OBJECT_TYPE and index and value and size:
                    end = table.strings.find(b"\0", name)
                    text = table.strings[name:end].decode("utf-8", "surrogateescape")
                    found[value] = (value, value + size, text.partition("@")[0])
        return sorted(found.values())

    def _read_symbols(self) -> Iterator[Symbol]:
        seen: set[tuple[str, int]] = set()
        exported = set()
        for table in self._tables:
            strings = table.strings
            usable = len(table.rows) - len(table.rows) % 24
            versions = self._versions if table.section == ".dynsym" else b""
            for number, row in enumerate(struct.iter_unpack("<IBBHQQ", table.rows[:usable])):
                name, info, _other, index, value, size = row
                kind, binding = info & 15, info >> 4
                if kind not in _FUNCTION_TYPES and not (kind == 0 and index in table.code and name):
                    continue
                if index == 0 or value == 0:
                    continue
                end = strings.find(b"\0", name)
                text = strings[name:end].decode("utf-8", "surrogateescape")
                text, mark, version = text.partition("@")
                is_old = bool(mark) and not version.startswith("@")
                is_old = is_old or versions[2 * number + 1 : 2 * number + 2] >= b"\x80"
                if not text or (text, value) in seen:
                    continue
                seen.add((text, value))
                if table.section == ".dynsym":
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
                is_exported = (text, value) in exported
                yield Symbol(text, value, size, kind == 10, is_exported, rank, is_old)

    @functools.cached_property
    @_or(bytes)
    def _versions(self) -> bytes:
        """For each dynamic symbol two bytes, whose highest bit says that nobody is linked with it
        any more."""
        section = self._headers.section(".gnu.version")
        return b"" if section is None else self._headers.data(section)

    def _room(self, address: int, size: int) -> int:
        """How much of a function that large its segment can hold."""
        segment = self.segment_of(address)
        return 0 if segment is None else min(size, segment.address + segment.size - address)

    @functools.cached_property
    def _symbols(self) -> list[Symbol]:
        return sorted(self._all_symbols(), key=lambda s: (s.address, s.rank))

    @functools.cached_property
    def _addresses(self) -> list[int]:
        return [s.address for s in self._symbols]

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
            (s.address, s.address + s.size)
            for s in self._headers.sections
            if s.is_loaded and s.size
        )

    def _section_end(self, address: int) -> int:
        """Where the section that holds ``address`` ends (``.init`` is not ``.plt``)."""
        bounds = self._section_bounds
        index = bisect.bisect_right(bounds, (address, 1 << 64)) - 1
        return bounds[index][1] if index >= 0 else address + 1

    def symbols_at(self, address: int) -> list[Symbol]:
        """Every symbol that stands exactly at ``address``, best first."""
        first = bisect.bisect_left(self._addresses, address)
        last = bisect.bisect_right(self._addresses, address)
        return self._symbols[first:last]

    def names_at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``, best first."""
        return [s.name for s in self.symbols_at(address)]

    @functools.cached_property
    def _exports(self) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for symbol in self._symbols:
            if symbol.exported:
                found.setdefault(symbol.name, []).append(symbol)
        return found

    @_or(list)
    def exported(self, name: str) -> list[Symbol]:
        """The dynamic symbols called ``name``: all files are asked for what one of them imports,
        so the linker's own table is looked into where there is one."""
        if self._hashed is None:
            return self._exports.get(name, [])
        table = next(table for table in self._tables if table.section == ".dynsym")
        raw = name.encode("utf-8", "surrogateescape")
        found = []
        for number in self._hashed.look_up(raw):
            at, info, _, index, value, size = struct.unpack_from("<IBBHQQ", table.rows, 24 * number)
            if table.strings[at : at + len(raw) + 1] not in (raw + b"\0", raw + b"@"):
                continue
            if info & 15 in _FUNCTION_TYPES and index and value:
                found.append(Symbol(name, value, size, info & 15 == 10, True, ()))
        return found

    @functools.cached_property
    @_or(None)
    def _hashed(self) -> GnuHash | None:
        section = self._headers.section(".gnu.hash")
        return None if section is None else GnuHash(self._headers.data(section))

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

    @_or(None)
    def loaded(self, address: int, size: int) -> bytes | None:
        """The bytes that the file has for ``address``, as far as one of its segments reaches."""
        segment = self.segment_of(address)
        if segment is None:
            return None
        at = address - segment.address
        return self._headers.content.read(segment.offset + at, min(size, segment.size - at))

    @functools.cached_property
    def identity(self) -> str:
        """Tells builds apart: the build id in hexadecimal digits, or ``sha256:`` and the digest of
        the whole file where the linker left none."""
        build_id = _build_id(self._headers)
        if build_id is not None:
            return build_id
        return f"sha256:{hashlib.sha256(self._whole()).hexdigest()}"

    @_or(bytes)
    def _whole(self) -> bytes:
        content = self._headers.content
        return content.read(0, content.size)

    @_or(False)
    def has_section(self, name: str) -> bool:
        """Whether the file has a section of that name."""
        return self._headers.section(name) is not None

    @_or(None)
    def section_range(self, name: str) -> range | None:
        """Where the section of that name is in memory, by the file's own addresses."""
        found = self._headers.section(name)
        if found is None or not found.is_loaded:
            return None
        return range(found.address, found.address + found.size)

    @_or(False)
    def defines(self, name: str) -> bool:
        """Whether the file has a symbol of that name, of whatever kind."""
        wanted = b"\0" + name.encode() + b"\0"
        for table in self._tables:
            at = table.strings.find(wanted) + 1
            if at and any(
                row[0] == at and row[3] != 0
                for row in struct.iter_unpack(
                    "<IBBHQQ", table.rows[: len(table.rows) - len(table.rows) % 24]
                )
            ):
                return True
        return False

    @_or(False)
    def holds(self, text: bytes) -> bool:
        """Whether these bytes stand in a section of constants."""
        constants = self._headers.section(".rodata")
        return constants is not None and text in self._headers.data(constants)

    @functools.cached_property
    @_or(dict)
    def got_names(self) -> dict[int, str]:
        """Names behind GOT slots, by the slot's address, from the dynamic relocations."""
        names: dict[int, str] = {}
        headers = self._headers
        dynsym = headers.section(".dynsym")
        for section_name in (".rela.plt", ".rela.dyn"):
            section = headers.section(section_name)
            if section is None or dynsym is None or section.kind != _SHT_RELA:
                continue
            strings = headers.data(headers.sections[dynsym.link])
            table, symbols = headers.data(section), headers.data(dynsym)
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
    @_or(dict)
    def resolver_slots(self) -> dict[int, list[int]]:
        """Slots that the file's own indirect functions (IFUNC) fill when it is loaded, by the
        address of the function that chooses."""
        slots: dict[int, list[int]] = {}
        for name in (".rela.plt", ".rela.dyn", ".rela.iplt"):
            section = self._headers.section(name)
            if section is None or section.kind != _SHT_RELA:
                continue
            table = self._headers.data(section)
            for offset, info, addend in struct.iter_unpack("<QQq", table[: len(table) // 24 * 24]):
                if info & 0xFFFFFFFF == _R_IRELATIVE:
                    slots.setdefault(addend, []).append(offset)
        return slots

    @functools.cached_property
    def needed(self) -> frozenset[str]:
        """The libraries that are to be loaded with it, by the names that they give themselves."""
        return frozenset(self._dynamic_names(_DT_NEEDED))

    @functools.cached_property
    def soname(self) -> str | None:
        """The name that a library gives itself; it may be mapped from a file of another one."""
        return next(iter(self._dynamic_names(_DT_SONAME)), None)

    @_or(list)
    def _dynamic_names(self, wanted: int) -> list[str]:
        section = self._headers.section(".dynamic")
        if section is None:
            return []
        table = self._headers.data(section)
        strings = self._headers.data(self._headers.sections[section.link])
        return [
            os.fsdecode(strings[at : strings.find(b"\0", at)])
            for tag, at in struct.iter_unpack("<QQ", table[: len(table) // 16 * 16])
            if tag == wanted
        ]

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
        section = self._headers.section(".eh_frame")
        header = self._headers.section(".eh_frame_hdr")
        if section is None or section.kind == NOBITS:
            return None
        data = self._headers.data(section)
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
        info = CallFrameInfo(io.BytesIO(data), len(data), section.address, structs, True)
        if header is None or header.kind == NOBITS:
            return info, section.address, b"", 0, 0
        table = self._headers.data(header)
        if table[:4] != b"\x01\x1b\x03\x3b":  # sdata4 pcrel pointer, udata4 count, sdata4 datarel
            return info, section.address, b"", 0, 0
        count = min(struct.unpack_from("<I", table, 8)[0], (len(table) - 12) // 8)
        return info, section.address, table, count, header.address

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
        for headers in (self._headers, self._debug):
            elf = None if entries or headers is None else _with_dwarf(headers)
            if elf is not None:
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
        _, frame_address, table, _, header_address = frames
        number = bisect.bisect_right(self._fde_starts, address - header_address)
        if not number:
            return None
        place = struct.unpack_from("<i", table, 12 + (number - 1) * 8 + 4)[0] + header_address
        found = self._entry_at(place - frame_address)
        return found if found is not None and found[0] <= address < found[1] else None

    @functools.cached_property
    def _fde_starts(self) -> array[int]:
        """Where the search table's entries begin, as it tells them."""
        assert self._frames is not None
        _, _, table, count, _ = self._frames
        return array("i", table[12 : 12 + 8 * count])[::2]

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def _entry_at(self, offset: int) -> tuple[int, int, FDE] | None:
        """The entry there in .eh_frame, which many addresses are asked for."""
        assert self._frames is not None
        entry = self._frames[0]._parse_entry_at(offset)
        if not isinstance(entry, FDE):
            return None
        start = entry["initial_location"]
        return start, start + entry["address_range"], entry

    def frame_range(self, address: int) -> tuple[int, int] | None:
        """The extent that one frame description covers around ``address``."""
        found = self._fde(address)
        return found[:2] if found else None

    @functools.cached_property
    @_or(list)
    def unframed(self) -> list[tuple[int, int]]:
        """Long stretches of code that no frame information tells of, in a file that has it for
        other code: made by no compiler as the rest is, but in a runtime's own way."""
        frames = self._frames
        if frames is not None and frames[3]:
            table, count, at = frames[2], frames[3], frames[4]
            rows = struct.iter_unpack("<ii", table[12 : 12 + 8 * count])
            starts = [start + at for start, _ in rows]
        else:
            starts = [start for start, _, _ in self._all_fdes]
        if not starts:
            return []
        return [
            (low, high)
            for segment in self.segments
            if segment.executable
            for low, high in self._gaps(starts, segment)
            if high - low >= _LONG
        ]

    def _gaps(self, starts: list[int], segment: Segment) -> Iterator[tuple[int, int]]:
        first, last = segment.address, segment.address + segment.size
        known = starts[bisect.bisect_left(starts, first) : bisect.bisect_left(starts, last)]
        for low, high in itertools.pairwise((first, *known, last)):
            if high - low >= _LONG:
                extent = self.frame_range(low)
                yield low if extent is None else extent[1], high

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
        extent, rules = self._latest_rules
        if address not in extent:
            found = self.frame_range(address)
            if found is None:
                return None
            rules = self._frame_rules(found[0])
            self._latest_rules = range(*found), rules  # most are asked for one after the other
        index = bisect.bisect_right(rules, address, key=_first) - 1
        return rules[index][1] if index >= 0 else None

    def warm_up(self) -> None:
        """Reads what is read once, when it is first asked for: it takes up to some 100 ms in a
        large file. Any thread."""
        self.symbol_at(0)
        self.frame_range(0)
        self.imports_any(())

    @functools.lru_cache(maxsize=1024)  # noqa: B019
    @_or(list)
    def _frame_rules(self, start: int) -> list[tuple[int, FrameRule | None]]:
        """Where each rule begins to hold, in order."""
        found: list[tuple[int, FrameRule | None]] = []
        for pc, current, _ in self._frame_rows(start):
            if current.expr is not None:
                found.append((pc, _expression_rule(bytes(current.expr))))
                continue
            register = _REGISTERS.get(current.reg)
            found.append((pc, FrameRule(register, current.offset) if register else None))
        return found

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
        for section in self._headers.sections:
            start = section.address
            if start <= pointer < start + section.size and section.kind != NOBITS:
                return lsda.landing_pads(self._headers.data(section), start, pointer, found[0])
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
        if any(map(self.may_name, _UNWINDING)) and any(
            name.startswith(_UNWINDING) for name in self.got_names.values()
        ):
            return False
        return not self.name.startswith(("libc.so", "libc-", "libpthread", "ld-"))

    @_or(list)
    def exception_returns(self) -> list[int]:
        """Entries of the functions that end as only gcc's ``__builtin_eh_return`` does: the
        unwinder's, which a stripped program does not name."""
        found: set[int] = set()
        for section in self._headers.sections:
            if not section.is_code or section.kind == NOBITS:
                continue
            data, at = self._headers.data(section), -1
            while (at := data.find(_EH_RETURN, at + 1)) >= 0:
                extent = self.frame_range(section.address + at)
                if extent is not None:
                    found.add(extent[0])
        return sorted(found)


def _first(row: tuple[int, FrameRule | None]) -> int:
    return row[0]


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

_SHT_RELA = 4

_LONG = 512 << 10
"""Bytes of code without frame information that are more than what is written by hand, or than a C
library that was built without it."""

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
        content = FileContent(path)
        content.read(0, 1)
    except (OSError, ValueError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"cannot read {path}: {reason}") from None
    return Image(content, name, root)


@_or(None)
def _symbol_table(headers: Headers, name: str) -> _Table | None:
    section = headers.section(name)
    if section is None or section.kind == NOBITS:
        return None
    strings = headers.data(headers.sections[section.link])
    return _Table(name, headers.data(section), strings, headers.code_sections)


@_or(None)
def _build_id(headers: Headers) -> str | None:
    return headers.build_id(_LARGEST_NOTE)


def _with_dwarf(headers: Headers) -> ELFFile | None:
    """The file for pyelftools, where what that reads for ``.debug_frame`` can be what it says."""
    if headers.section(".debug_frame") is None and headers.section(".zdebug_frame") is None:
        return None
    elf = ELFFile(io.BytesIO(headers.content.read(0, headers.content.size)))
    sane = all(
        section["sh_type"] != "SHT_NOBITS"
        and (not section.compressed or section.data_size <= _LARGEST_UNPACKED)
        for section in elf.iter_sections()
        if section.name.startswith((".debug_", ".zdebug_", ".eh_frame"))
    )
    return elf if sane and elf.has_dwarf_info() else None


def _debug_file(headers: Headers, path: Path, root: Path) -> Headers | None:
    """By its build id, its debug link, or within itself (MiniDebugInfo)."""
    candidates: list[Path] = []
    build_id = _build_id(headers)
    if build_id is not None:
        tail = f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
        candidates += [root / tail, Path("/") / tail]
    link = headers.section(".gnu_debuglink")
    if link is not None:
        name = os.fsdecode(headers.data(link).split(b"\0", 1)[0])
        if name and "/" not in name:
            candidates += [path.parent / name, path.parent / ".debug" / name]
    for candidate in candidates:
        if candidate.is_file() and candidate != path:
            return Headers(FileContent(candidate))
    mini = headers.section(".gnu_debugdata")
    if mini is not None:
        unpacked = lzma.LZMADecompressor().decompress(headers.data(mini), _LARGEST_UNPACKED)
        return Headers(HeldContent(unpacked))
    return None
