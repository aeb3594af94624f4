"""What gdb knows of names and lines, from debug information."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import gdb

from darc.code.demangle import without_arguments
from darc.target.ownthread import Turn, own_thread
from darc.target.shapes import Field, Shape
from darc.target.symbols import Symbols
from darc_gdb import printed
from darc_gdb.filenames import file_name, files_at
from darc_gdb.translated import translated

_PLAIN_FILE = re.compile(r"[\w./+~@][\w./+~@ #%=-]*")
_PLAIN_FUNCTION = re.compile(r"[A-Za-z_~][\w.:~<>()\[\]&*, +/=!|^%-]*")
"""What is no expression in gdb's places; a name from a saved session may be anything."""

_DEBUGGERS_NAME = re.compile(r"[A-Za-z_~][\w:~<>()\[\]{}#&*, +-]*")
"""The same, with what gdb calls implementations in Rust (``{impl#1}``)."""


@own_thread
class GdbSymbols(Symbols):
    """Those of gdb's current program."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    @translated
    def line_at(self, address: int) -> tuple[str, int] | None:
        found = gdb.find_pc_line(address)
        if found.symtab is None or not found.line:
            return None
        name = file_name(found.symtab)
        return None if name is None else (name, int(found.line))

    @translated
    def build_at(self, address: int) -> str | None:
        table = gdb.find_pc_line(address).symtab
        return None if table is None else table.objfile.build_id

    @translated
    def inlined_at(self, address: int) -> tuple[str, ...]:
        names: list[str] = []
        block = gdb.block_for_pc(address)
        while block is not None and not block.is_global and not block.is_static:
            if block.function is not None:
                names.append(_name_of(block.function))
            block = block.superblock
        return tuple(reversed(names[:-1]))

    @translated
    def functions_in(self, file: str, function: str) -> Sequence[int]:
        if not (_PLAIN_FILE.fullmatch(file) and _PLAIN_FUNCTION.fullmatch(function)):
            return []  # gdb would evaluate it, which may call functions, or run programs
        return _entries(f"{file}:{function}", function)

    @translated
    def functions_called(self, function: str) -> Sequence[int]:
        if not _DEBUGGERS_NAME.fullmatch(function):
            return []
        return _entries(function, function)

    @translated
    def shape_of(self, variable: str, address: int) -> Shape | None:
        for symbol in _variables(variable, address):
            place = symbol.value().address
            if place is not None and int(place) == address and symbol.type is not None:
                return _GdbShape(symbol.type)
        return None

    @translated
    def inlined_into(self, function: str) -> Sequence[str]:
        if not _PLAIN_FUNCTION.fullmatch(function):
            return []
        outers = [outer for place in _places(function) if (outer := _outer(place)) is not None]
        others = [_name_of(outer.function) for outer in outers if not _is_meant(outer, function)]
        return list(dict.fromkeys(others))

    @translated
    def knows_file(self, file: str) -> bool:
        if not _PLAIN_FILE.fullmatch(file):
            return False
        try:
            gdb.decode_line(f"{file}:1")
        except gdb.error as error:
            return re.search("No source file|No symbol table", str(error)) is None
        return True

    @translated
    def function_at_line(self, file: str, line: int) -> str | None:
        if not _PLAIN_FILE.fullmatch(file):
            return None
        outers = (_outer(place) for place in _places(f"{file}:{line}"))
        return next((_name_of(outer.function) for outer in outers if outer is not None), None)

    @translated
    def functions_of(self, file: str, prefix: str) -> Sequence[str]:
        if not (_PLAIN_FILE.fullmatch(file) and _PLAIN_FUNCTION.fullmatch(prefix or "f")):
            return []
        return printed.completions(f"break {file}:", prefix)


class _GdbShape(Shape):
    """A type as gdb knows it."""

    def __init__(self, declared: gdb.Type) -> None:
        self._declared = declared
        self._type = declared.strip_typedefs()

    @property
    @translated
    def name(self) -> str:
        return str(self._declared.name or self._type.name or "")

    @property
    @translated
    def size(self) -> int:
        return int(self._type.sizeof)

    @translated
    def fields(self) -> Sequence[Field]:
        if self._type.code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
            return ()
        found = []
        for one in self._type.fields():
            bits = getattr(one, "bitpos", None)  # static members have none; virtual bases neither
            if bits is not None and one.type is not None:
                name = "" if one.is_base_class else str(one.name or "")
                found.append(Field(name, int(bits) // 8, _GdbShape(one.type)))
        return found

    @translated
    def element(self) -> Shape | None:
        is_array = self._type.code == gdb.TYPE_CODE_ARRAY
        return _GdbShape(self._type.target()) if is_array else None


def _variables(name: str, address: int) -> Iterator[gdb.Symbol]:
    """The variables of this name in the file that is at ``address``. Of several static ones there
    gdb tells one; all of them it tells only by reading the debug information of all libraries,
    which was seen to take minutes."""
    look_ups = (
        look_up
        for file in files_at(address)
        for look_up in (file.lookup_global_symbol, file.lookup_static_symbol)
    )
    for look_up in look_ups:
        symbol = look_up(name)
        if symbol is not None and symbol.is_variable and not symbol.needs_frame:
            yield symbol


def _places(spec: str) -> Iterator[int]:
    """Where a breakpoint on ``spec`` would stand."""
    try:
        _, places = gdb.decode_line(spec)
    except gdb.error as error:
        if re.search("not defined|No source file|No symbol table", str(error)):
            return
        raise
    for place in places or ():
        yield int(place.pc)


class _Outer(NamedTuple):
    """A function with code of its own."""

    function: gdb.Symbol
    start: int


def _entries(spec: str, function: str) -> list[int]:
    """Where the functions begin that ``spec`` means to gdb, called ``function``."""
    outers = [outer for place in _places(spec) if (outer := _outer(place)) is not None]
    return sorted({_entry_of(outer) for outer in outers if _is_meant(outer, function)})


def _entry_of(outer: _Outer) -> int:
    # A function may have a part that stands below its entry.
    address = outer.function.value().address
    return outer.start if address is None else int(address)


def _outer(address: int) -> _Outer | None:
    """The function that an address lies in, not of one that was inlined into it."""
    found = None
    block = gdb.block_for_pc(address)
    while block is not None and not block.is_global and not block.is_static:
        if block.function is not None and block.start <= address < block.end:
            found = _Outer(block.function, int(block.start))
        block = block.superblock
    return found


def _is_meant(outer: _Outer, function: str) -> bool:
    """Whether a function is the one that gdb has found by the name ``function``, and none that this
    was inlined into."""
    words = [without_arguments(n.split("(")[0]) for n in (_name_of(outer.function), function)]
    return f"::{words[0]}".endswith(f"::{words[1]}")


def _name_of(function: gdb.Symbol) -> str:
    try:
        return str(function.print_name)
    except UnicodeError:
        return "?"  # gdb has no way to tell a name that is no UTF-8
