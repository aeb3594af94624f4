"""What a kernel has loaded: modules' names, places and symbols, read from its memory."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from darc.code.debug_file import DebugFile
from darc.code.elf import Image
from darc.code.headers import Segment, no_headers
from darc.code.symbols import PADDING, FunctionSymbols, Listed, Ranked
from darc.code.symscans import Symbol
from darc.model.errors import FormatError, TargetError
from darc.target.memory import Read
from kgdb.btf import Btf

_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTION = 2
_LONGEST_NAME = 512
_NAME_SIZE = 56
_LIVE = 0
_MOST = 4096
"""Modules at most; more is no list but a mistake."""


@dataclass(frozen=True)
class LoadedModule:
    """A module that is in use: its name, where its code is, and where its symbols are."""

    name: str
    start: int
    end: int
    kallsyms: int


class _ModuleSymbols(FunctionSymbols):
    """What the kernel keeps of a module's symbol table."""

    def __init__(self, read: Read, module: LoadedModule) -> None:
        """Raises TargetError: it cannot be read, which it is now, as the kernel may drop it."""
        self._read_memory = read
        self._module = module
        headers = no_headers()
        super().__init__(headers, DebugFile(headers, Path("/")))
        len(self)

    def may_name(self, part: str) -> bool:
        return True

    def may_have(self, function: str) -> bool:
        return True

    def _read(self) -> Listed:
        return Listed(self._ranked())

    def _ranked(self) -> Iterator[Ranked]:
        raw = self._read_memory(self._module.kallsyms, 24)
        table, count, names = struct.unpack("<QI4xQ", raw)
        rows = [*_SYMBOL.iter_unpack(self._read_memory(table, _SYMBOL.size * count))]
        last = max((row[0] for row in rows), default=0)
        strings = self._text(names, last + _LONGEST_NAME)
        for name, info, _other, index, value, size in rows:
            # The kernel keeps a letter of its own in the type: 't' and 'T' are code.
            if not index or not self._module.start <= value < self._module.end:
                continue
            text = strings[name : strings.find(b"\0", name)].decode("ascii", "replace")
            if text and not text.startswith((".L", *PADDING)):
                rank = (info & 15 != _FUNCTION, info >> 4 != 1, len(text))
                at = value - self._module.start
                yield rank, Symbol(text, at, size, ifunc=False, exported=False)

    def _text(self, address: int, size: int) -> bytes:
        """As much of it as there is."""
        try:
            return self._read_memory(address, size)
        except TargetError:
            return self._read_memory(address, size - _LONGEST_NAME + 1)

    def _section_end(self, address: int) -> int:
        return self._module.end - self._module.start


class ModuleImage(Image):
    """A module's functions. Its addresses are counted from the begin of its code; frames are told
    by the code."""

    def __init__(self, read: Read, module: LoadedModule) -> None:
        self.name = module.name
        self.entry = 0
        self.segments = (Segment(0, module.end - module.start, 0, executable=True),)
        self._headers = no_headers()
        self._debug_file = DebugFile(self._headers, Path("/"))
        self.symbols = _ModuleSymbols(read, module)

    @functools.cached_property
    def identity(self) -> str:
        return f"module:{self.name}:{len(self.symbols)}"


def loaded(read: Read, types: Btf, head: int) -> Iterator[LoadedModule]:
    """The modules in the list at ``head`` (the kernel's ``modules``)."""
    link = types.offset("module", "list")
    name, state = types.offset("module", "name"), types.offset("module", "state")
    kallsyms = types.offset("module", "kallsyms")
    base, size = _layout(types)
    at = _word(read, head)
    for _ in range(_MOST):
        if at == head:
            return
        module = at - link
        start = _word(read, module + base)
        length = int.from_bytes(read(module + size, 4), "little")
        if int.from_bytes(read(module + state, 4), "little") == _LIVE:
            text = read(module + name, _NAME_SIZE).split(b"\0")[0].decode("ascii", "replace")
            yield LoadedModule(text, start, start + length, _word(read, module + kallsyms))
        at = _word(read, at)


def _layout(types: Btf) -> tuple[int, int]:
    """Where a module tells the address and the size of its code."""
    try:
        return types.offset("module", "core_layout.base"), types.offset(
            "module", "core_layout.text_size"
        )
    except FormatError:  # since 6.4 an array, code first
        mem = types.offset("module", "mem")
        return (
            mem + types.offset("module_memory", "base"),
            mem + types.offset("module_memory", "size"),
        )


def _word(read: Read, address: int) -> int:
    return int.from_bytes(read(address, 8), "little")
