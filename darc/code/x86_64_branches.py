"""Where a call or jump is about to lead, told by the registers of the thread that stands at it."""

from __future__ import annotations

from iced_x86 import ConditionCode, FlowControl, Instruction, OpKind, Register

from darc.code.architecture import ReadRegister, ReadWord
from darc.code.frame_rule import FrameRule

_MASK = (1 << 64) - 1
_CARRY, _PARITY, _ZERO, _SIGN, _OVERFLOW = 1 << 0, 1 << 2, 1 << 6, 1 << 7, 1 << 11
_NAMES = {
    getattr(Register, name.upper()): name
    for name in ("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split())
}


def frame_slot(rule: FrameRule, register: ReadRegister, word: ReadWord) -> int:
    """The address of the stack word that holds the frame's return address: it is right below the
    frame's CFA."""
    base = register(rule.register)
    if rule.through is not None:
        base = word(base + rule.through & _MASK)
    return base + rule.offset - 8 & _MASK


def indirect_target(instruction: Instruction, register: ReadRegister, word: ReadWord) -> int | None:
    """Where an indirect call or jump leads; ``None`` where that cannot be told."""
    if instruction.op0_kind == OpKind.REGISTER:
        name = _NAMES.get(instruction.op0_register)
        return register(name) if name is not None else None
    if instruction.op0_kind != OpKind.MEMORY or instruction.segment_prefix != Register.NONE:
        return None
    address = int(instruction.memory_displacement)
    if instruction.is_ip_rel_memory_operand:
        return word(address)
    if instruction.memory_base != Register.NONE:
        if instruction.memory_base not in _NAMES:
            return None
        address += register(_NAMES[instruction.memory_base])
    if instruction.memory_index != Register.NONE:
        if instruction.memory_index not in _NAMES:
            return None
        address += register(_NAMES[instruction.memory_index]) * instruction.memory_index_scale
    return word(address & _MASK)


def is_taken(instruction: Instruction, register: ReadRegister) -> bool:
    """Whether a jump is about to be taken; an unconditional one always is."""
    if instruction.flow_control != FlowControl.CONDITIONAL_BRANCH:
        return True
    code = instruction.condition_code
    if code == ConditionCode.NONE:  # jrcxz and the loops
        return False
    flags = register("eflags")
    carry, parity, zero, sign, overflow = (
        bool(flags & bit) for bit in (_CARRY, _PARITY, _ZERO, _SIGN, _OVERFLOW)
    )
    return {
        ConditionCode.O: overflow,
        ConditionCode.NO: not overflow,
        ConditionCode.B: carry,
        ConditionCode.AE: not carry,
        ConditionCode.E: zero,
        ConditionCode.NE: not zero,
        ConditionCode.BE: carry or zero,
        ConditionCode.A: not (carry or zero),
        ConditionCode.S: sign,
        ConditionCode.NS: not sign,
        ConditionCode.P: parity,
        ConditionCode.NP: not parity,
        ConditionCode.L: sign != overflow,
        ConditionCode.GE: sign == overflow,
        ConditionCode.LE: zero or sign != overflow,
        ConditionCode.G: not zero and sign == overflow,
    }[code]
