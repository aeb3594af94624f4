"""Backtraces through the agent and the pads: lldb is told of them as of files."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import lldb

from darc.target.frames import Frames
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_lldb import registers
from darc_lldb.inferior import Inferior

_TYPE_AT, _SHARED_OBJECT = 16, 3
"""Where an ELF file says what it is, and what a library says there."""


@own_thread
class LldbFrames(Frames):
    """The files that darc has added to lldb's list."""

    def __init__(self, turn: Turn, inferior: Inferior, tidy: Callable[[], None]) -> None:
        """``tidy`` deletes what is not needed any more."""
        self.turn = turn
        self._inferior = inferior
        self._tidy = tidy
        self._agent: tuple[lldb.SBModule, int] | None = None
        self._in: lldb.SBTarget | None = None
        """The target that this was added to."""
        self._spent: list[tuple[lldb.SBTarget, lldb.SBModule]] = []

    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        del caller  # lldb unwinds by itself alone
        if self._agent is not None and self._agent[1] == base and self._agent[0].IsValid():
            return
        self._spend()
        target = self._inferior.target
        module = _add_as_library(target, agent)
        target.SetModuleLoadAddress(module, base)
        self._agent, self._in = (module, base), target

    @any_thread
    def hide_pads(self) -> None:
        self._spend()
        self._tidy()

    def _spend(self) -> None:
        if self._agent is not None:
            self._spent.append((self._in, self._agent[0]))
            self._agent = None

    def delete_spent(self) -> None:
        """Takes the files from lldb's list."""
        for target, module in self._spent:
            target.RemoveModule(module)
        self._spent.clear()

    def forget(self) -> None:
        for thread in self._inferior.process:
            registers.forget_frames(thread)


def _add_as_library(target: lldb.SBTarget, agent: Path) -> lldb.SBModule:
    """lldb would take an executable for the program's own, and run it next time."""
    data = bytearray(agent.read_bytes())
    struct.pack_into("<H", data, _TYPE_AT, _SHARED_OBJECT)
    with tempfile.TemporaryDirectory(prefix="darc-") as folder:
        copy = Path(folder) / agent.name
        copy.write_bytes(data)
        module = target.AddModule(str(copy), None, None)
        module.GetNumSymbols()  # lldb reads the file while it is there
    return module
