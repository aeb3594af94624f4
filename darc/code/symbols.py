"""The symbols of one ELF file: its functions, by their names and addresses.

Tables are unpacked in one go, as pyelftools makes an object of each symbol and a library has
100,000. A table is read when it is asked for: of most of a program's files none is. Addresses are
the file's own.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from darc.code.damaged import where_damaged
from darc.code.debug_file import DebugFile
from darc.code.gnu_hash import GnuHash
from darc.code.headers import NOBITS, Headers, segment_at

_FUNCTION_TYPES = {2, 10}  # STT_FUNC, STT_GNU_IFUNC
_OBJECT_TYPE = 1  # STT_OBJECT
_BINDINGS = {1: 0, 2: 1}
"""How good names are by STB_GLOBAL and STB_WEAK."""

_MOST_ENDS = 100
"""Of so many names that end alike each is looked at, which takes as long as reading them does."""

_BEHIND_NAMES = (b"\0", b"@", b".", b" ", b"")
"""What may stand behind a function's name in a symbol that is not mangled."""

PADDING = ("__pfx_", "__cfi_")
"""What begins the names of the room before functions that a compiler has left there for calls to be
traced (objtool's, in a kernel) or checked (clang's), with the function's own name behind it. As
long as nothing but nops stands there, it is room like any other behind the function before."""

_LARGE_FUNCTION = 1 << 20
"""Bytes from which on a symbol's size is not believed without a look."""


class Symbol(NamedTuple):
    """A function's symbol. ``address`` and ``size`` in bytes, as the file has them. A file has up
    to hundreds of thousands: a tuple is made in 0.4 µs, a frozen dataclass in 1.2."""

    name: str
    address: int
    size: int
    ifunc: bool
    exported: bool
    rank: tuple[int, ...]
    is_old: bool = False
    """Whether it is a version for programs that were linked long ago (``memcpy@GLIBC_2.2.5``)."""
    has_type: bool = True
    """Whether it says that it is a function's. Assembler by hand may leave that open."""


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

    def may_have(self, name: bytes) -> bool:
        """Whether a symbol here can be that of a function called ``name``: one that is defined, is
        called so and has only a version or a suffix behind it, or a mangled one, in which each name
        stands behind its length."""
        length = str(len(name)).encode()
        behind = (length, length + b"_")  # as Rust parts it from what begins like a number
        at, ends = -1, 0
        while (at := self.strings.find(name, at + 1)) >= 0:
            if self.strings[max(at - len(length) - 1, 0) : at].endswith(behind):
                return True
            if self.strings[at + len(name) : at + len(name) + 1] in _BEHIND_NAMES:
                ends += 1  # of another name, or of all that linkers let share it
                if ends > _MOST_ENDS or self._is_defined(at):
                    return True
        return False

    def _is_defined(self, name: int) -> bool:
        wanted, at = struct.pack("<I", name), -1
        while (at := self.rows.find(wanted, at + 1)) >= 0:
            if at % 24 == 0 and self.rows[at + 6 : at + 8] not in (b"", b"\0\0"):
                return True
        return False


_MARKS = ("_end", "_start")
"""Of symbols without a type: where a linker's script says that a section ends or begins."""


