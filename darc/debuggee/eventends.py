"""How events of the kernel end (:mod:`darc.debuggee.perf`): in a thread of their own.

As the last event of a tracepoint is closed, and with some others, the kernel waits until all
processors have forgotten it: 10 to 20 ms (``tracepoint_synchronize_unregister``). Closed by the
debugger's own thread they would hold up the program, which stands still as a search ends.
"""

from __future__ import annotations

import contextlib
import os
import threading

from darc.target.ownthread import begin_thread


class EventEnds:
    """Closes descriptors, one after the other. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._fds: list[int] = []
        self._is_at_work = False

    def add(self, fd: int) -> None:
        """Takes over the descriptor, which is closed soon; at once where no thread may be made."""
        with self._changed:
            self._fds.append(fd)
            if self._is_at_work:
                return
            self._is_at_work = True
        try:
            begin_thread(self._work, "darc-ends")
        except RuntimeError:
            self._work()

    def wait(self) -> None:
        """Until all are closed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_at_work)

    def _work(self) -> None:
        while True:
            with self._changed:
                fds, self._fds = self._fds, []
                if not fds:
                    self._is_at_work = False
                    self._changed.notify_all()
                    return
            for fd in fds:
                with contextlib.suppress(OSError):  # whatever it tells, the descriptor is closed
                    os.close(fd)


_ENDS = EventEnds()
"""This process's: the room for descriptors that it has is one, too."""


def end(fd: int) -> None:
    """Takes over the descriptor of an event, which ends soon."""
    _ENDS.add(fd)


def wait_for_ends() -> None:
    """Until all have ended that were to: there is room for as many descriptors again."""
    _ENDS.wait()
