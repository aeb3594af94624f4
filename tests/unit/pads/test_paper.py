"""The seam of a processor, by one on paper: fixed-width instructions and a link register. What its
reader says of code is seen, and what its pads and landings do, which run here, instruction by
instruction."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.code.architecture import CodeReader, FunctionCode, Prologue, RestartReader, Site
from darc.code.frame_rule import WORD, FrameRule
from darc.code.relays import Relay
from darc.model.errors import TargetError
from darc.model.ftree import CallKind
from darc.model.refusal import Refusal
from darc.pads import processor, returns
from darc.pads.architecture import (
    TARGET,
    CellWriter,
    F0Code,
    OutOfReachError,
    PadWriter,
    Stubs,
)
from darc.pads.returns import ReturnLandings
from tests.unit.paper import ACCOUNT, NAMES, PLACE, SIZE, Op, Paper, PaperReader, encode
from tests.unit.paperpads import BACK, CELL, ON, PaperCells, PaperWriter

READER: CodeReader[Paper] = PaperReader()
RESTARTS: RestartReader[Paper] = PaperReader()
WRITER: PadWriter[Paper] = PaperWriter()
CELLS: CellWriter = PaperCells()
"""Whole ones: mypy holds them to all that is asked."""

MAIN, HANDLE, FLUSH, WORD_OF = 0x1000, 0x2000, 0x3000, 0x4000
PAD, LANDING, LANDING_WORD, LANDING_BODY, COMMON = 0x10000, 0x20000, 0x21000, 0x21008, 0x22000
STACK, RETIRED = 0x90000, 0x23000
STUBS = Stubs(call=0x500, indirect=0x510, returned=0x520, tail=0x530, entry=0x540, leave=0x550,
              landed=0x560)  # fmt: skip
DATA = 0x7777
"""Where a site's data are for the agent."""

PROGRAM = {
    MAIN: [encode(Op.CALL, n=HANDLE - MAIN), encode(Op.STOP)],
    HANDLE: [
        encode(Op.ADD, "stack", "stack", -16),
        encode(Op.STORE, "link", "stack"),
        encode(Op.JUMP_IF, "p1", n=3 * SIZE),
        encode(Op.NEAR, "p4", n=WORD_OF - (HANDLE + 3 * SIZE)),
        encode(Op.CALL_TO, "p4"),
        encode(Op.CALL, n=FLUSH - (HANDLE + 5 * SIZE)),
        encode(Op.LOAD, "link", "stack"),
        encode(Op.ADD, "stack", "stack", 16),
        encode(Op.ADD, "p0", "p0", 5),
        encode(Op.RETURN),
    ],
    FLUSH: [encode(Op.ADD, "p0", "p0", 70), encode(Op.RETURN)],
    WORD_OF: [struct.pack("<Q", FLUSH)],
}
"""handle calls flush, twice where its second argument is 0: through a word at first. A call of
flush adds 70, and handle 5 to that."""


