"""Copies of darc's jumps that are looked for in memory, and jumps that were moved."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.agent.rows import Lead
from darc.code.processor import HOOK_LENGTH, is_hook
from darc.debuggee import procfs
from darc.debuggee.wordscan import WordScan
from darc.model.ftree import CallKind
from darc.pads.processor import patch_bytes

CODE, PAD = 0x5555_5555_5000, 0x5555_4000_1240
JUMP = patch_bytes(None, CODE, 5, PAD)
CHUNK = 1 << 18
LEADS = [Lead(0, CODE, 5, PAD)]


class Filled:
    """Memory of this process, of so many bytes, and what is looked for there."""

    def __init__(self, size: int = 2 * CHUNK) -> None:
        self.memory = mmap.mmap(-1, size)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.size = size

    def found(self, leads: list[Lead], part: range | None = None) -> list[tuple[int, int]]:
        part = range(self.size) if part is None else part
        there = range(self.base + part.start, self.base + part.stop)
        with procfs.MemoryFile(os.getpid()) as memory:
            words = WordScan([], leads).words(memory, there)
            return [(place - self.base, pad) for place, pad in words]

    def moved(self, pads: list[int]) -> set[tuple[int, int]]:
        leads = [Lead(number, CODE, 5, pad) for number, pad in enumerate(pads)]
        there = range(self.base, self.base + self.size)
        with procfs.MemoryFile(os.getpid()) as memory:
            wanted = [range(pad, pad + 1) for pad in pads]
            jumps = WordScan(wanted, leads).jumps(memory, there)
            return {(place - self.base, pad) for place, pad in jumps if pad in pads}


@pytest.fixture
def filled() -> Filled:
    return Filled()


@pytest.mark.parametrize("at", [0, 1, 7, 4091, 4092, 4095, *range(CHUNK - 6, CHUNK + 2)])
def test_a_copy_is_found_wherever_it_begins(filled: Filled, at: int) -> None:
    """Also across the end of a page, and of what is read at a time."""
    filled.memory[at : at + 5] = JUMP
    assert set(filled.found(LEADS)) == {(at + 1, PAD)}


def test_a_copy_at_the_end_of_what_there_is(filled: Filled) -> None:
    filled.memory[filled.size - 5 :] = JUMP
    assert filled.found(LEADS) == [(filled.size - 4, PAD)]
    assert filled.found(LEADS, range(filled.size - 8)) == []


def test_half_a_copy_is_none(filled: Filled) -> None:
    filled.memory[filled.size - 4 :] = JUMP[:4]
    filled.memory[:4] = JUMP[1:]  # without the instruction's first byte
    filled.memory[101:106] = b"\x90" + JUMP[1:]
    assert filled.found(LEADS) == []


@pytest.mark.parametrize(
    ("kind", "length"),
    [(None, 5), (None, 8), (CallKind.DIRECT, 5), (CallKind.INDIRECT, 6), (CallKind.INDIRECT, 8)],
)
def test_calls_and_jumps_of_any_length(kind: CallKind | None, length: int, filled: Filled) -> None:
    """With nops behind them, or prefixes before."""
    filled.memory[77 : 77 + length] = patch_bytes(kind, CODE, length, PAD)
    assert [pad for _, pad in filled.found([Lead(0, CODE, length, PAD)])] == [PAD]


_OFFSETS = st.integers(-(1 << 30), 1 << 30)


@given(
    st.lists(st.tuples(_OFFSETS, _OFFSETS), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4090)), max_size=8),
)
def test_all_copies_are_found_and_nothing_else(
    places: list[tuple[int, int]], copied: list[tuple[int, int]]
) -> None:
    """Of several sites, in memory that has nothing else: as a plain look at every byte tells."""
    leads = [Lead(number, CODE + at, 5, CODE + at + to) for number, (at, to) in enumerate(places)]
    filled = Filled(4096)
    for number, at in copied:
        lead = leads[number % len(leads)]
        filled.memory[at : at + 5] = patch_bytes(None, lead.address, 5, lead.pad)
    raw = filled.memory[:]
    distances = {(lead.pad - lead.address - 5) & 0xFFFF_FFFF for lead in leads}
    expected = {
        at + 1
        for at in range(len(raw) - 4)
        if raw[at] in (0xE8, 0xE9) and int.from_bytes(raw[at + 1 : at + 5], "little") in distances
    }
    assert {place for place, _ in filled.found(leads)} == expected


def test_none_is_found_in_random_bytes_beyond_chance() -> None:
    """In 16 MiB 200,000 bytes could begin one, of which 600 in 4,000 million do."""
    filled = Filled(16 << 20)
    filled.memory[:] = random.Random(7).randbytes(filled.size)
    leads = [Lead(number, CODE + 64 * number, 5, PAD + 128 * number) for number in range(300)]
    assert len(filled.found(leads)) <= 1


@pytest.mark.parametrize("at", [0, 3, 4093, CHUNK - 4, CHUNK - 1, CHUNK])
@pytest.mark.parametrize("opcode", [b"\xe9", b"\xe8", b"\x0f\x84"])
def test_what_was_moved_leads_there_from_where_it_is(
    opcode: bytes, at: int, filled: Filled
) -> None:
    behind = at + len(opcode) + 4
    pad = filled.base - 0x1234_5679
    filled.memory[at:behind] = opcode + struct.pack("<i", pad - (filled.base + behind))
    assert filled.moved([pad]) == {(behind - 4, pad)}
    assert filled.moved([pad + 1]) == set()
    assert filled.moved([pad + 0x1_0000]) == set()  # the lower half alone is the same


@pytest.mark.parametrize("at", [0, 3, 4093, CHUNK - 4, CHUNK - 8])
def test_addresses_in_code_begin_anywhere(at: int, filled: Filled) -> None:
    """As behind a jump through memory, ff 25 00 00 00 00."""
    filled.memory[at : at + 8] = struct.pack("<Q", PAD)
    assert filled.moved([PAD]) == {(at, PAD)}


@pytest.mark.parametrize(
    "code",
    [
        "e911223344",
        "eb12",
        "ff2500000000887766554433221100"[:24],
        "f30f1efae911223344",
        "48b81122334455667788ffe0",
        "49bb112233445566778841ffe3",
        "6811223344c744240455660000c3",
        "6811223344c3",
    ],
)
def test_hooks(code: str) -> None:
    assert is_hook(bytes.fromhex(code).ljust(HOOK_LENGTH, b"\x90")[:HOOK_LENGTH])


@pytest.mark.parametrize(
    "code",
    [
        "",
        "e811223344",
        "c3",
        "b801000000c3",
        "554889e5",
        "48b8112233445566778848 89c7".replace(" ", ""),
        "6811223344e811223344",
        "ffffffffff",
        "0f1f440000",
        "cc",
    ],
)
def test_other_code_is_no_hook(code: str) -> None:
    """What another file has in that place, say."""
    assert not is_hook(bytes.fromhex(code))
