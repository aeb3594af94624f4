"""What a program's functions are called, and which functions a name stands for."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from darc.code.demangle import display_name
from darc.code.modules import Loaded, Module
from darc.code.spelling import is_called
from darc.code.symbols import Symbol
from darc.model.ftree import Function


class Names:
    """The names that a program's files give to its code. Those of addresses are kept until others
    may be loaded there."""

    def __init__(self, program: Loaded) -> None:
        self._program = program

    def forget(self) -> None:
        """Other files are loaded now."""
        self._named.cache_clear()

    def function_at(self, address: int, name: str | None = None) -> Function:
        """The function that starts at or holds ``address``; ``name`` is the one its caller used."""
        found = self._named(address)
        if name is not None and name != found.symbol:
            module = self._program.module_at(address)
            if module is not None and name in module.image.symbols.names_at(address - module.bias):
                shown = display_name(name)
                return Function(shown, name, found.module, found.address, found.offset)
        return found

    def at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``."""
        module = self._program.module_at(address)
        return [] if module is None else module.image.symbols.names_at(address - module.bias)

    @functools.lru_cache(maxsize=65536)  # noqa: B019 - a program lives as long as its session
    def _named(self, address: int) -> Function:
        module = self._program.module_at(address)
        if module is None:
            return Function(f"{address:#x}", f"{address:#x}", "", address, address)
        symbol = module.image.symbols.at(address - module.bias)
        if symbol is None:
            start = address
            extent = module.image.frames.extent(address - module.bias)
            if extent is not None:
                start = extent[0] + module.bias
            offset = start - module.bias
            is_main = offset == module.image.unnamed_main
            name = "main" if is_main else f"{module.name}+{offset:#x}"
            return Function(name, name, module.name, start, offset)
        start = symbol.address + module.bias
        shown = display_name(symbol.name)
        return Function(shown, symbol.name, module.name, start, symbol.address)

    def all_symbols(self) -> Iterator[tuple[Module, Symbol]]:
        """Every function symbol of every module."""
        for module in self._program.modules:
            for symbol in module.image.symbols:
                yield module, symbol

    def modules_called(self, scope: str | None) -> list[Module]:
        """The loaded files that ``lib.so!`` names; all of them for ``None``."""
        modules = self._program.modules
        return [
            m
            for m in modules
            if scope is None or is_called(m.path, scope) or is_called(m.name, scope)
        ]

    def operations(self, name: str) -> list[int]:
        """The functions that an object of that name leads to: in a kernel, the operations of a file
        system or a driver (``struct file_operations`` and the like)."""
        del name
        return []

    def untold(self, spec: str) -> str:
        """What its files cannot tell of a function that was not found, for the end of a line."""
        del spec
        return ""
