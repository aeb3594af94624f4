"""x86-64: the call sites of one function, from its live bytes, and what its code tells.

This is its :class:`~darc.code.architecture.CodeReader`; what the files beside it answer of it, it
passes on. The file's bytes are never used: a program patches itself, and so does darc. Calls are
direct ones, indirect ones (register, memory, GOT) and tail jumps, also conditional ones and by a
table of functions; a switch's is none. A cold part belongs to its function. Addresses are those of
the running program.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from iced_x86 import (
    Code,
    Decoder,
    FlowControl,
    Mnemonic,
    OpKind,
    Register,
    RegisterExt,
)
from iced_x86 import Instruction as Instruction

from darc.code.architecture import MAX_FUNCTION, FunctionCode, Prologue, Site, Surroundings, Thunks
from darc.code.frame_rule import WORD_SIZE, FrameRule
from darc.code.x86_64_branches import frame_slot as frame_slot
from darc.code.x86_64_branches import indirect_target as indirect_target
from darc.code.x86_64_branches import is_taken as is_taken
from darc.code.x86_64_depth import frame_rules
from darc.code.x86_64_faults import leaves_frame as leaves_frame
from darc.code.x86_64_faults import may_learn_place as may_learn_place
from darc.code.x86_64_faults import may_raise as may_raise
from darc.code.x86_64_relocations import RELOCATIONS as RELOCATIONS
from darc.code.x86_64_return_slot import is_looked_at as is_looked_at
from darc.code.x86_64_scans import CALL_THROUGH as CALL_THROUGH
from darc.code.x86_64_scans import EXCEPTION_RETURN as EXCEPTION_RETURN
from darc.code.x86_64_scans import HOOK_LENGTH as HOOK_LENGTH
from darc.code.x86_64_scans import SANDBOX_CALL as SANDBOX_CALL
from darc.code.x86_64_scans import STACK_CHECK as STACK_CHECK
from darc.code.x86_64_scans import ends_in_call_through as ends_in_call_through
from darc.code.x86_64_scans import is_hook as is_hook
from darc.code.x86_64_scans import led_through as led_through
from darc.code.x86_64_scans import led_to as led_to
from darc.code.x86_64_scans import pointed_to as pointed_to
from darc.code.x86_64_scans import splits_stack as splits_stack
from darc.code.x86_64_system_calls import SystemCall
from darc.model.errors import TargetError
from darc.model.ftree import CallKind
from darc.model.refusal import Refusal

PATCH_LENGTH = 5  # bytes of a direct call or jump: what a patch needs at least
SHORT_JUMP = 2  # bytes of the shortest jump
SHORT_REACH = range(-128, 128)  # from its end
LONGEST_JUMP = 6  # bytes of a conditional one that leads anywhere
LONGEST_INSTRUCTION = 15
_LONGEST_PATCH = LONGEST_INSTRUCTION
_PAGE = 4096  # bytes of memory that can be read or not as one
PATCH_REACH = 16  # bytes from a function's beginning
PLT_ENTRY = 16  # bytes of one

PROGRAM_COUNTER, STACK_POINTER, FRAME_POINTER = "rip", "rsp", "rbp"
RESULT, THREAD_POINTER = "rax", "fs_base"
FRAME_AT_ENTRY = FrameRule(STACK_POINTER, WORD_SIZE)

BREAKPOINT, RETURN = b"\xcc", b"\xc3"

PROGRAMS = "64-bit x86"
MACHINE = (2, 62)  # ELFCLASS64, EM_X86_64
LARGEST = 1 << 56  # no x86 processor maps more for a program
LIBUNWIND = "x86_64"

_LONGEST_TABLE = 2048  # entries of a jump table
_LOOKED_AT = 64  # entries of a table that tell what it is one of
_IMMEDIATES = (OpKind.IMMEDIATE32, OpKind.IMMEDIATE32TO64, OpKind.IMMEDIATE64)


def slot_of(cfa: int) -> int:
    """See :meth:`CodeReader.slot_of`: a call pushes its return address."""
    return cfa - WORD_SIZE


def cfa_of(slot: int) -> int:
    """See :meth:`CodeReader.cfa_of`."""
    return slot + WORD_SIZE


def slot_at_entry(stack: int) -> int:
    """See :meth:`CodeReader.slot_at_entry`."""
    return stack


def _frame_rule(
    function: FunctionCode[Instruction], address: int, around: Surroundings
) -> FrameRule | None:
    """What the frame information says, else what the code itself does."""
    rule = around.outlines.frame_rule(address)
    if rule is None and around.outlines.extent(address) is not None:
        if function.depths is None:
            function.depths = frame_rules(function.entry, function.instructions)
        rule = function.depths.get(address)
    return rule


def decode(data: bytes, address: int) -> list[Instruction]:
    """All instructions of ``data``, swept from its first byte."""
    return list(Decoder(64, data, ip=address))


def instructions(data: bytes, address: int) -> Iterator[Instruction]:
    """The same, one after the other: a megabyte of them takes fifty in memory."""
    return iter(Decoder(64, data, ip=address))


def read_function(
    entry: int, around: Surroundings, thunks: Thunks | None = None
) -> FunctionCode[Instruction]:
    """Reads the function that starts at ``entry``."""
    function = FunctionCode[Instruction](entry, [], {})
    pending = [entry]
    while pending:
        address = pending.pop()
        if function.contains(address):
            continue
        part = _extent(address, around)
        if part is None:
            function.complete = False
            continue
        function.ranges.append(part)
        for instruction in decode(around.read(part[0], part[1] - part[0]), part[0]):
            meant = _meant(instruction, thunks) if thunks is not None else None
            if meant is not None:
                function.thunks[int(instruction.ip)] = int(instruction.near_branch_target)
            function.instructions[instruction.ip] = meant or instruction
        pending += _cold_parts(function, part, around)
    function.depths = None  # of all parts now
    for start, _ in function.ranges:
        landings = around.outlines.landing_pads(start)
        function.targets |= landings or frozenset()
        function.complete &= landings is not None
    _collect_targets(function, around)
    for address in sorted(function.instructions):
        site = _site(function, function.instructions[address], around)
        if site is not None:
            if _is_led_into(function, site.patch, site.length):
                why = "a jump leads between the bytes that a patch needs"
                site = replace(site, problem=site.problem or why, is_short=False)
            thunk = function.thunks.get(site.address)
            function.sites.append(replace(site, thunk=thunk) if thunk is not None else site)
    return function


def _meant(instruction: Instruction, thunks: Thunks) -> Instruction | None:
    """What a call of a thunk, or a jump to one, does in the end, in its place and as long as it."""
    flow = instruction.flow_control
    if not instruction.op_count or instruction.op0_kind != OpKind.NEAR_BRANCH64:
        return None
    if flow not in (FlowControl.CALL, FlowControl.UNCONDITIONAL_BRANCH):
        return None
    thunk = thunks(int(instruction.near_branch_target))
    if thunk is None:
        return None
    if thunk.register is not None:
        code = Code.CALL_RM64 if flow == FlowControl.CALL else Code.JMP_RM64
        meant = Instruction.create_reg(code, getattr(Register, thunk.register.upper()))
    elif flow == FlowControl.CALL:
        return None
    else:
        meant = Instruction.create(Code.RETNQ)
    meant.len = instruction.len  # before the address, which is counted from the end
    meant.ip = instruction.ip
    return meant


def _is_led_into(function: FunctionCode[Instruction], start: int, length: int) -> bool:
    """Whether a jump leads behind the first of these bytes, be it into an instruction's middle."""
    return any(at in function.targets for at in range(start + 1, start + length))