class Machine:
    """It runs what is written into it until it comes to a STOP. Of each stub of the agent it keeps
    with what it was called, and answers."""

    def __init__(self, answers: Mapping[int, int] | None = None) -> None:
        self.memory: dict[int, int] = {}
        self.registers = dict.fromkeys(NAMES, 0) | {"stack": STACK, "p0": 1000}
        self.answers = answers or {}
        self.asked: list[tuple[int, int, int]] = []
        self.ran: list[int] = []
        for address, code in PROGRAM.items():
            self.write(address, b"".join(code))

    def write(self, address: int, data: bytes) -> None:
        self.memory.update(enumerate(data, address))

    def read(self, address: int, size: int) -> bytes:
        try:
            return bytes(self.memory[at] for at in range(address, address + size))
        except KeyError as error:
            raise TargetError(f"nothing is at {error.args[0]:#x}") from None

    def word(self, address: int) -> int:
        return int(struct.unpack("<Q", self.read(address, 8))[0])

    def short(self, address: int) -> int:
        return int(struct.unpack("<i", self.read(address, 4))[0])

    def run(self, start: int = MAIN) -> int:
        """The result of main."""
        at = start
        for _ in range(1000):
            if at in dataclasses.astuple(STUBS):
                at = self._asks(at)
                continue
            (one,) = READER.decode(self.read(at, SIZE), at)
            self.ran.append(at)
            if one.op is Op.STOP:
                assert self.registers["stack"] == STACK
                return self.registers["p0"]
            at = self._step(one)
        raise AssertionError("it runs for ever")

    def _asks(self, stub: int) -> int:
        """A stub leaves no more of the registers than it must."""
        registers = self.registers
        self.asked.append((stub, registers["p10"], registers["p11"]))
        back = registers["link"]
        registers |= {"p10": self.answers.get(stub, 0), "p11": 0xDEAD, "p12": 0xDEAD}
        registers["link"] = 0xDEAD
        return back

    def _step(self, one: Paper) -> int:
        registers, a, b = self.registers, one.a, self.registers[one.b]
        match one.op:
            case Op.ADD:
                registers[a] = b + one.n & WORD
            case Op.SUM:
                registers[a] = registers[a] + b & WORD
            case Op.LOAD:
                registers[a] = self.word(b + one.n)
            case Op.LOAD_SHORT:
                registers[a] = self.short(b + one.n) & WORD
            case Op.STORE:
                self.write(b + one.n, struct.pack("<Q", registers[a]))
            case Op.NEAR:
                registers[a] = self.word(one.ip + one.n)
            case Op.JUMP_IF if registers[a] == 0:
                pass
            case Op.JUMP | Op.JUMP_IF | Op.JUMP_TO | Op.CALL | Op.CALL_TO | Op.RETURN:
                return self._leads(one)
        return one.next_ip

    def _leads(self, one: Paper) -> int:
        if one.op is Op.RETURN:
            return self.registers["link"]
        to = self.registers[one.a] if one.near is None else one.near
        if READER.ends_in_call(self.read(one.ip, SIZE)):
            self.registers["link"] = one.next_ip
        return to


class Around:
    """The code around functions, and what files tell of them."""

    def __init__(self, machine: Machine) -> None:
        self.read = machine.read
        self.outlines = self

    def extent(self, address: int) -> tuple[int, int] | None:
        code = PROGRAM.get(address)
        return None if code is None else (address, address + len(b"".join(code)))

    def frame_rule(self, address: int) -> FrameRule | None:
        return None

    def landing_pads(self, address: int) -> frozenset[int] | None:
        return frozenset()

    def is_function_start(self, address: int) -> bool:
        return address in PROGRAM

    def is_cold_part(self, address: int) -> bool:
        return False

    def is_code(self, address: int) -> bool:
        return any(start <= address < start + 0x100 for start in PROGRAM)

    def is_jumped_into(self, start: int, end: int) -> bool:
        return False


def function(entry: int = HANDLE, machine: Machine | None = None) -> FunctionCode[Paper]:
    return READER.read_function(entry, Around(machine or Machine()))


def site(kind: CallKind) -> Site[Paper]:
    (found,) = [one for one in function().sites if one.kind is kind]
    return found


def prologue(entry: int = HANDLE) -> Prologue[Paper]:
    read = READER.read_prologue(function(entry), Around(Machine()))
    assert isinstance(read, Prologue)
    return read


# ---------------------------------------------------------------------------------- reading


def test_call_sites() -> None:
    indirect, direct = function().sites
    assert (indirect.kind, indirect.target) == (CallKind.INDIRECT, None)
    assert (direct.kind, direct.target) == (CallKind.DIRECT, FLUSH)
    assert (direct.address, direct.back) == (HANDLE + 5 * SIZE, HANDLE + 6 * SIZE)
    assert direct.length == READER.PATCH_LENGTH, "all have room for a patch"
    assert function().targets == {HANDLE + 5 * SIZE}


def test_a_tail_jump_is_a_site_and_a_loop_is_none() -> None:
    machine = Machine()
    machine.write(FLUSH, encode(Op.JUMP_IF, "p0", n=SIZE) + encode(Op.JUMP, n=HANDLE - FLUSH - 8))
    read = function(FLUSH, machine)
    (tail,) = read.sites
    assert (tail.kind, tail.target, tail.slot) == (CallKind.TAIL, HANDLE, FrameRule("stack", 0))
    assert read.targets == {FLUSH + SIZE}


def test_a_prologue_is_one_instruction_and_may_be_refused() -> None:
    read = prologue()
    assert (read.length, [one.op for one in read.instructions]) == (SIZE, [Op.ADD])
    assert read.original == PROGRAM[HANDLE][0]
    around = Around(Machine())
    assert READER.read_prologue(function(), around, 7 * SIZE) == Refusal(
        "a jump leads among its first instructions"
    )
    assert READER.read_prologue(function(FLUSH), around, 3 * SIZE) == Refusal("it is too short")


