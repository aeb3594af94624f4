"""x86-64: which handlers of signals put another place into what a thread goes on with, and which
instructions such a handler may want to begin anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from iced_x86 import (
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
from darc.code.x86_64_depth import successors
from darc.code.x86_64_faults import accessed_elsewhere

_PLACE = 168
"""Of ``rip`` in the third argument: ``uc_mcontext.gregs[REG_RIP]`` of a ``ucontext_t``."""

_FARTHEST = 4096
"""Bytes from where they begin at which parts of what a handler is given, and of its frame, are."""

_MOST = 20_000
"""Instructions that are gone through for one handler, with the functions that it calls."""

_DEEP = 3
"""Calls that lead from a handler to the function that may set the place."""

_WORD = 8
_CANARY = 0x28
"""Of a thread's own variables the one that the C library has for stack protectors."""

_WRITES = frozenset(
    (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)
)
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_GIVEN, _FRAME, _SLOT = "given", "frame", "slot"
_LOST_BY_CALLS = frozenset(
    getattr(Register, name) for name in "RAX RCX RDX RSI RDI R8 R9 R10 R11".split()
)

_info = InstructionInfoFactory()

Fact = tuple[str | int, int, str, int]
"""What a register (its number, 0), or a word of the frame (:data:`_SLOT`, where) may hold: the
address of a byte of what the kernel gave (:data:`_GIVEN`), or of the frame."""

Facts = frozenset[Fact]


def may_be_restarted(instruction: Instruction, *, has_frame: bool = False) -> bool:
    """Whether a sequence that is begun anew when it is interrupted may have ``instruction`` in it:
    one that accesses other memory than the stack. Calls and jumps end such a sequence; a look
    whether there is room on the stack is none. ``has_frame`` says that ``rbp`` is the frame pointer
    there."""
    if instruction.flow_control != FlowControl.NEXT:
        return False
    if instruction.mnemonic == Mnemonic.CMP and instruction.op0_register == Register.RSP:
        return False
    return any(
        not _is_canary(memory) for memory in accessed_elsewhere(instruction, has_frame=has_frame)
    )


def _is_canary(memory: UsedMemory) -> bool:
    """Whether it is nobody's to change."""
    is_of_thread = memory.segment == Register.FS and memory.base == memory.index == Register.NONE
    return is_of_thread and memory.displacement == _CANARY


def sets_place(
    handler: FunctionCode[Instruction], called: Callable[[int], FunctionCode[Instruction] | None]
) -> bool:
    """Whether a signal's ``handler`` may set where the thread goes on that was interrupted: it, or
    what it hands the kernel's account to, writes ``rip`` there. ``called`` gives the functions that
    calls lead to. What is not understood, as who else has got that, does not."""
    return _Look(called).sets(handler, frozenset({(Register.RDX, 0, _GIVEN, 0)}), 0)


class _Look:
    """At one handler."""

    def __init__(self, called: Callable[[int], FunctionCode[Instruction] | None]) -> None:
        self._called = called
        self._left = _MOST
        self._seen: set[tuple[int, Facts]] = set()

    def sets(self, code: FunctionCode[Instruction], given: Facts, depth: int) -> bool:
        if (code.entry, given) in self._seen:
            return False
        self._seen.add((code.entry, given))
        own: Facts = given | {(Register.RSP, 0, _FRAME, 0)}
        known: dict[int, Facts] = {code.entry: own}
        pending = [code.entry]
        while pending and self._left > 0:
            self._left -= 1
            at = pending.pop()
            facts = known[at]
            instruction = code.instructions.get(at)
            if instruction is None:  # another function's
                if self._goes_on(at, facts, depth):
                    return True
                continue
            called = instruction.flow_control == FlowControl.CALL
            if _writes_place(instruction, facts) or (
                called and self._goes_on(instruction.near_branch_target, facts, depth)
            ):
                return True
            after = frozenset(_behind(instruction, facts))
            for follower in successors(instruction):
                before = known.get(follower)
                met = after if before is None else before | after
                if met != before:
                    known[follower] = met
                    pending.append(follower)
        return False

    def _goes_on(self, target: int, facts: Facts, depth: int) -> bool:
        """In another function, with what registers hold."""
        handed = frozenset(f for f in facts if f[0] != _SLOT and f[2] == _GIVEN)
        if depth == _DEEP or not handed:
            return False
        code = self._called(target)
        return code is not None and self.sets(code, handed, depth + 1)


def _held(facts: Facts, register: int) -> list[tuple[str, int]]:
    return [(kind, value) for where, _, kind, value in facts if where == register]


def _pointed(instruction: Instruction, facts: Facts) -> list[tuple[str, int]]:
    """What the memory operand's address may be, where that has a base alone."""
    if instruction.memory_index != Register.NONE or instruction.memory_base == Register.NONE:
        return []
    away = instruction.memory_displacement
    away = away - (1 << 64) if away >> 63 else away
    return [(kind, value + away) for kind, value in _held(facts, instruction.memory_base)]