def _extent(address: int, around: Surroundings) -> tuple[int, int] | None:
    part = around.outlines.extent(address)
    if part is None or part[1] - part[0] > MAX_FUNCTION:
        return None
    return part


def branch_target(instruction: Instruction) -> int | None:
    """Where a call or a jump leads that says so itself; ``None`` for everything else."""
    if instruction.op_count and instruction.op0_kind in (
        OpKind.NEAR_BRANCH64,
        OpKind.NEAR_BRANCH32,
        OpKind.NEAR_BRANCH16,
    ):
        return int(instruction.near_branch_target)
    return None


def jump_target(instruction: Instruction) -> int | None:
    """The same of a jump; ``None`` for everything else, calls too."""
    return branch_target(instruction) if instruction.flow_control in _JUMPS else None


_CALLS = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
_JUMPS = (FlowControl.UNCONDITIONAL_BRANCH, FlowControl.CONDITIONAL_BRANCH)


def _cold_parts(
    function: FunctionCode[Instruction], part: tuple[int, int], around: Surroundings
) -> list[int]:
    """Where jumps lead out of the function but not into another one."""
    found = []
    for address, instruction in function.instructions.items():
        if not part[0] <= address < part[1] or instruction.flow_control not in _JUMPS:
            continue
        target = branch_target(instruction)
        if target is None or function.contains(target):
            continue
        if not _is_tail(function, address, target, around):
            found.append(target)
    return found


