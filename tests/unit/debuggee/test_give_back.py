"""What a killed debugger's journal says is mapped, in this process, where a thread may need it."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from darc.code.program import Program
from darc.debuggee.leftbehind import give_back_noted, left_behind
from darc.debuggee.procfs import MemoryFile, regions
from darc.pads.foothold import MARK
from darc.target.target import Region
from tests.fake_target import FakeTarget, FakeThread


class Watched(FakeTarget):
    """A process that would unmap memory for darc."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.process = pid
        self.unmapped: list[Sequence[int]] = []
        self.fake_threads[1] = FakeThread(1)

    def system_call(self, number: int, arguments: Sequence[int]) -> int:
        self.unmapped.append(arguments)
        return 0


CHILD = f"""
import ctypes, mmap, sys
protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection)
area[:{len(MARK)}] = {MARK!r}
stack = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
place = ctypes.addressof(ctypes.c_char.from_buffer(area))
ctypes.c_uint64.from_buffer(stack).value = place + int(sys.argv[1])
print(place, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def process_with_a_word(offset: int) -> Iterator[tuple[int, range]]:
    """A process with an area of darc's and, elsewhere, a word that leads so far into it. Another
    one than this, whose heap has what was read of earlier cases."""
    command = [sys.executable, "-c", CHILD, str(offset)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdin:
            base = int(child.stdout.readline())
            yield child.pid, range(base, base + (1 << 20))


@pytest.mark.parametrize(
    ("offset", "is_kept"), [(0x63E2, True), (64, True), (31, False), (0, False)]
)
def test_where_a_thread_may_come_back_to(offset: int, is_kept: bool) -> None:
    """A signal's handler has interrupted it there: its program counter does not tell. The area
    begins with a header: pads compare with its address, and nobody comes there."""
    with process_with_a_word(offset) as (pid, area), MemoryFile(pid) as memory:
        target = Watched(pid)
        program = Program(target, Path("/"), [])
        give_back_noted(target, memory, program=program, pid=pid, noted=[area])
    assert target.unmapped == ([] if is_kept else [(area.start, len(area))])


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
        target, place = Watched(os.getpid()), range(base, base + len(area))
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
