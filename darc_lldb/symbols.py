"""What lldb knows of names and lines, from debug information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import lldb

from darc.target.ownthread import Turn, own_thread
from darc.target.shapes import Field, Shape
from darc.target.symbols import Symbols
from darc_lldb.inferior import Inferior

_MOST_VARIABLES = 64
"""Of one name, that are looked at."""

_BUILD_ID = 40
"""Digits of a build id, as linkers make it by default. Where there is none lldb makes one up."""


@own_thread
class LldbSymbols(Symbols):
    """Those of the selected target."""

    def __init__(self, turn: Turn, inferior: Inferior) -> None:
        self.turn = turn
        self._inferior = inferior

    def line_at(self, address: int) -> tuple[str, int] | None:
        entry = self._inferior.target.ResolveLoadAddress(address).GetLineEntry()
        if not entry.IsValid() or not entry.GetLine():
            return None
        return str(entry.GetFileSpec().fullpath), int(entry.GetLine())

    def build_at(self, address: int) -> str | None:
        module = self._inferior.target.ResolveLoadAddress(address).GetModule()
        digits = str(module.GetUUIDString() or "").replace("-", "").lower()
        return digits if len(digits) == _BUILD_ID else None

    def inlined_at(self, address: int) -> tuple[str, ...]:
        names = []
        block = self._inferior.target.ResolveLoadAddress(address).GetBlock()
        while block.IsValid():
            if block.IsInlined():
                names.append(str(block.GetInlinedName()))
            block = block.GetParent()
        return tuple(reversed(names))

    def functions_in(self, file: str, function: str) -> Sequence[int]:
        target, found = self._inferior.target, set()
        for context in target.FindFunctions(function, lldb.eFunctionNameTypeAuto):
            if context.GetBlock().GetContainingInlinedBlock().IsValid():
                continue
            entry = context.GetFunction()
            source = context.GetCompileUnit().GetFileSpec()
            if entry.IsValid() and Path(str(source.fullpath or "")).match(file):
                start = entry.GetStartAddress()
                loaded = int(start.GetLoadAddress(target))
                # Before the program runs nothing is loaded.
                is_loaded = loaded != lldb.LLDB_INVALID_ADDRESS
                found.add(loaded if is_loaded else int(start.GetFileAddress()))
        return sorted(found)

    def knows_file(self, file: str) -> bool:
        return any(True for _ in self._units(file))

    def function_at_line(self, file: str, line: int) -> str | None:
        for unit in self._units(file):
            at = unit.FindLineEntryIndex(0, line, unit.GetFileSpec(), False)
            if at < unit.GetNumLineEntries():
                function = unit.GetLineEntryAtIndex(at).GetStartAddress().GetFunction()
                if function.IsValid():
                    return str(function.GetName())
        return None

    def _units(self, file: str) -> Iterator[lldb.SBCompileUnit]:
        for module in self._inferior.target.module_iter():
            for number in range(module.GetNumCompileUnits()):
                unit = module.GetCompileUnitAtIndex(number)
                if Path(str(unit.GetFileSpec().fullpath or "")).match(file):
                    yield unit

    def inlined_into(self, function: str) -> Sequence[str]:
        found = [
            str(context.GetFunction().GetName())
            for context in self._inferior.target.FindFunctions(function, lldb.eFunctionNameTypeAuto)
            if context.GetBlock().GetContainingInlinedBlock().IsValid()
        ]
        return list(dict.fromkeys(found))

    def shape_of(self, variable: str, address: int) -> Shape | None:
        target = self._inferior.target
        module = target.ResolveLoadAddress(address).GetModule()
        for value in module.FindGlobalVariables(target, variable, _MOST_VARIABLES):
            if int(value.GetLoadAddress()) == address:
                return _LldbShape(value.GetType())
        return None


class _LldbShape(Shape):
    """A type as lldb knows it."""

    def __init__(self, declared: lldb.SBType) -> None:
        self._declared = self._type = declared
        while self._type.IsTypedefType():
            self._type = self._type.GetTypedefedType()

    @property
    def name(self) -> str:
        name = str(self._declared.GetName() or "")
        return "" if name.startswith("(") else name  # "(unnamed struct)"

    @property
    def size(self) -> int:
        return int(self._type.GetByteSize())

    def fields(self) -> Sequence[Field]:
        bases = [self._type.GetDirectBaseClassAtIndex(i) for i in range(self._bases)]
        fields = [self._type.GetFieldAtIndex(i) for i in range(self._type.GetNumberOfFields())]
        return [
            *(Field("", int(one.GetOffsetInBytes()), _LldbShape(one.GetType())) for one in bases),
            *(
                Field(
                    str(one.GetName() or ""),
                    int(one.GetOffsetInBytes()),
                    _LldbShape(one.GetType()),
                )
                for one in fields
            ),
        ]

    @property
    def _bases(self) -> int:
        return int(self._type.GetNumberOfDirectBaseClasses())

    def element(self) -> Shape | None:
        is_array = self._type.GetTypeClass() == lldb.eTypeClassArray
        return _LldbShape(self._type.GetArrayElementType()) if is_array else None