def test_a_frame_is_known_by_its_cfa_at_each_of_its_instructions() -> None:
    """There is no word on the stack at a call, and none at all in a leaf."""
    depths = function().depths
    assert depths is not None
    machine = Machine()
    seen: dict[int, int] = {}
    step = machine._step

    def noted(one: Paper) -> int:
        if one.ip in depths:
            rule = depths[one.ip]
            seen[one.ip] = READER.frame_slot(rule, machine.registers.__getitem__, machine.word)
        return step(one)

    machine._step = noted  # type: ignore[method-assign]
    machine.run()
    assert set(seen.values()) == {READER.slot_at_entry(STACK)}
    assert len(seen) == len(PROGRAM[HANDLE])
    assert READER.cfa_of(READER.slot_of(STACK)) == STACK


def test_who_looks_at_its_caller_is_told_from_who_keeps_it() -> None:
    keeps = list(function().instructions.values())
    assert not READER.is_looked_at(HANDLE, keeps, None)
    looks = READER.decode(encode(Op.ADD, "p0", "link"), HANDLE)
    assert READER.is_looked_at(HANDLE, looks, None)


def of_handler(*code: bytes, at: int = HANDLE) -> FunctionCode[Paper]:
    instructions = {one.ip: one for one in READER.decode(b"".join(code), at)}
    return FunctionCode(at, [(at, at + SIZE * len(code))], instructions)


@pytest.mark.parametrize(
    ("code", "sets"),
    [
        ([encode(Op.STORE, "p5", ACCOUNT, PLACE)], True),
        ([encode(Op.ADD, "p7", ACCOUNT, SIZE), encode(Op.STORE, "p5", "p7", PLACE - SIZE)], True),
        ([encode(Op.STORE, "p5", ACCOUNT, PLACE + SIZE)], False),
        ([encode(Op.LOAD, "p5", ACCOUNT, PLACE)], False),
        ([encode(Op.STORE, "p5", "p1", PLACE)], False),
        ([encode(Op.LOAD, ACCOUNT, "stack"), encode(Op.STORE, "p5", ACCOUNT, PLACE)], False),
    ],
)
def test_a_handler_that_sets_where_its_thread_goes_on(code: list[bytes], *, sets: bool) -> None:
    assert RESTARTS.sets_place(of_handler(*code), lambda _: None) == sets


@pytest.mark.parametrize(("argument", "sets"), [(ACCOUNT, True), ("p1", False)])
def test_a_handler_that_hands_the_account_on(argument: str, *, sets: bool) -> None:
    """To a function that writes there by this argument of its own."""
    callee = of_handler(encode(Op.STORE, "p5", argument, PLACE), encode(Op.RETURN), at=FLUSH)
    handler = of_handler(encode(Op.CALL, n=FLUSH - HANDLE), encode(Op.RETURN))
    assert RESTARTS.sets_place(handler, {FLUSH: callee}.get) == sets
    assert not RESTARTS.sets_place(handler, lambda _: None), "who is called is not known"


@pytest.mark.parametrize(
    ("code", "may"),
    [
        (encode(Op.LOAD, "p1", "p2"), True),
        (encode(Op.STORE, "p1", "frame"), True),
        (encode(Op.STORE, "p1", "stack"), False),
        (encode(Op.ADD, "p1", "p2"), False),
        (encode(Op.CALL), False),
    ],
)
def test_a_sequence_that_is_begun_anew_accesses_memory(code: bytes, *, may: bool) -> None:
    (one,) = READER.decode(code, HANDLE)
    assert RESTARTS.may_be_restarted(one) == may
    assert RESTARTS.may_be_restarted(one, has_frame=True) == (may and one.b != "frame")


def test_scans_find_what_a_function_calls() -> None:
    code = b"".join(PROGRAM[HANDLE])
    assert (HANDLE + 5 * SIZE, FLUSH) in READER.led_to(code, HANDLE)
    assert list(READER.led_through(code, HANDLE)) == [WORD_OF]
    back = HANDLE + 6 * SIZE
    assert READER.called_before(code[5 * SIZE : 6 * SIZE], back) == FLUSH


# --------------------------------------------------------------------------- pads that run


PLAIN = 1000 + 2 * 70 + 5


def test_the_program_by_itself() -> None:
    assert Machine().run() == PLAIN


