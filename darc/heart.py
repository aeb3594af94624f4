"""A thread that runs while the program does: signs of life for the pads, the live line, and the
time limit. It never touches the debugger, only memory and signals.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time

from darc import procfs, render
from darc.errors import DarcError
from darc.session import Session
from darc.target import Target

_SYS_TGKILL = 234
_TICK_SECONDS = 0.1
_BEAT_SECONDS = 1.0
_GRACE_SECONDS = 0.2
"""How long an agent that may not ring by itself waits before it is done for it."""

_AGAIN = 1.0
"""Seconds between two knocks, where only the debugger can stop the program."""

_PATIENCE_SECONDS = 3.0
"""How long one that may ring has for it, on a busy machine."""


class Heart:
    """One thread, from its making until :meth:`stop`."""

    def __init__(self, session: Session, target: Target) -> None:
        self._session = session
        self._target = target
        self._done = threading.Event()
        self._pid = target.pid
        self._thread = threading.Thread(target=self._run, name="darc", daemon=True)
        # The debugger's own signals (SIGCHLD, SIGINT) are for its main thread alone: one that
        # landed here would never wake it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def stop(self) -> None:
        """Waits for the thread to end, and takes the live line away."""
        self._done.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._target.live(None)

    def _run(self) -> None:
        begin = time.monotonic()
        last_beat = 0.0
        late_since: float | None = None
        while not self._done.wait(_TICK_SECONDS):
            session = self._session
            if not session.alive:
                return
            try:
                now = time.monotonic()
                if session.is_readable and now - last_beat >= _BEAT_SECONDS:
                    session.beat()
                    last_beat = now
                if now - begin >= 1:
                    style = render.Style(self._target.width, self._target.colour)
                    self._target.live(render.live(session.live_snapshot(), style))
                late_since = self._knock(late_since, now)
            except (DarcError, OSError, AttributeError):
                return  # the program is gone; the debugger will tell

    def _knock(self, late_since: float | None, now: float) -> float | None:
        """When the agent may not ring by itself (seccomp), or f0 is not called any more at the
        time limit, the program is stopped by a signal from here."""
        left = self._session.seconds_left
        if not self._session.is_readable:
            if left is None or left > 0 or (late_since is not None and now - late_since < _AGAIN):
                return late_since
            self._session.knock()
            return now
        if left is not None and left <= 0:
            self._session.time_up_soon()
        elif not self._session.rings:
            return None
        if late_since is None:
            return now
        patience = _PATIENCE_SECONDS if self._session.rings_itself else _GRACE_SECONDS
        if now - late_since >= patience and self._pid is not None:
            number = self._session.bell_signal
            # The debugger may take its time. One signal too many would come to the program, or
            # stop it for the user, once darc does not listen any more.
            if number is not None and not procfs.is_heard(self._pid, number):
                _signal_thread(self._pid, number)
            return now
        return late_since


def _signal_thread(pid: int, number: int) -> None:
    """Sends a signal to a thread of the process that does not block it."""
    for thread in procfs.threads(pid):
        blocked = int(procfs.status(pid, thread).get("SigBlk", "0"), 16)
        if not blocked >> (number - 1) & 1:
            _tgkill(pid, thread, number)
            return


def _tgkill(pid: int, thread: int, number: int) -> None:
    ctypes.CDLL(None, use_errno=True).syscall(_SYS_TGKILL, pid, thread, number)
