"""Pads for x86-64: the bytes that a patched place jumps to.

A call site's pad, entered by the site's own ``call``, so that the return address R lies on the
stack as the callee expects it::

        [R off the stack; instructions displaced by a short indirect call; push R]
        [or, where a jump leads here, as no call fits: push R]
        cmp dword [slot + 3], sector    is the caller's frame one that a pad entered?
        je  on_path
    pass:
        jmp target                      as if nothing had been here
    on_path:
        ...ask the agent (darc_stub_call); zero: restore, go to pass
        lea rsp, [rsp + 8]              R off the stack: arguments stand where they must
        call target
    back:
        push R
        ...hand over to the agent (darc_stub_returned)
        ret

In a process the ``call`` and what comes behind it are in a landing (:mod:`darc.pads.returns`),
which the pad jumps to, and which leads back to the pad behind ``push R``. A kernel's tasks have
stacks of their own that nobody copies: there it is as above.

The comparison looks at bytes 3 to 6 of the word in the slot: pads live in one naturally aligned
sector of 16 MiB (:data:`SECTOR`), so those bytes are the same for every pad's return address, and
one instruction without a register decides almost always. The agent checks the whole word.

Flags are free at a call, a tail jump, a return and a function's entry. No instruction here touches
anything below a live stack pointer but at places where the ABI declares it dead; f0's entry skips
the red zone, as a loop may lead back to a function's first byte. No word stays behind there that
leads to a pad or the agent, as none can be known to be dead: :meth:`_Assembler.ask`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from iced_x86 import (
    BlockEncoder,
    Code,
    Encoder,
    FlowControl,
    Instruction,
    MemoryOperand,
    OpKind,
    Register,
)

from darc.code.architecture import Prologue, Site
from darc.code.frame_rule import FrameRule
from darc.code.relays import Relay
from darc.code.x86_64 import PATCH_LENGTH, SHORT_JUMP, decode
from darc.model.ftree import CallKind
from darc.pads.architecture import TARGET, F0Code, OutOfReachError, Pad, Sieve, Stubs

SECTOR = 1 << 24
"""Pads live in one aligned sector of this many bytes each (see above)."""

NEAR = (1 << 31) - (1 << 16)
"""How far a jump reaches, in bytes, with room for the instruction itself."""

NO_ROOM = "no room for a pad within 2 GiB of it"

_NUMBERS = {
    name: number
    for number, name in enumerate(
        "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
    )
}


class _Assembler:
    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.code = bytearray()
        self.labels: dict[str, int] = {}
        self.fixes: list[tuple[int, str]] = []
        self.constants: dict[str, int] = {}
        self.frames: list[tuple[int, int]] = []
        self.moved: dict[int, int] = {}

    @property
    def here(self) -> int:
        return self.origin + len(self.code)

    def emit(self, *parts: bytes) -> None:
        for part in parts:
            self.code += part

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def relative(self, opcode: bytes, label: str) -> None:
        self.emit(opcode, b"\0\0\0\0")
        self.fixes.append((len(self.code) - 4, label))

    def cell(self, opcode: bytes, name: str, value: int) -> None:
        """An instruction with a RIP-relative operand in the pad's constants."""
        self.constants.setdefault(name, value)
        self.relative(opcode, "cell " + name)

    def frame(self, distance: int) -> None:
        self.frames.append((len(self.code), distance))

    def moves(self, instruction: Instruction) -> None:
        """What ``instruction`` does begins here."""
        self.moved[int(instruction.ip)] = len(self.code)

    def pad(self, back: int | None) -> Pad:
        code, cells = self._finish()
        body = self.labels.get("body")
        return Pad(
            code=code,
            back=back,
            cells=cells,
            frames=tuple(self.frames),
            moved=self.moved,
            body=body,
        )

    def _finish(self) -> tuple[bytes, dict[str, int]]:
        while len(self.code) % 8:
            self.emit(b"\xcc")
        cells = {}
        for name, value in self.constants.items():
            cells[name] = len(self.code)
            self.label("cell " + name)
            self.emit(struct.pack("<Q", value))
        for place, label in self.fixes:
            struct.pack_into("<i", self.code, place, self.labels[label] - place - 4)
        while len(self.code) % 16:
            self.emit(b"\xcc")
        return bytes(self.code), cells

    def jump(self, target: int, name: str = TARGET) -> None:
        self._lead(target, name, near=b"\xe9", far=b"\xff\x25")

    def call(self, target: int, name: str = TARGET) -> None:
        self._lead(target, name, near=b"\xe8", far=b"\xff\x15")

    def ask(self, stub: int, name: str) -> None:
        """Calls the agent. What lies below a stack pointer may be a coroutine's that rests: no
        address of the pad's is left there."""
        self.call(stub, name)
        self.emit(b"\x48\xc7\x44\x24\xf8\0\0\0\0")  # mov qword ptr [rsp - 8], 0

    def _lead(self, target: int, name: str, *, near: bytes, far: bytes) -> None:
        """By its distance where that fits; else through a cell called ``name``."""
        distance = target - (self.here + 5)
        if abs(distance) < NEAR:
            self.emit(near, struct.pack("<i", distance))
        else:
            self.cell(far, name, target)

    def memory(
        self, opcode: bytes, digit: int, base: str, displacement: int, *, wide: bool
    ) -> None:
        """``opcode /digit [base + displacement]``; ``wide`` for 64-bit operands."""
        number = _NUMBERS[base]
        rex = (8 if wide else 0) | (number >> 3) | (digit >> 3 << 2)
        if rex:
            self.emit(bytes([0x40 | rex]))
        small = -128 <= displacement < 128
        modrm = (0x40 if small else 0x80) | (digit & 7) << 3 | (number & 7)
        self.emit(opcode, bytes([modrm]))
        if number & 7 == 4:
            self.emit(b"\x24")
        self.emit(struct.pack("<b" if small else "<i", displacement))

    def instruction(self, instruction: Instruction) -> None:
        encoder = Encoder(64)
        try:
            encoder.encode(instruction, self.here)
        except ValueError as error:
            raise OutOfReachError(str(error)) from None
        self.emit(encoder.take_buffer())