@pytest.mark.parametrize("is_wanted", [False, True])
@pytest.mark.parametrize("lands", [False, True])
@pytest.mark.parametrize("kind", [CallKind.DIRECT, CallKind.INDIRECT])
def test_a_call_sites_pad(kind: CallKind, lands: bool, is_wanted: bool) -> None:
    """It asks by the frame's CFA, and hands over behind the call; the program notices nothing."""
    own = site(kind)
    asks = STUBS.call if kind is CallKind.DIRECT else STUBS.indirect
    machine = Machine({asks: is_wanted})
    pad = WRITER.call_pad(
        own, DATA, (), stubs=STUBS, origin=PAD, landing=LANDING + BACK if lands else None
    )
    assert pad.back is not None
    machine.write(PAD, pad.code)
    machine.write(LANDING_WORD, struct.pack("<Q", own.back))
    call = WRITER.landing_call(own, LANDING + BACK, 0)
    machine.write(LANDING, CELLS.of_site(call, LANDING, LANDING_WORD, PAD + pad.back))
    machine.write(own.patch, WRITER.patch_bytes(own.kind, own.patch, own.length, PAD))
    assert machine.run() == PLAIN
    handed_over = [(STUBS.returned, DATA)] if is_wanted else []
    assert [one[:2] for one in machine.asked] == [(asks, DATA), *handed_over]
    assert machine.asked[0][2] == READER.slot_of(STACK)
    assert (LANDING + BACK in machine.ran) == (lands and is_wanted)


def test_a_pads_constants_are_where_it_says() -> None:
    pad = WRITER.call_pad(site(CallKind.DIRECT), DATA, (), stubs=STUBS, origin=PAD)
    machine = Machine()
    machine.write(PAD, pad.code)
    assert machine.word(PAD + pad.cells[TARGET]) == machine.word(PAD + pad.target) == FLUSH


@pytest.mark.parametrize("answer", [0, LANDING + BACK])
def test_an_entry_pad_leads_the_link_register_to_a_landing(answer: int) -> None:
    """In place of the word that x86-64 has on the stack there."""
    machine = Machine({STUBS.entry: answer})
    pad = WRITER.entry_pad(prologue(), DATA, STUBS, origin=PAD, lands=True)
    machine.write(PAD, pad.code)
    machine.write(HANDLE, WRITER.patch_bytes(None, HANDLE, SIZE, PAD))
    caller = MAIN + SIZE
    machine.write(LANDING_WORD, struct.pack("<Q", caller))
    machine.write(LANDING, CELLS.of_caller(LANDING, LANDING_WORD, LANDING_BODY, COMMON))
    machine.write(COMMON, WRITER.landed(0x8888, STUBS.landed, COMMON))
    assert machine.run() == PLAIN
    landed = [(STUBS.landed, 0x8888, STACK)] if answer else []
    assert machine.asked == [(STUBS.entry, DATA, STACK), *landed]
    assert (LANDING + BACK in machine.ran) == bool(answer)


@pytest.mark.parametrize("entry", [HANDLE, FLUSH])
def test_an_entry_pad_that_only_tells(entry: int) -> None:
    machine = Machine()
    machine.write(PAD, WRITER.entry_pad(prologue(entry), DATA, STUBS, origin=PAD).code)
    machine.write(entry, WRITER.patch_bytes(None, entry, SIZE, PAD))
    assert machine.run() == PLAIN
    depth = 16 if entry == FLUSH else 0
    calls = 2 if entry == FLUSH else 1
    assert machine.asked == [(STUBS.entry, DATA, STACK - depth)] * calls


def test_f0s_pad_has_the_agents_code_before_and_behind_the_call() -> None:
    tells = encode(Op.STOP, n=1) + encode(Op.CALL_TO, "p12")
    keeps = encode(Op.ADD, "p8", "link")
    again = encode(Op.ADD, "link", "p8") + encode(Op.RETURN)
    own = F0Code(keeps + tells, tells + again, {1: STUBS.landed})
    pad = WRITER.f0_pad(prologue(), own, PAD)
    machine = Machine()
    machine.write(PAD, pad.code)
    machine.write(HANDLE, WRITER.patch_bytes(None, HANDLE, SIZE, PAD))
    assert machine.run() == PLAIN
    assert [one[0] for one in machine.asked] == [STUBS.landed] * 2
    assert pad.back is not None
    assert pad.body is not None
    assert PAD + pad.back in machine.ran


