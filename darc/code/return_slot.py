"""Functions that look at their own return address.

``__builtin_return_address(0)``, assembler that takes it off the stack, data that stands behind a
call: whatever a function does to the word that its caller's address stands in, it does not find the
program's own address there when a pad has called it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iced_x86 import (
    FlowControl,
    Instruction,
    MemorySizeExt,
    Mnemonic,
    Register,
)

from darc.code.depth import all_frame_rules
from darc.code.frames import FrameRule

_WORD = 8
_BASES = {Register.RSP: "rsp", Register.RBP: "rbp"}

Rules = Callable[[int], FrameRule | None]
"""What the frame information says of an address."""

_BEFORE_A_CALL = 4
"""Instructions up to the call that takes what was read."""


def is_looked_at(
    entry: int,
    code: Sequence[Instruction],
    rules: Rules | None,
    only_notes: Callable[[int], bool] = lambda target: False,
) -> bool:
    """Whether an instruction of ``code``, a function or a part of one that is entered at ``entry``,
    reads, writes or takes the place of the word that its caller's address stands in. Calls and
    returns do not count. Where ``rules`` does not say where that is, the code itself may tell.

    What is handed to a function that ``only_notes`` it does not count either: each function of a
    program with ThreadSanitizer tells that so, for the stacks of its reports.
    """
    own: Mapping[int, Sequence[FrameRule]] | None = None
    for number, instruction in enumerate(code):
        if not _may_look(instruction):
            continue
        if _is_handed_on(instruction, code[number + 1 : number + 1 + _BEFORE_A_CALL], only_notes):
            continue
        at = int(instruction.ip)
        rule = rules(at) if rules is not None else None
        if rule is not None:
            found: Sequence[FrameRule] = (rule,)
        else:
            if own is None:
                own = all_frame_rules(entry, {int(one.ip): one for one in code})
            found = own.get(at, ())
        if any(_looks(instruction, one) for one in found):
            return True
    return False


def _is_handed_on(
    load: Instruction, behind: Sequence[Instruction], only_notes: Callable[[int], bool]
) -> bool:
    if load.mnemonic != Mnemonic.MOV or load.op0_register != Register.RDI:
        return False
    call = next((one for one in behind if one.flow_control == FlowControl.CALL), None)
    return call is not None and only_notes(int(call.near_branch_target))


def _may_look(instruction: Instruction) -> bool:
    """Whether it names a place on the stack that is not below the frame's own."""
    base = instruction.memory_base
    if base in _BASES:
        return (
            instruction.memory_displacement < 1 << 63
            and instruction.memory_index == Register.NONE
            and instruction.mnemonic != Mnemonic.NOP
        )
    return bool(instruction.mnemonic == Mnemonic.POP)


def _looks(instruction: Instruction, rule: FrameRule) -> bool:
    if rule.through is not None:
        if rule.register != "rbp":  # OpenSSL's assembler keeps rsp of its entry in such a frame
            return False
        rule = FrameRule("rbp", 16)  # gcc's realigned frames: it has a copy where it would stand
    slot = rule.offset - _WORD
    if instruction.mnemonic == Mnemonic.POP and rule == FrameRule("rsp", _WORD):
        return True
    if _BASES.get(instruction.memory_base) != rule.register:
        return False
    place = int(instruction.memory_displacement)
    if instruction.mnemonic == Mnemonic.LEA:
        return place == slot and instruction.op0_register != Register.RSP
    size = MemorySizeExt.size(instruction.memory_size)
    return place < slot + _WORD and slot < place + size
