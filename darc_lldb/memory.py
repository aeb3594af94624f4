"""A stopped program's memory, without lldb's breakpoints."""

from __future__ import annotations

from collections.abc import Iterator

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


_OWN = 64
"""How many breakpoints of lldb's own are asked for by their numbers, which it does not list. The
one in the dynamic linker is among the first: it is set when lldb attaches or launches."""


def _breakpoints(process: lldb.SBProcess, place: range) -> Iterator[lldb.SBBreakpoint]:
    """The user's and darc's; and lldb's own where some may stand in these bytes."""
    target = process.GetTarget()
    yield from target.breakpoint_iter()
    with procfs.MemoryFile(int(process.GetProcessID())) as memory:
        if BREAKPOINT not in memory.read(place.start, len(place)):
            return
    for number in range(1, _OWN + 1):
        one = target.FindBreakpointByID(-number)
        if one.IsValid():
            yield one


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
        place = range(address, address + len(data))
        covered = [
            location
            for breakpoint_ in _breakpoints(process, place)
            for location in breakpoint_
            if location.GetLoadAddress() in place and location.IsEnabled()
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