_CALL_LENGTH = 16
"""Bytes of f0's pad between the agent's code and its return point, as the agent relies on."""

_PUSH_RAX, _POP_RAX = b"\x50", b"\x58"
_PUSH_RDI, _POP_RDI = b"\x57", b"\x5f"
_PUSH_RSI, _POP_RSI = b"\x56", b"\x5e"
_MOV_RAX_IMM, _MOV_RDI_IMM = b"\x48\xb8", b"\x48\xbf"
_SKIP_RED_ZONE = b"\x48\x8d\x64\x24\x80"  # lea rsp, [rsp - 128]
_UNSKIP_RED_ZONE = b"\x48\x8d\xa4\x24\x80\x00\x00\x00"  # lea rsp, [rsp + 128]


def _sector_word(sector: int) -> bytes:
    return struct.pack("<I", sector >> 24 & 0xFFFFFFFF)


def _moved(instruction: Instruction, shift: int) -> Instruction:
    """The same instruction where rsp stands ``shift`` bytes lower."""
    copy = instruction.copy()
    if copy.memory_base == Register.RSP and not copy.is_ip_rel_memory_operand:
        displacement = copy.memory_displacement + shift
        copy.memory_displacement = displacement & (1 << 64) - 1
        copy.memory_displ_size = 8
    return copy


def _with_operand(site: Site[Instruction], memory: Any, register: Any, shift: int) -> Instruction:
    """``push``, ``call`` or ``jmp`` of an indirect site's operand."""
    source = site.instruction
    if source.op0_kind == OpKind.REGISTER:
        return Instruction.create_reg(register, source.op0_register)
    base = source.memory_base
    displacement = source.memory_displacement
    if source.is_ip_rel_memory_operand:
        base = Register.RIP
    elif base == Register.RSP:
        displacement += shift
    if displacement >= 1 << 63:
        displacement -= 1 << 64
    operand = MemoryOperand(
        base,
        source.memory_index,
        source.memory_index_scale,
        displacement,
        8 if displacement or base == Register.RIP else source.memory_displ_size,
        False,
        source.segment_prefix,
    )
    return Instruction.create_mem(memory, operand)


