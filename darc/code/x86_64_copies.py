"""Copies of the stack pointer, and where they lead.

``mov %rsp, %rcx; mov (%rcx), %rax`` reads the return address as ``mov (%rsp), %rax`` does, and
``__builtin_frame_address`` makes such copies in compilers' code that is not optimized.

A *place* is a distance from the stack word that the return address stands in (bytes; negative: in
the frame).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from iced_x86 import (
    FlowControl,
    Instruction,
    InstructionInfoFactory,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RegisterExt,
)

from darc.code.architecture import FrameRules
from darc.code.frame_rule import WORD_SIZE, FrameRule
from darc.code.x86_64_depth import all_frame_rules, signed, successors

FRAME = -WORD_SIZE
"""Where a frame pointer points to: the caller's one, which lies right below the return address."""

BASES: Mapping[int, str] = {Register.RSP: "rsp", Register.RBP: "rbp"}

_ARGUMENTS = (
    Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9,
)  # fmt: skip
_SCRATCH = (*_ARGUMENTS, Register.RAX, Register.R10, Register.R11)
_IMMEDIATES = (OpKind.IMMEDIATE8TO64, OpKind.IMMEDIATE32TO64)
_CONSTANTS = (*_IMMEDIATES, OpKind.IMMEDIATE32, OpKind.IMMEDIATE64)
_STACKING = (Mnemonic.PUSH, Mnemonic.POP)
_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_WRITES = (
    OpAccess.WRITE,
    OpAccess.COND_WRITE,
    OpAccess.READ_WRITE,
    OpAccess.READ_COND_WRITE,
)

_SOMEWHERE = -(1 << 40)
"""Where a pointer into the frame points to of which no more is known: a long way below."""

_FAR = 512
"""Instructions that one copy is followed over."""
_NEAR = 8
"""Instructions before an index in which the constant is looked for that it is."""

_Key = int | tuple[int, int] | tuple[int]
"""What holds a copy: a register; a word of the stack by its place, or by the register and the
distance that name it, where its place is not known."""


class FunctionFrame:
    """Where the return address stands, seen from the registers of a function's frame: as ``rules``
    say, and where they do not, as the code itself tells."""

    def __init__(self, entry: int, code: Sequence[Instruction], rules: FrameRules | None) -> None:
        self._entry = entry
        self._code = code
        self._rules = rules
        self._own: Mapping[int, Sequence[FrameRule]] | None = None

    def at(self, address: int) -> Sequence[FrameRule]:
        """What is known before the instruction at ``address``."""
        rule = self._rules(address) if self._rules is not None else None
        if rule is None:
            return self._told(address)
        usable = _usable(rule)
        return () if usable is None else (usable,)

    def place(self, register: int, address: int) -> int | None:
        """What a register of :data:`BASES` points to there."""
        found = self.told_place(register, address)
        return _place(BASES[register], self._told(address)) if found is None else found

    def told_place(self, register: int, address: int) -> int | None:
        """As :meth:`place`, by what is cheap to know."""
        return _place(BASES[register], self.at(address))

    def _told(self, address: int) -> Sequence[FrameRule]:
        if self._own is None:
            self._own = all_frame_rules(self._entry, {int(one.ip): one for one in self._code})
        return self._own.get(address, ())


def _usable(rule: FrameRule) -> FrameRule | None:
    """A rule by which the return address, or what is read in its place, can be found."""
    if rule.through is None:
        return rule
    if rule.register != "rbp":  # OpenSSL's assembler keeps rsp of its entry in such a frame
        return None
    return FrameRule("rbp", 16)  # gcc's realigned frames: it has a copy where it would stand


def _place(register: str, rules: Sequence[FrameRule]) -> int | None:
    for rule in rules:
        if rule.register == register:
            return WORD_SIZE - rule.offset
    return None


def displacement(instruction: Instruction) -> int:
    """Of its operand in memory, with its sign."""
    return signed(int(instruction.memory_displacement))


def offset(code: Sequence[Instruction], number: int) -> int | None:
    """How far behind its base the operand in memory of an instruction lies; ``None``: its index is
    not known. An index is that is made a constant right before."""
    instruction = code[number]
    index = instruction.memory_index
    if index == Register.NONE:
        return displacement(instruction)
    value = _constant(code, number, int(index))
    if value is None:
        return None
    return displacement(instruction) + value * int(instruction.memory_index_scale)


