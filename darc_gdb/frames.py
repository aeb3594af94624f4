"""Backtraces through the agent and the pads: gdb is told of the one as of a file, and has an
unwinder for the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import gdb
import gdb.unwinder

from darc.model.errors import DarcError
from darc.target.frames import Frames
from darc.target.ownthread import Turn, own_thread
from darc_gdb.filenames import file_name
from darc_gdb.memory import GdbMemory
from darc_gdb.printed import unheard
from darc_gdb.translated import translated
from darc_gdb.unwinder import PadUnwinder

_Caller: TypeAlias = Callable[[int, int], tuple[int, int] | None]


@own_thread
class GdbFrames(Frames):
    """Those of gdb's selected inferior."""

    def __init__(self, turn: Turn, memory: GdbMemory) -> None:
        self.turn = turn
        self._memory = memory
        self._pid = 0
        self._agents: dict[int, tuple[str, _Caller]] = {}
        """Those of one process by where they are, the latest one last: the agent's file, and what
        knows callers of its pads. A thread may stand in those of an analysis before."""

    @translated
    def show_pads(self, agent: Path, base: int, caller: _Caller) -> None:
        gdb.unwinder.register_unwinder(
            None, PadUnwinder(self._caller, self._memory.hold), replace=True
        )
        pid = int(gdb.selected_inferior().pid)
        if pid != self._pid:
            self.hide_pads()
        before = self._agents.pop(base, None)
        if before is None or before[0] != str(agent):
            if before is not None:
                _remove(base, before[0])
            with gdb.with_parameter("confirm", False):
                unheard(f"add-symbol-file {_quoted(agent)} -o {base:#x}")
        self._pid = pid
        self._agents[base] = str(agent), caller

    @translated
    def hide_pads(self) -> None:
        agents, self._agents = self._agents, {}
        for base, (agent, _) in agents.items():
            _remove(base, agent)

    def _caller(self, pc: int, stack: int) -> tuple[int, int] | None:
        for _, caller in reversed(self._agents.values()):
            with contextlib.suppress(DarcError):  # its memory may have been given back since
                if (found := caller(pc, stack)) is not None:
                    return found
        return None

    @translated
    def forget(self) -> None:
        gdb.invalidate_cached_frames()


def _remove(base: int, agent: str) -> None:
    # It may be another inferior's. At a command that fails gdb shows its prompt at once, also in
    # the middle of a stop that the program goes on from.
    if any(file_name(o) == agent for o in gdb.objfiles()):
        with contextlib.suppress(gdb.error), gdb.with_parameter("confirm", False):
            unheard(f"remove-symbol-file -a {base:#x}")


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
