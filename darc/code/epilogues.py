"""The last instructions of a function, before it returns."""

from __future__ import annotations

from iced_x86 import FlowControl, Instruction

from darc.code.architecture import FunctionCode
from darc.code.processor import PATCH_LENGTH


def epilogues(function: FunctionCode) -> list[int]:
    """Before each of the function's returns an address from which on as many bytes as a patch has
    are run to their end, with the flags dead. Empty where that is not so for one of them."""
    if not function.complete:
        return []
    ends = {int(i.next_ip): i for i in function.instructions.values()}
    returns = [
        instruction
        for instruction in function.instructions.values()
        if instruction.flow_control == FlowControl.RETURN
    ]
    found = [_epilogue(function, ends, instruction) for instruction in returns]
    return sorted(start for start in found if start is not None) if None not in found else []


def _epilogue(
    function: FunctionCode, ends: dict[int, Instruction], last: Instruction
) -> int | None:
    start = int(last.ip)
    while last.next_ip - start < PATCH_LENGTH:
        before = ends.get(start)
        if start in function.targets or before is None:
            return None
        if before.flow_control != FlowControl.NEXT or before.rflags_read:
            return None
        start = int(before.ip)
    return start
