"""The test's own process as a target."""

from __future__ import annotations

import os

from darc.debuggee import procfs
from darc.target.ownthread import Turn
from tests.fake_target import FakeMemory, FakeTarget


class OwnMemory(FakeMemory):
    """That of this process, read as a debugger would read it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._memory = procfs.MemoryFile(os.getpid())

    def read(self, address: int, size: int) -> bytes:
        return self._memory.read(address, size)


def own_target() -> FakeTarget:
    """This process."""
    target = FakeTarget()
    target.process = os.getpid()
    target.memory = OwnMemory(target.turn)
    return target