def _filter(asm: _Assembler, slot: FrameRule, pushed: int, sectors: Sequence[int]) -> None:
    """Falls through to ``pass`` unless the slot's word lies in one of ``sectors``."""
    if slot.through is not None:
        asm.emit(_PUSH_RAX)
        shift = pushed + 8 if slot.register == "rsp" else 0
        asm.memory(b"\x8b", 0, slot.register, slot.through + shift, wide=True)
        asm.memory(b"\x8b", 0, "rax", slot.offset - 8 + 3, wide=False)
        for sector in sectors:
            asm.emit(b"\x3d", _sector_word(sector))
            asm.relative(b"\x0f\x84", "on path, rax pushed")
        asm.emit(_POP_RAX)
        return
    shift = pushed if slot.register == "rsp" else 0
    for sector in sectors:
        asm.memory(b"\x81", 7, slot.register, slot.offset - 8 + 3 + shift, wide=False)
        asm.emit(_sector_word(sector))
        asm.relative(b"\x0f\x84", "on path")


def _load_slot(asm: _Assembler, slot: FrameRule, pushed: int, to: str) -> None:
    """``to`` = address of the calling frame's slot; it may itself be the base register."""
    shift = pushed if slot.register == "rsp" else 0
    number = _NUMBERS[to]
    if slot.through is None:
        asm.memory(b"\x8d", number, slot.register, slot.offset - 8 + shift, wide=True)
    else:
        asm.memory(b"\x8b", number, slot.register, slot.through + shift, wide=True)
        asm.memory(b"\x8d", number, to, slot.offset - 8, wide=True)


def _target_jump(asm: _Assembler, site: Site[Instruction], pushed: int) -> None:
    direct = site.thunk or site.target
    if direct is not None:
        asm.jump(direct)
    else:
        asm.instruction(_with_operand(site, Code.JMP_RM64, Code.JMP_RM64, pushed))


def call_pad(
    site: Site[Instruction],
    site_data: int,
    sectors: Sequence[int],
    *,
    stubs: Stubs,
    origin: int,
    landing: int | None = None,
) -> Pad:
    """The pad of a call site, to stand at ``origin``.

    ``site_data`` is the address of its ``struct darc_site``, ``sectors`` the bases of the pad
    sectors that its callers' landings or pads stand in. Where ``landing`` is given, what comes
    back there was called there, by :func:`landing_call`.

    Raises:
        OutOfReachError: the program's code or data is too far from ``origin``.
    """
    assert site.slot is not None
    asm = _Assembler(origin)
    _come_in(asm, site)
    _filter(asm, site.slot, 8, sectors)
    asm.label("pass")
    _target_jump(asm, site, 8)
    if site.slot.through is not None:
        asm.label("on path, rax pushed")
        asm.emit(_POP_RAX)
    asm.label("on path")
    if site.target is not None:
        _ask_direct(asm, site.slot, site_data, stubs)
    else:
        _ask_indirect(asm, site, site_data, stubs)
    asm.frame(0)
    asm.relative(b"\x0f\x84", "pass")
    asm.emit(b"\x48\x8d\x64\x24\x08")  # lea rsp, [rsp + 8]
    asm.frame(-8)
    back = _call_through(asm, site, landing, origin)
    _hand_over(asm, site_data, stubs.returned, "return stub")
    return asm.pad(back)


def _come_in(asm: _Assembler, site: Site[Instruction]) -> None:
    """Up to where the stack is as the function that is called finds it."""
    if not site.is_jumped_from:
        asm.frame(0)
    if site.displaced:
        _displaced(asm, site)
    if site.displaced or site.is_jumped_from:
        asm.frame(-8)
        asm.cell(b"\xff\x35", "back", site.back)  # push [rip + ...]
        asm.frame(0)


def _displaced(asm: _Assembler, site: Site[Instruction]) -> None:
    """What stood where the jump to the pad does."""
    # They run with the stack as it was; then R, a constant of the site, comes back.
    asm.emit(b"\x48\x8d\x64\x24\x08")  # lea rsp, [rsp + 8]
    moves = sum(i.stack_pointer_increment for i in site.displaced)
    for instruction in site.displaced:
        asm.frame(moves - 8)
        asm.moves(instruction)
        asm.instruction(instruction)
        moves -= instruction.stack_pointer_increment
    asm.moves(site.instruction)


def _call_through(
    asm: _Assembler, site: Site[Instruction], landing: int | None, origin: int
) -> int:
    """Makes the call, from a ``landing`` where there is one. Where in the pad it comes back to."""
    if landing is not None:
        if (direct := site.thunk or site.target) is not None:
            asm.constants.setdefault(TARGET, direct)
        asm.jump(landing - len(landing_call(site, landing, origin)), "landing")
        return len(asm.code)
    _call(asm, site)
    back = len(asm.code)
    asm.cell(b"\xff\x35", "back", site.back)  # push [rip + ...]
    return back


