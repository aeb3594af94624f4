"""The functions' symbols in megabytes of tables, by address: ``libsymscan.so``, made with the
agent."""

from __future__ import annotations

import ctypes
import functools
import struct
from array import array
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


class Firsts(NamedTuple):
    """One symbol for each address, of some."""

    numbers: Sequence[int]
    """Of the first ones whose code the program does not choose late,"""
    addresses: Sequence[int]
    """and where these are."""
    late: Sequence[int]
    """The numbers of all others that it does choose late (``ifunc``)."""


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

    def whole(self) -> Sequence[int]:
        """The numbers of those that are no part which a compiler put aside as unlikely."""
        numbers = (ctypes.c_uint32 * len(self))()
        count = _library().whole(self._raw, len(self), self._tables, numbers)
        return array("I", memoryview(numbers)[:count].tobytes())

    def firsts(self, numbers: Sequence[int], bias: int) -> Firsts:
        """Of those with these ``numbers``, which ascend, one for each address, ``bias`` added."""
        kept, late = array("I", numbers), array("I", bytes(4 * len(numbers)))
        addresses, lates = array("Q", bytes(8 * len(numbers))), ctypes.c_size_t()
        places = (one.buffer_info()[0] for one in (addresses, late))
        count = _library().firsts(
            *(self._raw, kept.buffer_info()[0], len(kept), bias % (1 << 64)),
            *places,
            ctypes.byref(lates),
        )
        return Firsts(kept[:count], addresses[:count], late[: lates.value])

    def untyped(self) -> Sequence[int]:
        """The numbers of those that do not say that they are functions'."""
        flags = memoryview(self._raw).cast("I")[_FLAGS :: 2 * _WORDS]
        return [number for number, known in enumerate(flags) if not known & _HAS_TYPE]

    def _symbol(self, row: tuple[int, ...]) -> Symbol:
        address, size, _, name, length, table, flags, _, _ = row
        text = self._strings[table][name : name + length].decode("utf-8", "surrogateescape")
        return Symbol(text, address, size, *_TOLD[flags])


def is_cold_name(name: str) -> bool:
    """Whether it is that of the part of a function that a compiler put aside as unlikely."""
    return name.endswith(".cold") or ".cold." in name


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
    for function in (
        *(library.functions, library.without, library.holding),
        *(library.whole, library.firsts),
    ):
        function.restype = ctypes.c_size_t
    tables, many = ctypes.POINTER(_TableOfC), ctypes.c_size_t
    library.functions.argtypes = (tables, many, ctypes.c_void_p)
    library.without.argtypes = (ctypes.c_void_p, many, tables, ctypes.c_char_p, many)
    library.holding.argtypes = (
        *(ctypes.c_char_p, many, tables),
        *(ctypes.c_char_p, many, ctypes.c_void_p),
    )
    library.whole.argtypes = (ctypes.c_char_p, many, tables, ctypes.c_void_p)
    library.firsts.argtypes = (
        *(ctypes.c_char_p, ctypes.c_void_p, many, ctypes.c_uint64),
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    )
    return library