def _is_tail(
    function: FunctionCode[Instruction], address: int, target: int, around: Surroundings
) -> bool:
    """A jump out is a tail call when the frame is gone; else it leads to a cold part."""
    if around.outlines.is_cold_part(target):
        return False
    rule = _frame_rule(function, address, around)
    if rule is None:
        return around.outlines.is_function_start(target) or not around.is_code(target)
    return rule == FRAME_AT_ENTRY


def _collect_targets(function: FunctionCode[Instruction], around: Surroundings) -> None:
    for instruction in function.instructions.values():
        if instruction.flow_control in _JUMPS:
            target = branch_target(instruction)
            if target is not None:
                function.targets.add(target)
        elif instruction.flow_control == FlowControl.XBEGIN_XABORT_XEND:
            function.complete = False
    jumps = _indirect_jumps(function)
    if not jumps:
        return
    targets = _table_targets(function, around)
    function.targets |= targets
    for jump in jumps:
        tail = _frame_rule(function, int(jump.ip), around) == FRAME_AT_ENTRY
        if not targets and not (tail and not _is_table_jump(function, jump, around)):
            function.complete = False  # who knows where it leads


def _indirect_jumps(function: FunctionCode[Instruction]) -> list[Instruction]:
    return [
        i for i in function.instructions.values() if i.flow_control == FlowControl.INDIRECT_BRANCH
    ]


def _before(function: FunctionCode[Instruction], address: int, count: int) -> list[Instruction]:
    """Up to ``count`` instructions that stand right before ``address``, nearest first."""
    found: list[Instruction] = []
    while len(found) < count:
        for back in range(1, 16):
            instruction = function.instructions.get(address - back)
            if instruction is not None and instruction.len == back:
                found.append(instruction)
                address -= back
                break
        else:
            break
    return found


def _is_table_jump(
    function: FunctionCode[Instruction], jump: Instruction, around: Surroundings
) -> bool:
    """``jmp *table(,%r,8)``, or a register that was computed from a table of distances; not where
    the table is one of functions."""
    if jump.op0_kind == OpKind.MEMORY:
        return _is_element(jump) and not _is_of_functions(function, jump, around)
    register = jump.op0_register
    for instruction in _before(function, jump.ip, 12):
        if instruction.flow_control != FlowControl.NEXT:
            return False
        if instruction.op_count < 1 or instruction.op0_register != register:
            continue
        if instruction.mnemonic == Mnemonic.ADD:
            return True
        if instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind == OpKind.REGISTER:
            register = instruction.op1_register
            continue
        if instruction.op1_kind != OpKind.MEMORY:
            return False
        if instruction.mnemonic == Mnemonic.MOV and _is_element(instruction):
            return not _is_of_functions(function, instruction, around)
        return bool(
            instruction.mnemonic in (Mnemonic.MOV, Mnemonic.MOVSXD)
            and instruction.memory_index != Register.NONE
            and instruction.memory_index_scale in (4, 8)
        )
    return False


