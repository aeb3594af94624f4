"""What darc knows of kernels by their bytes: thunks, causes, types, page tables, modules."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from darc.app.completing import functions_beginning
from darc.code.architecture import Site
from darc.code.debug_file import DebugFile
from darc.code.elf import Image as ElfImage
from darc.code.frame_rule import FrameRule
from darc.code.headers import Headers
from darc.code.lookup import Lookup
from darc.code.modules import Module
from darc.code.patterns import choose, parse_patterns
from darc.collectors.setmembers import told_of_modules
from darc.model.errors import FormatError, NotFoundError, TargetError, UnsupportedError
from darc.model.ftree import CallKind, CallSite, Cause, Fnode, Function
from darc.target.target import Target
from kgdb import tasks
from kgdb.btf import Btf
from kgdb.calls import way_back
from kgdb.debuggee import KernelDebuggee
from kgdb.gdbstub import GdbStub, gdbstub
from kgdb.image import KernelImage, _OrcFrames
from kgdb.kernel import Kernel
from kgdb.modules import LoadedModule, ModuleImage, loaded
from kgdb.pads import KernelPads
from kgdb.pagetables import executable_areas
from kgdb.program import KernelProgram
from kgdb.vm.kernels import module_name, unpack_module
from tests.fake_target import FakeTarget
from tests.unit.kernel import (
    CALLEE,
    CALLER,
    ENTRY,
    NOP,
    RETURN,
    STATIC,
    STRINGS,
    TEXT,
    THUNK,
    Image,
    Memory,
    kernel,
    relative,
    text,
)


def sites(code: bytes) -> list[Site]:
    return [s for s in kernel(code).function(CALLER).sites if s.address >= CALLER + len(NOP)]


def test_a_call_of_a_retpoline_is_the_indirect_call_that_it_stands_for() -> None:
    place = CALLER + len(NOP)
    (found,) = sites(relative(b"\xe8", place, THUNK) + b"\xc3")
    assert (found.address, found.length, found.back) == (place, 5, place + 5)
    assert found.kind is CallKind.INDIRECT
    assert found.target is None
    assert found.thunk == THUNK
    assert f"{found.instruction}" == "call r11"


@pytest.mark.parametrize(
    ("call", "is_short"),
    [(b"\xff\xd0\x0f\x1f\x00", True), (b"\xe8\x00\x00\x00\x00", False)],
)
def test_calls_of_thunks_are_looked_at_all_over_a_kernel(call: bytes, is_short: bool) -> None:
    """The first ones that its file lists may all be jumps, which are shorter in any case."""
    program = kernel(b"\xff\xe0" + call)
    image = cast(Image, program.kernel.image)
    image.values |= {"_stext": TEXT, "_etext": TEXT + 0x1000}
    at = CALLER + len(NOP)
    image.thunk_calls = [at] * 100 + [at + 2] * 900
    assert program.has_nops_behind_calls == is_short


def test_a_jump_to_the_return_thunk_is_a_return() -> None:
    assert not sites(relative(b"\xe9", CALLER + len(NOP), RETURN))


def test_a_static_call_leads_to_the_function_behind_it() -> None:
    program = kernel(b"\xc3")
    assert program.linkage.callee_at(STATIC).symbol == "callee"


def test_no_patch_of_several_instructions_and_none_in_entry_code() -> None:
    program = kernel(b"\x31\xc0\x90\xff\xd0\xc3")
    (short,) = (s for s in program.function(CALLER).sites if s.kind is CallKind.INDIRECT)
    assert program.patchable.site_problem(short) == "the call is shorter than a jump"
    assert program.patchable.untouchable(ENTRY + 3) is not None
    assert program.patchable.untouchable(CALLER) is None


CALLS = (relative(b"\xe8", CALLER + 8, CALLEE), relative(b"\xe8", CALLER + 13, CALLEE))
PROBED_CODE = b"\x48\x89\xfb" + b"".join(CALLS) + b"\xc3"
"""``mov rbx, rdi`` and two calls."""

OUTSIDE = relative(b"\xe9", CALLER + 5, TEXT + 0x10000)
TRACER = relative(b"\xe8", CALLER, TEXT + 0x10000)


@pytest.mark.parametrize(
    ("changes", "left_alone"),
    [
        ({}, []),
        ({0: TRACER}, []),
        ({5: b"\xcc"}, []),
        ({8: b"\xcc"}, [8]),
        ({13: b"\xcc"}, [13]),
        ({5: OUTSIDE}, [8]),
    ],
    ids=["none", "ftrace", "kprobe", "at a call", "at the last call", "optimised"],
)
def test_code_under_the_probes_of_others(changes: dict[int, bytes], left_alone: list[int]) -> None:
    """What it does is read as if they were not there; calls in their bytes take no pad."""
    found = kernel(PROBED_CODE, changes=changes).function(CALLER)
    problems = {site.address - CALLER: site.problem for site in found.sites}
    probed = "a kprobe or another debugger is active on it"
    assert problems == {at: probed if at in left_alone else None for at in (8, 13)}


def test_what_the_kernel_itself_has_changed_is_no_probe() -> None:
    """A branch that it switched on (a static key) leads into code."""
    jump = relative(b"\xe9", CALLER + 5, CALLER + 13)
    program = kernel(NOP + b"\x90\x90\x90\x31\xc0\xc3", changes={5: jump})
    assert program.function(CALLER).targets == {CALLER + 13}
    assert program.read(CALLER + 5, 5) == jump


@pytest.mark.parametrize(
    ("code", "length", "nop"),
    [
        pytest.param("ffd0 0f1f00 c3", 5, 3, id="call"),
        pytest.param("41ffd3 0f1f00 c3", 6, 3, id="call through a register with a number"),
        pytest.param("ffe0 cc 6690 c3", 5, 0, id="jump"),
        pytest.param("41ffe3 cc 6690 cc c3", 6, 0, id="jump through a register with a number"),
    ],
)
def test_a_short_call_and_the_nop_behind_it_have_room_together(
    code: str, length: int, nop: int
) -> None:
    """Which the kernel has written over a call of a thunk."""
    program = kernel(bytes.fromhex(code))
    (found,) = (s for s in program.function(CALLER).sites if s.address >= CALLER + len(NOP))
    assert (found.patch, found.length, found.nop) == (CALLER + len(NOP), length, nop)
    assert (found.problem, found.displaced) == (None, ())
    assert program.patchable.site_problem(found) is None
    assert found.is_jumped_from is bool(nop)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("ffd0 90 90 90 c3", id="nops between which a task may stand"),
        pytest.param("ffd0 6690 c3", id="too few"),
        pytest.param("ffd0 0f1f00 ebfb c3", id="a jump leads to the nop"),
    ],
)
def test_no_room_where_more_than_a_return_leads_to_it(code: str) -> None:
    program = kernel(bytes.fromhex(code))
    (found,) = (s for s in program.function(CALLER).sites if s.kind is CallKind.INDIRECT)
    assert found.nop == 0
    assert (found.problem or program.patchable.site_problem(found)) is not None


def test_no_room_where_the_function_ends() -> None:
    """What stands behind it is the next function."""
    program = kernel(bytes.fromhex("ffe0"), behind=NOP)
    (found,) = (s for s in program.function(CALLER).sites if s.kind is CallKind.TAIL_INDIRECT)
    assert found.back == CALLER + len(NOP) + 2
    assert (found.problem or program.patchable.site_problem(found)) is not None


@pytest.mark.parametrize(
    ("first", "behind"),
    [("f30f1efa", 4), ("660f1f00", 4), ("0f1f40d6", 4), ("0f1f440000", 0), ("53488b07", 0)],
)
def test_the_way_in_is_behind_what_indirect_branches_must_land_on(first: str, behind: int) -> None:
    code = bytes.fromhex(first) + NOP + b"\xc3"
    assert kernel(code).way_in(CALLER + len(NOP)) == CALLER + len(NOP) + behind


def path(*names: str, kind: CallKind = CallKind.DIRECT) -> Fnode:
    node = Fnode(
        Function(name="vfs_read", symbol="vfs_read", module="vmlinux", address=1, offset=1)
    )
    for number, name in enumerate(names):
        site = CallSite(number, kind, "vmlinux", number)
        node = node.add_child(
            Function(name=name, symbol=name, module="vmlinux", address=number + 2, offset=0), site
        )
    return node


@pytest.mark.parametrize(
    ("node", "meaning"),
    [
        (path("pipe_read"), None),
        (path("pipe_read", "schedule"), (Cause.BLOCKED, "pipe_read slept")),
        (path("mutex_lock", "io_schedule", "schedule"), (Cause.BLOCKED, "mutex_lock slept")),
        (path("__cond_resched"), (Cause.PREEMPTION, None)),
        (path("preempt_schedule_irq", kind=CallKind.INTERRUPT), (Cause.PREEMPTION, None)),
        (
            path("__sysvec_apic_timer_interrupt", kind=CallKind.INTERRUPT),
            (Cause.INTERRUPT, "vector 0xec"),
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_where_paths_end_in_the_scheduler_or_an_interrupt(
    node: Fnode, meaning: tuple[Cause, str | None] | None
) -> None:
    assert kernel(b"\xc3").meaning(node) == meaning


# ------------------------------------------------------------------------ types


def btf() -> Btf:
    def structure(name: int, size: int, *members: tuple[int, int, int]) -> bytes:
        rows = b"".join(struct.pack("<3I", *row) for row in members)
        return struct.pack("<3I", name, 4 << 24 | len(members), size) + rows

    integer = struct.pack("<4I", 0, 1 << 24, 4, 32)  # type 1
    nameless = structure(0, 8, (text("tgid"), 1, 32))  # type 2
    inner = structure(0, 16, (text("deep"), 1, 64))  # type 3
    constant = struct.pack("<3I", 0, 10 << 24, 3)  # type 4: const of type 3
    task = structure(
        text("task_struct"), 64, (text("pid"), 1, 0), (0, 2, 128), (text("inner"), 4, 256)
    )
    types = integer + nameless + inner + constant + task
    head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(STRINGS))
    return Btf(head + types + STRINGS)


@pytest.mark.parametrize(("member", "offset"), [("pid", 0), ("tgid", 20), ("inner.deep", 40)])
def test_members_of_structures(member: str, offset: int) -> None:
    assert btf().offset("task_struct", member) == offset


def test_a_member_that_is_not_there() -> None:
    with pytest.raises(FormatError, match=r"no task_struct\.comm"):
        btf().offset("task_struct", "comm")
    with pytest.raises(FormatError, match="CONFIG_DEBUG_INFO_BTF"):
        Btf(b"")


# ------------------------------------------------------------------------ memory


def test_executable_pages_are_found_where_they_begin() -> None:
    direct, pointers, directory, table = 1 << 40, 1 << 30, 0x5000, 0x6000
    present, no_execute = 3, 1 << 63

    def page(**entries: int) -> bytes:
        words = [0] * 512
        for name, value in entries.items():
            words[int(name[1:])] = value
        return struct.pack("<512Q", *words)

    memory = Memory(
        (pointers, page(_511=directory | present)),
        (direct + directory, page(_0=table | present, _1=0x80 | present)),
        (
            direct + table,
            page(
                _3=0x1000 | present,
                _4=0x2000 | present,
                _6=0x3000 | present | no_execute,
                _7=0x4000 | present,
            ),
        ),
    )
    start = 0xFFFFFFFFC0000000
    large = range(start + (1 << 21), start + (2 << 21), 4096)
    found = list(executable_areas(memory.read, pointers, direct))
    assert found == [start + 3 * 4096, start + 7 * 4096, *large], "whatever part was given away"
    found = list(executable_areas(memory.read, pointers, direct, range(large.start, large.stop)))
    assert found == [start + 3 * 4096, start + 7 * 4096], "the kernel's own code"


class Machine(Memory):
    """A kernel that kgdb has stopped: a write to what is mapped read-only is refused."""

    POINTERS, DIRECT, DIRECTORY, TABLE = 1 << 30, 1 << 40, 0x5000, 0x6000
    LARGE, SMALL = 0xFFFFFFFFC0000000, 0xFFFFFFFFC0200000
    VALUES = {  # noqa: RUF012
        "level3_kernel_pgt": POINTERS, "page_offset_base": 0x100, "rodata_enabled": 0x108,
        "kgdb_connected": 0x110, "kgdb_active": 0x114, "__per_cpu_offset": 0x118,
    }  # fmt: skip

    interrupt = 1 << 16

    def __init__(self, connected: int = 1, active: int = 1, protects: int = 1) -> None:
        present, writable, large = 1, 2, 0x80
        values = (self.DIRECT, protects, connected, active, 0x7000, 0x8000)
        super().__init__(
            (0x100, struct.pack("<QQIi2Q", *values)),
            (self.POINTERS + 8 * 511, struct.pack("<Q", self.DIRECTORY | present | writable)),
            (
                self.DIRECT + self.DIRECTORY,
                struct.pack("<2Q", large | present, self.TABLE | present | writable),
            ),
            (self.DIRECT + self.TABLE, struct.pack("<3Q", present, present | writable, 0)),
        )
        self.begin = list(self.parts)

    def write(self, address: int, data: bytes) -> None:
        for number, (start, old) in enumerate(self.parts):
            if start <= address < start + len(old):
                at = address - start
                self.parts[number] = (start, old[:at] + data + old[at + len(data) :])

    def gdbstub(self) -> GdbStub:
        target = cast("Target", SimpleNamespace(memory=self))
        registers = {"gs_base": 0x9000}
        return gdbstub(target, self.VALUES.get, registers.__getitem__, lambda: self.interrupt)

    def writable(self) -> list[bool]:
        """Whether the large page is, and the two small ones."""
        places = [(self.DIRECTORY, 0), (self.TABLE, 0), (self.TABLE, 1)]
        return [bool(self.read(self.DIRECT + t + 8 * n, 1)[0] & 2) for t, n in places]


def test_kgdb_writes_what_is_read_only_and_leaves_it_so() -> None:
    machine = Machine()
    found = machine.gdbstub()
    assert (found.name, found.writes_text) == ("kgdb", False)
    assert machine.writable() == [False, False, True]
    assert found.unlock(machine.LARGE + 0x1FFFFE, 5)  # the end of one, the begin of the other
    assert machine.writable() == [True, True, True]
    assert not found.unlock(machine.LARGE, 5)
    assert not found.unlock(machine.SMALL + 0x2000, 5)  # nothing is there
    found.lock()
    assert machine.parts == machine.begin


@pytest.mark.parametrize(("protects", "left"), [(1, False), (0, True)])
def test_what_a_killed_debugger_made_writable(protects: int, left: bool) -> None:
    """Unless the kernel was told to protect nothing (rodata=off)."""
    machine = Machine(protects=protects)
    machine.gdbstub().unlock(machine.LARGE, 5)
    machine.gdbstub().lock_again(machine.LARGE, machine.LARGE + 0x1000)
    assert machine.writable() == [left, False, True]


def test_the_processor_that_kgdb_has_stopped() -> None:
    machine = Machine()
    assert machine.gdbstub().per_cpu_base() == 0x8000
    with pytest.raises(TargetError, match="has not stopped a processor"):
        Machine(active=-1).gdbstub().per_cpu_base()


@pytest.mark.parametrize(
    ("count", "quiet"),
    [(0x110000, True), (0x80110001, True), (0x120000, False), (0x110100, False), (0, False)],
)
def test_a_task_is_borrowed_in_kgdb_only_outside_of_interrupts(count: int, quiet: bool) -> None:
    assert Machine().gdbstub().is_quiet(count) is quiet
    newest = Machine()  # where all counts of interrupts are eight bits higher
    newest.interrupt = 1 << 24
    assert newest.gdbstub().is_quiet((count & 0xFF0000) << 8 | count & 0xFF00FFFF) is quiet


COUNT = 0x1FB40
"""Where ``preempt_count`` is, seen from gs, up to 6.14; from 6.15 on it is an address."""


def adds(amount: int, count: int, *, wide: bool = False, at: int = CALLER) -> bytes:
    """``add gs:[rip + …], amount``, of four or of eight bytes."""
    code = b"\x65\x48\x81\x05" if wide else b"\x65\x81\x05"
    distance = (count - at - len(code) - 8 + (1 << 31)) % (1 << 32) - (1 << 31)
    return code + struct.pack("<iI", distance, amount)


@pytest.mark.parametrize(
    ("names", "code", "begin", "not_task"),
    [
        ({"__preempt_count": COUNT}, adds(1 << 16, COUNT), "irq_enter_rcu", 0xFF0100),
        ({"pcpu_hot": COUNT - 8}, adds(1 << 16, COUNT), "irq_enter_rcu", 0xFF0100),
        ({"__preempt_count": COUNT}, adds(1 << 16, COUNT), "irq_enter", 0xFF0100),
        (
            {"__preempt_count": CALLER + 0x8000},
            b"\x90" + adds(1 << 24, CALLER + 0x8000, wide=True, at=CALLER + 1),
            "irq_enter_rcu",
            0xFF000100,
        ),
        ({"__preempt_count": COUNT}, adds(1 << 24, COUNT), "irq_enter_rcu", 0x7F000100),
    ],
)
def test_what_an_interrupt_adds_to_preempt_count(
    names: dict[str, int], code: bytes, begin: str, not_task: int
) -> None:
    """By the code of the kernel's own that adds it: 7.x has other bits than earlier ones."""
    image = Image({begin: (CALLER, len(code))}, bytes(CALLER - TEXT) + code, **names)
    assert tasks.not_task(cast("KernelImage", image)) == not_task
    assert tasks.interrupts_count(cast("KernelImage", image)) == int.from_bytes(code[-4:], "little")


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ({"cpu_current_top_of_stack": COUNT}, COUNT),
        ({"pcpu_hot": COUNT}, COUNT + 24),
        ({"cpu_current_top_of_stack": TEXT + 0x8010}, TEXT + 0x8010),
    ],
    ids=["up to 6.1", "up to 6.14", "from 6.15 on"],
)
def test_where_the_running_tasks_stack_ends(
    names: dict[str, int], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By which an interrupt's handler is told whom it has interrupted."""
    types = SimpleNamespace(offset=lambda *member: {("pcpu_hot", "top_of_stack"): 24}[member])
    monkeypatch.setattr(tasks, "types", lambda _image: types)
    assert tasks.stack_at(cast("KernelImage", Image({}, b"", **names)), 0) == place


@pytest.mark.parametrize("code", [b"", adds(1 << 16, COUNT + 8), adds(3 << 16, COUNT), b"\x90"])
def test_a_kernel_that_does_not_tell_what_an_interrupt_adds(code: bytes) -> None:
    """The usual bits are taken, and the user is told (by ``check``)."""
    symbols = {"irq_enter_rcu": (CALLER, len(code))} if code else {}
    image = cast("KernelImage", Image(symbols, bytes(CALLER - TEXT) + code, __preempt_count=COUNT))
    assert tasks.interrupt_offset(image) is None
    assert tasks.not_task(image) == 0xFF0100


@pytest.mark.parametrize(
    ("stack_pointer", "through_frame"), [(5, 8), (3, 10)], ids=["up to 6.x", "7.x"]
)
def test_frames_by_the_unwinders_tables(stack_pointer: int, through_frame: int) -> None:
    """Whose registers were numbered anew: a stack ended at its first frame there."""
    rows = [
        (8, stack_pointer), (16, stack_pointer), (8, stack_pointer), (16, 4), (0, 0), (24, 9),
        (-40, through_frame), (8, 7),
    ]  # fmt: skip
    entries = b"".join(struct.pack("<hhH", at, 0, register | 0x200) for at, register in rows)
    places = struct.pack(f"<{len(rows)}i", *(0x100 + 12 * n for n in range(len(rows))))
    sections = {".orc_unwind_ip": places, ".orc_unwind": entries}
    headers = SimpleNamespace(
        section=lambda name: SimpleNamespace(name=name, address=0x1000),
        data=lambda section: sections[section.name],
    )
    frames = _OrcFrames(cast("Headers", headers), cast("DebugFile", None))
    found = [frames.rule(0x1100 + 16 * number) for number in range(len(rows))]
    assert found == [
        FrameRule("rsp", 8),
        FrameRule("rsp", 16),
        FrameRule("rsp", 8),
        FrameRule("rbp", 16),
        None,
        FrameRule("rsp", 24, 0),
        FrameRule("rbp", 0, -40),
        None,
    ]


@pytest.mark.parametrize(("connected", "levels"), [(1, 1), (0, None)])
def test_how_far_auto_looks_ahead_is_known_before_anything_is_put_in(
    connected: int, levels: int | None
) -> None:
    kernel = cast("Kernel", SimpleNamespace(gdbstub=Machine(connected=connected).gdbstub()))
    assert KernelPads(kernel).auto_lookahead == levels


POPS = "415f 415e 415d 415c 5d 5b 415b 415a 4159 4158 58 59 5a 5e 5f"
"""pop r15 … pop rdi"""


@pytest.mark.parametrize(
    ("code", "passed_by"),
    [
        (f"{POPS} 4883c408 48cf", 1),  # add rsp, 8; iretq
        (f"f684248800000003 7402 0f0b {POPS} 4883c408 eb00", 1),  # it looks at cs before
        (f"{POPS} 4883c430 fd 48c744242800000000 48cf", 6),  # that of NMIs
        (f"{POPS} 4883c430 fd 48c744243000000000 48cf", None),
        (f"{POPS} 48cf", None),
        (f"{POPS} 4883c410 48cf", None),
        (f"{POPS[5:]} 4883c408 48cf", None),
        ("90 c3", None),
    ],
)
def test_where_a_task_takes_its_registers_from_its_stack(code: str, passed_by: int | None) -> None:
    """A task that is borrowed for a call is to go on there should the debugger be gone."""
    found = way_back(bytes.fromhex(code), 0xFFFFFFFF81C01179)
    assert (found and found.passed_by) == passed_by


def test_the_same_kernel_behind_the_gdbstub_of_its_machine() -> None:
    found = Machine(connected=0).gdbstub()
    assert (found.name, found.per_cpu_base()) == ("QEMU", 0x9000)
    assert found.is_quiet(1 << 31)
    assert not found.is_quiet(1)
    assert not found.unlock(Machine.LARGE, 5)


class Types:
    """Where a module has what, as :class:`kgdb.btf.Btf` tells."""

    PLACES = {  # noqa: RUF012
        "state": 0, "list": 8, "name": 24, "core_layout.base": 80, "core_layout.text_size": 88,
        "kallsyms": 96,
    }  # fmt: skip

    def offset(self, structure: str, member: str) -> int:
        assert structure == "module"
        return self.PLACES[member]


def test_modules_and_their_symbols() -> None:
    head, live, coming = 0x1000, 0x2000, 0x3000
    text_at, kallsyms, table, names = 0xFFFFFFFFC0001000, 0x4000, 0x5000, 0x6000

    def module(state: int, following: int, name: bytes) -> bytes:
        raw = struct.pack("<Q2Q", state, following, 0) + name.ljust(56, b"\0")
        return raw + struct.pack("<QIIQ", text_at, 0x2000, 0, kallsyms)

    rows = [
        (1, 2, 0, 1, text_at + 0x40, 0x20),
        (9, ord("t"), 0, 1, text_at + 0x80, 8),
        (17, 1, 0, 2, 5, 8),
    ]
    memory = Memory(
        (head, struct.pack("<Q", live + 8)),
        (live, module(0, coming + 8, b"virtio_blk")),
        (coming, module(1, head, b"unborn")),
        (kallsyms, struct.pack("<QI4xQ", table, len(rows), names)),
        (table, b"".join(struct.pack("<IBBHQQ", *row) for row in rows)),
        (names, (b"\0request\0do_tail\0a_table\0").ljust(2048, b"\0")),
    )
    (found,) = loaded(memory.read, Types(), head)  # type: ignore[arg-type]
    assert found == LoadedModule("virtio_blk", text_at, text_at + 0x2000, kallsyms)
    image = ModuleImage(memory.read, found)
    assert [(s.name, s.address) for s in image.symbols] == [("request", 0x40), ("do_tail", 0x80)]
    assert image.symbols.at(0x5F) == next(iter(image.symbols))
    assert image.symbols.at(0x60) is None


def test_modules_are_looked_for_when_an_address_among_them_is_met() -> None:
    start = 0xFFFFFFFFC0001000
    image = Image({"request": (0, 16)})
    module = Module(
        path="virtio_blk",
        name="virtio_blk",
        bias=start,
        start=start,
        end=start + 0x100,
        image=cast(ElfImage, image),
    )
    program = kernel(b"\xc3", (module,))
    assert [m.name for m in program.modules] == ["vmlinux"]
    assert program.names.function_at(start + 4).name == "request"
    assert program.names.function_at(start + 4).module == "virtio_blk"
    assert program.is_code(start + 4)
    assert Lookup(kernel(b"\xc3", (module,)), FakeTarget()).find("request") == start


def test_a_module_that_is_not_loaded_is_told_with_those_that_are() -> None:
    """No debugger lists a kernel's: gdb says that there are no shared libraries."""
    program = with_module()
    with pytest.raises(NotFoundError) as told:
        Lookup(program, FakeTarget()).find("null_blk!null_queue_rq")
    assert str(told.value) == "no loaded file is called null_blk: there are vmlinux, slow"
    with pytest.raises(NotFoundError, match=r"called slowly \(near names: slow\)$"):
        Lookup(program, FakeTarget()).find("slowly!request")


def with_module() -> KernelProgram:
    """A kernel with a module that has a function called as one of its own begins."""
    start = 0xFFFFFFFFC0001000
    image = Image({"callback": (0, 16), "request": (32, 16)})
    return kernel(
        b"\xc3",
        (
            Module(
                path="slow",
                name="slow",
                bias=start,
                start=start,
                end=start + 0x100,
                image=cast(ElfImage, image),
            ),
        ),
    )


def test_what_a_pattern_means_in_modules_is_told() -> None:
    """It means the kernel's own functions, whether modules are known already or not."""
    for is_known in (False, True):
        program = with_module()
        if is_known:
            program.look_further()
        found = choose(program, FakeTarget(), parse_patterns(["call*"]), own=program.first_file)
        assert [f.name for f in found.functions] == ["caller", "callee"]
        assert found.elsewhere == ("slow!call*",)
    assert told_of_modules(found.elsewhere) == ["modules have more: slow!call*"]
    first = program.first_file
    meant = {"callee": ["callee"], "slow!call*": ["callback"], "req*": ["request"]}
    for pattern, names in meant.items():
        found = choose(program, FakeTarget(), parse_patterns([pattern]), own=first)
        assert [f.name for f in found.functions] == names
        assert not found.elsewhere
    assert told_of_modules(()) == []
    many = told_of_modules([f"m{n}!*" for n in range(6)])
    assert many == ["modules have more: m0!*, m1!*, m2!*, m3!* and 2 others"]


def test_functions_of_modules_are_completed() -> None:
    target = FakeTarget()
    target.process = 1
    assert functions_beginning(target, with_module, "call") == ["callback", "callee", "caller"]
    assert functions_beginning(target, with_module, "slow!re") == ["slow!request"]


def test_a_vmlinux_is_told_from_other_files(tmp_path: Path) -> None:
    from kgdb.image import is_kernel

    other = tmp_path / "vmlinux"
    other.write_bytes(b"no ELF file")
    assert not is_kernel(other)
    assert not is_kernel(Path("/bin/true"))
    with pytest.raises(FormatError):
        KernelImage(other)


def elf_with(name: str, flags: int = 0) -> bytes:
    """An ELF file with one segment, and one section beside its names."""
    segment = struct.pack("<2I6Q", 1, 5, 0, TEXT, TEXT, 64, 64, 0x1000)
    names = b"\0.shstrtab\0" + name.encode() + b"\0"
    rows = [bytes(64)]
    for at, kind, start, size in ((11, 1, 120, 0), (1, 3, 120, len(names))):
        rows.append(struct.pack("<2I4Q2I2Q", at, kind, flags, 0, start, size, 0, 0, 1, 0))
    shoff = 120 + len(names)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0")
    head += struct.pack("<2HI3QI6H", 2, 62, 1, TEXT, 64, shoff, 0, 64, 56, 1, 64, 3, 2)
    return head + segment + names + b"".join(rows)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (elf_with(".BTF"), "types alone"),
        (bytes(0x202) + b"HdrS", "boot image"),
        (elf_with(".text"), None),
        (b"no ELF file", None),
    ],
)
def test_what_a_kernels_file_lacks_is_told(tmp_path: Path, data: bytes, told: str | None) -> None:
    from kgdb.image import is_kernel, what_lacks

    file = tmp_path / "vmlinux"
    file.write_bytes(data)
    assert not is_kernel(file)
    lacks = what_lacks(file)
    assert lacks is None if told is None else told in (lacks or "")


