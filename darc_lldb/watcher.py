"""Tells when the program goes on and when it is gone, whoever let it: lldb has no event for either
that reaches an extension in synchronous mode."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path

_POLL_SECONDS = 0.05


class Watcher:
    """A thread that watches one process. ``resumed`` and ``ended`` are called on it; they may not
    wait for lldb."""

    def __init__(self, pid: int, resumed: Callable[[], None], ended: Callable[[int], None]) -> None:
        self._pid = pid
        self._resumed = resumed
        self._ended = ended
        self._lock = threading.Lock()
        self._armed = False
        self._open = True
        self._process = os.pidfd_open(pid)
        self._wake, self._waker = os.pipe()
        self.thread = threading.Thread(target=self._run, name="darc-watcher", daemon=True)
        # The debugger's signals are for its own threads.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def arm(self) -> None:
        """The program stands still now: the next time that it runs is told."""
        with self._lock:
            self._armed = True
            self._tell(b"a")

    def disarm(self) -> None:
        """The program runs or not, that is not to be told."""
        with self._lock:
            self._armed = False

    def close(self) -> None:
        """Nothing is told any more."""
        with self._lock:
            self._armed = False
            self._tell(b"c")

    def _tell(self, what: bytes) -> None:
        if self._open:
            os.write(self._waker, what)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while True:
                ready = [fd for fd, _ in poll.poll(_POLL_SECONDS * 1000 if self._armed else None)]
                if self._wake in ready and b"c" in os.read(self._wake, 64):
                    return
                if self._process in ready:
                    self._ended(self._pid)
                    return
                with self._lock:
                    if self._armed and not self._stands():
                        self._armed = False
                        self._resumed()
        finally:
            with self._lock:
                self._open = False
                for fd in (self._process, self._wake, self._waker):
                    os.close(fd)

    def _stands(self) -> bool:
        try:
            text = Path(f"/proc/{self._pid}/stat").read_text()
        except OSError:
            return True  # its end is told otherwise
        return text.rpartition(")")[2].split()[0] in "tTZX"
