"""Patched calls and jumps, with the bytes that compilers and kernels write, run by this processor:
what they lead to finds the stack and the return address that it would find without the patch."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from darc.code.architecture import Site, Surroundings
from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import Instruction, branch_target, read_function, read_prologue
from darc.model.refusal import Refusal
from darc.pads import processor as pads
from darc.pads.waypoints import SIZE, Waypoints
from tests.unit.assembly import BASE, Code
from tests.unit.kernel import CALLER, NOP, kernel

OUTER = bytes.fromhex(
    "53 55 4154"  # push rbx; push rbp; push r12
    "4989fc 4889f0 4989f3"  # mov r12, rdi; mov rax, rsi; mov r11, rsi
    "4989742440"  # mov [r12 + 64], rsi
    "bf0b000000 be16000000"  # mov edi, 11; mov esi, 22
    "e8df000000"  # call CODE
    "415c 5d 5b c3"  # pop r12; pop rbp; pop rbx; ret
)
"""Its arguments are where is told what was found, and what is called: in three registers and on the
stack of its callee."""
ASK, RETURNED, CALLED, CODE, PAD, WAYPOINTS = 0x80, 0x90, 0xC0, 0x100, 0x800, 1 << 20
ASK_CODE = bytes.fromhex("4883fc00 c3")  # cmp rsp, 0; ret
RETURNED_CODE = bytes.fromhex("5f c3")  # pop rdi; ret
CALLED_CODE = bytes.fromhex(
    "49892424 4989442418"  # mov [r12], rsp; mov [r12 + 24], rax
    "488b0424 4989442408"  # mov rax, [rsp]; mov [r12 + 8], rax
    "49897c2420 4989742428 c3"  # mov [r12 + 32], rdi; mov [r12 + 40], rsi; ret
)
BEGIN = bytes.fromhex("53 4889e3 50")  # push rbx; mov rbx, rsp; push rax
END = bytes.fromhex("4989642410 4889dc 5b c3")  # mov [r12 + 16], rsp; mov rsp, rbx; pop rbx; ret
"""It is left by ``rbx``, wherever the stack pointer is by then."""
SLOT = FrameRule("rsp", 24)
JUMPED = bytes.fromhex("39c0")  # cmp eax, eax

MEMORY = mmap.mmap(
    -1, WAYPOINTS + SIZE + (16 << 20), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
)
_FIRST = ctypes.addressof(ctypes.c_char.from_buffer(MEMORY))
START = -(-_FIRST // pads.SECTOR) * pads.SECTOR
"""All of it is in one sector of pads."""
SECTORS = {"on the path": (START,), "beside it": (START + 8 * pads.SECTOR,)}
RAN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(START)


def write(address: int, data: bytes) -> None:
    MEMORY[address - _FIRST : address - _FIRST + len(data)] = data


def read(address: int, size: int) -> bytes:
    return MEMORY[address - _FIRST : address - _FIRST + size]


def run() -> tuple[int, ...]:
    """The stack pointer and the return address that the callee found, the former where it returned
    to, and three registers."""
    found = (ctypes.c_uint64 * 16)()
    RAN(ctypes.addressof(found), START + CALLED)
    return tuple(found[:6])


@pytest.fixture(scope="module", autouse=True)
def _world() -> None:
    parts = {0: OUTER, ASK: ASK_CODE, RETURNED: RETURNED_CODE, CALLED: CALLED_CODE}
    for at, code in parts.items():
        write(START + at, code)


def moved(site: Site[Instruction], distance: int) -> Site[Instruction]:
    """The same site where this processor runs it."""
    instructions = [one.copy() for one in (*site.displaced, site.instruction)]
    for one in instructions:
        one.ip += distance
        if branch_target(one) is not None:
            one.near_branch64 += distance
    *displaced, own = instructions
    return replace(
        site,
        address=site.address + distance,
        patch=site.patch + distance,
        back=site.back + distance,
        target=None if site.target is None else site.target + distance,
        instruction=own,
        displaced=tuple(displaced),
    )


def code_of(code: bytes) -> Surroundings:
    """A process's code with a function ``f`` of these bytes."""
    data = bytes(CALLED) + CALLED_CODE.ljust(CODE - CALLED, b"\xcc") + code
    symbols = {"called": BASE + CALLED, "f": BASE + CODE}
    parts = {"called": (BASE + CALLED, BASE + CODE), "f": (BASE + CODE, BASE + CODE + len(code))}
    return cast(Surroundings, Code(data, symbols, parts))


