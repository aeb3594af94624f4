"""The signal for which the program stands still, and what comes of it."""

from __future__ import annotations

import contextlib
import signal
import time

import gdb

from darc.debuggee import procfs
from darc.debuggee.detour import EndedError
from darc.model.errors import TargetError
from darc.target.target import SignalStop
from darc_gdb.threads import selected
from darc_gdb.tracee import Tracee

_HANDLED_SECONDS = 10.0
"""For how long a thread that blocks such a signal behind a stop for it is taken to handle it. One
that has left its handler by a jump may block it for ever."""

_DEADLY = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGQUIT", "SIGSEGV", "SIGSYS", "SIGTRAP"}
"""What a program does not ask for. It ends in a core file, or in a handler that makes a report."""


class StopSignal:
    """That of the latest stop, if it was one."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._dying: int | None = None
        """The process that has stopped for a signal that will probably be its end."""
        self._thread: int | None = None
        """The thread that has that."""
        self._went_on: float | None = None
        """When it was let go on from there; ``None``: from elsewhere, if at all."""

    def stands(self, event: gdb.StopEvent, pid: int | None, thread: int | None = None) -> None:
        """The process ``pid`` has stopped, in ``thread``."""
        self._name = event.stop_signal if isinstance(event, gdb.SignalEvent) else None
        self._dying = pid if self._name in _DEADLY else None
        self._thread, self._went_on = thread, None
        if self._name == "SIGSTOP":
            _drop_own_stop()

    def ends(self, pid: int | None) -> bool:
        """Whether that will probably be the end of the process. Another one that begins in its
        place has not stopped so."""
        return self._dying is not None and self._dying == pid

    def goes_on(self) -> None:
        """The user lets the process go on from where that was so."""
        self._went_on = time.monotonic()

    @property
    def is_handled(self) -> bool | None:
        """Whether the process was let go on from a signal that might have been its end, and has no
        handler of that at work any more: its thread does not block it, as it does in most. One that
        does not ends soon. ``None``: it was not let go on so. Any thread."""
        went_on, pid, thread = self._went_on, self._dying, self._thread
        if went_on is None or pid is None or thread is None:
            return None
        number = _number_of(self._name)
        if number is None or time.monotonic() - went_on > _HANDLED_SECONDS:
            return True
        try:
            return not procfs.blocks(pid, thread, number)
        except TargetError:
            return True  # it has ended

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
        number = _number_of(name)
        if number is None or not procfs.catches(pid, number):
            return None
        return SignalStop(name, f"handle {name} nostop noprint pass")


def _number_of(name: str | None) -> int | None:
    """That of a signal which gdb calls so, where it is one of this system's."""
    if name is None:
        return None
    number = int(name[3:]) if name[3:].isdecimal() else getattr(signal, name, None)
    return None if number is None else int(number)


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