def _call(asm: _Assembler, site: Site[Instruction]) -> None:
    direct = site.thunk or site.target
    if direct is not None:
        asm.call(direct)
    else:
        asm.instruction(_with_operand(site, Code.CALL_RM64, Code.CALL_RM64, 0))


def landing_call(site: Site[Instruction], back: int, constant: int) -> bytes:
    """The call of ``site`` that ends at ``back``, in a landing. A target that is out of reach is a
    constant at ``constant``.

    Raises:
        OutOfReachError: the program's data is too far away.
    """
    direct = site.thunk or site.target
    for length in range(2, 16):
        asm = _Assembler(back - length)
        if direct is not None and abs(direct - back) >= NEAR - SECTOR:
            asm.emit(b"\xff\x15", struct.pack("<i", constant - (asm.here + 6)))
        else:
            _call(asm, site)
        if len(asm.code) == length:
            return bytes(asm.code)
    raise OutOfReachError(f"the call at {site.address:#x} has no place in a landing")


def landed(control: int, stub: int, origin: int) -> bytes:
    """What f0's landings lead to, at ``origin``: the agent is told that a call has returned."""
    asm = _Assembler(origin)
    asm.emit(_PUSH_RDI)
    asm.emit(_MOV_RDI_IMM, struct.pack("<Q", control))
    asm.jump(stub, "stub")
    return asm.pad(None).code


def _push(asm: _Assembler, *pushes: bytes) -> None:
    """Pushes upon nothing but the return address."""
    for number, push in enumerate(pushes):
        asm.frame(8 * number)
        asm.emit(push)
    asm.frame(8 * len(pushes))


def _pop(asm: _Assembler, pushed: int, *pops: bytes) -> None:
    for pop in pops:
        asm.frame(pushed)
        asm.emit(pop)
        pushed -= 8
    asm.frame(pushed)


def _hand_over(asm: _Assembler, site_data: int, stub: int, name: str) -> None:
    """The stub takes rdi and the return address off the stack."""
    asm.frame(0)
    asm.emit(_PUSH_RDI)
    asm.frame(8)
    asm.emit(_MOV_RDI_IMM, struct.pack("<Q", site_data))
    asm.jump(stub, name)


def _ask_direct(asm: _Assembler, slot: FrameRule, site_data: int, stubs: Stubs) -> None:
    _push(asm, _PUSH_RAX, _PUSH_RDI, _PUSH_RSI)
    _load_slot(asm, slot, 32, "rsi")
    asm.emit(_MOV_RDI_IMM, struct.pack("<Q", site_data))
    asm.ask(stubs.call, "call stub")
    _pop(asm, 24, _POP_RSI, _POP_RDI, _POP_RAX)


def _ask_indirect(asm: _Assembler, site: Site[Instruction], site_data: int, stubs: Stubs) -> None:
    assert site.slot is not None
    asm.emit(_PUSH_RAX)
    asm.frame(8)
    asm.instruction(_with_operand(site, Code.PUSH_RM64, Code.PUSH_R64, 16))
    asm.frame(16)
    _load_slot(asm, site.slot, 24, "rax")
    asm.emit(_PUSH_RAX)
    asm.frame(24)
    asm.emit(_MOV_RAX_IMM, struct.pack("<Q", site_data))
    asm.ask(stubs.indirect, "call stub")
    asm.emit(b"\x48\x8d\x64\x24\x10")  # lea rsp, [rsp + 16]
    asm.frame(8)
    asm.emit(_POP_RAX)


def tail_pad(
    site: Site[Instruction], site_data: int, sectors: Sequence[int], *, stubs: Stubs, origin: int
) -> Pad:
    """The pad of a tail jump: the agent is told, the stack is not touched, not even the red zone,
    which a function that makes no calls may have in use up to here."""
    assert site.slot is not None
    asm = _Assembler(origin)
    asm.frame(0)
    for instruction in site.displaced:
        asm.moves(instruction)
        asm.instruction(instruction)
    asm.moves(site.instruction)
    if site.displaced and _is_conditional(site):
        asm.relative(bytes([0x0F, 0x80 | _condition(site)]), "taken")
        asm.jump(site.back, "next")
        asm.label("taken")
    _filter(asm, site.slot, 0, sectors)
    _target_jump(asm, site, 0)
    asm.label("on path")
    _tell_tail(asm, site, site_data, stubs)
    _target_jump(asm, site, 0)
    return asm.pad(None)