def test_a_tail_jump_keeps_its_caller() -> None:
    machine = Machine()
    machine.write(FLUSH, encode(Op.JUMP, n=WORD_OF + SIZE - FLUSH))
    machine.write(WORD_OF + SIZE, encode(Op.ADD, "p0", "p0", 70) + encode(Op.RETURN))
    (tail,) = function(FLUSH, machine).sites
    machine.write(PAD, WRITER.tail_pad(tail, DATA, (), stubs=STUBS, origin=PAD).code)
    machine.write(tail.patch, WRITER.patch_tail(tail, PAD))
    assert machine.run() == PLAIN
    assert machine.asked == [(STUBS.tail, DATA, STACK - 16)] * 2


def test_what_is_moved_means_the_places_that_it_meant() -> None:
    """A jump and a word that are named by their distance, run elsewhere."""
    moved = tuple(function().instructions[HANDLE + at * SIZE] for at in (2, 3))
    machine = Machine()
    relay = Relay(moved[0].ip, moved[0].ip, moved[1].next_ip, moved)
    pad = WRITER.relay_pad(relay, PAD)
    machine.write(PAD, pad.code)
    machine.write(relay.start, WRITER.patch_relay(relay, PAD, None))
    assert machine.run() == PLAIN
    assert pad.moved == {moved[0].ip: 0, moved[1].ip: SIZE}


# ------------------------------------------------------------------------------- landings


def test_a_retired_cell_returns_by_itself() -> None:
    """A call that comes back to it later finds its caller, with neither pad nor agent."""
    own = site(CallKind.DIRECT)
    call = WRITER.landing_call(own, LANDING + BACK, 0)
    code = CELLS.returning(CELLS.of_site(call, LANDING, LANDING_WORD, PAD))
    machine = Machine()
    machine.write(LANDING, code)
    machine.write(LANDING_WORD, struct.pack("<Q", MAIN + SIZE))
    assert len(code) == CELL
    assert machine.run(LANDING + BACK) == 1000
    assert machine.asked == []


def test_a_call_that_is_yet_to_be_made_from_a_retired_cell() -> None:
    """What it calls stands behind its return, and finds the program's own address in the link."""
    own = site(CallKind.DIRECT)
    cell = CELLS.of_site(WRITER.landing_call(own, LANDING + BACK, 0), LANDING, LANDING_WORD, PAD)
    assert CELLS.called(cell, LANDING) == FLUSH
    retired = CELLS.returning_with(cell, LANDING, FLUSH)
    assert retired is not None
    assert CELLS.called_behind(retired, LANDING) == FLUSH
    retired = CELLS.calling(retired, LANDING, RETIRED)
    machine = Machine()
    machine.write(LANDING, retired)
    machine.write(RETIRED, CELLS.RETIRED)
    machine.write(LANDING_WORD, struct.pack("<Q", MAIN + SIZE))
    assert machine.run(LANDING + SIZE) == 1070
    assert LANDING + ON not in machine.ran, "it comes back to its own caller at once"


@pytest.mark.parametrize(
    "code",
    [
        lambda: CELLS.UNUSED,
        lambda: CELLS.of_caller(LANDING, LANDING_WORD, LANDING_BODY, COMMON),
    ],
)
def test_a_cell_that_calls_nobody_directly(code: Callable[[], bytes]) -> None:
    assert CELLS.called(code(), LANDING) is None


def test_what_is_too_far_is_refused() -> None:
    far = 1 << 40
    with pytest.raises(OutOfReachError, match="too far"):
        WRITER.patch_bytes(CallKind.DIRECT, HANDLE, SIZE, far)
    with pytest.raises(OutOfReachError):
        WRITER.entry_pad(prologue(), DATA, STUBS, origin=far)
    assert CELLS.returning_with(CELLS.UNUSED, LANDING, far) is None
    # What it calls is a constant of the pad's: that may be anywhere.
    assert WRITER.call_pad(site(CallKind.DIRECT), DATA, (), stubs=STUBS, origin=far)


def test_a_landing_that_is_far_from_what_it_calls() -> None:
    """It has that from the pad's constant."""
    own, far = site(CallKind.DIRECT), 1 << 40
    machine = Machine({STUBS.call: 1})
    machine.write(far, encode(Op.ADD, "p0", "p0", 70) + encode(Op.RETURN))
    own = dataclasses.replace(own, target=far)
    pad = WRITER.call_pad(own, DATA, (), stubs=STUBS, origin=PAD, landing=LANDING + BACK)
    assert pad.back is not None
    machine.write(PAD, pad.code)
    machine.write(LANDING_WORD, struct.pack("<Q", own.back))
    call = WRITER.landing_call(own, LANDING + BACK, PAD + pad.target)
    machine.write(LANDING, CELLS.of_site(call, LANDING, LANDING_WORD, PAD + pad.back))
    machine.write(own.patch, WRITER.patch_bytes(own.kind, own.patch, own.length, PAD))
    assert machine.run() == PLAIN
    assert far in machine.ran


