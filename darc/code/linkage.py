"""How calls lead from one file to another: PLT entries, the slots behind them, exported symbols."""

from __future__ import annotations

import dataclasses
from typing import Protocol

from darc.code.demangle import display_name
from darc.code.modules import Loaded, Module
from darc.code.names import Names
from darc.code.processor import PLT_ENTRY, is_lazy_binding, plt_slot
from darc.model.errors import TargetError
from darc.model.ftree import Function


class Linked(Loaded, Protocol):
    """The program whose files are linked."""

    @property
    def names(self) -> Names: ...
    def read(self, address: int, size: int) -> bytes: ...


class Linkage:
    """Where calls lead, through PLT entries as far as these are bound. What was read of code and of
    exported symbols is kept until it is told to forget it."""

    def __init__(self, program: Linked) -> None:
        self._program = program
        self.unbound = 0
        """How often a PLT entry was met that is not bound yet, which may tell more later."""
        self._exports: dict[str, int | None] = {}
        self._jump_slots: dict[int, int | None] = {}

    def forget_exports(self) -> None:
        """Other files are loaded now."""
        self._exports.clear()

    def forget_code(self) -> None:
        """The program's bytes have changed."""
        self._jump_slots.clear()

    def resolve(self, address: int, depth: int = 0) -> tuple[int, str | None] | None:
        """The function that a call to ``address`` reaches, through PLT entries, with the name
        under which it was called; ``None`` while that is not bound."""
        if depth > 3:
            return None
        slot = self.jump_slot(address)
        if slot is None:
            return address, None
        name = self.slot_name(slot)
        try:
            bound = int.from_bytes(self._program.read(slot, 8), "little")
        except TargetError:
            return None
        module = self._program.module_at(address)
        if bound == 0 or (module is not None and self._is_unbound(module, bound)):
            self.unbound += 1
            found = self._exported(name) if name is not None else None
            return None if found is None else (found, name)
        further = self.resolve(bound, depth + 1)
        return None if further is None else (further[0], name or further[1])

    def callee_at(self, target: int) -> Function:
        """The function that a call to ``target`` enters, through a PLT entry where that is bound;
        one that is not bound yet has the name that it will be bound to."""
        resolved = self.resolve(target)
        if resolved is not None:
            return self._program.names.entered_at(*resolved)
        slot = self.jump_slot(target)
        name = self.slot_name(slot) if slot is not None else None
        found = self._program.names.function_at(target)
        if name is not None:
            return dataclasses.replace(found, name=display_name(name), symbol=name, address=target)
        return found

    def names_of(self, target: int) -> frozenset[str]:
        """What a call to ``target`` may be a call of, by symbol, as far as files tell."""
        slot = self.jump_slot(target)
        if slot is not None:
            name = self.slot_name(slot)
            return frozenset(() if name is None else (name,))
        return frozenset(self._program.names.at(target))

    def bodies(self, function: Function) -> list[int]:
        """Where a function has its code; behind a PLT entry that is not bound yet, wherever it may
        be."""
        slot = self.jump_slot(function.address)
        name = self.slot_name(slot) if slot is not None else None
        return [function.address] if name is None else self._exporting(name)

    def jump_slot(self, address: int) -> int | None:
        """The GOT slot that a PLT entry at ``address`` jumps through; ``None`` for real code."""
        if address not in self._jump_slots:
            self._jump_slots[address] = self._read_jump_slot(address)
        return self._jump_slots[address]

    def slot_name(self, slot: int) -> str | None:
        """The symbol that a GOT slot was made for."""
        module = self._program.module_at(slot)
        return None if module is None else module.image.dynamic.got_names.get(slot - module.bias)

    def _read_jump_slot(self, address: int) -> int | None:
        module = self._program.module_at(address)
        if module is None or module.image.symbols.at(address - module.bias) is not None:
            return None
        try:
            code = self._program.read(address, PLT_ENTRY)
        except TargetError:
            return None
        return plt_slot(code, address)

    def _is_unbound(self, module: Module, bound: int) -> bool:
        """Lazy binding: the slot still leads back into its own module's PLT."""
        if not module.start <= bound < module.end:
            return False
        if module.image.symbols.at(bound - module.bias) is not None:
            return False
        return is_lazy_binding(self._program.read(bound, PLT_ENTRY), bound)

    def _exported(self, name: str) -> int | None:
        """Where a symbol that is not bound yet will be bound to, if only one module has it."""
        if name not in self._exports:
            self._exports[name] = self._read_exported(name)
        return self._exports[name]

    def _read_exported(self, name: str) -> int | None:
        for module in self._program.modules:
            if any(symbol.ifunc for symbol in module.image.symbols.exported(name)):
                return None
        found = self._exporting(name)
        return found[0] if len(found) == 1 else None

    def _exporting(self, name: str) -> list[int]:
        """Wherever a module has a symbol of that name for others."""
        found = {
            symbol.address + module.bias
            for module in self._program.modules
            for symbol in module.image.symbols.exported(name)
        }
        return sorted(found)
