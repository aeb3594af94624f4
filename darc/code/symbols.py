"""The symbols of one ELF file: its functions, by their names and addresses.

Tables are looked through by C (:mod:`darc.code.symscans`), as a program has up to millions of
symbols, and is not to stand still while Python makes an object of each. A table is read when it is
asked for: of most of a program's files none is. Addresses are the file's own.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from darc.code.damaged import where_damaged
from darc.code.debug_file import DebugFile
from darc.code.gnu_hash import GnuHash
from darc.code.headers import NOBITS, Headers, segment_at
from darc.code.symscans import Firsts, FunctionRows, Symbol, Table, is_cold_name

_FUNCTION_TYPES = {2, 10}  # STT_FUNC, STT_GNU_IFUNC
_OBJECT_TYPE = 1  # STT_OBJECT
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


Ranked = tuple[tuple[int, ...], Symbol]
"""A symbol behind its rank among those of its address."""


def readable(found: Iterator[Ranked]) -> list[Ranked]:
    """As many as can be read: those before the damage, if there is any."""
    read: list[Ranked] = []
    with contextlib.suppress(Exception):  # see darc.code.damaged
        for one in found:
            read.append(one)
    return read


class Listed:
    """Symbols that are made one by one, with a rank each; by address, the lowest rank first."""

    def __init__(self, ranked: Iterable[Ranked]) -> None:
        ordered = sorted(ranked, key=lambda one: (one[1].address, one[0]))
        self._symbols = _without_padding([symbol for _, symbol in ordered])
        self.addresses: Sequence[int] = [symbol.address for symbol in self._symbols]

    def __len__(self) -> int:
        return len(self._symbols)

    def __getitem__(self, number: int) -> Symbol:
        return self._symbols[number]

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._symbols)

    def holding(self, part: bytes) -> Sequence[int]:
        """As :meth:`darc.code.symscans.FunctionRows.holding`."""
        text = part.decode("utf-8", "surrogateescape")
        return [number for number, symbol in enumerate(self._symbols) if text in symbol.name]

    def whole(self) -> Sequence[int]:
        """As :meth:`darc.code.symscans.FunctionRows.whole`."""
        return [number for number, one in enumerate(self._symbols) if not is_cold_name(one.name)]

    def firsts(self, numbers: Sequence[int], bias: int) -> Firsts:
        """As :meth:`darc.code.symscans.FunctionRows.firsts`."""
        first: dict[int, int] = {}
        for number in numbers:
            if not self[number].ifunc:
                first.setdefault(self[number].address + bias, number)
        late = [number for number in numbers if self[number].ifunc]
        return Firsts(list(first.values()), list(first), late)

    def untyped(self) -> Sequence[int]:
        """As :meth:`darc.code.symscans.FunctionRows.untyped`."""
        return [number for number, symbol in enumerate(self._symbols) if not symbol.has_type]


def _without_padding(symbols: list[Symbol]) -> list[Symbol]:
    """``symbols`` without those of the room before functions."""
    if not any(symbol.name.startswith(PADDING) for symbol in symbols):
        return symbols
    known = {(symbol.name, symbol.address) for symbol in symbols}

    def is_room(symbol: Symbol) -> bool:
        start = next(filter(symbol.name.startswith, PADDING), None)
        if start is None:
            return False
        return (symbol.name.removeprefix(start), symbol.address + symbol.size) in known

    return [symbol for symbol in symbols if not is_room(symbol)]


class FunctionSymbols:
    """The functions' symbols of one file, by address, the best name of an address first."""

    def __init__(self, headers: Headers, debug_file: DebugFile) -> None:
        self._headers = headers
        self._debug_file = debug_file
        self._named: dict[tuple[frozenset[str], str | None], tuple[Symbol, ...]] = {}
        """By what was asked: it is the same for each analysis."""

    def __iter__(self) -> Iterator[Symbol]:
        """By address. Each is made anew, which takes seconds where there are a million: whoever
        knows a part of the names asks :meth:`holding`."""
        return map(self._sized, self._symbols)

    def __len__(self) -> int:
        return len(self._symbols)

    @functools.cached_property
    @where_damaged(FunctionRows)
    def _symbols(self) -> FunctionRows | Listed:
        return self._read()

    def _read(self) -> FunctionRows | Listed:
        """All of them. What is no file of its own reads them otherwise."""
        tables = [
            Table(
                rows=table.rows,
                strings=table.strings,
                versions=self._versions if table.section == ".dynsym" else b"",
                code=table.code,
                is_dynamic=table.section == ".dynsym",
            )
            for table in self._tables
        ]
        return FunctionRows(tables, [start.encode() for start in PADDING])

    @property
    def addresses(self) -> Sequence[int]:
        """Of all of them."""
        return self._symbols.addresses

    def __getitem__(self, number: int) -> Symbol:
        """By its number, from 0, by address."""
        return self._symbol(number)

    def numbers(self, part: str | None = None) -> Sequence[int]:
        """The numbers of those that have ``part`` in their names, or of all that are no part of a
        function which a compiler put aside as unlikely."""
        if part is None:
            return self._symbols.whole()
        return self._symbols.holding(part.encode("utf-8", "surrogateescape"))

    def firsts(self, numbers: Sequence[int] | None, bias: int) -> Firsts:
        """Of those with these ``numbers``, or all, one for each address: the best one whose code
        is not chosen late. ``bias`` is added."""
        return self._symbols.firsts(range(len(self)) if numbers is None else numbers, bias)

    def _symbol(self, number: int) -> Symbol:
        return self._sized(self._symbols[number])

    def _sized(self, symbol: Symbol) -> Symbol:
        if symbol.size <= _LARGE_FUNCTION:
            return symbol
        return symbol._replace(size=self._room(symbol.address, symbol.size))

    @functools.cached_property
    def _tables(self) -> list[_Table]:
        wanted = (
            (self._headers, ".dynsym"),
            (self._headers, ".symtab"),
            (self._debug_file.headers, ".symtab"),
        )
        found = [_symbol_table(one, name) for one, name in wanted if one is not None]
        return [table for table in found if table is not None]

    @property
    def is_stripped(self) -> bool:
        """Whether there are those alone that the file shows to others, if any."""
        return all(
            one is None or one.section(".symtab") is None
            for one in (self._headers, self._debug_file.headers)
        )

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

    def holding(self, part: str) -> list[Symbol]:
        """Those that have ``part`` in their names, by address."""
        return list(map(self._symbol, self.numbers(part)))

    @property
    def untyped(self) -> list[Symbol]:
        """Those that do not say that they are functions', by address."""
        return list(map(self._symbol, self._symbols.untyped()))

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

    def named(self, names: Iterable[str], end: str | None = None) -> tuple[Symbol, ...]:
        """Those with one of these ``names``, or one that ends with ``end``, by address. Most files
        only use what others define, and need not be unpacked for that."""
        asked = frozenset(names), end
        if asked not in self._named:
            parts = [name for name in asked[0] if self._may_define(name, is_end=False)]
            found = {s for part in parts for s in self.holding(part) if s.name == part}
            if end is not None and self._may_define(end, is_end=True):
                found |= {s for s in self.holding(end) if s.name.endswith(end)}
            self._named[asked] = tuple(sorted(found, key=lambda s: (s.address, s.name)))
        return self._named[asked]

    def _may_define(self, name: str, *, is_end: bool) -> bool:
        return any(table.may_define(name.encode(), is_end=is_end) for table in self._tables)

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
        addresses = self._symbols.addresses
        index = bisect.bisect_right(addresses, address) - 1
        if index < 0:
            return None
        start = addresses[index]
        here = self.all_at(start)
        best = here[0]
        sized = next((s for s in here if s.size), best)
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
        addresses = self._symbols.addresses
        first = bisect.bisect_left(addresses, address)
        last = bisect.bisect_right(addresses, address, first)
        return list(map(self._symbol, range(first, last)))

    def names_at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``, best first."""
        return [s.name for s in self.all_at(address)]

    def next_above(self, address: int) -> int | None:
        """Address of the first symbol above ``address``."""
        addresses = self._symbols.addresses
        index = bisect.bisect_right(addresses, address)
        return addresses[index] if index < len(addresses) else None

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
                found.append(Symbol(name, value, size, ifunc=is_late, exported=True))
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


@where_damaged(None)
def _symbol_table(headers: Headers, name: str) -> _Table | None:
    section = headers.section(name)
    if section is None or section.kind == NOBITS:
        return None
    strings = headers.data(headers.sections[section.link])
    return _Table(name, headers.data(section), strings, headers.code_sections)