def _tell_tail(asm: _Assembler, site: Site[Instruction], site_data: int, stubs: Stubs) -> None:
    """Tells the agent, which is given where the jump leads if only a register says so."""
    assert site.slot is not None
    asm.emit(_SKIP_RED_ZONE)
    asm.frame(128)
    asm.emit(_PUSH_RAX)
    asm.frame(136)
    if site.target is None:
        asm.instruction(_with_operand(site, Code.PUSH_RM64, Code.PUSH_R64, 136))
    else:
        asm.emit(b"\x6a\x00")
    asm.frame(144)
    _load_slot(asm, site.slot, 144, "rax")
    asm.emit(_PUSH_RAX)
    asm.frame(152)
    asm.emit(_MOV_RAX_IMM, struct.pack("<Q", site_data))
    asm.ask(stubs.tail, "tail stub")
    asm.emit(b"\x48\x8d\x64\x24\x10")  # lea rsp, [rsp + 16]
    asm.frame(136)
    asm.emit(_POP_RAX)
    asm.frame(128)
    asm.emit(_UNSKIP_RED_ZONE)
    asm.frame(0)


def _sift(asm: _Assembler, sieve: Sieve) -> None:
    """What comes to a function's entry has nothing below the stack pointer yet, and signals leave
    128 bytes there alone: two registers are kept there, as pushes would cost more. Flags are dead.
    Who waits has counted itself by a locked instruction before it looks at the object: whoever
    comes here after that sees it. A release that has looked before is not seen, as by the agent."""
    asm.frame(0)
    asm.emit(
        b"\x48\x89\x44\x24\xf8",  # mov [rsp - 8], rax
        b"\x48\x89\x4c\x24\xf0",  # mov [rsp - 16], rcx
        _MOV_RAX_IMM + struct.pack("<Q", sieve.factor),
        b"\x48\x0f\xaf\xc7",  # imul rax, rdi
        b"\x48\xb9" + struct.pack("<Q", sieve.counts),  # mov rcx, counts
        b"\x48\xc1\xe8" + bytes([sieve.shift]),  # shr rax, shift
        b"\x83\x3c\x81\x00",  # cmp dword ptr [rcx + rax * 4], 0
        b"\x48\x8b\x44\x24\xf8",  # mov rax, [rsp - 8]
        b"\x48\x8b\x4c\x24\xf0",  # mov rcx, [rsp - 16]
    )
    asm.relative(b"\x0f\x84", "body")


def entry_pad(
    prologue: Prologue[Instruction],
    site_data: int,
    stubs: Stubs,
    *,
    origin: int,
    lands: bool = False,
    sieve: Sieve | None = None,
) -> Pad:
    """The pad at a function's entry that tells the agent, and may call the rest of the function:
    f0, an unwinder that must see a clean stack, a kernel's handler of interrupts. Where it
    ``lands``, the call is in a landing, whose address the agent has put into the slot. With a
    ``sieve`` it tells the agent only of what that lets through; not in a kernel, whose interrupts
    write below the stack pointer.

    Displaced calls are not moved, as exception tables are keyed by the return address: the pad
    pushes the original one and jumps. Where the Nth displaced instruction leads, if it is a call or
    a jump, is a cell (``leave N``), so that the same call site can be given a pad of its own.

    Raises:
        OutOfReachError: the program's code or data is too far from ``origin``.
    """
    asm = _Assembler(origin)
    if sieve is not None:
        _sift(asm, sieve)
    asm.frame(0)
    asm.emit(_SKIP_RED_ZONE)
    asm.frame(128)
    asm.emit(_PUSH_RAX)
    asm.frame(136)
    asm.emit(_PUSH_RDI)
    asm.frame(144)
    asm.emit(_MOV_RDI_IMM, struct.pack("<Q", site_data))
    asm.ask(stubs.entry, "entry stub")
    _pop(asm, 144, _POP_RDI, _POP_RAX)
    asm.emit(_UNSKIP_RED_ZONE)
    back = None
    if lands:
        asm.frame(0)
        asm.relative(b"\x0f\x84", "body")
        asm.emit(b"\xff\x24\x24")  # jmp [rsp]
    else:
        _call_body(asm)
        back = len(asm.code)
        asm.frame(-8)
        asm.emit(b"\x48\x8d\x64\x24\xf8")  # lea rsp, [rsp - 8]
        _hand_over(asm, site_data, stubs.leave, "leave stub")
    _body(asm, prologue)
    return asm.pad(back)