def test_a_vmlinux_that_was_stripped(tmp_path: Path) -> None:
    file = tmp_path / "vmlinux"
    file.write_bytes(elf_with("__ksymtab"))
    with pytest.raises(FormatError, match=r"has no symbols \(stripped\): load the vmlinux"):
        KernelImage(file)


BANNER = b"Linux version 6.12.1 (builder) #1 SMP\n\0"
OTHER_BANNER = b"Linux version 6.1.9 (builder)\0".ljust(len(BANNER), b"\1")


@pytest.mark.parametrize(
    ("bias", "live", "told"),
    [
        (0, BANNER, None),
        (0x1000_0000, BANNER, None),
        (
            0,
            b"Linux version 6.1.9 (builder)\0".ljust(len(BANNER), b"\1"),
            r" \(Linux version 6.1.9\):",
        ),
        (0x1000_0000, b"\x8bUH\x89\xe5%s\x1b".ljust(len(BANNER), b"\1"), "kernel's: load"),
        (0x0FD7_1230, b"", "kernel's: load"),
    ],
)
def test_a_vmlinux_of_another_kernel_is_told_in_one_clear_line(
    bias: int, live: bytes, told: str | None
) -> None:
    """Moved by what no kernel moves itself by, there is nothing to be read: whatever is there
    is no banner."""
    image = Image({"linux_banner": (TEXT, len(BANNER))}, BANNER)
    fake = SimpleNamespace(
        image=image, path="vmlinux", bias=bias, value=lambda name: image.values[name] + bias,
        target=SimpleNamespace(memory=Memory((TEXT + bias, live))),
        remote=SimpleNamespace(move_symbols=lambda *_: None),
        note_boot=lambda: None,
        has_panicked=lambda: False,
    )  # fmt: skip
    debuggee = KernelDebuggee.__new__(KernelDebuggee)
    debuggee._kernel = cast("Kernel", fake)
    if told is None:
        debuggee.check_supported()
        return
    with pytest.raises(UnsupportedError, match=told) as raised:
        debuggee.check_supported()
    assert str(raised.value).isprintable()