class FunctionSymbols:
    """The functions' symbols of one file, by address, the best name of an address first."""

    def __init__(self, headers: Headers, debug_file: DebugFile) -> None:
        self._headers = headers
        self._debug_file = debug_file
        self._answers: dict[tuple[frozenset[str], str | None], bool] = {}
        """Of :meth:`if_any`, which is asked the same for each analysis."""

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._symbols)

    def __len__(self) -> int:
        return len(self._symbols)

    @functools.cached_property
    def _symbols(self) -> list[Symbol]:
        return sorted(_functions(self._all_readable()), key=lambda s: (s.address, s.rank))

    @functools.cached_property
    def _addresses(self) -> list[int]:
        return [s.address for s in self._symbols]

    def _all_readable(self) -> list[Symbol]:
        """As many as can be read."""
        found: list[Symbol] = []
        with contextlib.suppress(Exception):  # see darc.code.damaged
            for symbol in self._read():
                found.append(symbol)  # those before the damage are kept
        return found

    def _read(self) -> Iterator[Symbol]:
        seen: set[tuple[str, int]] = set()
        exported = set()
        for table in self._tables:
            strings = table.strings
            usable = len(table.rows) - len(table.rows) % 24
            is_dynamic = table.section == ".dynsym"
            versions = self._versions if is_dynamic else b""
            for number, row in enumerate(struct.iter_unpack("<IBBHQQ", table.rows[:usable])):
                name, info, _other, index, value, size = row
                kind, binding = info & 15, info >> 4
                if kind not in _FUNCTION_TYPES and not (kind == 0 and index in table.code and name):
                    continue
                if index == 0 or value == 0:
                    continue
                end = strings.find(b"\0", name)
                text = strings[name:end].decode("utf-8", "surrogateescape")
                is_old = versions[2 * number + 1 : 2 * number + 2] >= b"\x80"
                if "@" in text:
                    text, _mark, version = text.partition("@")
                    is_old = is_old or not version.startswith("@")
                called = text, value
                if not text or called in seen:
                    continue
                seen.add(called)
                if is_dynamic:
                    exported.add(called)
                is_exported = is_dynamic or called in exported
                rank = (
                    kind == 0,
                    kind == 0 and text.endswith(_MARKS),
                    not is_exported,
                    len(text) - len(text.lstrip("_")),
                    _BINDINGS.get(binding, 2),
                    len(text),
                )
                if size > _LARGE_FUNCTION:
                    size = self._room(value, size)
                yield Symbol(
                    text,
                    value,
                    size,
                    ifunc=kind == 10,
                    exported=is_exported,
                    rank=rank,
                    is_old=is_old,
                    has_type=kind != 0,
                )

    @functools.cached_property
    def _tables(self) -> list[_Table]:
        wanted = (
            (self._headers, ".dynsym"),
            (self._headers, ".symtab"),
            (self._debug_file.headers, ".symtab"),
        )
        found = [_symbol_table(one, name) for one, name in wanted if one is not None]
        return [table for table in found if table is not None]

    @functools.cached_property
    @where_damaged(bytes)
    def _versions(self) -> bytes:
        """For each dynamic symbol two bytes, whose highest bit says that nobody is linked with it
        any more."""
        section = self._headers.section(".gnu.version")
        return b"" if section is None else self._headers.data(section)

    def _room(self, address: int, size: int) -> int:
        """How much of a function that large its segment can hold."""
        segment = segment_at(self._headers.segments, address)
        return 0 if segment is None else min(size, segment.address + segment.size - address)

    def may_name(self, part: str) -> bool:
        """Whether any symbol can have ``part`` in its name: asked before they are all unpacked."""
        wanted = part.encode("utf-8", "surrogateescape")
        return any(wanted in table.strings for table in self._tables)

    def may_have(self, function: str) -> bool:
        """Whether any symbol can be that of a function of this name, its last component without
        arguments: asked before they are all unpacked."""
        if not function.isidentifier():
            return self.may_name(function)
        wanted = function.encode("utf-8", "surrogateescape")
        return any(table.may_have(wanted) for table in self._tables)

    def if_any(self, names: Iterable[str], end: str | None = None) -> list[Symbol]:
        """All symbols, where any of ``names`` is defined here, or a name that ends with ``end``;
        else none. Most files only use what others define, and need not be unpacked for that."""
        asked = frozenset(names), end
        if asked not in self._answers:
            self._answers[asked] = any(
                (end is not None and table.may_define(end.encode(), is_end=True))
                or any(table.may_define(name.encode(), is_end=False) for name in asked[0])
                for table in self._tables
            )
        return self._symbols if self._answers[asked] else []

    @where_damaged(False)
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

    def at(self, address: int) -> Symbol | None:
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
    @where_damaged(list)
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

    def all_at(self, address: int) -> list[Symbol]:
        """Every symbol that stands exactly at ``address``, best first."""
        first = bisect.bisect_left(self._addresses, address)
        last = bisect.bisect_right(self._addresses, address)
        return self._symbols[first:last]

    def names_at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``, best first."""
        return [s.name for s in self.all_at(address)]

    def next_above(self, address: int) -> int | None:
        """Address of the first symbol above ``address``."""
        index = bisect.bisect_right(self._addresses, address)
        return self._addresses[index] if index < len(self._addresses) else None

    @where_damaged(list)
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
                is_late = info & 15 == 10
                found.append(Symbol(name, value, size, ifunc=is_late, exported=True, rank=()))
        return found

    @functools.cached_property
    def _exports(self) -> dict[str, list[Symbol]]:
        found: dict[str, list[Symbol]] = {}
        for symbol in self._symbols:
            if symbol.exported:
                found.setdefault(symbol.name, []).append(symbol)
        return found

    @functools.cached_property
    @where_damaged(None)
    def _hashed(self) -> GnuHash | None:
        section = self._headers.section(".gnu.hash")
        return None if section is None else GnuHash(self._headers.data(section))

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
    @where_damaged(list)
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


def _functions(symbols: list[Symbol]) -> Iterator[Symbol]:
    """``symbols`` without those of the room before functions."""
    known: set[tuple[str, int]] | None = None
    for symbol in symbols:
        start = next(filter(symbol.name.startswith, PADDING), None)
        if start is not None:
            if known is None:
                known = {(other.name, other.address) for other in symbols}
            if (symbol.name.removeprefix(start), symbol.address + symbol.size) in known:
                continue
        yield symbol


@where_damaged(None)
def _symbol_table(headers: Headers, name: str) -> _Table | None:
    section = headers.section(name)
    if section is None or section.kind == NOBITS:
        return None
    strings = headers.data(headers.sections[section.link])
    return _Table(name, headers.data(section), strings, headers.code_sections)
