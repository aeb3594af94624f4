"""A stopped program's memory, without lldb's breakpoints."""

from __future__ import annotations

import lldb

from darc.code.processor import BREAKPOINT
from darc.debuggee import procfs
from darc.model.errors import TargetError
from darc.target.batch import BatchedMemory
from darc.target.ownthread import Turn, own_thread
from darc_lldb.inferior import Inferior

_BREAKPOINT = BREAKPOINT[0]

_PIECE = 512
"""Bytes that lldb is asked for at once: it keeps as many together."""


@own_thread
class LldbMemory(BatchedMemory):
    """That of the program of ``inferior``."""

    def __init__(self, turn: Turn, inferior: Inferior) -> None:
        self.turn = turn
        self._inferior = inferior

    def _read(self, address: int, size: int) -> bytes:
        process = self._inferior.stopped_process()
        # lldb keeps what it has read in large pieces, and forgets to forget it at a write. So it
        # is asked for no more than what stands under breakpoints, its own ones too.
        if not size:
            return b""
        with procfs.MemoryFile(int(process.GetProcessID())) as memory:
            seen = memory.read(address, size)
        data = bytearray(seen)
        for low in range(0, size, _PIECE):
            piece = low, low + _PIECE
            first, last = seen.find(_BREAKPOINT, *piece), seen.rfind(_BREAKPOINT, *piece)
            if first < 0:
                continue
            error = lldb.SBError()
            known = process.ReadMemory(address + first, last + 1 - first, error)
            if error.Fail() or len(known or b"") != last + 1 - first:
                raise TargetError(f"lldb: cannot read memory at {address + first:#x}")
            for at in range(first, last + 1):
                if seen[at] == _BREAKPOINT:
                    data[at] = known[at - first]
        return bytes(data)

    def _write(self, address: int, data: bytes) -> None:
        process = self._inferior.stopped_process()
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