def _is_element(instruction: Instruction) -> bool:
    """Whether it takes an address from a table."""
    return bool(instruction.memory_index != Register.NONE and instruction.memory_index_scale == 8)


def _is_of_functions(
    function: FunctionCode[Instruction], taking: Instruction, around: Surroundings
) -> bool:
    """Whether the table that an instruction takes an address from is one of functions, by its first
    entry that tells: a switch's leads to a place in ``function``."""
    table = _table_of(function, taking)
    if table is None:
        return False
    for value in itertools.islice(_table_entries(around, table, "<Q"), _LOOKED_AT):
        if value and value != function.entry:
            is_inside = value in function.instructions or around.outlines.is_cold_part(value)
            return not is_inside and around.outlines.is_function_start(value)
    return False


def _table_of(function: FunctionCode[Instruction], taking: Instruction) -> int | None:
    """Where the table is that an instruction takes an address from, if its code says so."""
    if taking.memory_base == Register.NONE:
        return int(taking.memory_displacement)
    for instruction in _before(function, taking.ip, 12):
        if instruction.flow_control != FlowControl.NEXT:
            break
        register = instruction.op0_register if instruction.op_count else Register.NONE
        if RegisterExt.full_register(register) != taking.memory_base:
            continue
        is_constant = instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind in _IMMEDIATES
        if instruction.mnemonic != Mnemonic.LEA and not is_constant:
            break
        for base in _addresses(instruction):
            return base + int(taking.memory_displacement) & (1 << 64) - 1
        break
    return None


def _table_targets(function: FunctionCode[Instruction], around: Surroundings) -> set[int]:
    """What the function's jump tables name, read from the live tables, and the code of its own
    whose address it takes (gcc's labels as values, of which tables may be made while it runs)."""
    labels: set[int] = set()
    tables: set[int] = set()
    for instruction in function.instructions.values():
        for value in _addresses(instruction):
            (labels if around.is_code(value) else tables).add(value)
    labels &= function.instructions.keys() - {function.entry}
    found = set(labels)
    for table in _readable(around, tables):
        found |= _read_table(function, around, table=table, form="<Q", bases=(0,))
        found |= _read_table(function, around, table=table, form="<i", bases=(table, *labels))
    return found


def _addresses(instruction: Instruction) -> Iterator[int]:
    """Fixed addresses that may be those of labels and tables of them."""
    if instruction.is_ip_rel_memory_operand:
        if instruction.mnemonic == Mnemonic.LEA:
            yield int(instruction.memory_displacement)
        return
    for number in range(instruction.op_count):
        kind = instruction.op_kind(number)
        if kind in _IMMEDIATES:
            yield int(instruction.immediate(number)) & (1 << 64) - 1
        elif kind == OpKind.MEMORY and instruction.memory_base == Register.NONE:
            yield int(instruction.memory_displacement)


