"""What lldb knows of names and lines, from debug information."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lldb


def line_at(target: lldb.SBTarget, address: int) -> tuple[str, int] | None:
    """See :meth:`darc.target.target.Target.line_at`."""
    entry = target.ResolveLoadAddress(address).GetLineEntry()
    if not entry.IsValid() or not entry.GetLine():
        return None
    return str(entry.GetFileSpec().fullpath), int(entry.GetLine())


def inlined_at(target: lldb.SBTarget, address: int) -> tuple[str, ...]:
    """See :meth:`darc.target.target.Target.inlined_at`."""
    names = []
    block = target.ResolveLoadAddress(address).GetBlock()
    while block.IsValid():
        if block.IsInlined():
            names.append(str(block.GetInlinedName()))
        block = block.GetParent()
    return tuple(reversed(names))


def functions_in(target: lldb.SBTarget, file: str, function: str) -> Sequence[int]:
    """See :meth:`darc.target.target.Target.functions_in`."""
    found = set()
    for context in target.FindFunctions(function, lldb.eFunctionNameTypeAuto):
        if context.GetBlock().GetContainingInlinedBlock().IsValid():
            continue
        entry = context.GetFunction()
        source = context.GetCompileUnit().GetFileSpec()
        if entry.IsValid() and Path(str(source.fullpath or "")).match(file):
            found.add(int(entry.GetStartAddress().GetLoadAddress(target)))
    return sorted(found)


def inlined_into(target: lldb.SBTarget, function: str) -> Sequence[str]:
    """See :meth:`darc.target.target.Target.inlined_into`."""
    found = [
        str(context.GetFunction().GetName())
        for context in target.FindFunctions(function, lldb.eFunctionNameTypeAuto)
        if context.GetBlock().GetContainingInlinedBlock().IsValid()
    ]
    return list(dict.fromkeys(found))
