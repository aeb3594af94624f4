"""SIGTERM and SIGHUP to gdb while a program runs that it has attached to, or any in a script, where
what is known by then is told before gdb ends.

gdb lets the program go then without stopping it first, so nothing could be taken out any more, and
leaves from the middle of a command of darc's. While darc changes such a program, and while probes
are in it, the two signals wait; in a running program for a thread of darc's, which has the program
stop at the bell, where the probes are taken out, and gives gdb its signal then.

To block them is not enough. Where gdb waits for a thread that it stops, it does so with the signals
blocked that were when it began, which is none (``sigsuspend`` in gdb's linux-nat.c). In the middle
of a stop gdb's handler has it leave there, and the program gets a SIGINT. So darc's thread takes
the signal as it comes, and meanwhile the handler is one of darc's, which notes it.

Nor is that all: gdb notes a SIGHUP at once, and heeds it where it waits for something. What comes
as it attaches, or between two commands of a script, ends it as soon as the program goes on. So that
handler of darc's stands from the beginning, and what it hears is passed on to gdb where nothing is
held: darc knows then that gdb ends, and puts no probe in.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Set

import gdb

from darc.app.sigactions import action_of, set_action
from darc.debuggee import procfs
from darc.target.ownthread import begin_thread
from darc_gdb import printed

SIGNALS = frozenset({signal.SIGTERM, signal.SIGHUP})
_LOOK_SECONDS = 0.2
_STEP_SECONDS = 0.02
_TAKING_OUT_SECONDS = 15.0
"""Longer than it takes to take probes out: gdb gets its signal after this time in any case."""

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
        self._ends = threading.Event()
        """gdb ends already, or waits for the user."""
        self._taken: int | None = None
        """The signal that has come to darc's thread, as the program ran."""
        self._blocks = False
        self._is_heard = False
        """Whether what darc does was broken off for the signal that waits."""
        self._is_told = False
        """gdb has been told already, and ends as soon as it waits for something."""
        self._handlers = _Handlers()

    def stand_by(self) -> None:
        """From now on darc knows of a SIGHUP, whenever it comes. gdb's own thread."""
        if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
            return  # as nohup has it
        pipe, end = os.pipe()
        os.set_blocking(end, False)
        before = signal.set_wakeup_fd(end, warn_on_full_buffer=False)
        if before != -1:  # another extension's, which hears all that Python does
            signal.set_wakeup_fd(before)
            os.close(pipe)
            os.close(end)
            return
        self._handlers.replace({signal.SIGHUP})
        self._handlers.stay = frozenset({signal.SIGHUP})
        begin_thread(functools.partial(self._pass_on, pipe), "darc-hangup")

    def _pass_on(self, pipe: int) -> None:
        """Tells gdb of what comes while nothing is held."""
        while number := os.read(pipe, 1):
            if number[0] == signal.SIGHUP:
                self._handlers.note(number[0])
                if not self._blocks:
                    self._tell()

    def _tell(self) -> None:
        """gdb hears of what has come. Any thread."""
        self._is_told = self._is_told or self._handlers.noted == signal.SIGHUP
        self._handlers.give_back()

    def block(self) -> None:
        """The program is about to be changed. gdb's own thread."""
        if not self._blocks:
            self._blocks = True
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            self._handlers.replace(SIGNALS)
            _make_workers_deaf()

    def release(self, *, at_prompt: bool = False) -> None:
        """As the program stands now gdb may leave, unless it goes on. gdb's own thread.

        gdb only notes a signal, and looks at that at a prompt or while the program runs. One that
        has come in a script goes on waiting: the probes might be in again by then.
        """
        waits = not (at_prompt or self._is_heard) and self._has_come()
        if at_prompt:
            self._ends.set()
        if self._over is None and self._blocks and not waits:
            self._blocks = self._is_heard = False
            self._tell()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def is_wanted(self) -> bool:
        """Whether one of the signals waits: then what darc does is to be broken off. Any thread."""
        self._is_heard = self._is_heard or self._is_told or (self._blocks and self._has_come())
        return self._is_heard

    def _has_come(self) -> bool:
        noted = self._taken or self._handlers.noted
        return noted is not None or bool(SIGNALS & signal.sigpending())

    @contextlib.contextmanager
    def blocking(self) -> Iterator[None]:
        """While a command of darc's is at work."""
        self.block()
        try:
            yield
        finally:
            self.release()

    def watch(self, pid: int) -> None:
        """The program goes on. gdb's own thread."""
        if self._over is not None:
            return
        self.block()
        self._over = threading.Event()
        self._out.clear()
        self._ends.clear()
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

    def end(self) -> None:
        """gdb is about to end by itself."""
        self._taken = None
        self._ends.set()

    def _wait(self, over: threading.Event, pid: int) -> None:
        """Has the probes taken out before gdb gets its signal. Where the program stops for the user
        before, the signal waits again: :meth:`release` is to see it."""
        while (found := self._next()) is None:
            if over.is_set():
                return
        if self._begin(pid):
            end = time.monotonic() + _TAKING_OUT_SECONDS
            while time.monotonic() < end and not over.is_set():
                if self._out.wait(_LOOK_SECONDS):
                    break
        if over.is_set() and not self._out.is_set() and not self._is_due():
            return
        # gdb's handlers note the signal, on whichever thread, and wake gdb up. But while gdb's
        # interpreter is busy it is told that there is something, and may drop it: again, then.
        self._handlers.stay = frozenset()
        self._tell()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        _wait_until_it_runs(pid)
        while True:
            signal.raise_signal(found)
            time.sleep(_AGAIN_SECONDS)

    def _is_due(self) -> bool:
        """Whether gdb is to have the signal, as the program stands for the user: not where it goes
        on, for which another thread watches, or where gdb ends by itself, as it does where that
        stop was the last thing in a script. gdb's handlers have whatever Python is at work end in
        a KeyboardInterrupt, also what tells what is known: that has time to end."""
        latest = time.monotonic() + _TAKING_OUT_SECONDS
        due = time.monotonic() + _AGAIN_SECONDS
        while time.monotonic() < min(due, latest) and not self._ends.wait(_STEP_SECONDS):
            if self._over is not None:
                return False
            if threading.main_thread().ident in sys._current_frames():
                due = time.monotonic() + _AGAIN_SECONDS
        return self._taken is not None

    def _next(self) -> int | None:
        """A signal that has come; waits a moment for it."""
        if self._taken is None:
            taken = _awaited()
            found = self._handlers.noted if taken is None else taken
            if found is not None:  # else the thread of the run before may have taken one
                self._taken = found
        return self._taken


