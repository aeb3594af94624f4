"""The pads and landings of the processor on paper: what ``darc.pads.architecture`` asks for.

Nothing of a call is on the stack. So a pad at a call site asks the agent always, by the frame's
CFA (x86-64's looks first into the word that its caller's address stands in); f0's entry leads the
link register to a landing, in place of that word. What agent's stubs are given here: p10 has the
address of the site's or the control structure's data, p11 the CFA; they leave an answer in p10, and
all else as it is but p11, p12 and the link register.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from darc.code.architecture import Prologue, Site
from darc.code.frame_rule import FrameRule
from darc.code.relays import Relay
from darc.model.ftree import CallKind
from darc.pads.architecture import TARGET, F0Code, OutOfReachError, Pad, Sieve, Stubs
from tests.unit.paper import SIZE, Op, Paper, encode

_WORD = 8
_CALLS = (CallKind.DIRECT, CallKind.INDIRECT)


def instruction(op: Op, at: int, target: int, a: str = "p0") -> bytes:
    """One at ``at`` that names ``target`` by its distance. Raises OutOfReachError."""
    try:
        return encode(op, a, n=target - at)
    except struct.error:
        raise OutOfReachError(f"{target:#x} is too far from {at:#x}") from None


class _Assembler:
    """A pad's code, from ``origin`` on, with constants behind it."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.code = b""
        self.labels: dict[str, int] = {}
        self.constants: dict[str, int] = {}
        self.frames: list[tuple[int, int]] = []
        self.moved: dict[int, int] = {}
        self._fixes: list[tuple[int, Op, str, str]] = []

    def emit(self, op: Op, a: str = "p0", b: str = "p0", n: int = 0) -> None:
        self.code += encode(op, a, b, n)

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def relative(self, op: Op, label: str, a: str = "p0") -> None:
        """One that names a label, or the constant of that name."""
        self._fixes.append((len(self.code), op, label, a))
        self.code += bytes(SIZE)

    def load(self, register: str, name: str, value: int) -> None:
        self.constants[name] = value
        self.relative(Op.NEAR, name, register)

    def ask(self, stub: int, name: str) -> None:
        self.load("p12", name, stub)
        self.emit(Op.CALL_TO, "p12")

    def lead(self, op: Op, target: int, a: str = "p0") -> None:
        self.code += instruction(op, self.origin + len(self.code), target, a)

    def move(self, one: Paper) -> None:
        """What stood where the patch is: it means what it meant there."""
        self.moved[one.ip] = len(self.code)
        if (near := one.near) is not None:
            self.lead(one.op, near, one.a)
        else:
            self.emit(one.op, one.a, one.b, one.n)

    def frame(self, distance: int) -> None:
        self.frames.append((len(self.code), distance))

    def pad(self) -> Pad:
        cells = {}
        for name, value in self.constants.items():
            cells[name] = self.labels[name] = len(self.code)
            self.code += struct.pack("<Q", value)
        code = bytearray(self.code)
        for at, op, label, a in self._fixes:
            code[at : at + SIZE] = instruction(op, at, self.labels[label], a)
        labels = self.labels
        return Pad(
            bytes(code),
            labels.get("back"),
            cells,
            tuple(self.frames),
            self.moved,
            labels.get("body"),
        )


