"""A processor on paper, and its code: what ``darc.code.architecture`` asks of a second one.

Instructions have eight bytes: an opcode, two registers, and a distance or a number of four bytes.
Calls put where they return to into a register (``link``), and nothing on the stack: a frame is
known by its stack pointer at entry, which is its CFA. Distances are from the instruction's own
first byte.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum

from darc.code.architecture import (
    FrameRules,
    FunctionCode,
    Prologue,
    ReadRegister,
    ReadWord,
    Relocations,
    Site,
    Surroundings,
    Thunks,
)
from darc.code.frame_rule import WORD, FrameRule
from darc.model.ftree import CallKind
from darc.model.refusal import Refusal

SIZE = 8
"""Bytes of an instruction."""

NAMES = (*(f"p{number}" for number in range(13)), "frame", "link", "stack")
"""Registers. p0 to p3 have arguments, p0 the result; a function finds nothing in p10 to p12, and
calls nobody through them."""

ARGUMENTS = NAMES[:4]
ACCOUNT, PLACE = "p2", 16
"""The argument by which a signal's handler has the kernel's account of what it has interrupted, and
where in that the thread's place is."""


class Op(IntEnum):
    """What an instruction does with its registers ``a`` and ``b`` and its number ``n``."""

    STOP = 0
    ADD = 1  # a = b + n
    SUM = 2  # a = a + b
    LOAD = 3  # a = the word at b + n
    LOAD_SHORT = 4  # a = the number of four bytes at b + n
    STORE = 5  # the word at b + n = a
    NEAR = 6  # a = the word n from here
    JUMP = 7  # by n
    JUMP_IF = 8  # by n, where a is not 0
    CALL = 9  # by n; link = behind it
    JUMP_TO = 10  # a
    CALL_TO = 11  # a; link = behind it
    RETURN = 12  # to link; n means nothing
    SYSTEM = 13


_RELATIVE = {Op.NEAR, Op.JUMP, Op.JUMP_IF, Op.CALL}
_JUMPS = {Op.JUMP, Op.JUMP_IF, Op.JUMP_TO}
_ENDS = {Op.STOP, Op.JUMP, Op.JUMP_TO, Op.RETURN}


@dataclass(frozen=True)
class Paper:
    """One instruction, decoded: an :class:`~darc.code.architecture.Instruction`."""

    ip: int
    op: Op
    a: str = "p0"
    b: str = "p0"
    n: int = 0

    @property
    def next_ip(self) -> int:
        return self.ip + SIZE

    @property
    def len(self) -> int:
        return SIZE

    @property
    def near(self) -> int | None:
        """The place that it names by the distance from itself."""
        return self.ip + self.n if self.op in _RELATIVE else None


def encode(op: Op, a: str = "p0", b: str = "p0", n: int = 0) -> bytes:
    """Raises struct.error where ``n`` has no room in four bytes."""
    return struct.pack("<BBBxi", op, NAMES.index(a), NAMES.index(b), n)


def _decoded(code: bytes, ip: int) -> Paper:
    op, a, b, n = struct.unpack("<BBBxi", code)
    known = op < len(Op) and max(a, b) < len(NAMES)
    return Paper(ip, Op(op), NAMES[a], NAMES[b], n) if known else Paper(ip, Op.STOP)


