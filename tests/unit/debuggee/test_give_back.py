"""What a killed debugger's journal says is mapped, in this process, where a thread may need it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from darc.code.program import Program
from darc.debuggee.leftbehind import give_back_noted, left_behind
from darc.debuggee.procfs import MemoryFile, regions
from darc.pads.foothold import MARK
from darc.target.target import Region
from tests.fake_target import FakeTarget, FakeThread

LONGS = (ctypes.c_long,) * 5
FIXED_NOREPLACE = 0x100000
"""Of mmap(2)."""


class Own(FakeTarget):
    """This process, that would unmap memory for darc."""

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()
        self.unmapped: list[Sequence[int]] = []
        self.fake_threads[1] = FakeThread(1)

    def system_call(self, number: int, arguments: Sequence[int]) -> int:
        self.unmapped.append(arguments)
        return 0


@pytest.mark.parametrize(
    ("offset", "is_kept"), [(0x63E2, True), (64, True), (31, False), (0, False)]
)
def test_where_a_thread_may_come_back_to(offset: int, is_kept: bool) -> None:
    """A signal's handler has interrupted it there: its program counter does not tell. The area
    begins with a header: pads compare with its address, and nobody comes there."""
    stack = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)
    # In place: bytes of it would stay in this process's heap, where the next case finds them.
    word = ctypes.c_uint64.from_buffer(stack)
    target = Own()
    program = Program(target, Path("/"), [])
    with somewhere_else() as area, MemoryFile(os.getpid()) as memory:
        word.value = area.start + offset
        give_back_noted(target, memory, program=program, pid=os.getpid(), noted=[area])
        word.value = 0
    assert target.unmapped == ([] if is_kept else [(area.start, len(area))])


@contextlib.contextmanager
def somewhere_else() -> Iterator[range]:
    """An area where this process had nothing before: old words of its heap may lead to any other
    place."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, *LONGS)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_long)
    own = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED_NOREPLACE
    base = libc.mmap(0x1234_5000_0000, 1 << 20, own, kind, -1, 0)
    assert base == 0x1234_5000_0000, os.strerror(ctypes.get_errno())
    ctypes.memmove(base, MARK, len(MARK))
    try:
        yield range(base, base + (1 << 20))
    finally:
        assert libc.munmap(base, 1 << 20) == 0


@pytest.mark.parametrize("is_leaving", [True, False])
def test_a_debugger_was_killed_as_it_was_about_to_unmap(is_leaving: bool) -> None:
    """What has nothing in it may be of the program's own by then."""
    area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE, mmap.PROT_READ)
    with MemoryFile(os.getpid()) as memory:
        base = next(
            one.start
            for one in regions(os.getpid())
            if one.end - one.start == len(area) and one.permissions == "r--p" and not one.path
        )
        target, place = Own(), range(base, base + len(area))
        give_back_noted(
            target,
            memory,
            program=Program(target, Path("/"), []),
            pid=os.getpid(),
            noted=[place],
            leaving={place} if is_leaving else set(),
        )
    assert target.unmapped == ([] if is_leaving else [(base, len(area))])


def test_memory_that_was_half_made_as_the_user_pressed_ctrl_c_is_passed_by() -> None:
    """What it names for its tables is not mapped: all later commands had failed at it."""
    base, gone = 0x5555_0000_0000, 0x7FFF_F707_6000
    target = FakeTarget()
    target.map(base, struct.pack("<8sQ8sQ", MARK, gone, bytes(8), 4096))
    place = Region(start=base, end=base + 4096, permissions="r-xp", offset=0, path="")
    with MemoryFile(os.getpid()) as memory:
        assert left_behind(target, memory, [place]) == []
