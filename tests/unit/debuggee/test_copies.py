"""Words that are looked for in memory."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.debuggee import procfs
from darc.debuggee.references import OwnPlaces, restore_copies
from darc.debuggee.stackcopies import replace
from darc.debuggee.wordscan import WordScan, own_pages, saved_counters
from darc.model.errors import TargetError
from darc.pads.returns import ReturnLandings
from darc.target.target import Region

_PLACES = st.sampled_from([0x5555_5555_0000, 0x5555_6000_0010, 0x7F6D_ACA6_E6C0, 0x7F6D_ACA7_0000])
_RANGES = st.lists(
    st.builds(lambda at, size: range(at, at + size), _PLACES, st.integers(0, 1 << 18))
)


@given(
    _RANGES,
    st.lists(
        st.one_of(
            st.integers(0, 2**64 - 1),
            st.builds(int.__add__, _PLACES, st.integers(-(1 << 18), 1 << 18)),
        )
    ),
)
def test_every_aligned_word_that_leads_there_is_found(
    wanted: list[range], words: list[int]
) -> None:
    """And of others only those that are within 64 KiB."""
    raw = ctypes.create_string_buffer(struct.pack(f"<{len(words)}Q", *words) + b"left over")
    at = ctypes.addressof(raw)
    with procfs.MemoryFile(os.getpid()) as memory:
        found = list(WordScan(wanted).words(memory, range(at, at + 8 * len(words))))
    assert [word for _, word in found] == [words[(place - at) // 8] for place, _ in found]
    places = {(place - at) // 8 for place, _ in found}
    for number, word in enumerate(words):
        if any(word in one for one in wanted):
            assert number in places
        elif number in places:
            assert any(one.start - (1 << 16) < word < one.stop + (1 << 16) for one in wanted)


def test_more_words_than_there_is_room_for_at_a_time() -> None:
    words = [0x7F6D_ACA6_E6C0] * 300_000
    raw = ctypes.create_string_buffer(struct.pack(f"<{len(words)}Q", *words))
    at = ctypes.addressof(raw)
    with procfs.MemoryFile(os.getpid()) as memory:
        found = WordScan([range(words[0], words[0] + 1)]).words(memory, range(at, at + 2_400_000))
        assert [place for place, _ in found] == list(range(at, at + 2_400_000, 8))


_CHUNK = 1 << 18
"""Bytes that are looked through at a time."""


@given(
    st.lists(
        st.one_of(
            st.integers(0, 3 * _CHUNK // 8),
            st.builds(int.__add__, st.sampled_from([_CHUNK // 8, _CHUNK // 4]), st.integers(-9, 9)),
        ),
        max_size=6,
    ),
    st.sampled_from([0, 3, 2 * _CHUNK // 8 - 1, 3 * _CHUNK // 8]),
    st.sampled_from(["right", "stack", "flags", "reserved", "segment"]),
)
def test_what_is_saved_for_handlers_is_found_wherever_it_is(
    places: list[int], count: int, wrong: str
) -> None:
    """A stack pointer that is further up, the program counter, the flags, and a program's segment:
    at the ends of what is read at a time as well, and with nothing missing."""
    raw = (ctypes.c_uint64 * (count + 1))()
    at = ctypes.addressof(raw)
    words = [0] * count
    flags = {"flags": 0x244, "reserved": 0x246 | 1 << 22}.get(wrong, 0x246)
    for place in places:
        frame = [
            at + 8 * place + (0 if wrong == "stack" else 4096),
            0x5555_5555_1234 + place,
            flags,
            0x2B if wrong == "segment" else 0x2B_0000_0000_0033,
        ]
        if place >= 1 and place + 2 < count:
            words[place - 1 : place + 3] = frame
    ctypes.memmove(raw, struct.pack(f"<{count}Q", *words), 8 * count)
    with procfs.MemoryFile(os.getpid()) as memory:
        found = dict(saved_counters(memory, range(at, at + 8 * count)))
    wanted = {
        at + 8 * i: words[i]
        for i in range(1, count - 2)
        if words[i + 2] & 0xFFFF == 0x33
        and words[i + 1] >> 22 == 0
        and words[i + 1] & 2
        and at + 8 * i < words[i - 1] < at + 8 * i + (8 << 20)
    }
    assert found == wanted
    if wrong == "right" and len(set(places)) == 1 and 1 <= places[0] < count - 2:
        assert found == {at + 8 * places[0]: 0x5555_5555_1234 + places[0]}


def test_what_cannot_be_read_is_not_taken_for_empty() -> None:
    """It may lead anywhere; whoever can do without says so."""
    size = mmap.PAGESIZE
    reserved = mmap.mmap(-1, 2 * size, mmap.MAP_PRIVATE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(reserved))
    scan, beyond = WordScan([range(1 << 40, (1 << 40) + 8)]), range(8, 8 + size)
    with procfs.MemoryFile(os.getpid()) as memory:
        assert list(scan.words(memory, range(base, base + size))) == []
        with pytest.raises(TargetError):
            list(scan.words(memory, beyond))
        assert list(scan.words(memory, beyond, passes_over=True)) == []


def test_pages_that_are_used_of_what_is_reserved() -> None:
    """The kernel is asked in parts: pages on both sides of where they meet are one range."""
    size, page = 96 << 20, mmap.PAGESIZE
    reserved = mmap.mmap(-1, size, mmap.MAP_PRIVATE)
    reserved.madvise(mmap.MADV_NOHUGEPAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(reserved))
    edges = range(32 << 20, size, 32 << 20)
    used = [0, 5 * page, size - page, *(at for edge in edges for at in (edge - page, edge))]
    for at in used:
        reserved[at] = 1
    found = list(own_pages(os.getpid(), [range(base, base + size)]))
    assert {at - base for part in found for at in part[::page]} == set(used)
    assert all(one.stop < other.start for one, other in itertools.pairwise(found))
    parts = [range(base + 16, base + 2 * page), range(base + 5 * page, base + 7 * page)]
    found = list(own_pages(os.getpid(), parts))
    assert found == [range(base + 16, base + page), range(base + 5 * page, base + 6 * page)]


def test_pages_of_a_file_that_nobody_wrote_to_are_left_out(tmp_path: Path) -> None:
    """They are in memory once they are read, and hold what the file has."""
    page = mmap.PAGESIZE
    file = tmp_path / "file"
    file.write_bytes(b"x" * 8 * page)
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, mmap.MAP_PRIVATE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    assert mapped[: 8 * page].count(b"x") == 8 * page
    mapped[3 * page] = mapped[4 * page + 8] = 1
    found = list(own_pages(os.getpid(), [range(base, base + 8 * page)]))
    assert found == [range(base + 3 * page, base + 5 * page)]


class _Landings:
    base = extent = 0

    def all_own(self) -> dict[int, int]:
        return {8: 16}


def _no_places(_: object) -> OwnPlaces:
    return OwnPlaces([], [])


_REGISTERS = 16
"""That the kernel saves before a program counter (``struct sigcontext``)."""


def _interrupted(register: int, word: int, pc: int) -> list[int]:
    """What the kernel saves where a handler has come upon ``pc``, on a stack of its own."""
    saved = [0] * _REGISTERS
    saved[register] = word
    return [*saved, pc, 0x202, 0x2B000000000033, 0, 0, 0, 0, 0]


@given(st.integers(0, _REGISTERS - 1), st.booleans())
def test_what_the_agent_has_in_a_register_as_a_handler_comes_stays(
    register: int, in_agent: bool
) -> None:
    """It was about to work out from it where a pad goes on: that was an address 11 bytes before the
    program's own."""
    back, own, agent = 0x7F6D_ACA6_E6CD, 0x5555_5555_56D2, range(0x7F6D_ACA6_0000, 0x7F6D_ACA7_0000)
    pc = agent.start + 64 if in_agent else 0x5555_5555_5000
    words = _interrupted(register, back, pc) + [back] * 20
    stack = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE)
    stack[: 8 * len(words)] = struct.pack(f"<{len(words)}Q", *words)
    base = ctypes.addressof(ctypes.c_char.from_buffer(stack))
    end = base + len(stack)
    known = [Region(start=base, end=end, permissions="rw-p", offset=0, path="")]
    with procfs.MemoryFile(os.getpid()) as memory:
        assert replace(
            memory,
            os.getpid(),
            mapped=known,
            own={back: own},
            besides=[],
            code=[agent],
            replaced=[],
        )
    found = struct.unpack_from(f"<{len(words)}Q", stack)
    assert found[register] == (back if in_agent else own)
    assert found[-20:] == (own,) * 20


def test_a_process_whose_mappings_may_not_be_read_any_more() -> None:
    """It has made itself undumpable: a stop for the user is none of an error all the same."""
    landings = cast("ReturnLandings", _Landings())
    with procfs.MemoryFile(os.getpid()) as memory:
        assert (
            restore_copies(
                memory, 1 << 30, landings=[landings], besides=[range(8)], find=_no_places
            )
            == []
        )
