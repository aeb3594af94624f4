"""Where a frame's return address stands, worked out from the code itself.

For functions without (readable) frame information: hand-written assembly, programs built with
-fno-asynchronous-unwind-tables. Only what is certain is told: two ways that meet with different
stack depths, or any change of the stack pointer that is not understood, and nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iced_x86 import FlowControl, Instruction, Mnemonic, OpAccess, OpKind, Register
from iced_x86 import InstructionInfoFactory as InfoFactory

from darc.code.frame_rule import FrameRule

_WRITES = {
    OpAccess.WRITE,
    OpAccess.COND_WRITE,
    OpAccess.READ_WRITE,
    OpAccess.READ_COND_WRITE,
}
_IMMEDIATES = {
    OpKind.IMMEDIATE8,
    OpKind.IMMEDIATE8TO64,
    OpKind.IMMEDIATE32TO64,
    OpKind.IMMEDIATE8TO32,
    OpKind.IMMEDIATE32,
}
_READING = {Mnemonic.PUSH, Mnemonic.CMP, Mnemonic.TEST}
"""What leaves its first operand as it was."""


@dataclass(frozen=True)
class _State:
    """CFA = rsp + ``rsp`` = rbp + ``rbp``, each ``None`` where it is not known."""

    rsp: int | None
    rbp: int | None

    def met(self, other: _State) -> _State:
        return _State(
            self.rsp if self.rsp == other.rsp else None,
            self.rbp if self.rbp == other.rbp else None,
        )


def frame_rules(entry: int, instructions: Mapping[int, Instruction]) -> dict[int, FrameRule]:
    """The CFA's place before each instruction that can be reached from ``entry``."""
    return {at: rules[0] for at, rules in all_frame_rules(entry, instructions).items()}


def all_frame_rules(
    entry: int, instructions: Mapping[int, Instruction]
) -> dict[int, list[FrameRule]]:
    """As :func:`frame_rules`, with every register that the CFA is known from."""
    factory = InfoFactory()
    states: dict[int, _State] = {entry: _State(8, None)}
    pending = [entry]
    while pending:
        address = pending.pop()
        instruction = instructions.get(address)
        if instruction is None:
            continue
        after = _step(states[address], instruction, factory)
        for successor in successors(instruction):
            before = states.get(successor)
            merged = after if before is None else before.met(after)
            if merged != before:
                states[successor] = merged
                pending.append(successor)
    found = {}
    for address, state in states.items():
        known = [("rsp", state.rsp), ("rbp", state.rbp)]
        rules = [FrameRule(register, offset) for register, offset in known if offset is not None]
        if rules:
            found[address] = rules
    return found


def successors(instruction: Instruction) -> list[int]:
    """Where its function goes on behind it, or behind what it calls, as far as it says so."""
    flow = instruction.flow_control
    following, target = int(instruction.next_ip), int(instruction.near_branch_target)
    if flow == FlowControl.CONDITIONAL_BRANCH:
        return [following, target]
    if flow == FlowControl.UNCONDITIONAL_BRANCH:
        return [target]
    if flow in (FlowControl.NEXT, FlowControl.CALL, FlowControl.INDIRECT_CALL):
        return [following]
    return []


def _step(state: _State, instruction: Instruction, factory: InfoFactory) -> _State:
    mnemonic = instruction.mnemonic
    if instruction.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
        return state
    target = instruction.op0_register if instruction.op_count else Register.NONE
    is_register = instruction.op0_kind == OpKind.REGISTER
    if target == Register.RSP and is_register and mnemonic not in _READING:
        return _State(_new_rsp(state, instruction), state.rbp)
    if mnemonic == Mnemonic.LEAVE:
        return _State(None if state.rbp is None else state.rbp - 8, None)
    if (
        mnemonic == Mnemonic.MOV
        and target == Register.RBP
        and instruction.op1_kind == OpKind.REGISTER
        and instruction.op1_register == Register.RSP
    ):
        return _State(state.rsp, state.rsp)
    rsp = state.rsp
    if rsp is not None and instruction.stack_pointer_increment:
        rsp -= instruction.stack_pointer_increment
    if mnemonic == Mnemonic.ENTER:  # push rbp, mov rbp, rsp, and room: SDM, ENTER
        return _State(rsp, None if state.rsp is None else state.rsp + 8)
    return _State(rsp, None if _writes_rbp(instruction, factory) else state.rbp)


def _new_rsp(state: _State, instruction: Instruction) -> int | None:
    mnemonic = instruction.mnemonic
    if mnemonic in (Mnemonic.SUB, Mnemonic.ADD) and instruction.op1_kind in _IMMEDIATES:
        if state.rsp is None:
            return None
        amount = signed(instruction.immediate(1))
        return state.rsp + (amount if mnemonic == Mnemonic.SUB else -amount)
    if mnemonic == Mnemonic.LEA and instruction.memory_index == Register.NONE:
        base = {Register.RSP: state.rsp, Register.RBP: state.rbp}.get(instruction.memory_base)
        return None if base is None else base - signed(instruction.memory_displacement)
    if (
        mnemonic == Mnemonic.MOV
        and instruction.op1_kind == OpKind.REGISTER
        and instruction.op1_register == Register.RBP
    ):
        return state.rbp
    return None


def signed(value: int) -> int:
    """A number of 64 bits, as an instruction means it."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _writes_rbp(instruction: Instruction, factory: InfoFactory) -> bool:
    return any(
        used.register in (Register.RBP, Register.EBP, Register.BP, Register.BPL)
        and used.access in _WRITES
        for used in factory.info(instruction).used_registers()
    )
