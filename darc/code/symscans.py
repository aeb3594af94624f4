"""The functions' symbols in megabytes of tables, by address: ``libsymscan.so``, made with the
agent."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_ROW = 24
"""Bytes of a symbol in a file."""

_FOUND = struct.Struct("<QQQIIIIII")
"""``struct symbol`` of ``symscan.c``."""

_WORDS = _FOUND.size // 8
_FLAGS = 9
"""Where the flags are in it, in words of four bytes."""

_HAS_TYPE = 8


@dataclass(frozen=True)
class Table:
    """A table of symbols as a file has it: its ``rows``, their names, two bytes with the version of
    each row where there are any, and the numbers of the sections that are code."""

    rows: bytes
    strings: bytes
    versions: bytes
    code: Collection[int]
    is_dynamic: bool


class Symbol(NamedTuple):
    """A function's symbol. ``address`` and ``size`` in bytes, as the file has them. A file has up
    to millions: a tuple is made in 0.4 µs, a frozen dataclass in 1.2."""

    name: str
    address: int
    size: int
    ifunc: bool
    exported: bool
    is_old: bool = False
    """Whether it is a version for programs that were linked long ago (``memcpy@GLIBC_2.2.5``)."""
    has_type: bool = True
    """Whether it says that it is a function's. Assembler by hand may leave that open."""


_TOLD = [tuple(bool(flags & bit) for bit in (1, 2, 4, _HAS_TYPE)) for flags in range(16)]
"""What a symbol says by the flags of ``symscan.c``, from ``ifunc`` on."""


class FunctionRows:
    """The functions of some tables, each name once at an address; by address, the best name first:
    one that says that it is a function's, marks no section's bounds, is exported, begins with few
    underscores, is global, is short."""

    def __init__(self, tables: Sequence[Table] = (), room: Sequence[bytes] = ()) -> None:
        """``room`` are the beginnings of names that stand for room in front of functions: those are
        left out behind which the function is that has the rest of the name."""
        self._strings = [table.strings for table in tables]
        self._bytes = [(t.rows, t.strings, t.versions, _bitmap(t.code)) for t in tables]
        self._tables = (_TableOfC * max(len(tables), 1))(*map(_TableOfC.of, tables, self._bytes))
        most = sum(len(table.rows) // _ROW for table in tables)
        raw = bytearray(2 * most * _FOUND.size)
        into = (ctypes.c_char * len(raw)).from_buffer(raw)
        count = _library().functions(self._tables, len(tables), into)
        for prefix in room:
            if any(prefix in strings for strings in self._strings):
                count = _library().without(into, count, self._tables, prefix, len(prefix))
        self._raw = bytes(memoryview(raw)[: count * _FOUND.size])
        self.addresses: Sequence[int] = memoryview(self._raw).cast("Q")[::_WORDS]
        """Of all of them, in bytes."""

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, number: int) -> Symbol:
        return self._symbol(_FOUND.unpack_from(self._raw, number * _FOUND.size))

    def __iter__(self) -> Iterator[Symbol]:
        return map(self._symbol, _FOUND.iter_unpack(self._raw))

    def holding(self, part: bytes) -> Sequence[int]:
        """The numbers of those that have ``part`` in their names."""
        numbers = (ctypes.c_uint32 * len(self))()
        count = _library().holding(self._raw, len(self), self._tables, part, len(part), numbers)
        return numbers[:count]

    def untyped(self) -> Sequence[int]:
        """The numbers of those that do not say that they are functions'."""
        flags = memoryview(self._raw).cast("I")[_FLAGS :: 2 * _WORDS]
        return [number for number, known in enumerate(flags) if not known & _HAS_TYPE]

    def _symbol(self, row: tuple[int, ...]) -> Symbol:
        address, size, _, name, length, table, flags, _, _ = row
        text = self._strings[table][name : name + length].decode("utf-8", "surrogateescape")
        return Symbol(text, address, size, *_TOLD[flags])


class _TableOfC(ctypes.Structure):
    """``struct table`` of ``symscan.c``."""

    _fields_ = (
        ("rows", ctypes.c_char_p),
        ("count", ctypes.c_uint64),
        ("strings", ctypes.c_char_p),
        ("length", ctypes.c_uint64),
        ("versions", ctypes.c_char_p),
        ("versioned", ctypes.c_uint64),
        ("code", ctypes.c_char_p),
        ("sections", ctypes.c_uint64),
        ("is_dynamic", ctypes.c_uint64),
    )

    @classmethod
    def of(cls, table: Table, parts: tuple[bytes, bytes, bytes, bytes]) -> _TableOfC:
        """Of the same bytes, which its owner keeps."""
        rows, strings, versions, code = parts
        return cls(
            *(rows, len(rows) // _ROW, strings, len(strings)),
            *(versions, len(versions) // 2, code, len(code), table.is_dynamic),
        )


def _bitmap(sections: Collection[int]) -> bytes:
    found = bytearray(max(sections, default=-1) + 1)
    for number in sections:
        found[number] = 1
    return bytes(found)


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).with_name("libsymscan.so")))
    for function in (library.functions, library.without, library.holding):
        function.restype = ctypes.c_size_t
    tables, many = ctypes.POINTER(_TableOfC), ctypes.c_size_t
    library.functions.argtypes = (tables, many, ctypes.c_void_p)
    library.without.argtypes = (ctypes.c_void_p, many, tables, ctypes.c_char_p, many)
    library.holding.argtypes = (
        *(ctypes.c_char_p, many, tables),
        *(ctypes.c_char_p, many, ctypes.c_void_p),
    )
    return library