TASKS, THREAD, SIGNAL, COMM, TGID, HEAD = 0, 16, 32, 40, 56, 8


class TaskTypes:
    """Of tasks in a machine that was made up."""

    def offset(self, _structure: str, member: str) -> int:
        return {
            "tasks": TASKS, "thread_node": THREAD, "signal": SIGNAL,
            "comm": COMM, "tgid": TGID, "thread_head": HEAD,
        }[member]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "there"),
    [("init", True), ("worker", True), ("work", False), (7, True), (8, False), ("a" * 20, True)],
)
def test_whether_there_is_a_task_of_that_name(
    monkeypatch: pytest.MonkeyPatch, task: int | str, there: bool
) -> None:
    """Of processes, and of their threads: ``worker`` is one of process 7's."""
    monkeypatch.setattr(tasks, "types", lambda _image: TaskTypes())
    swapper, init, worker, signals = 0x1000, 0x2000, 0x3000, 0x4000

    def made(at: int, tgid: int, name: str, thread: int) -> tuple[int, bytes]:
        after = {swapper: init, init: swapper}.get(at, at) + TASKS
        words = struct.pack("<QQQQQ", after, 0, thread, 0, signals if tgid else signals + 0x100)
        return at, words + name.encode()[:15].ljust(16, b"\0") + struct.pack("<I", tgid)

    memory = Memory(
        made(swapper, 0, "a" * 20, signals + 0x100 + HEAD),
        made(init, 7, "init", worker + THREAD),
        made(worker, 7, "worker", signals + HEAD),
        (signals + HEAD, struct.pack("<Q", init + THREAD)),
        (signals + 0x100 + HEAD, struct.pack("<Q", swapper + THREAD)),
    )
    image = Image({"init_task": (swapper - 0x10, 64)})
    target = cast("Target", SimpleNamespace(memory=memory))
    assert tasks.is_there(target, cast(KernelImage, image), 0x10, task) is there


def test_a_module_that_is_packed(tmp_path: Path) -> None:
    path = "./lib/modules/6.12/kernel/drivers/block/virtio-blk.ko.xz"
    file = tmp_path / module_name(path)
    assert file.name == "virtio_blk"
    file.write_bytes(lzma.compress(Path(struct.__file__).read_bytes()))
    unpack_module(file)
    assert file.read_bytes() == Path(struct.__file__).read_bytes()
    unpack_module(file)  # one that is not
    assert file.read_bytes() == Path(struct.__file__).read_bytes()