class PaperWriter:
    """A :class:`~darc.pads.architecture.PadWriter`."""

    SECTOR = 1 << 24
    NEAR = (1 << 31) - (1 << 16)
    NO_ROOM = "no room for a pad within 2 GiB of it"

    def call_pad(
        self,
        site: Site[Paper],
        site_data: int,
        sectors: Sequence[int],
        *,
        stubs: Stubs,
        origin: int,
        landing: int | None = None,
    ) -> Pad:
        assert site.slot is not None
        asm = _Assembler(origin)
        asm.frame(0)
        self._ask(asm, site.slot, site_data, stubs.call if site.target else stubs.indirect)
        asm.relative(Op.JUMP_IF, "on path", "p10")
        asm.load("link", "own", site.back)
        self._go(asm, site, is_call=False)
        asm.label("on path")
        if landing is not None:
            if site.target is not None:
                asm.constants[TARGET] = site.target  # for a landing that is too far from it
            begin = landing - len(self.landing_call(site, landing, origin))
            asm.load("p12", "landing", begin)
            asm.emit(Op.JUMP_TO, "p12")
        else:
            self._go(asm, site, is_call=True)
        asm.label("back")
        asm.load("p10", "data", site_data)
        asm.ask(stubs.returned, "returned")
        asm.load("p12", "own", site.back)
        asm.emit(Op.JUMP_TO, "p12")
        return asm.pad()

    def _ask(self, asm: _Assembler, slot: FrameRule, site_data: int, stub: int) -> None:
        assert slot.through is None
        asm.emit(Op.ADD, "p11", slot.register, slot.offset)
        asm.load("p10", "data", site_data)
        asm.ask(stub, "stub")

    def _go(self, asm: _Assembler, site: Site[Paper], *, is_call: bool) -> None:
        """To what the site calls."""
        if site.target is None:
            asm.emit(Op.CALL_TO if is_call else Op.JUMP_TO, site.instruction.a)
            return
        asm.load("p12", TARGET, site.target)
        asm.emit(Op.CALL_TO if is_call else Op.JUMP_TO, "p12")

    def tail_pad(
        self,
        site: Site[Paper],
        site_data: int,
        sectors: Sequence[int],
        *,
        stubs: Stubs,
        origin: int,
    ) -> Pad:
        asm = _Assembler(origin)
        assert site.slot is not None
        self._keeping_link(asm, lambda: self._ask_at_tail(asm, site, site_data, stubs))
        self._go(asm, site, is_call=False)
        return asm.pad()

    def _ask_at_tail(
        self, asm: _Assembler, site: Site[Paper], site_data: int, stubs: Stubs
    ) -> None:
        assert site.slot is not None
        below = FrameRule(site.slot.register, site.slot.offset + 2 * _WORD)
        self._ask(asm, below, site_data, stubs.tail)

    def _keeping_link(self, asm: _Assembler, ask: Callable[[], None]) -> None:
        """What ``ask`` writes is run with the link register on the stack."""
        asm.frame(0)
        asm.emit(Op.ADD, "stack", "stack", -2 * _WORD)
        asm.frame(2 * _WORD)
        asm.emit(Op.STORE, "link", "stack")
        ask()
        asm.emit(Op.LOAD, "link", "stack")
        asm.emit(Op.ADD, "stack", "stack", 2 * _WORD)
        asm.frame(0)

    def entry_pad(
        self,
        prologue: Prologue[Paper],
        site_data: int,
        stubs: Stubs,
        *,
        origin: int,
        lands: bool = False,
        sieve: Sieve | None = None,
    ) -> Pad:
        """The agent is asked whatever the sieve says. Where it is to land, the answer is the cell
        that the function returns to."""
        asm = _Assembler(origin)
        at_entry = FrameRule("stack", 2 * _WORD)
        self._keeping_link(asm, lambda: self._ask(asm, at_entry, site_data, stubs.entry))
        if lands:
            asm.relative(Op.JUMP_IF, "lands", "p10")
            asm.relative(Op.JUMP, "body")
            asm.label("lands")
            asm.emit(Op.ADD, "link", "p10")
        self._body(asm, prologue)
        return asm.pad()

    def _body(self, asm: _Assembler, prologue: Prologue[Paper]) -> None:
        asm.label("body")
        for one in prologue.instructions:
            asm.move(one)
        asm.lead(Op.JUMP, prologue.entry + prologue.length)

    def f0_pad(self, prologue: Prologue[Paper], code: F0Code, origin: int) -> Pad:
        asm = _Assembler(origin)
        self._copy(asm, code.enter, code)
        asm.relative(Op.CALL, "body")
        asm.label("back")
        self._copy(asm, code.leave, code)
        self._body(asm, prologue)
        return asm.pad()

    def _copy(self, asm: _Assembler, code: bytes, own: F0Code) -> None:
        """Code of the agent's, in which a STOP's number stands for an address for p12."""
        for at in range(0, len(code), SIZE):
            if code[at] == Op.STOP:
                (number,) = struct.unpack_from("<i", code, at + 4)
                asm.load("p12", f"address {number}", own.addresses[number])
            else:
                asm.code += code[at : at + SIZE]

    def relay_pad(self, relay: Relay[Paper], origin: int) -> Pad:
        asm = _Assembler(origin)
        for one in relay.displaced:
            asm.move(one)
        asm.lead(Op.JUMP, relay.end)
        return asm.pad()

    def landing_call(self, site: Site[Paper], back: int, constant: int) -> bytes:
        if site.target is None:
            return encode(Op.CALL_TO, site.instruction.a)
        try:
            return instruction(Op.CALL, back - SIZE, site.target)
        except OutOfReachError:
            load = instruction(Op.NEAR, back - 2 * SIZE, constant, "p12")
            return load + encode(Op.CALL_TO, "p12")

    def landed(self, control: int, stub: int, origin: int) -> bytes:
        asm = _Assembler(origin)
        at_return = FrameRule("stack", 2 * _WORD)
        self._keeping_link(asm, lambda: self._ask(asm, at_return, control, stub))
        asm.emit(Op.RETURN)
        return asm.pad().code

    def patch_bytes(self, kind: CallKind | None, address: int, length: int, target: int) -> bytes:
        assert length == SIZE, "all instructions are as long"
        return instruction(Op.CALL if kind in _CALLS else Op.JUMP, address, target)

    def measured_call(self, kind: CallKind, address: int, target: int) -> bytes:
        if kind is CallKind.INDIRECT:
            return encode(Op.CALL_TO, "p9")
        return instruction(Op.CALL, address, target)

    def patch_short_site(self, site: Site[Paper], target: int) -> bytes:
        return self.patch_bytes(site.kind, site.address, SIZE, target)

    def patch_short(self, address: int, target: int) -> bytes:
        return instruction(Op.JUMP, address, target)

    def patch_relay(self, relay: Relay[Paper], target: int, displaced: int | None) -> bytes:
        before = b"" if displaced is None else self.patch_short(relay.start, displaced)
        return before + self.patch_short(relay.address, target)

    def patch_tail(self, site: Site[Paper], target: int) -> bytes:
        is_asked = site.instruction.op is Op.JUMP_IF
        op = Op.JUMP_IF if is_asked else Op.JUMP
        return instruction(op, site.address, target, site.instruction.a if is_asked else "p0")