class PaperReader:
    """A :class:`~darc.code.architecture.CodeReader`, and a
    :class:`~darc.code.architecture.RestartReader`. Its programs are linked statically, and have
    no threads: what it is asked of either is nowhere."""

    PATCH_LENGTH = SHORT_JUMP = LONGEST_JUMP = HOOK_LENGTH = LONGEST_INSTRUCTION = PATCH_REACH = (
        SIZE
    )
    SHORT_REACH = range(-(1 << 31) - SIZE, (1 << 31) - SIZE)
    PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER = "counter", "stack", "frame"
    RESULT, THREAD_POINTER = "p0", "none"
    FRAME_AT_ENTRY = FrameRule("stack", 0)
    PROGRAMS, MACHINE, LARGEST = "programs on paper", (2, 0xFFFF), 1 << 31
    LIBUNWIND = "paper"
    RELOCATIONS = Relocations(named=frozenset(), relative=1, resolved=2)
    BREAKPOINT = bytes([Op.STOP])
    """What stands behind it does not matter: as is asked for, a single byte."""
    SYSTEM_CALL, RETURN = encode(Op.SYSTEM), encode(Op.RETURN)
    SIGNAL_RETURN = CONTEXT_RETURN = encode(Op.SYSTEM, n=1)
    LONGEST_CALL = CALL_THROUGH = STACK_CHECK = PLT_ENTRY = SIZE
    EXCEPTION_RETURN = SANDBOX_CALL = re.compile(rb"(?!)")

    def slot_of(self, cfa: int) -> int:
        return cfa

    def cfa_of(self, slot: int) -> int:
        return slot

    def slot_at_entry(self, stack: int) -> int:
        return stack

    def decode(self, data: bytes, address: int) -> list[Paper]:
        return list(self.instructions(data, address))

    def instructions(self, data: bytes, address: int) -> Iterator[Paper]:
        for at in range(0, len(data) - SIZE + 1, SIZE):
            yield _decoded(data[at : at + SIZE], address + at)

    def read_function(
        self, entry: int, around: Surroundings, thunks: Thunks | None = None
    ) -> FunctionCode[Paper]:
        assert thunks is None, "no compiler makes any"
        start, end = around.outlines.extent(entry) or (entry, entry)
        code = {one.ip: one for one in self.instructions(around.read(start, end - start), start)}
        function = FunctionCode(entry, [(start, end)], code)
        function.depths = self._depths(function)
        for one in code.values():
            target = self.jump_target(one)
            if target is not None and function.contains(target):
                function.targets.add(target)
            elif (kind := _kind(one)) is not None:
                function.sites.append(self._site(function, one, kind))
        return function

    def _depths(self, function: FunctionCode[Paper]) -> dict[int, FrameRule]:
        """Where the CFA is at each instruction, by what is added to the stack pointer before."""
        found: dict[int, FrameRule] = {}
        open_ways = [(function.entry, 0)]
        while open_ways:
            at, depth = open_ways.pop()
            one = function.instructions.get(at)
            if one is None or at in found:
                continue
            found[at] = FrameRule("stack", depth)
            if (target := self.jump_target(one)) is not None:
                open_ways.append((target, depth))
            if self.falls_through(one) or one.op is Op.JUMP_IF:
                moved = one.n if (one.op, one.a, one.b) == (Op.ADD, "stack", "stack") else 0
                open_ways.append((one.next_ip, depth - moved))
        return found

    def _site(self, function: FunctionCode[Paper], one: Paper, kind: CallKind) -> Site[Paper]:
        assert function.depths is not None
        return Site(
            address=one.ip,
            kind=kind,
            patch=one.ip,
            length=SIZE,
            back=one.next_ip,
            target=one.near,
            pointer=None,
            instruction=one,
            slot=function.depths.get(one.ip),
        )

    def read_prologue(
        self, function: FunctionCode[Paper], around: Surroundings, room: int = SIZE
    ) -> Prologue[Paper] | Refusal:
        displaced = [function.instructions.get(function.entry + at) for at in range(0, room, SIZE)]
        taken = tuple(one for one in displaced if one is not None and one.op is not Op.STOP)
        end = function.entry + SIZE * len(displaced)
        if len(taken) != len(displaced):
            return Refusal("it is too short")
        if any(function.entry < one < end for one in function.targets):
            return Refusal("a jump leads among its first instructions")
        original = around.read(function.entry, end - function.entry)
        return Prologue(function.entry, taken, len(original), original)

    def branch_target(self, instruction: Paper) -> int | None:
        return None if instruction.op is Op.NEAR else instruction.near

    def jump_target(self, instruction: Paper) -> int | None:
        return instruction.near if instruction.op in _JUMPS else None

    def ends_in_call(self, code: bytes) -> bool:
        return _decoded(code, 0).op in (Op.CALL, Op.CALL_TO)

    def called_before(self, code: bytes, back: int) -> int | None:
        one = _decoded(code, back - SIZE)
        return one.near if one.op is Op.CALL else None

    def ends_in_call_through(self, code: bytes) -> bool:
        return _decoded(code, 0).op is Op.CALL_TO

    def led_to(self, code: bytes, start: int) -> Iterator[tuple[int, int]]:
        for one in self.instructions(code, start):
            if (target := self.branch_target(one)) is not None:
                yield one.ip, target

    def led_through(self, code: bytes, start: int) -> Iterator[int]:
        return (one.ip + one.n for one in self.instructions(code, start) if one.op is Op.NEAR)

    def pointed_to(self, code: bytes, start: int) -> Iterator[int]:
        return iter(())

    def splits_stack(self, code: bytes) -> bool:
        return False

    def plt_slot(self, code: bytes, address: int) -> int | None:
        return None

    def is_lazy_binding(self, code: bytes, address: int) -> bool:
        return False

    def handed_to_c(self, code: bytes, address: int) -> int | None:
        return None

    def is_return(self, instruction: Paper) -> bool:
        return instruction.op is Op.RETURN

    def is_system_call(self, instruction: Paper) -> bool:
        return instruction.op is Op.SYSTEM

    def is_relative(self, instruction: Paper) -> bool:
        return instruction.op is Op.NEAR

    def is_hook(self, code: bytes) -> bool:
        return any(one.op in _JUMPS for one in self.decode(code, 0)[:1])

    def falls_through(self, instruction: Paper) -> bool:
        return instruction.op not in _ENDS | _JUMPS

    def is_mute(self, instruction: Paper) -> bool:
        return instruction.op in (Op.ADD, Op.SUM)

    def is_padding(self, instruction: Paper) -> bool:
        return instruction.op is Op.STOP

    def is_indirect_call(self, instruction: Paper) -> bool:
        return instruction.op is Op.CALL_TO

    def epilogues(self, function: FunctionCode[Paper]) -> list[int]:
        return [one.ip for one in function.instructions.values() if self.is_return(one)]

    def is_looked_at(
        self,
        entry: int,
        code: Sequence[Paper],
        rules: FrameRules | None,
        only_notes: Callable[[int], bool] = lambda _: False,
    ) -> bool:
        """The register with its caller's address is kept in the frame, and read by what returns."""
        uses = [one for one in code if "link" in (one.a, one.b) and one.op is not Op.LOAD]
        return any((one.op, one.b) != (Op.STORE, "stack") for one in uses)

    def may_raise(
        self, instruction: Paper, signals: AbstractSet[int], *, has_frame: bool = False
    ) -> bool:
        reads = (Op.LOAD, Op.LOAD_SHORT, Op.STORE)
        return bool(signals) and instruction.op in reads and instruction.b != "stack"

    def may_be_restarted(self, instruction: Paper, *, has_frame: bool = False) -> bool:
        own = ("stack", "frame") if has_frame else ("stack",)
        return instruction.op in (Op.LOAD, Op.LOAD_SHORT, Op.STORE) and instruction.b not in own

    def sets_place(
        self, handler: FunctionCode[Paper], called: Callable[[int], FunctionCode[Paper] | None]
    ) -> bool:
        """The instructions are looked at as they stand, and calls are followed into functions that
        do not call."""
        return _sets_place(handler, called, {ACCOUNT: 0})

    def leaves_frame(self, instruction: Paper) -> bool:
        return self.falls_through(instruction) and instruction.a != "stack"

    def may_learn_place(self, handler: FunctionCode[Paper], signal: int, *, is_told: bool) -> bool:
        return is_told

    def frame_slot(self, rule: FrameRule, register: ReadRegister, word: ReadWord) -> int:
        base = register(rule.register)
        if rule.through is not None:
            base = word(base + rule.through & WORD)
        return base + rule.offset & WORD

    def indirect_target(
        self, instruction: Paper, register: ReadRegister, word: ReadWord
    ) -> int | None:
        leads = instruction.op in (Op.JUMP_TO, Op.CALL_TO)
        return register(instruction.a) if leads else None

    def is_taken(self, instruction: Paper, register: ReadRegister) -> bool:
        return instruction.op is not Op.JUMP_IF or register(instruction.a) != 0


