"""The bytes of patches and pads: what a processor makes of them."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import Code, FlowControl, Instruction

from darc.agent import compiled
from darc.code.architecture import Prologue, Site
from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import decode
from darc.model.ftree import CallKind
from darc.pads import processor as pads

ADDRESS = 0x5555_5555_0000
STUBS = pads.Stubs(*(ADDRESS + 0x9000 + 16 * n for n in range(7)))
near = st.integers(-(1 << 31) + (1 << 17), (1 << 31) - (1 << 17))


@given(st.integers(5, 15), near)
def test_a_call_of_any_length_is_one_instruction_that_returns_where_the_original_did(
    length: int, far: int
) -> None:
    target = ADDRESS + far
    code = pads.patch_bytes(CallKind.INDIRECT, ADDRESS, length, target)
    (call,) = decode(code, ADDRESS)
    assert call.flow_control == FlowControl.CALL
    assert (call.near_branch_target, call.next_ip) == (target, ADDRESS + length)


@given(st.integers(5, 15), near)
def test_a_jump_goes_to_its_target_and_fills_what_it_covers(length: int, far: int) -> None:
    code = pads.patch_bytes(None, ADDRESS, length, ADDRESS + far)
    assert len(code) == length
    assert decode(code, ADDRESS)[0].near_branch_target == ADDRESS + far


def test_what_is_out_of_reach_is_refused() -> None:
    with pytest.raises(pads.OutOfReachError):
        pads.patch_bytes(CallKind.DIRECT, ADDRESS, 5, ADDRESS + (1 << 32))
    with pytest.raises(pads.OutOfReachError):
        pads.patch_short(ADDRESS, ADDRESS + 200)


def site_of(code: bytes, slot: FrameRule, target: int | None, kind: CallKind) -> Site[Instruction]:
    call = decode(code, ADDRESS)[0]
    return Site(
        address=ADDRESS,
        kind=kind,
        patch=ADDRESS,
        length=call.len,
        back=int(call.next_ip),
        target=target,
        pointer=None,
        instruction=call,
        slot=slot,
    )


rules = st.builds(
    FrameRule,
    st.sampled_from(["rsp", "rbp", "rbx", "r10", "r12", "r13"]),
    st.integers(8, 4096),
    st.none() | st.integers(-256, 256),
)


@given(rules, st.booleans())
def test_a_call_pad_passes_through_to_the_same_target_and_calls_it_on_the_path(
    slot: FrameRule, is_far: bool
) -> None:
    target = ADDRESS + ((1 << 40) if is_far else 0x800)
    site = site_of(b"\xe8\0\0\0\0", slot, target, CallKind.DIRECT)
    origin = ADDRESS - 0x100000
    pad = pads.call_pad(
        site, site_data=0x7FFF_0000_0000, sectors=(origin & ~0xFFFFFF,), stubs=STUBS, origin=origin
    )
    code = decode(pad.code[: min(pad.cells.values())], origin)
    assert not any(i.is_invalid for i in code)
    assert pad.back is not None
    before = next(i for i in code if i.next_ip == origin + pad.back)
    assert before.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL)

    def leads_to(instruction: Instruction) -> int:
        if instruction.flow_control in (FlowControl.CALL, FlowControl.UNCONDITIONAL_BRANCH):
            return int(instruction.near_branch_target)
        cell = instruction.memory_displacement - origin
        return int.from_bytes(pad.code[cell : cell + 8], "little")

    jump = next(
        i
        for i in code
        if i.flow_control in (FlowControl.UNCONDITIONAL_BRANCH, FlowControl.INDIRECT_BRANCH)
    )
    assert leads_to(before) == leads_to(jump) == target


FORGOTTEN = bytes.fromhex("48c74424f800000000")  # mov qword ptr [rsp - 8], 0


@pytest.mark.parametrize("kind", ["call", "indirect", "tail", "entry"])
def test_no_address_of_a_pads_stays_below_the_stack(kind: str) -> None:
    """Behind each call of the agent, what that has pushed is overwritten: a coroutine may rest with
    that word below its stack pointer, and nobody could know that it is dead."""
    origin, slot, data = ADDRESS - 0x100000, FrameRule("rsp", 64), 0x7FFF_0000_0000
    sectors, landing = (origin & ~0xFFFFFF,), origin - 0x1000
    if kind == "entry":
        back = Prologue(ADDRESS, tuple(decode(b"\xc3", ADDRESS)), 1, b"\xc3")
        pad = pads.entry_pad(back, data, STUBS, origin=origin)
    elif kind == "tail":
        site = site_of(b"\xe9\0\0\0\0", slot, ADDRESS + 0x800, CallKind.TAIL)
        pad = pads.tail_pad(site, data, sectors, stubs=STUBS, origin=origin)
    elif kind == "indirect":
        site = site_of(b"\xff\xd0", slot, None, CallKind.INDIRECT)
        pad = pads.call_pad(site, data, sectors, stubs=STUBS, origin=origin, landing=landing)
    else:
        site = site_of(b"\xe8\0\0\0\0", slot, ADDRESS + 0x800, CallKind.DIRECT)
        pad = pads.call_pad(site, data, sectors, stubs=STUBS, origin=origin, landing=landing)
    end = min(pad.cells.values(), default=len(pad.code))
    calls = [
        one
        for one in decode(pad.code[:end], origin)
        if one.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL)
        and one.near_branch_target != origin + (pad.body or 0)
    ]
    assert len(calls) == 1
    assert pad.code[calls[0].next_ip - origin :].startswith(FORGOTTEN)


@given(st.sampled_from(["ff542410", "41ff5308", "ffd0", "41ffd2", "ff1500100000"]))
def test_an_indirect_operand_means_the_same_at_each_stack_depth(code: str) -> None:
    raw = bytes.fromhex(code)
    site = site_of(raw, FrameRule("rsp", 64), None, CallKind.INDIRECT)
    origin = ADDRESS - 0x100000
    pad = pads.call_pad(
        site, site_data=0x7FFF_0000_0000, sectors=(origin & ~0xFFFFFF,), stubs=STUBS, origin=origin
    )
    original = site.instruction
    shifts = {FlowControl.INDIRECT_BRANCH: 8, FlowControl.INDIRECT_CALL: 0}
    for instruction in decode(pad.code[: min(pad.cells.values())], origin):
        shift = shifts.get(instruction.flow_control)
        if shift is None or instruction.op0_kind != original.op0_kind:
            continue
        if instruction.memory_displacement - origin in pad.cells.values():
            continue  # the stubs' own
        assert instruction.memory_base == original.memory_base
        assert instruction.op0_register == original.op0_register
        moved = shift if str(original).startswith("call [rsp") or "[rsp" in str(original) else 0
        assert instruction.memory_displacement == original.memory_displacement + moved


@given(st.sampled_from([b"", b"\x51", b"\xf3\x0f\x1e\xfa"]), st.integers(-8, 16))
def test_an_address_is_the_same_wherever_what_takes_it_is_run(before: bytes, target: int) -> None:
    """Its own, too: ``lea rax, [rip + d]`` among displaced instructions."""
    at = ADDRESS + len(before)
    raw = before + b"\x48\x8d\x05" + struct.pack("<i", ADDRESS + target - (at + 7))
    prologue = Prologue(ADDRESS, tuple(decode(raw, ADDRESS)), len(raw), raw)
    pad = pads.entry_pad(prologue, 0x1234, STUBS, origin=ADDRESS + 0x10000)
    loads = [one for one in decode(pad.code, ADDRESS + 0x10000) if one.code == Code.LEA_R64_M]
    assert any(one.ip_rel_memory_address == ADDRESS + target for one in loads)


@given(near)
def test_the_filter_compares_bytes_that_all_addresses_of_a_block_share(offset: int) -> None:
    sector = (ADDRESS + offset) & ~(pads.SECTOR - 1)
    for address in (sector, sector + pads.SECTOR - 1):
        assert address.to_bytes(8, "little")[3:7] == sector.to_bytes(8, "little")[3:7]
    assert (sector + pads.SECTOR).to_bytes(8, "little")[3:7] != sector.to_bytes(8, "little")[3:7]


WAITING = compiled.load().constants.WAIT_HASHES
SIEVED = b"\x48\x8d\x04\x0f\xc3"  # lea rax, [rdi + rcx]; ret
TELLS = b"\xff\x05\xfa\x00\x00\x00\x31\xc0\xc3"  # inc dword ptr [rip + 0xfa]; xor eax, eax; ret


@pytest.fixture(scope="module")
def sieved() -> tuple[Callable[[int, int], int], ctypes.Array[ctypes.c_uint32], int]:
    """A function with such a pad, as a call of its first and its fourth argument; the counts of who
    waits, and behind them how often the agent was told; and the factor of the hash."""
    memory = mmap.mmap(
        -1, 4 * mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    )
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    constants = compiled.load().constants
    counts, factor = base + 0x1000, constants.THREAD_HASH
    prologue = Prologue(ADDRESS, tuple(decode(SIEVED, ADDRESS)), len(SIEVED), SIEVED)
    stubs = pads.Stubs(*[base] * 7)
    sieve = pads.Sieve(counts, factor, constants.WAIT_SHIFT)
    pad = pads.entry_pad(prologue, 0x1234, stubs, origin=base + 0x200, sieve=sieve)
    memory[: len(TELLS)] = TELLS
    memory[0x200 : 0x200 + len(pad.code)] = pad.code
    call = ctypes.CFUNCTYPE(*[ctypes.c_uint64] * 5)(base + 0x200)
    words = (ctypes.c_uint32 * (WAITING + 1)).from_address(counts)

    def run(first: int, fourth: int) -> int:
        memory[0x100:0x104] = bytes(4)
        result = int(call(first, 0, 0, fourth))
        words[WAITING] = int.from_bytes(memory[0x100:0x104], "little")
        return result

    return run, words, factor


objects = st.integers(0, (1 << 64) - 1)


@given(objects, objects, st.integers(0, WAITING - 1))
def test_a_sieve_lets_through_what_somebody_waits_for(
    sieved: tuple[Callable[[int, int], int], ctypes.Array[ctypes.c_uint32], int],
    first: int,
    fourth: int,
    other: int,
) -> None:
    """And no register differs where the function begins."""
    call, words, factor = sieved
    own = (first * factor & (1 << 64) - 1) * WAITING >> 64
    for place, is_told in ((None, False), (other, other == own), (own, True)):
        for number in range(WAITING):
            words[number] = number == place
        assert call(first, fourth) == (first + fourth) & (1 << 64) - 1
        assert bool(words[WAITING]) is is_told
