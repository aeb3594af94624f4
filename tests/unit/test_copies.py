"""Words that are looked for in memory."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct

from hypothesis import given
from hypothesis import strategies as st

from darc.debuggee import procfs
from darc.debuggee.copies import _aligned

_WORD = 0x7F6D_ACA6_E6C0
_MARK = struct.pack("<Q", _WORD)[2:6]


@given(
    st.lists(
        st.one_of(
            st.just(_WORD),
            st.just(0),
            st.just(_WORD << 8 & (1 << 64) - 1),
            st.integers(0, 2**64 - 1),
        ),
        max_size=64,
    ),
    st.binary(max_size=7),
)
def test_every_aligned_word_is_found(words: list[int], rest: bytes) -> None:
    raw = struct.pack(f"<{len(words)}Q", *words) + rest
    expected = [8 * n for n, word in enumerate(words) if struct.pack("<Q", word)[2:6] == _MARK]
    found = [place for place in _aligned(raw, _MARK) if place + 8 <= 8 * len(words)]
    assert found == expected


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
    found = procfs.populated(os.getpid(), base, base + size)
    assert {at - base for part in found for at in part[::page]} == set(used)
    assert all(one.stop < other.start for one, other in itertools.pairwise(found))