def _sets_place(
    code: FunctionCode[Paper],
    called: Callable[[int], FunctionCode[Paper] | None],
    given: dict[str, int],
) -> bool:
    """Whether a function that has pointers into the account in the registers ``given``, each so far
    from its beginning, writes the place."""
    held = dict(given)
    for _, one in sorted(code.instructions.items()):
        if one.op is Op.STORE and one.b in held and held[one.b] + one.n == PLACE:
            return True
        if one.op is Op.CALL and one.near is not None:
            handed = {name: held.pop(name) for name in ARGUMENTS if name in held}
            callee = called(one.near)
            if callee is not None and _sets_place(callee, lambda _: None, handed):
                return True
        elif one.op is Op.ADD and one.b in held:
            held[one.a] = held[one.b] + one.n
        elif one.op in (Op.ADD, Op.SUM, Op.LOAD, Op.LOAD_SHORT, Op.NEAR):
            held.pop(one.a, None)
    return False


def _kind(one: Paper) -> CallKind | None:
    """Which kind of call an instruction is that does not stay in its function."""
    match one.op:
        case Op.CALL:
            return CallKind.DIRECT
        case Op.CALL_TO:
            return CallKind.INDIRECT
        case Op.JUMP | Op.JUMP_IF | Op.JUMP_TO:
            return CallKind.TAIL
        case _:
            return None