def _awaited() -> int | None:
    """One of the signals, if it comes within a moment. Where this process is stopped meanwhile for
    longer than that (SIGSTOP, Ctrl-Z), Python tells of one that never came, with whatever number is
    in memory that nobody has written (``signal_sigtimedwait_impl`` in ``Modules/signalmodule.c``
    of 3.11)."""
    taken = signal.sigtimedwait(SIGNALS, _LOOK_SECONDS)
    return taken.si_signo if taken is not None and taken.si_signo in SIGNALS else None


def _wait_until_it_runs(pid: int) -> None:
    """gdb is in the middle of the stop at which the probes were taken out: see the module."""
    end = time.monotonic() + _AGAIN_SECONDS
    while time.monotonic() < end and procfs.is_traced_and_stopped(pid):
        time.sleep(_STEP_SECONDS)


class _Handlers:
    """gdb's handlers of the signals, in whose place there is one that notes them."""

    def __init__(self) -> None:
        self._own: dict[int, bytes] = {}
        self._noted: list[int] = []
        self.stay = frozenset[int]()
        """Those that are not given back before there is something to tell gdb."""

    @property
    def noted(self) -> int | None:
        """A signal that has come. Any thread."""
        return self._noted[0] if self._noted else None

    def replace(self, numbers: Set[int]) -> None:
        """gdb's own thread, as Python has it."""
        for number in numbers - self._own.keys():
            own = action_of(number)
            signal.signal(number, self.note)
            self._own[number] = own

    def note(self, number: int, _frame: object = None) -> None:
        """It has come. Any thread."""
        if number not in self._noted:
            self._noted.append(number)

    def give_back(self) -> None:
        """gdb hears of them again, and of those that have come. Any thread."""
        stay = frozenset[int]() if self._noted else self.stay
        for number in self._own.keys() - stay:
            set_action(number, self._own.pop(number))
        while self._noted:
            os.kill(os.getpid(), self._noted.pop())


def _make_workers_deaf() -> None:
    """gdb's worker threads would take a SIGHUP that waits. They are ended once, and begin anew with
    what this thread blocks: without them gdb takes longer to read a file's symbols, and the
    program stands at a breakpoint of gdb's own meanwhile, where a gdb that is killed leaves it."""
    if all(_is_deaf(thread) for thread in _workers()):
        return
    with contextlib.suppress(gdb.error):  # some gdb may not have the setting
        before = printed.worker_threads()
        gdb.execute("maint set worker-threads 0", to_string=True)
        _wait_for_workers()
        if before is not None:
            gdb.execute(f"maint set worker-threads {before}", to_string=True)


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