def _constant(code: Sequence[Instruction], number: int, register: int) -> int | None:
    for one in reversed(code[max(0, number - _NEAR) : number]):
        if one.flow_control != FlowControl.NEXT:
            return None
        if one.op0_kind != OpKind.REGISTER:
            continue
        if RegisterExt.full_register(one.op0_register) != register:
            continue
        if one.mnemonic == Mnemonic.MOV and one.op1_kind in _CONSTANTS:
            return signed(int(one.immediate(1)))
        is_cleared = one.mnemonic in (Mnemonic.XOR, Mnemonic.SUB)
        return 0 if is_cleared and one.op0_register == one.op1_register else None
    return None


def is_in_slot(place: int, instruction: Instruction) -> bool:
    """Whether an instruction with an operand in memory at ``place`` reads or writes the word that
    the return address stands in, or takes its address."""
    if instruction.mnemonic == Mnemonic.LEA:
        return place == 0 and instruction.op0_register != Register.RSP
    return place < WORD_SIZE and place + MemorySizeExt.size(instruction.memory_size) > 0


def moved(instruction: Instruction, place: int) -> int | None:
    """What a register points to behind an instruction that adds a constant to it; ``None``: it
    does something else."""
    if instruction.op1_kind not in _IMMEDIATES:
        return None
    value = signed(int(instruction.immediate(1)))
    if instruction.mnemonic == Mnemonic.ADD:
        return place + value
    return place - value if instruction.mnemonic == Mnemonic.SUB else None


