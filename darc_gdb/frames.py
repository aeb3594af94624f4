"""Backtraces through the agent and the pads: gdb is told of the one as of a file, and has an
unwinder for the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import gdb
import gdb.unwinder

from darc.target.frames import Frames
from darc.target.ownthread import Turn, own_thread
from darc_gdb.translated import translated
from darc_gdb.unwinder import PadUnwinder


@own_thread
class GdbFrames(Frames):
    """Those of gdb's selected inferior."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._agent: tuple[int, int, str] | None = None

    @translated
    def show_pads(
        self, agent: Path, base: int, caller: Callable[[int, int], tuple[int, int] | None]
    ) -> None:
        gdb.unwinder.register_unwinder(None, PadUnwinder(caller), replace=True)
        place = int(gdb.selected_inferior().pid), base, str(agent)
        if self._agent != place:
            self.hide_pads()
            with gdb.with_parameter("confirm", False):
                gdb.execute(f"add-symbol-file {_quoted(agent)} -o {base:#x}", to_string=True)
            self._agent = place

    @translated
    def hide_pads(self) -> None:
        agent, self._agent = self._agent, None
        # It may be another inferior's. At a command that fails gdb shows its prompt at once, also
        # in the middle of a stop that the program goes on from.
        if agent is not None and any(o.filename == agent[2] for o in gdb.objfiles()):
            with contextlib.suppress(gdb.error), gdb.with_parameter("confirm", False):
                gdb.execute(f"remove-symbol-file -a {agent[1]:#x}", to_string=True)

    @translated
    def forget(self) -> None:
        gdb.invalidate_cached_frames()


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