def _readable(around: Surroundings, addresses: Iterable[int]) -> Iterator[int]:
    """Those in pages that can be read. Most fixed values are none of addresses, but numbers by the
    thousand: a debugger is asked once for each page."""
    for page, inside in itertools.groupby(sorted(addresses), key=lambda one: one // _PAGE):
        try:
            around.read(page * _PAGE, 1)
        except TargetError:
            continue
        yield from inside


def _read_table(
    function: FunctionCode[Instruction],
    around: Surroundings,
    table: int,
    *,
    form: str,
    bases: Sequence[int],
) -> set[int]:
    """What the table names, as distances from whichever of ``bases`` it may be."""
    found: set[int] = set()
    if around.is_code(table):
        return found
    for value in _table_entries(around, table, form):
        bases = [base for base in bases if around.is_code(base + value)]
        found.update(base + value for base in bases if base + value in function.instructions)
        if not bases:
            break
    return found


def _table_entries(around: Surroundings, table: int, form: str) -> Iterator[int]:
    """Up to the end of readable memory; a few at a time, as most tables are short."""
    size = struct.calcsize(form)
    chunk = 16
    for index in range(0, _LONGEST_TABLE, chunk):
        try:
            raw = around.read(table + index * size, chunk * size)
        except TargetError:  # the end of readable memory may lie in between
            yield from _table_end(around, table + index * size, form)
            return
        yield from (value for (value,) in struct.iter_unpack(form, raw))


def _table_end(around: Surroundings, table: int, form: str) -> Iterator[int]:
    size = struct.calcsize(form)
    for at in itertools.count(table, size):
        try:
            yield struct.unpack(form, around.read(at, size))[0]
        except TargetError:  # the end of readable memory ends the table
            return


_Handed = tuple[CallKind, int | None, FrameRule | None]
"""How control is handed on, to where, and by what rule its caller's return address is found."""


def _site(
    function: FunctionCode[Instruction], instruction: Instruction, around: Surroundings
) -> Site[Instruction] | None:
    handed = _handed_on(function, instruction, around)
    if handed is None:
        return None
    kind, target, slot = handed
    if kind.is_tail:
        room = _room_of_tail(function, instruction, around)
    else:
        room = _room_of_call(function, instruction, slot, around)
    address, back = int(instruction.ip), int(instruction.next_ip)
    patch = int(room.displaced[0].ip) if room.displaced else address
    return Site(
        address=address,
        kind=kind,
        patch=patch,
        length=back - patch if room.displaced else room.length,
        back=back,
        target=target,
        pointer=_pointer(instruction),
        instruction=instruction,
        slot=slot,
        displaced=room.displaced,
        problem=room.problem,
        is_short=room.is_short,
    )


def _handed_on(
    function: FunctionCode[Instruction], instruction: Instruction, around: Surroundings
) -> _Handed | None:
    """``None``: it stays in the function, or where it leads cannot be told."""
    flow = instruction.flow_control
    address, back = int(instruction.ip), int(instruction.next_ip)
    if flow in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
        target = branch_target(instruction)
        if target is None and not instruction.is_call_near_indirect:
            return None  # a system call or a far call
        if target == back:
            return None  # call $+5 reads its own address
        kind = CallKind.DIRECT if target is not None else CallKind.INDIRECT
        return kind, target, _frame_rule(function, address, around)
    if flow in _JUMPS:
        target = branch_target(instruction)
        if target is None or function.contains(target):
            return None
        if not _is_tail(function, address, target, around):
            return None
        return CallKind.TAIL, target, FRAME_AT_ENTRY  # the frame is gone
    if flow == FlowControl.INDIRECT_BRANCH:
        if not instruction.is_jmp_near_indirect:
            return None  # a far jump
        if _is_table_jump(function, instruction, around):
            return None
        rule = _frame_rule(function, address, around) or FRAME_AT_ENTRY
        if rule != FRAME_AT_ENTRY:
            return None  # the frame still stands: a computed goto
        return CallKind.TAIL_INDIRECT, None, rule
    return None


class _Room(NamedTuple):
    """Where a patch of a call or jump has its bytes."""

    length: int
    """From the call or jump on, where nothing is ``displaced``."""
    displaced: tuple[Instruction, ...] = ()
    problem: str | None = None
    is_short: bool = False
    """As a :class:`Site` has them."""


def _room_of_tail(
    function: FunctionCode[Instruction], instruction: Instruction, around: Surroundings
) -> _Room:
    length = instruction.len
    is_conditional = instruction.flow_control == FlowControl.CONDITIONAL_BRANCH
    if length < PATCH_LENGTH and not is_conditional:
        length += _padding_behind(function, int(instruction.next_ip), around)
    if is_conditional and not instruction.is_jcc_short_or_near:
        return _Room(length, problem="the jump depends on a counter")
    if _has_short_address(instruction):
        return _Room(length, problem=_UNUSUAL)
    needed = LONGEST_JUMP if is_conditional else PATCH_LENGTH
    if length >= needed:
        return _Room(length)
    return _room_before(function, instruction, around, needed)


def _room_before(
    function: FunctionCode[Instruction],
    instruction: Instruction,
    around: Surroundings,
    needed: int = PATCH_LENGTH,
) -> _Room:
    displaced, problem = _displaced(function, instruction, around, needed)
    return _Room(instruction.len, displaced, problem, is_short=problem is not None)


_SEGMENTS = (Register.NONE, Register.FS, Register.GS, Register.CS)
_UNUSUAL = "it has an unusual prefix"


def _has_short_address(instruction: Instruction) -> bool:
    """Whether its operand is found by the lower halves of registers, as in code for x32: a pad,
    which pushes something first, would look elsewhere."""
    registers = (instruction.memory_base, instruction.memory_index)
    return instruction.op0_kind == OpKind.MEMORY and any(map(RegisterExt.is_gpr32, registers))


def _padding_behind(function: FunctionCode[Instruction], address: int, around: Surroundings) -> int:
    """How many bytes of nothing stand at ``address``, where no function has code."""
    found = 0
    if function.contains(address):
        return 0
    try:
        data = around.read(address, 16)
    except TargetError:  # the end of readable memory
        return 0
    for instruction in decode(data, address):
        at = int(instruction.ip)
        if not is_padding(instruction) or around.outlines.is_function_start(at):
            break
        found += instruction.len
        if found >= PATCH_LENGTH:
            break
    return found


def _pointer(instruction: Instruction) -> int | None:
    if instruction.op0_kind == OpKind.MEMORY and instruction.is_ip_rel_memory_operand:
        return int(instruction.memory_displacement)
    return None


def _room_of_call(
    function: FunctionCode[Instruction],
    instruction: Instruction,
    slot: FrameRule | None,
    around: Surroundings,
) -> _Room:
    if slot is None:
        problem = "no frame information says where its caller's return address stands"
        return _Room(instruction.len, problem=problem)
    if instruction.segment_prefix not in _SEGMENTS or _has_short_address(instruction):
        return _Room(instruction.len, problem=_UNUSUAL)
    if instruction.len < PATCH_LENGTH:
        return _room_before(function, instruction, around)
    return _Room(instruction.len)


_NO_MOVE = {Mnemonic.ENDBR64, Mnemonic.SYSCALL, Mnemonic.CPUID, Mnemonic.RDTSC, Mnemonic.RDTSCP}


def _displaced(
    function: FunctionCode[Instruction],
    call: Instruction,
    around: Surroundings,
    room: int = PATCH_LENGTH,
) -> tuple[tuple[Instruction, ...], str | None]:
    """Instructions of the same basic block before a short call, enough for a patch of ``room``
    bytes."""
    taken: list[Instruction] = []
    length = call.len
    address = int(call.ip)
    if not function.complete:
        return (), "the function's jumps are not all known"
    while length < room:
        if address in function.targets or address == function.entry:
            return (), "a jump leads between the bytes that a patch needs"
        before = _before(function, address, 1)
        if not before or not may_move(before[0]):
            return (), "the instructions before the short call cannot be moved"
        taken.insert(0, before[0])
        address = int(before[0].ip)
        length += before[0].len
        if length > _LONGEST_PATCH:
            return (), "the instructions before the short call cannot be moved"
    if around.is_jumped_into(address, int(call.next_ip)):
        return (), "a jump leads between the bytes that a patch needs"
    return tuple(taken), None


SYSTEM_CALL = b"\x0f\x05"
"""The instruction that calls the kernel."""

SIGNAL_RETURN = b"\x48\xc7\xc0" + struct.pack("<I", SystemCall.RT_SIGRETURN) + SYSTEM_CALL
"""``mov rax, SYS_rt_sigreturn`` and the call, as C libraries have it for the kernel."""


def called_before(code: bytes, back: int) -> int | None:
    """Where a call leads that says so itself, and returns to ``back``, which ``code`` stands
    before: :data:`PATCH_LENGTH` bytes of it; ``None``: there is none."""
    if len(code) != PATCH_LENGTH or code[:1] != b"\xe8":
        return None
    return back + int.from_bytes(code[1:], "little", signed=True)


LONGEST_CALL = 7
"""Bytes of a call from its opcode on."""

CONTEXT_RETURN = bytes.fromhex("4889dc488b3c2448")
"""``mov rsp, rbx; mov rdi, [rsp]``: where what glibc's ``makecontext`` began comes back to."""


def ends_in_call(code: bytes) -> bool:
    """Whether ``code``, :data:`LONGEST_CALL` bytes, may end in a call."""
    for length in range(SHORT_JUMP, LONGEST_CALL + 1):
        found = decode(code[-length:], 0)
        is_whole = bool(found) and found[0].len == length
        if is_whole and (found[0].is_call_near or found[0].is_call_near_indirect):
            return True
    return False


def plt_slot(code: bytes, address: int) -> int | None:
    """Which GOT slot a PLT entry with this ``code`` jumps through; ``None``: it is none."""
    for instruction in decode(code, address)[:2]:
        if instruction.flow_control == FlowControl.INDIRECT_BRANCH:
            if instruction.is_ip_rel_memory_operand:
                return int(instruction.memory_displacement)
            return None
        if instruction.mnemonic != Mnemonic.ENDBR64:
            return None
    return None


def is_lazy_binding(code: bytes, address: int) -> bool:
    """Whether ``code`` is the part of a PLT entry that has its slot bound: it pushes a number."""
    found = decode(code, address)
    if found and found[0].mnemonic == Mnemonic.ENDBR64:
        found = found[1:]
    return (
        bool(found)
        and found[0].mnemonic == Mnemonic.PUSH
        and bool(found[0].op0_kind in (OpKind.IMMEDIATE32TO64, OpKind.IMMEDIATE8TO64))
    )


def handed_to_c(code: bytes, address: int) -> int | None:
    """Which ``main`` a program's first ``code``, which is at ``address``, hands to the C library:
    the first argument of a call that never returns (``_start`` of crt1.o); ``None``: none."""
    found: int | None = None
    instructions = decode(code, address)
    for instruction, behind in itertools.pairwise(instructions):
        if instruction.flow_control != FlowControl.NEXT:
            is_call = instruction.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL)
            return found if is_call and behind.mnemonic == Mnemonic.HLT else None
        if instruction.op0_kind == OpKind.REGISTER and instruction.op0_register in (
            Register.RDI,
            Register.EDI,
        ):
            found = None
            if instruction.mnemonic == Mnemonic.LEA and instruction.is_ip_rel_memory_operand:
                found = int(instruction.memory_displacement)
            elif instruction.mnemonic == Mnemonic.MOV and instruction.op1_kind in _IMMEDIATES:
                found = int(instruction.immediate(1))
    return None


