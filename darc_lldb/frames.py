"""Backtraces through the agent and the pads: lldb is told of them as of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lldb


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
        """See :meth:`darc.target.Target.show_pads`."""
        self.caller = caller
        if self._agent is not None and self._agent[1] == base and self._agent[0].IsValid():
            return
        self.hide()
        module = target.AddModule(str(agent), None, None)
        target.SetModuleLoadAddress(module, base)
        self._agent = (module, base)

    def hide(self) -> None:
        """See :meth:`darc.target.Target.hide_pads`."""
        self.caller = None
        if self._agent is not None:
            self._spent.append(self._agent[0])
            self._agent = None

    def delete_spent(self, target: lldb.SBTarget) -> None:
        """Takes the files from lldb's list."""
        for module in self._spent:
            target.RemoveModule(module)
        self._spent.clear()
