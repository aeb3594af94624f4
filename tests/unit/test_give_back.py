"""What a killed debugger's journal says is mapped, in this process, where a thread may need it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Sequence

from darc.debuggee.leftbehind import give_back_noted
from darc.debuggee.procfs import MemoryFile
from darc.pads.foothold import MARK
from tests.fake_target import FakeTarget, FakeThread


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


def test_where_a_thread_may_come_back_to() -> None:
    """A signal's handler has interrupted it there: its program counter does not tell."""
    own = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC  # its neighbours have others
    area = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE, own)
    stack = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)
    area[: len(MARK)] = MARK
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    stack[:8] = struct.pack("<Q", base + 0x63E2)
    target = Own()
    with MemoryFile(os.getpid()) as memory:
        give_back_noted(target, memory, os.getpid(), [range(base, base + len(area))])
    assert target.unmapped == []
