"""SIGTERM and SIGHUP to lldb while it has a program that it has attached to.

lldb dies of them at once, and its server leaves every patch where it is. So the signals wait for
a thread of darc's, which is woken by a pipe whatever lldb does: darc takes out what it has in the
program and lets lldb detach from it. Then the signal does what it did without darc. A second one
does that at once. Where lldb hangs, as it does where its terminal is gone while a program runs, the
program gets its code back beside it.
"""

from __future__ import annotations

import os
import re
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from darc.app.sigactions import action_of, set_action
from darc.target.ownthread import begin_thread

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
TAKING_OUT_SECONDS = 15.0
"""Longer than it takes to take probes out: lldb ends after this time in any case."""


class Farewell:
    """Waits for the signals for all of lldb's debuggers, as long as it lives."""

    def __init__(
        self, leave: Callable[[Callable[[], None]], bool], let_go: Callable[[], bool]
    ) -> None:
        """``leave`` has every program left on another thread than this one, and calls what it is
        given when that is done; whether there is one. ``let_go`` does without lldb what can be done
        where it was not; whether nothing of darc's is left in any."""
        self._leave = leave
        self._let_go = let_go
        self._before: dict[int, bytes] = {}
        self._reader = -1
        self._terminal = -1
        """lldb's, by a descriptor of darc's own: lldb closes its input, then tells of its end."""
        self._is_over = threading.Event()

    def watch(self) -> None:
        """From now on, once. Nothing happens where the signals are not lldb's to take: they are
        ignored (nohup), lldb is a module of another program, or somebody listens already."""
        if self._reader >= 0:
            return
        free = [n for n in SIGNALS if signal.getsignal(n) in (None, signal.SIG_DFL)]
        if not _is_lldb() or threading.current_thread() is not threading.main_thread() or not free:
            return
        if os.isatty(0):
            self._terminal = os.dup(0)
        self._reader, writer = os.pipe()
        os.set_blocking(writer, False)
        other = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        if other != -1:
            signal.set_wakeup_fd(other)
            return
        for number in free:
            self._before[number] = action_of(number)
            # The pipe alone counts. lldb's own thread may be long in coming to its Python.
            signal.signal(number, lambda *_: None)
            signal.siginterrupt(number, False)
        begin_thread(self._wait, "darc-farewell")

    def before_end(self) -> None:
        """lldb ends by itself. Where that is as its terminal is gone, the signal for that is under
        way, or was heard: what is done at that comes first."""
        if self._reader >= 0 and self._terminal_is_gone():
            self._is_over.wait(TAKING_OUT_SECONDS)

    def _wait(self) -> None:
        number = self._next(None)
        assert number is not None
        over, done = os.pipe()

        def tell() -> None:
            os.write(done, b"x")

        is_left = self._terminal_is_gone() and self._let_go()  # lldb ends by itself now, or hangs
        if not is_left and self._leave(tell) and self._next(TAKING_OUT_SECONDS, over) is None:
            self._let_go()
        self._is_over.set()
        for one, action in self._before.items():
            set_action(one, action)
        os.kill(os.getpid(), number)

    def _terminal_is_gone(self) -> bool:
        if self._terminal < 0:
            return False
        poll = select.poll()
        poll.register(self._terminal, 0)
        return bool(poll.poll(0))

    def _next(self, seconds: float | None, over: int | None = None) -> int | None:
        """The next of the signals; ``None`` when the time is over, or ``over`` can be read."""
        while True:
            files = [self._reader] if over is None else [self._reader, over]
            ready, _, _ = select.select(files, [], [], seconds)
            if self._reader not in ready:
                return None
            number = os.read(self._reader, 1)[0]
            if number in self._before:
                return number


def _is_lldb() -> bool:
    return re.match(r"lldb(-\d|$)", Path("/proc/self/exe").readlink().name) is not None
