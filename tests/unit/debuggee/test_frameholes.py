"""What of a frame can only be left over by calls that have ended."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from darc.debuggee.frameholes import LARGEST, FrameHoles
from darc.debuggee.procfs import MemoryFile
from tests.unit.framed import FramedProgram

WAIT, WORK, LANDING = 0x1000, 0x2000, 0x9000


def holes(frames: Mapping[int, int], words: Mapping[int, int]) -> list[range]:
    """Of a thread in WAIT, as offsets from its stack pointer; ``words`` stand at offsets there."""
    stack = ctypes.create_string_buffer(4096)
    for offset, word in words.items():
        struct.pack_into("<Q", stack, offset, word)
    landing = SimpleNamespace(own=lambda word: WORK + 0x10 if word == LANDING else None)
    base = ctypes.addressof(stack)
    with MemoryFile(os.getpid()) as memory:
        known = FrameHoles(cast(Any, FramedProgram(frames)), memory, [cast(Any, landing)])
        return [range(r.start - base, r.stop - base) for r in known.of(WAIT, base, 0)]


def test_return_addresses_themselves_are_no_holes() -> None:
    found = holes({WAIT: 64, WORK: 32}, {64: WORK + 0x10, 104: 0xBAD})
    assert found == [range(64), range(72, 104)]


def test_a_return_address_that_is_a_landing_leads_to_the_caller() -> None:
    found = holes({WAIT: 64, WORK: 32}, {64: LANDING, 104: 0xBAD})
    assert found == [range(64), range(72, 104)]


def test_a_large_frame_may_have_the_stack_of_a_fiber_in_it() -> None:
    found = holes({WAIT: LARGEST, WORK: 32}, {LARGEST: WORK + 0x10, LARGEST + 40: 0xBAD})
    assert found == [range(LARGEST + 8, LARGEST + 40)]


def test_above_a_place_that_nothing_is_known_of_all_may_lead_somewhere() -> None:
    """It was interrupted in a pad, and the handler has made that a return address."""
    assert holes({WAIT: 64, WORK: 32}, {64: 0x7777}) == [range(64)]
    assert holes({WORK: 32}, {64: WORK + 0x10}) == []
