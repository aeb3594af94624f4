"""A stopped program's memory, without lldb's breakpoints."""

from __future__ import annotations

import lldb

from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.memory import Memory
from darc.target.ownthread import Turn, own_thread
from darc_lldb.inferior import Inferior

_INT3 = 0xCC


@own_thread
class LldbMemory(Memory):
    """That of the program of ``inferior``."""

    def __init__(self, turn: Turn, inferior: Inferior) -> None:
        self.turn = turn
        self._inferior = inferior

    def read(self, address: int, size: int) -> bytes:
        process = self._inferior.stopped()
        # lldb keeps what it has read in large pieces, and forgets to forget it at a write. So it
        # is asked for no more than what stands under breakpoints, its own ones too.
        if not size:
            return b""
        with procfs.MemoryFile(int(process.GetProcessID())) as memory:
            data = bytearray(memory.read(address, size))
        at = data.find(_INT3)
        while at >= 0:
            error = lldb.SBError()
            byte = process.ReadMemory(address + at, 1, error)
            if error.Fail() or not byte:
                raise TargetError(f"lldb: cannot read memory at {address + at:#x}")
            data[at] = byte[0]
            at = data.find(_INT3, at + 1)
        return bytes(data)

    def write(self, address: int, data: bytes) -> None:
        process = self._inferior.stopped()
        # What lldb-server keeps of the bytes under a breakpoint would be wrong afterwards.
        covered = [
            location
            for breakpoint_ in process.GetTarget().breakpoint_iter()
            for location in breakpoint_
            if address <= location.GetLoadAddress() < address + len(data) and location.IsEnabled()
        ]
        for location in covered:
            location.SetEnabled(False)
        try:
            error = lldb.SBError()
            done = process.WriteMemory(address, data, error)
            if error.Fail() or done != len(data):
                raise TargetError(f"lldb: cannot write memory at {address:#x}")
        finally:
            for location in covered:
                location.SetEnabled(True)
