"""What a program's functions are called, and which functions a name stands for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

from darc.code.demangle import display_name
from darc.code.modules import Loaded, Module
from darc.code.spelling import is_called
from darc.code.symscans import Symbol
from darc.model.ftree import Function

_SIZELESS_REACH = 0x1000
"""Bytes that a symbol without a size is believed to name. Behind a file's last symbol of assembler
may be hundreds of kilobytes of functions that have none, nor a description of their frames."""


def _is_borrowed(symbol: Symbol, address: int, extent: tuple[int, int] | None) -> bool:
    """Whether a symbol is merely the nearest one before an ``address`` of another function, as all
    that is known of that one (``extent``) tells."""
    if symbol.size or address == symbol.address:
        return False
    if extent is not None and extent[0] > symbol.address:
        return True
    return address - symbol.address >= _SIZELESS_REACH


def _unnamed(module: Module, start: int) -> Function:
    """The function that begins at ``start``, which no symbol tells of."""
    offset = start - module.bias
    name = "main" if offset == module.image.unnamed_main else f"{module.name}+{offset:#x}"
    return Function(name=name, symbol=name, module=module.name, address=start, offset=offset)


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
                return Function(
                    name=shown,
                    symbol=name,
                    module=found.module,
                    address=found.address,
                    offset=found.offset,
                )
        return found

    def at(self, address: int) -> list[str]:
        """Every name that stands exactly at ``address``."""
        module = self._program.module_at(address)
        return [] if module is None else module.image.symbols.names_at(address - module.bias)

    def entered_at(self, address: int, name: str | None = None) -> Function:
        """The function that a call to ``address`` enters. In the midst of one whose size is known
        that is a part of it; else it is one of its own, and only begins behind another's symbol."""
        found = self.function_at(address, name)
        if found.address == address:
            return found
        module = self._program.module_at(address)
        symbol = None if module is None else module.image.symbols.at(address - module.bias)
        if module is not None and symbol is not None and not symbol.size:
            return _unnamed(module, address)
        return dataclasses.replace(found, address=address)

    @functools.lru_cache(maxsize=65536)  # noqa: B019 - a program lives as long as its session
    def _named(self, address: int) -> Function:
        module = self._program.module_at(address)
        if module is None:
            return Function(
                name=f"{address:#x}",
                symbol=f"{address:#x}",
                module="",
                address=address,
                offset=address,
            )
        own = address - module.bias
        symbol, extent = module.image.symbols.at(own), module.image.frames.extent(own)
        if symbol is None or _is_borrowed(symbol, own, extent):
            return _unnamed(module, address if extent is None else extent[0] + module.bias)
        start = symbol.address + module.bias
        shown = display_name(symbol.name)
        return Function(
            name=shown, symbol=symbol.name, module=module.name, address=start, offset=symbol.address
        )

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