def test_slots_in_what_landings_lead_to() -> None:
    """Where the stack pointer is moved there, the slot is not."""
    machine = Machine()
    common = WRITER.landed(0x8888, STUBS.landed, COMMON)
    machine.write(COMMON, common)
    machine.registers["link"] = MAIN + SIZE
    step = machine._step
    slots = []

    def noted(one: Paper) -> int:
        if COMMON <= one.ip < COMMON + len(common):
            slots.append(CELLS.slot_in_common(one.ip - COMMON, machine.registers["stack"]))
        return step(one)

    machine._step = noted  # type: ignore[method-assign]
    machine.run(COMMON)
    assert set(slots) == {STACK}


# ------------------------------------------------------------- what is above the seam, by it

AREA, COUNT = 0x40000, returns._COUNT
AREA_OF_WORDS = CELL * COUNT


@pytest.fixture
def landings(monkeypatch: pytest.MonkeyPatch) -> tuple[ReturnLandings, Machine]:
    """Those of any processor, whose cells are on paper: how long these are, and where in them is
    returned to, the agent's header says for x86-64."""
    words, bodies = AREA_OF_WORDS, AREA_OF_WORDS + 8 * COUNT
    own = {"_CELL": CELL, "_BACK": BACK, "_ENTER": 0, "_WORDS": words, "_BODIES": bodies}
    for name, value in own.items():
        monkeypatch.setattr(returns, name, value)
    monkeypatch.setattr(returns, "SIZE", bodies + 8 * (COUNT - returns._CALLERS))
    monkeypatch.setattr(returns, "CELLS", CELLS)
    monkeypatch.setattr(processor, "landed", WRITER.landed)
    monkeypatch.setattr(returns, "_of_callers", returns._of_callers.__wrapped__)
    machine = Machine({STUBS.call: 1})
    machine.write(AREA, bytes(returns.SIZE))
    memory = SimpleNamespace(read=machine.read, write=machine.write, flush=lambda: None)
    target = cast(Any, SimpleNamespace(memory=memory))
    return ReturnLandings(target, AREA), machine


def test_landings_of_this_processor(landings: tuple[ReturnLandings, Machine]) -> None:
    """A site's: while it is timed, and when a call comes back behind the analysis."""
    made, machine = landings
    own = site(CallKind.DIRECT)
    made.begin(0x8888, STUBS.landed)
    cell = made.claim(own.back)
    back = made.returns_to(cell)
    pad = WRITER.call_pad(own, DATA, (), stubs=STUBS, origin=PAD, landing=back)
    assert pad.back is not None
    machine.write(PAD, pad.code)
    made.lead(cell, WRITER.landing_call(own, back, PAD + pad.target), PAD + pad.back)
    machine.write(own.patch, WRITER.patch_bytes(own.kind, own.patch, own.length, PAD))
    assert machine.run() == PLAIN
    assert [one[0] for one in machine.asked] == [STUBS.call, STUBS.returned]
    assert (made.own(back), made.used) == (own.back, 1)
    assert made.caller(back, STACK - 16) == (STACK - 16, own.back)

    made.retire()
    machine.asked.clear()
    machine.registers |= {"stack": STACK - 16, "p0": 1070}
    assert machine.run(back) == 1075, (
        "handle goes on as behind its call, and main as behind its own"
    )
    assert machine.asked == []
    machine.registers |= {"stack": STACK - 16, "p0": 1000}
    assert machine.run(back - SIZE) == 1075, "a thread that was about to make the call"
    assert machine.asked == []


def test_landings_of_f0_of_this_processor(landings: tuple[ReturnLandings, Machine]) -> None:
    """One that is lent, as to a call of a debugger's: f0 is called from there, and lands."""
    made, machine = landings
    made.begin(0x8888, STUBS.landed)
    back = MAIN + SIZE
    with made.lend(HANDLE, back, HANDLE):
        (cell,) = [one - BACK for one in made.all_own()]
        assert made.calls(cell) == HANDLE
        assert machine.run(cell) == PLAIN
        assert machine.asked == [(STUBS.landed, 0x8888, STACK)]
    assert made.all_own() == {}