def is_return(instruction: Instruction) -> bool:
    """Whether its function ends there, and goes back to its caller."""
    return bool(instruction.flow_control == FlowControl.RETURN)


def is_system_call(instruction: Instruction) -> bool:
    """Whether it calls the kernel."""
    return bool(instruction.mnemonic == Mnemonic.SYSCALL)


def is_relative(instruction: Instruction) -> bool:
    """Whether its operand in memory is named by the distance from it: the file's own data."""
    return bool(instruction.is_ip_rel_memory_operand)


def falls_through(instruction: Instruction) -> bool:
    """Whether the one behind it is always executed next."""
    return bool(instruction.flow_control == FlowControl.NEXT)


def may_move(instruction: Instruction) -> bool:
    """Whether it does the same in a pad: no jump, nothing that looks at where it stands."""
    if instruction.is_invalid or instruction.flow_control != FlowControl.NEXT:
        return False
    return instruction.mnemonic not in _NO_MOVE


_PLAIN = (
    *(OpKind.REGISTER, OpKind.MEMORY, OpKind.IMMEDIATE8, OpKind.IMMEDIATE8_2ND),
    *(OpKind.IMMEDIATE8TO16, OpKind.IMMEDIATE8TO32, OpKind.IMMEDIATE8TO64, OpKind.IMMEDIATE16),
    *(OpKind.IMMEDIATE32, OpKind.IMMEDIATE32TO64, OpKind.IMMEDIATE64),
)
_AT_HAND = (Register.RSP, Register.RBP, Register.RIP)


