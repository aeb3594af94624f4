"""SIGTERM and SIGHUP to gdb while a program runs that it has attached to.

gdb lets the program go then without stopping it first, so nothing could be taken out any more.
While probes are in such a program the two signals wait for a thread of darc's: it has the program
stop at the bell, where the probes are taken out, and gives gdb its signal then.
"""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import threading
import time
from collections.abc import Callable

import gdb

from darc.ownthread import begin_thread

SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0
"""gdb gets its signal after this time in any case."""

_AGAIN_SECONDS = 3.0
"""Far longer than gdb takes to leave."""


class Farewell:
    """Watches from one stop for the user to the next."""

    def __init__(self, begin: Callable[[int], bool]) -> None:
        """``begin`` asks for the probes in a process to be taken out, on any thread; whether there
        are some."""
        self._begin = begin
        self._over: threading.Event | None = None
        self._out = threading.Event()
        self._workers: str | None = None

    def watch(self, pid: int) -> None:
        """The program goes on. gdb's own thread."""
        if self._over is not None:
            return
        self._over = threading.Event()
        self._out.clear()
        self._set_workers("0")  # they would take a SIGHUP
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        begin_thread(functools.partial(self._wait, self._over, pid), "darc-farewell")

    def rest(self) -> None:
        """The program stands still, or is gone: gdb leaves as it does. gdb's own thread."""
        if self._over is not None:
            self._over.set()
            self._over = None
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            if self._workers is not None:
                self._set_workers(self._workers)

    def _set_workers(self, number: str) -> None:
        with contextlib.suppress(gdb.error):  # some gdb may not have the setting
            shown = gdb.execute("maint show worker-threads", to_string=True)
            found = re.search(r" is (unlimited|\d+)", shown)
            gdb.execute(f"maint set worker-threads {number}", to_string=True)
            self._workers = found[1] if found is not None else None

    def out(self) -> None:
        """Every probe is out."""
        self._out.set()

    def _wait(self, over: threading.Event, pid: int) -> None:
        while not over.is_set():
            found = signal.sigtimedwait(SIGNALS, _LOOK_SECONDS)
            if found is None:
                continue
            if not over.is_set() and self._begin(pid):
                self._out.wait(_PATIENCE_SECONDS)
            # gdb's handlers note the signal, on whichever thread, and wake gdb up. But while gdb's
            # interpreter is busy it is told that there is something, and may drop it: again, then.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            while True:
                signal.raise_signal(found.si_signo)
                time.sleep(_AGAIN_SECONDS)
