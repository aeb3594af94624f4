"""The signal for which the program stands still, and what comes of it."""

from __future__ import annotations

import contextlib
import signal

import gdb

from darc.debuggee import procfs
from darc.debuggee.detour import EndedError
from darc.target.target import SignalStop
from darc_gdb.threads import selected
from darc_gdb.tracee import Tracee

_DEADLY = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGQUIT", "SIGSEGV", "SIGSYS", "SIGTRAP"}
"""What a program does not ask for. It ends in a core file, or in a handler that makes a report."""


class StopSignal:
    """That of the latest stop, if it was one."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._dying: int | None = None
        """The process that has stopped for a signal that will probably be its end."""

    def stands(self, event: gdb.StopEvent, pid: int | None) -> None:
        """The process ``pid`` has stopped."""
        self._name = event.stop_signal if isinstance(event, gdb.SignalEvent) else None
        self._dying = pid if self._name in _DEADLY else None
        if self._name == "SIGSTOP":
            _drop_own_stop()

    def ends(self, pid: int | None) -> bool:
        """Whether that will probably be the end of the process. Another one that begins in its
        place has not stopped so."""
        return self._dying is not None and self._dying == pid

    @property
    def is_interrupt(self) -> bool:
        """Whether it is that of Ctrl-C."""
        return self._name == "SIGINT"

    def handled(self, pid: int | None) -> SignalStop | None:
        """What is told of it where the process ``pid`` has a handler for it, if it is not that of
        Ctrl-C."""
        name = self._name
        if name is None or pid is None or self.is_interrupt:
            return None
        number = int(name[3:]) if name[3:].isdecimal() else getattr(signal, name, None)
        if number is None or not procfs.catches(pid, number):
            return None
        return SignalStop(name, f"handle {name} nostop noprint pass")


def _drop_own_stop() -> None:
    """Where another thread of a program that gdb attaches to has a signal at that moment, gdb takes
    its own SIGSTOP for the program's, and hands it on when it lets that go: it would stay
    stopped."""
    thread = selected()
    if thread is None:
        return
    with contextlib.suppress(EndedError):  # or it is on another machine
        held, is_own = Tracee(thread.ptid[0], thread.ptid[1]).held()
        if held == signal.SIGSTOP and is_own:
            gdb.execute("queue-signal 0", to_string=True)