class Copies:
    """Follows copies of the stack pointer through the code of a function, or a part of one.

    ``only_notes`` are functions of which nothing that they are handed counts.
    """

    def __init__(
        self, code: Sequence[Instruction], frames: FunctionFrame, only_notes: Callable[[int], bool]
    ) -> None:
        self._code = code
        self._frames = frames
        self._only_notes = only_notes
        self._factory: InstructionInfoFactory | None = None
        self._numbers: dict[int, int] = {}
        self._handed: frozenset[int] = frozenset()
        self._found: dict[tuple[int, bool, bool], bool] = {}

    def lead_to_slot(self, number: int, *, is_frame: bool = False, ahead: bool = False) -> bool:
        """Whether the copy that instruction ``number`` makes comes to be used for the return
        address: by an instruction, or by what it is handed to while it is its very address.
        ``is_frame``: it is the frame pointer, which is as good to who is handed it. ``ahead``: up
        to the first branch alone. A copy that points into the frame is a local variable's address
        as a rule, and behind a branch it may be another's."""
        asked = number, is_frame, ahead
        if asked not in self._found:
            self._found[asked] = self._lead_to_slot(number, is_frame=is_frame, ahead=ahead)
        return self._found[asked]

    def _lead_to_slot(self, number: int, *, is_frame: bool, ahead: bool) -> bool:
        if not self._numbers:
            self._numbers = {int(one.ip): at for at, one in enumerate(self._code)}
        self._handed = frozenset({0, FRAME} if is_frame else {0})
        states: dict[int, Mapping[_Key, int]] = {}
        pending: list[tuple[int, Mapping[_Key, int]]] = [(number, {})]
        steps = 0
        while pending and steps < _FAR:
            at, state = pending.pop()
            steps += 1
            instruction = self._code[at]
            after = self._after(at, state, is_first=steps == 1)
            if after is None:
                return True
            if max(after.values(), default=_SOMEWHERE) <= _SOMEWHERE / 2:
                continue
            if ahead and instruction.flow_control not in (FlowControl.NEXT, *_CALLS):
                continue
            for address in successors(instruction):
                following = self._numbers.get(address)
                if following is None:
                    if self._is_tail(instruction) and self._is_handed(after, instruction):
                        return True
                    continue
                known = states.get(following)
                met = after if known is None else _met(known, after)
                if met and met != known:
                    states[following] = met
                    pending.append((following, met))
        return False

    @staticmethod
    def _is_tail(instruction: Instruction) -> bool:
        """Whether it is as a call. A condition's jump leads to another part of assembler, which is
        read by itself."""
        return bool(instruction.flow_control == FlowControl.UNCONDITIONAL_BRANCH)

    def _is_handed(self, state: Mapping[_Key, int], instruction: Instruction) -> bool:
        if not any(state.get(one) in self._handed for one in _ARGUMENTS):
            return False
        return not self._only_notes(int(instruction.near_branch_target))

    def _after(
        self, number: int, state: Mapping[_Key, int], *, is_first: bool
    ) -> Mapping[_Key, int] | None:
        """What holds copies behind an instruction; ``None``: one was used there for the return
        address. The first one makes them."""
        instruction = self._code[number]
        flow = instruction.flow_control
        base = int(instruction.memory_base)
        held = state.get(base)
        in_words = state and not any(isinstance(key, int) for key in state)
        if in_words and base not in BASES and instruction.mnemonic not in _STACKING:
            return state
        if held is not None and instruction.mnemonic not in (Mnemonic.PUSH, Mnemonic.NOP):
            distance = offset(self._code, number)
            if distance is not None and is_in_slot(held + distance, instruction):
                return None
        if flow in (*_CALLS, FlowControl.INDIRECT_BRANCH):
            if self._is_handed(state, instruction):
                return None
            return {key: value for key, value in state.items() if key not in _SCRATCH}
        after = dict(state)
        if not self._copies(number, state, after, is_first=is_first):
            for register in self._written(instruction):
                after.pop(register, None)
        elif instruction.mnemonic == Mnemonic.MOV and instruction.op0_kind == OpKind.MEMORY:
            is_own = base in BASES or held is not None
            if not is_own and state.get(int(instruction.op1_register)) == 0:
                return None  # where others find it
        return after

    def _written(self, instruction: Instruction) -> list[int]:
        if self._factory is None:
            self._factory = InstructionInfoFactory()
        used = self._factory.info(instruction).used_registers()
        changed = (one.register for one in used if one.access in _WRITES)
        return [int(RegisterExt.full_register(one)) for one in changed]

    def _of(
        self, register: int, number: int, state: Mapping[_Key, int], *, is_first: bool
    ) -> int | None:
        if is_first and register in BASES:
            return self._frames.place(register, int(self._code[number].ip))
        if register == Register.RSP and register not in state:
            return _SOMEWHERE
        return state.get(register)

    def _copies(
        self, number: int, state: Mapping[_Key, int], after: dict[_Key, int], *, is_first: bool
    ) -> bool:
        """Whether an instruction is one that a copy is made, moved or put away by: ``after`` has it
        then."""
        instruction = self._code[number]
        mnemonic = instruction.mnemonic
        is_register = instruction.op_count > 0 and instruction.op0_kind == OpKind.REGISTER
        target = int(instruction.op0_register) if is_register else None

        def of(register: int) -> int | None:
            return self._of(register, number, state, is_first=is_first)

        if mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
            key = target if target is not None else self._word(number, state)
            return _put(after, key, of(int(instruction.op1_register)))
        if mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.MEMORY:
            key = self._word(number, state)
            return _put(after, target, None if key is None else state.get(key))
        if mnemonic == Mnemonic.LEA:
            from_base, distance = of(int(instruction.memory_base)), offset(self._code, number)
            known = from_base is not None and distance is not None
            return _put(after, target, from_base + distance if known else None)  # type: ignore[operator]
        if mnemonic in (Mnemonic.ADD, Mnemonic.SUB) and target is not None:
            place = state.get(target)
            return _put(after, target, None if place is None else moved(instruction, place))
        if mnemonic == Mnemonic.XCHG and instruction.op1_kind == OpKind.REGISTER and is_register:
            other = int(instruction.op1_register)
            mine = of(int(instruction.op0_register))
            return _put(after, target, of(other)) and _put(after, other, mine)
        if mnemonic in _STACKING and is_register:
            return self._stacks(instruction, after, of(int(instruction.op0_register)))
        return False

    def _stacks(self, instruction: Instruction, after: dict[_Key, int], value: int | None) -> bool:
        register = int(instruction.op0_register)
        is_push = instruction.mnemonic == Mnemonic.PUSH
        if (value is None or not is_push) and all(isinstance(key, int) for key in after):
            return is_push or _put(after, register, None)  # cheaper
        top = self._frames.told_place(Register.RSP, int(instruction.ip))
        if is_push:
            return _put(after, None if top is None else (top - WORD_SIZE,), value)
        return _put(after, register, None if top is None else after.get((top,)))

    def _word(self, number: int, state: Mapping[_Key, int]) -> _Key | None:
        """What the operand in memory of an instruction is as a word of the stack."""
        instruction = self._code[number]
        base, distance = int(instruction.memory_base), offset(self._code, number)
        if distance is None:
            return None
        place = state.get(base)
        if place is None and base in BASES:
            place = self._frames.told_place(base, int(instruction.ip))
            if place is None:
                return base, distance
        return (place + distance,) if place is not None and place > _SOMEWHERE / 2 else None


def _put(after: dict[_Key, int], key: _Key | None, value: int | None) -> bool:
    if key is not None:
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return True


def _met(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, int]:
    return {key: value for key, value in one.items() if other.get(key) == value}
