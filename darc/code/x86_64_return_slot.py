"""What code does to the word with its return address: the rules of :mod:`darc.code.backlooks`.

``__builtin_return_address(0)``, assembler that takes it off the stack, data that stands behind a
call: whatever a function does to the word that its caller's address stands in, it does not find the
program's own address there when a pad has called it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iced_x86 import Code, FlowControl, Instruction, Mnemonic, Register

from darc.code.architecture import FrameRules
from darc.code.frame_rule import WORD_SIZE, FrameRule
from darc.code.x86_64_copies import (
    BASES,
    FRAME,
    Copies,
    FunctionFrame,
    displacement,
    is_in_slot,
    moved,
    offset,
)

_RSP, _NONE = Register.RSP, Register.NONE

_EXCHANGES = frozenset({Code.XCHG_RM64_R64, Code.XCHG_R64_RAX})
_COPYING = frozenset({Code.MOV_RM64_R64, Code.MOV_R64_RM64}) | _EXCHANGES
_STACKING = frozenset({Code.PUSH_R64, Code.POP_R64, Code.PUSH_RM64, Code.POP_RM64})
_POPS = frozenset({Code.POP_R64, Code.POP_RM64})
_SUMS = frozenset(
    {Code.ADD_RM64_IMM8, Code.ADD_RM64_IMM32, Code.SUB_RM64_IMM8, Code.SUB_RM64_IMM32,
     Code.ADD_RAX_IMM32, Code.SUB_RAX_IMM32}
)  # fmt: skip
"""What copies of the stack pointer are made and moved by, between registers."""

_NEGATIVE = 1 << 63
"""Displacements from here on are."""
_WIDEST = 64
"""Bytes that one instruction reads, or nearly all of them."""

_BEFORE_A_CALL = 4
"""Instructions up to the call that takes what was read."""


def is_looked_at(
    entry: int,
    code: Sequence[Instruction],
    rules: FrameRules | None,
    only_notes: Callable[[int], bool] = lambda target: False,
) -> bool:
    """Whether an instruction of ``code``, a function or a part of one that is entered at ``entry``,
    reads, writes or takes the place of the word that its caller's address stands in. Calls and
    returns do not count. Where ``rules`` does not say where that is, the code itself may tell.

    What is handed to a function that ``only_notes`` it does not count either: each function of a
    program with ThreadSanitizer tells that so, for the stacks of its reports.
    """
    return _Scan(entry, code, rules, only_notes).finds()


class _Scan:
    """One look through a function. Thousands are looked through: copies of the stack pointer are
    followed (:class:`Copies`) where they may lead somewhere, which :attr:`_inside` tells of those
    that point into the frame, as nearly all do."""

    def __init__(
        self,
        entry: int,
        code: Sequence[Instruction],
        rules: FrameRules | None,
        only_notes: Callable[[int], bool],
    ) -> None:
        self._code = code
        self._only_notes = only_notes
        self._frames = FunctionFrame(entry, code, rules)
        self._copies = Copies(code, self._frames, only_notes)
        self._inside: dict[int, tuple[int, int]] = {}
        """By register: the instruction that made the latest copy there that points into the frame,
        and where it points to. It may hold something else by now."""

    def finds(self) -> bool:
        inside = self._inside
        for number, instruction in enumerate(self._code):
            base = instruction.memory_base
            if base == _NONE:
                kind = instruction.code
                if kind in _COPYING:
                    source = instruction.op1_register
                    may_be = source in BASES or source in inside or kind in _EXCHANGES
                    if may_be and self._is_moved(number, instruction):
                        return True
                elif kind in _SUMS:
                    if instruction.op0_register in inside and self._is_added(instruction):
                        return True
                elif kind in _STACKING and self._is_stacked(number, instruction):
                    return True
            elif base in BASES:
                # Most are reads and writes of local variables, below a frame pointer.
                may_be = (
                    instruction.memory_displacement < _NEGATIVE
                    or instruction.op1_register in BASES
                    or instruction.mnemonic == Mnemonic.LEA
                    or instruction.memory_index != _NONE
                )
                if may_be and self._is_named(number, instruction):
                    return True
            elif base in inside:
                place = inside[base][1] + displacement(instruction)
                is_near = -_WIDEST < place < WORD_SIZE
                if (is_near or instruction.mnemonic == Mnemonic.LEA) and self._is_reached(
                    number, instruction, *inside[base]
                ):
                    return True
            elif (
                instruction.op1_register == _RSP
                and instruction.mnemonic == Mnemonic.MOV
                and self._frames.place(_RSP, int(instruction.ip)) == 0
            ):
                return True  # where others find it
        return False

    def _is_named(self, number: int, instruction: Instruction) -> bool:
        """Of an instruction with an operand in memory that names a place by rsp or rbp."""
        mnemonic, base = instruction.mnemonic, int(instruction.memory_base)
        if mnemonic == Mnemonic.NOP:
            return False
        if mnemonic == Mnemonic.LEA:
            return self._is_taken(number, instruction)
        if instruction.op1_register in BASES and mnemonic == Mnemonic.MOV:
            source = int(instruction.op1_register)
            if self._is_pointer_copied(number, None, source):
                return True
        if instruction.memory_displacement >= _NEGATIVE and instruction.memory_index == _NONE:
            return False
        if base in self._inside and self._is_reached(number, instruction, *self._inside[base]):
            return True
        distance = offset(self._code, number)
        if distance is None or _is_handed_on(self._code, number, self._only_notes):
            return False
        found = self._frames.at(int(instruction.ip))
        return any(
            is_in_slot(WORD_SIZE - rule.offset + distance, instruction)
            for rule in found
            if rule.register == BASES[base]
        )

    def _is_taken(self, number: int, instruction: Instruction) -> bool:
        """Of an instruction that takes an address in the frame, or around it."""
        if instruction.memory_index != Register.NONE or instruction.op0_register == Register.RSP:
            return False
        base, target = int(instruction.memory_base), int(instruction.op0_register)
        copied = self._inside.get(base, (0, None))[1]
        distance = displacement(instruction)
        if copied is not None and copied + distance <= FRAME:
            self._inside[target] = number, copied + distance  # cheap: no rule is asked for
            return False
        below = self._frames.told_place(base, int(instruction.ip))
        if below is None:  # it is no frame pointer, but may be a copy
            below = copied
        if below is None:
            return False
        return below + distance == 0 or self._is_copied(number, target, below + distance)

    def _is_moved(self, number: int, instruction: Instruction) -> bool:
        """Of an instruction that one register is copied to another by, or that exchanges them."""
        target, source = int(instruction.op0_register), int(instruction.op1_register)
        if instruction.code in _EXCHANGES:
            return _RSP in (source, target) and self._copies.lead_to_slot(number)
        if target == _RSP:
            return False
        if source in BASES:
            return self._is_pointer_copied(number, target, source)
        self._inside[target] = self._inside[source]
        return False

    def _is_added(self, instruction: Instruction) -> bool:
        """Of an instruction that adds to a register that may hold a copy."""
        target = int(instruction.op0_register)
        first, place = self._inside[target]
        there = moved(instruction, place)
        return there is not None and self._is_led_on(target, first, there)

    def _is_stacked(self, number: int, instruction: Instruction) -> bool:
        if instruction.code in _POPS:
            return FrameRule("rsp", WORD_SIZE) in self._frames.at(int(instruction.ip))
        return instruction.op0_register == _RSP and self._copies.lead_to_slot(number)

    def _is_pointer_copied(self, number: int, target: int | None, source: int) -> bool:
        """Of an instruction that copies the stack pointer or the frame pointer to a register, or to
        memory (``None``)."""
        at = int(self._code[number].ip)
        if target == Register.RBP and self._begins_frame(number):
            return self._is_copied(number, target, FRAME)
        place = self._frames.told_place(source, at)
        if place is None and source == Register.RBP:  # it is no frame pointer, but may be a copy
            place = self._inside.get(source, (0, None))[1]
        elif place is None:
            place = self._frames.place(source, at)
        if place is None:
            return False
        if place == FRAME and source == Register.RBP:
            return self._copies.lead_to_slot(number, is_frame=True)
        return self._is_copied(number, target, place)

    def _begins_frame(self, number: int) -> bool:
        """Whether an instruction that copies to rbp does so as most functions with a frame pointer
        begin: no rule needs to be asked for, which costs more than all else here."""
        before = self._code[max(0, number - 1)]
        is_first = number == 1 or (number == 2 and self._code[0].code == Code.ENDBR64)
        return is_first and before.code == Code.PUSH_R64 and before.op0_register == Register.RBP

    def _is_copied(self, number: int, target: int | None, place: int) -> bool:
        if target is not None:
            self._inside[target] = number, place
        return place >= 0 and self._copies.lead_to_slot(number)

    def _is_led_on(self, target: int, first: int, place: int) -> bool:
        """Of a copy that was made by instruction ``first``, and points to ``place`` by now."""
        if place > -WORD_SIZE:
            return self._copies.lead_to_slot(first, ahead=True)
        self._inside[target] = first, place
        return False

    def _is_reached(self, number: int, instruction: Instruction, first: int, place: int) -> bool:
        distance = offset(self._code, number)
        if distance is None:
            return False
        if instruction.mnemonic == Mnemonic.LEA:
            target = int(instruction.op0_register)
            return target != Register.RSP and self._is_led_on(target, first, place + distance)
        if not is_in_slot(place + distance, instruction):
            return False
        return self._copies.lead_to_slot(first, ahead=True)


def _is_handed_on(
    code: Sequence[Instruction], number: int, only_notes: Callable[[int], bool]
) -> bool:
    load = code[number]
    if load.mnemonic != Mnemonic.MOV or load.op0_register != Register.RDI:
        return False
    behind = code[number + 1 : number + 1 + _BEFORE_A_CALL]
    call = next((one for one in behind if one.flow_control == FlowControl.CALL), None)
    return call is not None and only_notes(int(call.near_branch_target))