def is_mute(instruction: Instruction) -> bool:
    """Whether nobody can tell where it is run: it may move, and cannot well fault (a handler of
    SIGSEGV may know the places of a runtime's own faults, and may be installed later)."""
    kinds = [instruction.op_kind(number) for number in range(instruction.op_count)]
    reads = OpKind.MEMORY in kinds and instruction.mnemonic not in (Mnemonic.LEA, Mnemonic.NOP)
    return (
        may_move(instruction)
        and all(kind in _PLAIN for kind in kinds)
        and (not reads or instruction.memory_base in _AT_HAND)
        and not instruction.is_privileged
    )


def is_padding(instruction: Instruction) -> bool:
    """Whether it is what compilers fill gaps between functions with."""
    return instruction.mnemonic in (Mnemonic.NOP, Mnemonic.INT3)


def is_indirect_call(instruction: Instruction) -> bool:
    """Whether it calls what a register or a word of memory says."""
    return instruction.is_call_near_indirect


_NEVER_FIRST = (Mnemonic.LOOP, Mnemonic.JRCXZ, Mnemonic.XBEGIN, Mnemonic.SYSCALL)
_ENDS = (
    FlowControl.RETURN,
    FlowControl.UNCONDITIONAL_BRANCH,
    FlowControl.INDIRECT_BRANCH,
)
"""Behind one of these is what is led to from elsewhere."""
_TRAPS = (FlowControl.INTERRUPT, FlowControl.EXCEPTION)
"""Filters of system calls, and handlers of SIGTRAP and SIGILL, may go by their addresses."""