def f0_pad(prologue: Prologue[Instruction], code: F0Code, origin: int) -> Pad:
    """The pad at f0's entry, which does itself what is done for most calls; else as
    :func:`entry_pad`."""
    asm = _Assembler(origin)
    _copy(asm, code.enter, code.addresses, 0)
    called = len(asm.code)
    _call_body(asm)
    back = len(asm.code)
    assert back - called == _CALL_LENGTH
    _copy(asm, code.leave, code.addresses, -8)
    _body(asm, prologue)
    return asm.pad(back)


def _copy(asm: _Assembler, code: bytes, addresses: Mapping[int, int], pushed: int) -> None:
    """Code of the agent's that is linear as to the stack pointer."""
    for instruction in decode(code, 0):
        raw = code[instruction.ip : instruction.next_ip]
        if instruction.code == Code.MOV_R64_IMM64:
            constant = int(instruction.immediate(1))
            raw = raw[:2] + struct.pack("<Q", addresses.get(constant, constant))
        asm.frame(pushed)
        asm.emit(raw)
        pushed -= _rsp_change(instruction)


def _rsp_change(instruction: Instruction) -> int:
    if instruction.code == Code.LEA_R64_M and instruction.op0_register == Register.RSP:
        distance = int(instruction.memory_displacement)
        return distance - (1 << 64) if distance >= 1 << 63 else distance
    return 0 if instruction.is_call_near_indirect else int(instruction.stack_pointer_increment)


def _call_body(asm: _Assembler) -> None:
    """Where ZF is clear, the rest of the function is called and returns behind this; else it runs
    as if there were no pad."""
    asm.frame(0)
    asm.relative(b"\x0f\x84", "body")
    asm.emit(b"\x48\x8d\x64\x24\x08")  # lea rsp, [rsp + 8]
    asm.frame(-8)
    asm.relative(b"\xe8", "body")


def relay_pad(relay: Relay[Instruction], origin: int) -> Pad:
    """Runs the instructions that stood where a relay is, and goes on behind them.

    Raises:
        OutOfReachError: the program's data is too far from ``origin``.
    """
    asm = _Assembler(origin)
    for instruction in relay.displaced:
        asm.moves(instruction)
        asm.instruction(instruction)
    asm.moved[relay.end] = len(asm.code)  # a thread that is to jump is as good as there
    asm.jump(relay.end, "on")
    return asm.pad(None)


def _body(asm: _Assembler, prologue: Prologue[Instruction]) -> None:
    """The displaced instructions, and on with the function."""
    asm.label("body")
    asm.frame(0)
    ends = False
    for index, instruction in enumerate(prologue.instructions):
        flow = instruction.flow_control
        asm.moves(instruction)
        if flow == FlowControl.CALL and instruction.op0_kind == OpKind.NEAR_BRANCH64:
            asm.cell(b"\xff\x35", f"back {index}", int(instruction.next_ip))  # push [rip + ...]
            asm.cell(b"\xff\x25", f"leave {index}", int(instruction.near_branch_target))
        elif flow == FlowControl.INDIRECT_CALL:
            asm.cell(b"\xff\x35", f"back {index}", int(instruction.next_ip))
            asm.cell(b"\xff\x25", f"leave {index}", asm.here + 6)
            asm.instruction(_jump_of(instruction))
        elif flow == FlowControl.INDIRECT_BRANCH:
            asm.cell(b"\xff\x25", f"leave {index}", asm.here + 6)
            asm.instruction(instruction)
            ends = True
        elif flow == FlowControl.UNCONDITIONAL_BRANCH:
            asm.cell(b"\xff\x25", f"leave {index}", int(instruction.near_branch_target))
            ends = True
        elif instruction.op0_kind == OpKind.NEAR_BRANCH64:
            asm.emit(_branch(instruction, asm.here))
        else:
            asm.instruction(instruction)
            ends = flow == FlowControl.RETURN
    if not ends:
        asm.jump(prologue.entry + prologue.length, "on")


