"""Whether a process goes on when its debugger is killed or loses it, and who sees to that."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from darc.debuggee import journal
from darc.debuggee.guardian import Guardian
from darc.target.target import Target


class WatchOver:
    """Over the process ``pid``, which the debugger of ``target`` has."""

    def __init__(self, target: Target, pid: int) -> None:
        self._target = target
        self._pid = pid

    def is_stopped_by_another(self) -> bool:
        """Whether it was stopped when the debugger came, and by none that was killed."""
        return self._target.is_stopped_for_all() and journal.left(self._pid) is None

    def begin(self) -> Callable[[bool], None]:
        """See :meth:`darc.debuggee.debuggee.Debuggee.watch_over`."""
        if not self._target.outlives_debugger:  # it ends with that, unless that loses it
            return lambda lost: self._let_go_on() if lost else None
        if self.is_stopped_by_another():
            return lambda lost: None  # so it is to stay
        guardian = self._guardian()
        if guardian is None:
            return lambda lost: None  # no shell here: the next darc lets it go on
        return lambda lost: guardian.lose() if lost else guardian.leave()

    def _guardian(self) -> Guardian | None:
        try:
            return Guardian(self._pid)
        except (OSError, subprocess.SubprocessError):
            return None

    def _let_go_on(self) -> None:
        guardian = self._guardian()
        if guardian is not None:
            guardian.lose()
