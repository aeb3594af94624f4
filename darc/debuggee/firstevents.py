"""What the kernel does once for all events of a kind (:mod:`darc.debuggee.perf`), before a watch
needs it.

For the first event that records switches it patches its own code, for the first one of a tracepoint
likewise, and where descriptors have numbers that no one had before it makes their table larger:
each time it waits for all processors, 5 to 20 ms. A watch begins at a stop of the program, which
would stand still for all that. So it is done beside, by events of a thread of darc's own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from darc.debuggee import perf
from darc.debuggee.eventends import end
from darc.debuggee.switch_rings import room_for_descriptors
from darc.debuggee.switchwatch import Forerunner
from darc.debuggee.wakers import open_first
from darc.target.ownthread import begin_thread


class FirstEvents(Forerunner):
    """One event of each kind, from now on until :meth:`close`. What the kernel refuses is not
    there: the watch that asks for the same tells why."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self._thread: threading.Thread | None = None
        with contextlib.suppress(RuntimeError):  # no thread may be made: the watch does it all
            self._thread = begin_thread(self._open, "darc-events")

    def _open(self) -> None:
        own = threading.get_native_id()
        openings: tuple[Callable[[], int], ...] = (
            lambda: perf.open_event(own),
            lambda: open_first(own),
        )
        with room_for_descriptors():
            for opened in openings:
                with contextlib.suppress(OSError):
                    self._fds.append(opened())

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        self.wait()
        while self._fds:
            end(self._fds.pop())