def in_process(code: bytes, call: int) -> Site | None:
    """The site of the call at this place in ``code``, as it is read in a process."""
    sites = read_function(BASE + CODE, code_of(code)).sites
    found = next((one for one in sites if one.address == BASE + CODE + call), None)
    return None if found is None else moved(found, START - BASE)


def in_kernel(code: bytes, call: int) -> Site | None:
    """As it is read in a kernel, whose function begins with a nop for ftrace."""
    assert code.startswith(NOP)
    program = kernel(code[len(NOP) :])
    sites = cast("list[Site[Instruction]]", program.function(CALLER).sites)
    found = next((one for one in sites if one.address == CALLER + call), None)
    if found is not None and (problem := program.patchable.site_problem(found)) is not None:
        found = replace(found, problem=found.problem or problem)
    return None if found is None else moved(found, START + CODE - CALLER)


def patched(site: Site, sectors: Sequence[int]) -> None:
    """Leads the site to a pad, as the installer does."""
    at = START + PAD
    stubs = replace(pads.Stubs(*[START + ASK] * 7), returned=START + RETURNED)
    if site.kind.is_tail:
        write(at, pads.tail_pad(site, 0x1234, sectors=sectors, stubs=stubs, origin=at).code)
        write(site.patch, pads.patch_tail(site, at))
        return
    write(at, pads.call_pad(site, 0x1234, sectors=sectors, stubs=stubs, origin=at).code)
    if site.nop:
        patch = Waypoints(START + WAYPOINTS, SIZE, read, write).lead(site, at)
        assume(patch is not None)
        assert patch is not None
    else:
        patch = pads.patch_bytes(site.kind, site.patch, site.length, at)
    write(site.patch, patch)


MEANINGLESS = [0x26, 0x2E, 0x36, 0x3E, 0xF2, 0xF3]
"""Before a near call or jump: segments, and what was once for bounds. Not 0x66, which some
processors take for 16 bits."""
FORMS = {
    "direct": b"\xe8",
    "call rax": b"\xff\xd0",
    "call r11": b"\x41\xff\xd3",
    "call rax, with REX.W": b"\x48\xff\xd0",
    "call [rsp]": b"\xff\x14\x24",
    "call [r12 + 64]": b"\x41\xff\x54\x24\x40",
    "tls": b"\x66\x66\x48\xe8",
    "addr32": b"\x67\xe8",
}
NOPS = {0: b"", 2: b"\x66\x90", 3: b"\x0f\x1f\x00"}
prefixes = st.lists(st.sampled_from(MEANINGLESS), max_size=7).map(bytes)
cs = st.integers(0, 7).map(lambda count: b"\x2e" * count)


def complete(form: bytes, address: int) -> bytes:
    """With the distance to what is called, if there is one in it."""
    if form[-1] not in (0xE8, 0xE9):
        return form
    return form + (CALLED - (address + len(form) + 4)).to_bytes(4, "little", signed=True)


def assert_same(site: Site | None, code: bytes, sectors: str) -> None:
    assume(site is not None)
    assert site is not None
    assume(site.problem is None)
    write(START + CODE, code + b"\xcc" * 32)
    before = run()
    assert before[0]
    patched(site, SECTORS[sectors])
    after = run()
    on_path = sectors == "on the path" and not site.kind.is_tail
    if on_path:  # it returns to the pad first
        assert START + PAD < after[1] < START + PAD + 0x800
    assert after[:1] + after[2:] == before[:1] + before[2:]
    assert on_path or after[1] == before[1]