def _may_be_first(instruction: Instruction) -> bool:
    if instruction.flow_control == FlowControl.INDIRECT_CALL:
        return instruction.is_call_near_indirect and not _has_short_address(instruction)
    return instruction.mnemonic not in _NEVER_FIRST and instruction.flow_control not in _TRAPS


def read_prologue(
    function: FunctionCode[Instruction], around: Surroundings, room: int = PATCH_LENGTH
) -> Prologue[Instruction] | Refusal:
    """What must move for a jump of ``room`` bytes at ``function.entry``, or why it cannot."""
    taken: list[Instruction] = []
    length = 0
    address = function.entry
    while length < room:
        instruction = function.instructions.get(address)
        if instruction is None or (taken and taken[-1].flow_control in _ENDS):
            return _padding(function, taken, length=length, around=around, room=room)
        if address != function.entry and address in function.targets:
            return Refusal("a jump leads into its first bytes")
        if instruction.is_invalid:
            return Refusal("its first instructions cannot be decoded")
        if not _may_be_first(instruction):
            return Refusal("its first instructions cannot be moved")
        if instruction.flow_control in _CALLS and instruction.next_ip < function.entry + room:
            return Refusal("a call returns into its first bytes")
        taken.append(instruction)
        length += instruction.len
        address += instruction.len
    if _is_led_into(function, function.entry, length) or around.is_jumped_into(
        function.entry, function.entry + length
    ):
        return Refusal("a jump leads into its first bytes")
    original = around.read(function.entry, length)
    return Prologue(function.entry, tuple(taken), length, original)


def _padding(
    function: FunctionCode[Instruction],
    taken: list[Instruction],
    length: int,
    *,
    around: Surroundings,
    room: int,
) -> Prologue[Instruction] | Refusal:
    """A function shorter than the patch, or that is left before its end, if nothing but padding
    follows: what leads to other code there nobody sees, as handlers of faults do."""
    last = taken[-1].flow_control if taken else FlowControl.NEXT
    if last not in _ENDS:
        return Refusal("the function is shorter than a jump")
    end = function.entry + length
    for instruction in decode(around.read(end, 16), end):
        if length >= room:
            break
        if not is_padding(instruction) or around.outlines.is_function_start(int(instruction.ip)):
            return Refusal("the function is shorter than a jump and another one follows at once")
        length += instruction.len
    return Prologue(function.entry, tuple(taken), length, around.read(function.entry, length))


def epilogues(function: FunctionCode[Instruction]) -> list[int]:
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
    function: FunctionCode[Instruction], ends: dict[int, Instruction], last: Instruction
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
