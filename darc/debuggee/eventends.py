"""How events of the kernel end (:mod:`darc.debuggee.perf`): in a thread of their own.

As the last event of a tracepoint is closed, and with some others, the kernel waits until all
processors have forgotten it: 10 to 20 ms (``tracepoint_synchronize_unregister``). Closed by the
debugger's own thread they would hold up the program, which stands still as a search ends.
"""

from __future__ import annotations

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
        """Takes over the descriptor, which is closed soon."""
        with self._changed:
            self._fds.append(fd)
            if self._is_at_work:
                return
            self._is_at_work = True
        begin_thread(self._work, "darc-ends")

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
                os.close(fd)


ENDS = EventEnds()
"""This process's."""
