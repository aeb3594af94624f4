"""Which of x86-64's instructions may fault, and which handlers of faults ask where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from iced_x86 import (
    CpuidFeature,
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
    UsedMemory,
)

from darc.code.architecture import FunctionCode
from darc.code.faults import SIGBUS, SIGFPE, SIGILL, SIGSEGV
from darc.code.x86_64_depth import successors

_MEMORY = frozenset((SIGBUS, SIGSEGV))
_OF_THREAD = (Register.FS, Register.GS)
_ARITHMETIC = (Mnemonic.DIV, Mnemonic.IDIV, Mnemonic.WAIT)
_UNDEFINED = (Mnemonic.UD0, Mnemonic.UD1, Mnemonic.UD2)

_EVERYWHERE = frozenset(
    getattr(CpuidFeature, name)
    for name in (
        "INTEL8086 INTEL186 INTEL286 INTEL386 INTEL486 X64 CMOV MULTIBYTENOP SSE SSE2 CET_IBT"
    ).split()
)
"""Every x86-64 processor has them; ``endbr64`` is a nop to those that do not know it."""

_X87 = frozenset((CpuidFeature.FPU, CpuidFeature.FPU287, CpuidFeature.FPU387))

_NAMES = {value: name for name, value in vars(Mnemonic).items() if isinstance(value, int)}
_QUIET = re.compile(r"V?(MOV|P|XORP|ANDP|ANDNP|ORP|UNPCK|SHUF|BROADCAST)")
_STACK_POINTERS = (Register.RSP, Register.ESP, Register.SP, Register.SPL)
_READS = (OpAccess.READ, OpAccess.COND_READ)

_info = InstructionInfoFactory()


def may_raise(
    instruction: Instruction, signals: AbstractSet[int], *, has_frame: bool = False
) -> bool:
    """Whether ``instruction`` may raise one of ``signals`` by what its operands are.

    Accesses to the stack do not count, nor those to a thread's own variables. ``has_frame`` says
    that ``rbp`` is the frame pointer there.
    """
    if not signals:
        return False
    if not signals.isdisjoint(_MEMORY) and _may_miss(instruction, has_frame):
        return True
    if SIGFPE in signals and (instruction.mnemonic in _ARITHMETIC or _computes(instruction)):
        return True
    return SIGILL in signals and _may_be_unknown(instruction)


def _may_be_unknown(instruction: Instruction) -> bool:
    """To the processor."""
    known = _EVERYWHERE.issuperset(instruction.cpuid_features())
    return instruction.mnemonic in _UNDEFINED or not known


def _may_miss(instruction: Instruction, has_frame: bool) -> bool:
    """Whether it may access memory that is not there. What it finds relative to its own place is
    there, but may be protected for a while, as a page that is polled; no place that a call or a
    jump goes through is."""
    if instruction.is_privileged:
        return True
    if instruction.is_ip_rel_memory_operand and instruction.is_jmp_near_indirect:
        return False
    if instruction.is_ip_rel_memory_operand and instruction.is_call_near_indirect:
        return False
    return any(
        not _is_at_hand(memory) for memory in accessed_elsewhere(instruction, has_frame=has_frame)
    )


def _is_at_hand(memory: UsedMemory) -> bool:
    return memory.index == memory.base == Register.NONE and memory.segment in _OF_THREAD


def accessed_elsewhere(instruction: Instruction, *, has_frame: bool) -> Iterator[UsedMemory]:
    """The memory that ``instruction`` accesses, but for the stack's. ``has_frame`` says that
    ``rbp`` is the frame pointer there."""
    stack = (Register.RSP, Register.RBP) if has_frame else (Register.RSP,)
    for memory in _info.info(instruction).used_memory():
        is_on_stack = memory.index == Register.NONE and memory.base in stack
        if memory.access != OpAccess.NO_MEM_ACCESS and not is_on_stack:
            yield memory


def _computes(instruction: Instruction) -> bool:
    """Whether it may compute with floating-point numbers, whose exceptions may be unmasked: not
    where it moves vectors, or computes with their bits or integers."""
    if _QUIET.match(_NAMES[instruction.mnemonic]):
        return False
    operands = range(instruction.op_count)
    registers = [
        instruction.op_register(n) for n in operands if instruction.op_kind(n) == OpKind.REGISTER
    ]
    vectors = any(Register.XMM0 <= register <= Register.ZMM31 for register in registers)
    return vectors or not _X87.isdisjoint(instruction.cpuid_features())


def leaves_frame(instruction: Instruction) -> bool:
    """Whether it changes neither the stack pointer nor flags, and the next one follows."""
    if instruction.flow_control != FlowControl.NEXT or instruction.rflags_modified:
        return False
    if instruction.is_stack_instruction:
        return False
    used = _info.info(instruction).used_registers()
    return not any(one.register in _STACK_POINTERS and one.access not in _READS for one in used)


_PLACE = (Register.RSI, Register.RDX)
_CONTEXT = (Register.RDX,)
_WHOLE = {Register.ESI: Register.RSI, Register.EDX: Register.RDX} | {one: one for one in _PLACE}
_MAY_READ = (OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
_PASSES = (FlowControl.CALL, FlowControl.INDIRECT_CALL, FlowControl.INDIRECT_BRANCH)


def may_learn_place(handler: FunctionCode[Instruction], signal: int, *, is_told: bool) -> bool:
    """Whether a handler of ``signal`` may find out where the instruction stands that raised it.

    That is in its third argument, and for some signals in what the second one leads to
    (sigaction(2)). The kernel sets both in any case: ``is_told`` says whether the handler was
    installed as one that takes them (``SA_SIGINFO``), and may hand them on to what it calls.
    """
    wanted = frozenset(_CONTEXT if signal in _MEMORY else _PLACE)
    if not handler.complete or handler.entry not in handler.instructions:
        return True
    seen: set[tuple[int, frozenset[int]]] = set()
    pending = [(handler.entry, wanted)]
    while pending:
        place = pending.pop()
        if place in seen or not place[1]:
            continue
        seen.add(place)
        address, arguments = place
        instruction = handler.instructions.get(address)
        if instruction is None:  # another function's, as is what a jump out of this one leads to
            if is_told:
                return True
            continue
        used = _info.info(instruction).used_registers()
        read = (RegisterExt.full_register(one.register) for one in used if one.access in _MAY_READ)
        if not arguments.isdisjoint(read):
            return True
        if instruction.flow_control in _PASSES:
            if is_told:
                return True
            continue
        left = arguments.difference(
            _WHOLE[one.register]
            for one in used
            if one.register in _WHOLE and one.access == OpAccess.WRITE
        )
        pending += ((after, left) for after in successors(instruction))
    return False