BACK, ON, CELL = 2 * SIZE, 3 * SIZE, 4 * SIZE
"""Where is returned to in a cell, where its last instruction is, and its bytes: the agent's header
has these for x86-64 (``LANDING_BACK``, ``LANDING_SIZE``)."""


class PaperCells:
    """A :class:`~darc.pads.architecture.CellWriter`::

    site's cell     STOP                    f0's cell       p12 = body's word
                    CALL target                             CALL_TO p12
    back            link = word             back            link = word
                    JUMP its pad                            JUMP common, or RETURN
    """

    UNUSED = bytes(CELL)
    RETIRED = b"".join((
        encode(Op.LOAD_SHORT, "p10", "link", 4),  # the distance of the word
        encode(Op.SUM, "p10", "link"),
        encode(Op.LOAD_SHORT, "p11", "link", SIZE + 4),  # of what is called, behind RETURN
        encode(Op.SUM, "p11", "link"),
        encode(Op.LOAD, "link", "p10"),
        encode(Op.ADD, "p11", "p11", SIZE),
        encode(Op.JUMP_TO, "p11"),
    ))  # fmt: skip

    def of_site(self, call: bytes, cell: int, word: int, pad: int) -> bytes:
        return call.rjust(BACK, b"\0") + self._end(cell, word) + self._jump(cell, pad)

    def of_caller(self, cell: int, word: int, body: int, common: int) -> bytes:
        code = instruction(Op.NEAR, cell, body, "p12") + encode(Op.CALL_TO, "p12")
        return code + self._end(cell, word) + self._jump(cell, common)

    def _end(self, cell: int, word: int) -> bytes:
        return instruction(Op.NEAR, cell + BACK, word, "link")

    def _jump(self, cell: int, target: int) -> bytes:
        return instruction(Op.JUMP, cell + ON, target)

    def returning(self, code: bytes) -> bytes:
        return code[:ON] + encode(Op.RETURN)

    def returning_with(self, code: bytes, cell: int, called: int) -> bytes | None:
        try:
            return code[:ON] + instruction(Op.RETURN, cell + ON, called)
        except OutOfReachError:
            return None

    def called_behind(self, code: bytes, cell: int) -> int:
        (distance,) = struct.unpack_from("<i", code, ON + 4)
        return cell + ON + int(distance)

    def called(self, code: bytes, cell: int) -> int | None:
        if code[0] != Op.STOP or code[SIZE] != Op.CALL:
            return None
        (distance,) = struct.unpack_from("<i", code, SIZE + 4)
        return cell + SIZE + int(distance)

    def calling(self, code: bytes, cell: int, target: int) -> bytes:
        return code[:SIZE] + instruction(Op.CALL, cell + SIZE, target) + code[BACK:]

    def slot_in_cell(self, part: int, stack: int, *, is_callers: bool) -> int:
        return stack

    def slot_in_retired(self, part: int, stack: int) -> int:
        return stack

    def slot_in_common(self, part: int, stack: int) -> int:
        """Between the second instruction and the last but one the link register is on the stack."""
        return stack + (2 * _WORD if SIZE <= part <= 7 * SIZE else 0)