def _branch(instruction: Instruction, origin: int) -> bytes:
    """A conditional branch, in as many instructions as it takes at ``origin``. Not for others: what
    has its own address as an operand would get that of the copy."""
    encoder = BlockEncoder(64)
    encoder.add(instruction)
    try:
        return bytes(encoder.encode(origin))
    except ValueError as error:
        raise OutOfReachError(str(error)) from None


def _jump_of(call: Instruction) -> Instruction:
    """The jump with an indirect call's operand, after the return address was pushed."""
    if call.op0_kind == OpKind.REGISTER:
        return Instruction.create_reg(Code.JMP_RM64, call.op0_register)
    moved = _moved(call, 8)
    moved.code = Code.JMP_RM64
    return moved


def patch_bytes(kind: CallKind | None, address: int, length: int, target: int) -> bytes:
    """One instruction of exactly ``length`` bytes at ``address`` that calls (or, for a tail jump
    or a function's entry, jumps to) ``target``.

    Longer calls get prefixes that mean nothing, so that the call ends where the original one did
    and pushes the same return address.

    Raises:
        OutOfReachError: ``target`` is more than 2 GiB away.
    """
    distance = target - (address + length)
    if abs(distance) >= NEAR:
        raise OutOfReachError(f"{target:#x} is more than 2 GiB from {address:#x}")
    if kind in (CallKind.DIRECT, CallKind.INDIRECT):
        prefixes = b"\x2e" * (length - 6) + b"\x67" if length > 5 else b""
        return prefixes + b"\xe8" + struct.pack("<i", distance)
    distance = target - (address + 5)
    return b"\xe9" + struct.pack("<i", distance) + b"\x90" * (length - 5)


_CALL_RBX = b"\xff\xd3"  # where darc_calibrate_once has what it calls


def measured_call(kind: CallKind, address: int, target: int) -> bytes:
    """The call at ``address`` in whose place ``darc_calibrate_once`` calls a pad."""
    if kind is CallKind.INDIRECT:
        return _CALL_RBX
    return patch_bytes(CallKind.DIRECT, address, PATCH_LENGTH, target)


def patch_short_site(site: Site[Instruction], target: int) -> bytes:
    """The patch of a site that has no room for a long jump.

    Raises:
        OutOfReachError: ``target`` is more than 127 bytes away.
    """
    if _is_conditional(site):
        return patch_short(site.address, target, 0x70 | _condition(site))
    return patch_short(site.address, target)


def patch_short(address: int, target: int, opcode: int = 0xEB) -> bytes:
    """A two-byte jump at ``address``, by default one that is always taken.

    Raises:
        OutOfReachError: ``target`` is more than 127 bytes away.
    """
    distance = target - (address + SHORT_JUMP)
    if not -128 <= distance < 128:
        raise OutOfReachError(f"{target:#x} is too far from {address:#x} for a short jump")
    return bytes([opcode]) + struct.pack("<b", distance)


def patch_relay(relay: Relay[Instruction], target: int, displaced: int | None) -> bytes:
    """What a relay is made of: a jump to ``target``, and before it, where instructions of
    the program's own stood there, a jump to where they are run, at ``displaced``."""
    on = patch_bytes(None, relay.address, PATCH_LENGTH, target)
    if displaced is None:
        return on
    return patch_bytes(None, relay.start, relay.address - relay.start, displaced) + on


def patch_tail(site: Site[Instruction], target: int) -> bytes:
    """The patch of a tail jump, conditional or not.

    Raises:
        OutOfReachError: ``target`` is more than 2 GiB away.
    """
    if _is_conditional(site) and not site.displaced:
        distance = target - (site.address + site.length)
        if abs(distance) >= NEAR:
            raise OutOfReachError(f"{target:#x} is more than 2 GiB from {site.address:#x}")
        prefixes = b"\x2e" * (site.length - 6)  # a prefix may stand before 0f 8x
        return prefixes + bytes([0x0F, 0x80 | _condition(site)]) + struct.pack("<i", distance)
    return patch_bytes(site.kind, site.patch, site.length, target)


def _is_conditional(site: Site[Instruction]) -> bool:
    return bool(site.instruction.flow_control == FlowControl.CONDITIONAL_BRANCH)


def _condition(site: Site[Instruction]) -> int:
    """The condition code of a conditional jump (SDM appendix B), from its own bytes."""
    encoder = Encoder(64)
    encoder.encode(site.instruction, site.instruction.ip)
    return next(byte for byte in encoder.take_buffer() if 0x70 <= byte <= 0x8F) & 0xF
