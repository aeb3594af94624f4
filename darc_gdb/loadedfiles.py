"""Files that the program loads: what is told of them, and whether the program stops there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gdb

from darc.code.system_calls import SystemCall
from darc.debuggee import procfs
from darc.target.outcome import Outcome
from darc_gdb.filenames import file_name
from darc_gdb.inferiors import Inferiors

_AT_FILES = "stop-on-solib-events"
"""gdb's setting: whether it stops where the program loads a file."""


class LoadedFiles:
    """Of the inferior that is analysed. gdb tells of a file in the midst of what it does with it,
    and looks behind that whether it is to stop there."""

    def __init__(self, inferiors: Inferiors) -> None:
        self._inferiors = inferiors
        self._handler: Callable[[], Outcome] | None = None
        self._stops = False
        """Whether gdb was made to stop where the program has loaded a file."""

    def tell(self, handler: Callable[[], Outcome] | None) -> None:
        """``handler`` is told of each, and says whether the program is to stop; ``None``: nobody
        is."""
        self._handler = handler

    def changed(self, _event: object) -> None:
        """gdb has heard of one, or of one that is gone."""
        inferior = gdb.selected_inferior()
        mine = self._inferiors.is_home(inferior)
        if not mine or self._handler is None or not inferior.pid:
            return
        if not _executes_unknown_file(inferior.pid):
            self._inferiors.callbacks.guarded(self._ask)

    def _ask(self) -> None:
        assert self._handler is not None
        outcome = self._handler()
        # gdb looks at its setting when everybody has heard of the file.
        if outcome is Outcome.STOP and self._inferiors.runs and not self._stops:
            self._stops = not gdb.parameter(_AT_FILES)
            gdb.execute(f"set {_AT_FILES} 1", to_string=True)

    def go_on(self) -> None:
        """The program has stopped, or is gone: gdb's setting is the user's again."""
        if self._stops:
            self._stops = False
            gdb.execute(f"set {_AT_FILES} 0", to_string=True)


def _executes_unknown_file(pid: int) -> bool:
    """Whether the program executes a file just now that gdb cannot open, as one in memory
    alone: gdb still has the one before, and whatever asks for a frame in the midst of that ends
    gdb by an internal error. It tells of the libraries later."""
    if not procfs.is_in(pid, pid, SystemCall.EXECVE, SystemCall.EXECVEAT):
        return False
    try:
        space = gdb.current_progspace()
        known = Path("" if space is None else file_name(space) or "").stat()
        return not os.path.samestat(known, Path(f"/proc/{pid}/exe").stat())
    except OSError:  # gdb knows it by its name in another place
        return False
