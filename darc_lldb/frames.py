"""Backtraces through the agent and the pads: lldb is told of them as of files."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import lldb

_TYPE_AT, _SHARED_OBJECT = 16, 3
"""Where an ELF file says what it is, and what a library says there."""


class Frames:
    """The files that darc has added to lldb's list."""

    def __init__(self) -> None:
        self._agent: tuple[lldb.SBModule, int] | None = None
        self._spent: list[lldb.SBModule] = []
        self.caller: Callable[[int, int], tuple[int, int] | None] | None = None

    def show(
        self,
        target: lldb.SBTarget,
        agent: Path,
        base: int,
        caller: Callable[[int, int], tuple[int, int] | None],
    ) -> None:
        """See :meth:`darc.target.target.Target.show_pads`."""
        self.caller = caller
        if self._agent is not None and self._agent[1] == base and self._agent[0].IsValid():
            return
        self.hide()
        module = _add_as_library(target, agent)
        target.SetModuleLoadAddress(module, base)
        self._agent = (module, base)

    def hide(self) -> None:
        """See :meth:`darc.target.target.Target.hide_pads`."""
        self.caller = None
        if self._agent is not None:
            self._spent.append(self._agent[0])
            self._agent = None

    def delete_spent(self, target: lldb.SBTarget) -> None:
        """Takes the files from lldb's list."""
        for module in self._spent:
            target.RemoveModule(module)
        self._spent.clear()


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
