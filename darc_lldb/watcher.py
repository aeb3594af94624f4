"""Tells when the program goes on, stands still or is gone, whoever let it: lldb calls no stop hook
at the user's Ctrl-C, and has no event for the others that reaches an extension in synchronous mode.
"""

from __future__ import annotations

import enum
import os
import select
import threading
from pathlib import Path
from typing import Protocol

from darc.debuggee import procfs
from darc.target import living
from darc.target.ownthread import begin_thread

_POLL_SECONDS = 0.05
_STILL_POLLS = 4
"""After so many looks a program that stands still does so for the user, not within lldb's work."""
_STUCK_POLLS = 40
"""After so many looks at which lldb's server did nothing it does not come to tell of the stop."""


class Informed(Protocol):
    """Who is told. Called on the watcher's thread."""

    def went_on(self) -> None:
        """The program goes on. May not wait for lldb."""

    def hears_stand(self) -> bool:
        """The program stands still, and nobody has said so. Whether that was heard; False: it is to
        be told again."""

    def stuck(self, pid: int) -> None:
        """The program stands still, and lldb's server tells nobody: it waits for the first thread,
        which has ended. May not wait for lldb."""

    def ended(self, pid: int) -> None:
        """The process is gone, or lldb has it no more. May not wait for lldb."""


class _Waits(enum.Enum):
    NOT = "for nothing but the end"
    RESUME = "for the program to go on"
    STOP = "for the program to stand still"


class Watcher:
    """A thread that watches one process."""

    def __init__(self, pid: int, informed: Informed) -> None:
        """Raises ProcessLookupError when the process is gone."""
        self._pid = pid
        self._informed = informed
        self._lock = threading.Lock()
        self._waits = _Waits.NOT
        self._still = 0
        self._stuck = 0
        self._server_ran: tuple[int, int] | None = None
        self._open = True
        self._was_traced = False
        self._process = os.pidfd_open(pid)
        self._wake, self._waker = os.pipe()
        self.thread = begin_thread(self._run, "darc-watcher")

    def wait_for_resume(self) -> None:
        """The program stands still now: the next time that it runs is told."""
        self._wait(_Waits.RESUME, b"w")

    def wait_for_stop(self) -> None:
        """The program is about to run: the next time that it stands still is told, unless darc
        is asked before."""
        self._wait(_Waits.STOP, b"w")

    def pause(self) -> None:
        """What becomes of the program is not to be told for now."""
        self._wait(_Waits.NOT, b"")

    def close(self) -> None:
        """Nothing is told any more."""
        self._wait(_Waits.NOT, b"c")

    def _wait(self, what: _Waits, word: bytes) -> None:
        with self._lock:
            self._waits, self._still, self._stuck = what, 0, 0
            if self._open and word:
                os.write(self._waker, word)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while True:
                timeout = None if self._waits is _Waits.NOT else _POLL_SECONDS * 1000
                ready = [fd for fd, _ in poll.poll(timeout)]
                if self._wake in ready and b"c" in os.read(self._wake, 64):
                    return
                if self._process in ready or self._is_let_go():
                    self._informed.ended(self._pid)
                    return
                self._look()
        finally:
            with self._lock:
                self._open = False
                for fd in (self._process, self._wake, self._waker):
                    os.close(fd)

    def _look(self) -> None:
        with self._lock:
            stands = self.program_stands()
            self._still = self._still + 1 if stands else 0
            if self._waits is _Waits.RESUME and not stands:
                self._waits = _Waits.STOP
                self._informed.went_on()
                return
            late = self._waits is _Waits.STOP and self._still >= _STILL_POLLS
            stuck = self._is_stuck(stands)  # also where it has run for less than a look
        if stuck:
            self._informed.stuck(self._pid)
        # Not with the lock: it may wait for lldb, and lldb's thread may call us.
        if late and not self._informed.hears_stand():
            with self._lock:
                self._still = 0

    def _is_stuck(self, stands: bool) -> bool:
        """Whether this is the look from which on lldb's server is taken to wait for ever."""
        if not stands or living.speaker(self._pid) == self._pid:
            self._stuck = 0
            return False
        ran = procfs.ran(int(procfs.status(self._pid).get("TracerPid", "0")))
        self._stuck = self._stuck + 1 if ran == self._server_ran else 0
        self._server_ran = ran
        return self._stuck == _STUCK_POLLS

    def _is_let_go(self) -> bool:
        """Whether nobody traces the process any more: lldb's server may have ended."""
        is_traced = procfs.status(self._pid).get("TracerPid", "0").strip() != "0"
        self._was_traced = self._was_traced or is_traced
        return self._was_traced and not is_traced

    def program_stands(self) -> bool:
        """Whether its main thread is stopped, for whatever reason; all others, where that has ended
        before them. Any thread."""
        main = Path(f"/proc/{self._pid}")
        if (state := _state(main)) not in "ZX":
            return state in "tT"
        threads = living.threads(self._pid)  # none: its end is told otherwise
        return all(_state(main / "task" / str(thread)) in "tTZX" for thread in threads)


def _state(folder: Path) -> str:
    try:
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return "X"
