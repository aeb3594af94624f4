"""SIGTERM and SIGHUP to gdb while a program runs that it has attached to.

gdb lets the program go then without stopping it first, so nothing could be taken out any more, and
leaves from the middle of a command of darc's. While darc changes such a program, and while probes
are in it, the two signals wait; in a running program for a thread of darc's, which has the program
stop at the bell, where the probes are taken out, and gives gdb its signal then.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator

import gdb

from darc.debuggee import procfs
from darc.target.ownthread import begin_thread

SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 15.0
"""gdb gets its signal after this time in any case."""

_WORKERS_SECONDS = 1.0
"""Far longer than threads that have nothing to do take to end."""

_AGAIN_SECONDS = 3.0
"""Far longer than gdb takes to leave."""


class Farewell:
    """Holds the signals from before the probes go in until they are out, and watches from one stop
    for the user to the next."""

    def __init__(self, begin: Callable[[int], bool]) -> None:
        """``begin`` asks for the probes in a process to be taken out, on any thread; whether there
        are some."""
        self._begin = begin
        self._over: threading.Event | None = None
        self._out = threading.Event()
        self._holds = False

    def hold(self) -> None:
        """The program is about to be changed. gdb's own thread."""
        if not self._holds:
            self._holds = True
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            _make_workers_deaf()

    def release(self, *, at_prompt: bool = False) -> None:
        """As the program stands now gdb may leave, unless it goes on. gdb's own thread.

        gdb only notes a signal, and looks at that at a prompt or while the program runs. One that
        has come in a script goes on waiting: the probes might be in again by then.
        """
        waits = not at_prompt and SIGNALS & signal.sigpending()
        if self._over is None and self._holds and not waits:
            self._holds = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """While a command of darc's is at work."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def watch(self, pid: int) -> None:
        """The program goes on. gdb's own thread."""
        if self._over is not None:
            return
        self.hold()
        self._over = threading.Event()
        self._out.clear()
        begin_thread(functools.partial(self._wait, self._over, pid), "darc-farewell")

    def rest(self) -> None:
        """The program stands still, or is gone: gdb leaves as it does. gdb's own thread."""
        if self._over is not None:
            self._over.set()
            self._over = None
        self.release()

    def out(self) -> None:
        """Every probe is out."""
        self._out.set()

    def _wait(self, over: threading.Event, pid: int) -> None:
        """The signal stays where it is until the probes are out: where the program stops for the
        user before, :meth:`release` is to see it."""
        while not (found := SIGNALS & signal.sigpending()):
            if over.wait(_LOOK_SECONDS):
                return
        if self._begin(pid):
            end = time.monotonic() + _PATIENCE_SECONDS
            while time.monotonic() < end and not over.is_set():
                if self._out.wait(_LOOK_SECONDS):
                    break
        if over.is_set() and not self._out.is_set():
            return
        # gdb's handlers note the signal, on whichever thread, and wake gdb up. But while gdb's
        # interpreter is busy it is told that there is something, and may drop it: again, then.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        while True:
            time.sleep(_AGAIN_SECONDS)
            signal.raise_signal(min(found))


def _make_workers_deaf() -> None:
    """gdb's worker threads would take a SIGHUP that waits. They are ended once, and begin anew with
    what this thread blocks: without them gdb takes longer to read a file's symbols, and the
    program stands at a breakpoint of gdb's own meanwhile, where a gdb that is killed leaves it."""
    if all(_is_deaf(thread) for thread in _workers()):
        return
    with contextlib.suppress(gdb.error):  # some gdb may not have the setting
        shown = gdb.execute("maint show worker-threads", to_string=True)
        gdb.execute("maint set worker-threads 0", to_string=True)
        _wait_for_workers()
        if (found := re.search(r" is (unlimited|\d+)", shown)) is not None:
            gdb.execute(f"maint set worker-threads {found[1]}", to_string=True)


def _wait_for_workers() -> None:
    """gdb's threads that are to end are told so, and not waited for."""
    end = time.monotonic() + _WORKERS_SECONDS
    while time.monotonic() < end and _workers():
        time.sleep(_WORKERS_SECONDS / 1000)


def _workers() -> list[int]:
    return [thread for thread in procfs.threads(os.getpid()) if _is_worker(thread)]


def _is_worker(thread: int) -> bool:
    return procfs.status(os.getpid(), thread).get("Name", "").startswith("gdb worker")


def _is_deaf(thread: int) -> bool:
    return all(procfs.blocks(os.getpid(), thread, number) for number in SIGNALS)