def _writes_place(instruction: Instruction, facts: Facts) -> bool:
    if (_GIVEN, _PLACE) not in _pointed(instruction, facts):
        return False
    return any(memory.access in _WRITES for memory in _info.info(instruction).used_memory())


def _behind(instruction: Instruction, facts: Facts) -> Iterator[Fact]:
    """What is held behind an instruction."""
    gone = set[int]()
    for one in _info.info(instruction).used_registers():
        if one.access in _WRITES:
            gone.add(RegisterExt.full_register(one.register))
    if instruction.flow_control in _CALLS:
        gone |= _LOST_BY_CALLS
        gone.discard(Register.RSP)
    over = _slots_written(instruction, facts)
    for fact in facts:
        lost = fact[1] in over if fact[0] == _SLOT else fact[0] in gone
        if not lost:
            yield fact
    for where, number, kind, value in _made(instruction, facts):
        if abs(value) <= _FARTHEST:
            yield (where, number, kind, value)


def _slots_written(instruction: Instruction, facts: Facts) -> set[int]:
    """Words of the frame that surely have another value: those that one address alone leads to."""
    if instruction.mnemonic == Mnemonic.PUSH:
        return {value - _WORD for _, value in _held(facts, Register.RSP)}
    if instruction.op_count and instruction.op0_kind == OpKind.MEMORY:
        places = _pointed(instruction, facts)
        if len(places) == 1 and places[0][0] == _FRAME and instruction.mnemonic == Mnemonic.MOV:
            return {places[0][1]}
    return set()


def _made(instruction: Instruction, facts: Facts) -> Iterator[Fact]:
    """What it puts where."""
    mnemonic = instruction.mnemonic
    if mnemonic == Mnemonic.PUSH:
        for _, depth in _held(facts, Register.RSP):
            yield (Register.RSP, 0, _FRAME, depth - _WORD)
            if instruction.op0_kind == OpKind.REGISTER:
                for held in _held(facts, instruction.op0_register):
                    yield (_SLOT, depth - _WORD, *held)
    elif mnemonic == Mnemonic.POP:
        for _, depth in _held(facts, Register.RSP):
            yield (Register.RSP, 0, _FRAME, depth + _WORD)
            if instruction.op0_kind == OpKind.REGISTER:
                yield from _loaded(facts, depth, instruction.op0_register)
    elif mnemonic == Mnemonic.LEAVE:
        for _, depth in _held(facts, Register.RBP):
            yield (Register.RSP, 0, _FRAME, depth + _WORD)
    elif mnemonic == Mnemonic.LEA:
        for held in _pointed(instruction, facts):
            yield (instruction.op0_register, 0, *held)
    elif mnemonic == Mnemonic.MOV:
        yield from _moved(instruction, facts)
    elif mnemonic == Mnemonic.AND and instruction.op0_register == Register.RSP:
        for held in _held(facts, Register.RSP):  # aligned: what is told of the frame goes by that
            yield (Register.RSP, 0, *held)
    elif mnemonic in (Mnemonic.ADD, Mnemonic.SUB) and instruction.op0_kind == OpKind.REGISTER:
        yield from _added(instruction, facts)


def _moved(instruction: Instruction, facts: Facts) -> Iterator[Fact]:
    to, of = instruction.op0_kind, instruction.op1_kind
    if to == OpKind.REGISTER and of == OpKind.REGISTER:
        for held in _held(facts, instruction.op1_register):
            yield (instruction.op0_register, 0, *held)
    elif to == OpKind.REGISTER and of == OpKind.MEMORY:
        for kind, place in _pointed(instruction, facts):
            if kind == _FRAME:
                yield from _loaded(facts, place, instruction.op0_register)
    elif to == OpKind.MEMORY and of == OpKind.REGISTER:
        for kind, place in _pointed(instruction, facts):
            if kind == _FRAME:
                for held in _held(facts, instruction.op1_register):
                    yield (_SLOT, place, *held)


def _added(instruction: Instruction, facts: Facts) -> Iterator[Fact]:
    """The sum with a constant."""
    register = instruction.op0_register
    if instruction.op1_kind in (OpKind.REGISTER, OpKind.MEMORY):
        return
    by = instruction.immediate(1)
    by = by - (1 << 64) if by >> 63 else by
    by = by if instruction.mnemonic == Mnemonic.ADD else -by
    for kind, value in _held(facts, register):
        yield (register, 0, kind, value + by)


def _loaded(facts: Facts, place: int, register: int) -> Iterator[Fact]:
    for where, number, kind, value in facts:
        if where == _SLOT and number == place:
            yield (register, 0, kind, value)