@given(
    before=cs | prefixes,
    form=st.sampled_from([*FORMS]),
    nop=st.sampled_from([*NOPS]),
    sectors=st.sampled_from([*SECTORS]),
)
@example(before=b"\x2e\x2e\x2e", form="call rax", nop=0, sectors="beside it")
@example(before=b"\x2e\x2e\x2e", form="call r11", nop=0, sectors="on the path")
@pytest.mark.parametrize("is_kernel", [False, True], ids=["process", "kernel"])
def test_a_call_with_any_prefixes(
    is_kernel: bool, before: bytes, form: str, *, nop: int, sectors: str
) -> None:
    begin = (NOP if is_kernel else b"") + BEGIN
    call = complete(before + FORMS[form], CODE + len(begin))
    code = begin + call + NOPS[nop] + END
    found = (in_kernel if is_kernel else in_process)(code, len(begin))
    assume(found is not None)
    assert found is not None
    assert_same(replace(found, slot=SLOT), code, sectors)


JUMPS = {"jmp": b"\xe9", "jmp rax": b"\xff\xe0", "jmp r11": b"\x41\xff\xe3"}


@given(
    before=cs | prefixes,
    form=st.sampled_from([*JUMPS]),
    behind=st.sampled_from([b"", b"\xcc\x66\x90", b"\x90" * 5]),
    sectors=st.sampled_from([*SECTORS]),
)
@pytest.mark.parametrize("is_kernel", [False, True], ids=["process", "kernel"])
def test_a_jump_with_any_prefixes(
    is_kernel: bool, before: bytes, form: str, *, behind: bytes, sectors: str
) -> None:
    begin = (NOP if is_kernel else b"") + JUMPED
    code = begin + complete(before + JUMPS[form], CODE + len(begin)) + behind
    found = (in_kernel if is_kernel else in_process)(code, len(begin))
    assert_same(found, code, sectors)


@given(st.integers(0, 7), st.booleans(), st.sampled_from([*SECTORS]))
@example(3, True, "beside it")
def test_a_conditional_jump_with_any_prefixes(count: int, is_short: bool, sectors: str) -> None:
    """Which may be too short for one that leads to the pad: then what stands before it is moved."""
    at = CODE + len(JUMPED) + count
    if is_short:
        jump = b"\x74" + (CALLED - (at + 2)).to_bytes(1, "little", signed=True)
    else:
        jump = b"\x0f\x84" + (CALLED - (at + 6)).to_bytes(4, "little", signed=True)
    code = JUMPED + b"\x2e" * count + jump + b"\xc3"
    assert_same(in_process(code, len(JUMPED)), code, sectors)


FAR = {
    "call": "ff1c24",  # call far [rsp]
    "call, wide": "48ff1c24",
    "jump": "ff2c24",
}


@pytest.mark.parametrize("code", FAR.values(), ids=[*FAR])
def test_what_leads_to_another_segment_is_left_alone(code: str) -> None:
    """Its operand is no address alone, and a near call of it would lead anywhere."""
    raw = bytes.fromhex(code)
    assert in_process(BEGIN + raw + END, len(BEGIN)) is None
    assert in_process(raw + b"\x90" * 8 + b"\xc3", 0) is None


@pytest.mark.parametrize("code", ["67ff1424", "67ff542410", "67ff10"])
def test_an_operand_by_the_lower_half_of_a_register_is_left_alone(code: str) -> None:
    """As in x32's code. Among them is the stack pointer, which a pad moves."""
    raw = bytes.fromhex(code)
    site = in_process(BEGIN + raw + END, len(BEGIN))
    assert site is not None
    assert site.problem == "it has an unusual prefix"


@pytest.mark.parametrize("code", ["ff5c2410 c3", "67ff542410 c3"])
def test_such_a_call_is_not_moved_from_a_functions_entry(code: str) -> None:
    around = code_of(bytes.fromhex(code) + b"\x90" * 16)
    prologue = read_prologue(read_function(BASE + CODE, around), around, 1)
    assert prologue == Refusal("its first instructions cannot be moved")
