"""lldb is to let the program go, by a signal of somebody's that ends it, or by a command while the
program runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from darc.target.ownthread import begin_thread
from darc.target.target import State
from darc_lldb.farewell import TAKING_OUT_SECONDS
from darc_lldb.inferior import Inferior

_LOOK_SECONDS = 0.02
_STILL_LOOKS = 250
"""After so many looks the command that was to let the program go on has failed."""
_END_SECONDS = 5.0
"""Longer than lldb takes to end when it may."""


class Departure:
    """Of ``inferior``. ``guarded`` runs what is given, and tells its errors."""

    def __init__(self, inferior: Inferior, guarded: Callable[[Callable[[], None]], None]) -> None:
        self._inferior = inferior
        self._guarded = guarded
        self._wanted: Callable[[], None] | None = None
        self.goes_by_lldb = False
        """Whether lldb lets the program go on, or is about to, without darc's lock."""
        self.may_go_on = False
        """Whether it may go on where what was asked for has been done."""

    def stands(self) -> None:
        """The program stands still, and lldb leaves it so as long as darc does."""
        self.goes_by_lldb = False

    def lets_go_on(self) -> None:
        """lldb is about to let it go on."""
        self.goes_by_lldb = True

    @property
    def is_wanted(self) -> bool:
        """Whether lldb is to end, and has not let the program go."""
        return self._wanted is not None

    def stop_for(self, knock: Callable[[], bool], take_out: Callable[[], None]) -> None:
        """lldb is about to carry out a command that lets the program go, which runs: it stands
        still when ``take_out`` has been called, for as long as lldb takes for that; behind a stop
        of darc's own it goes on, as lldb would show that stop. On lldb's own thread, which must not
        have darc's lock."""
        over = threading.Event()
        self.may_go_on = True
        self._begin(knock, take_out, over.set)
        over.wait(TAKING_OUT_SECONDS)
        self.may_go_on = False
        end = time.monotonic() + _END_SECONDS
        while self.goes_by_lldb and not self._runs() and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)

    def _runs(self) -> bool:
        """Whether it does, and lldb knows."""
        inferior = self._inferior
        return not inferior.seems_to_stand() and inferior.state is State.RUNNING

    def ask(
        self, knock: Callable[[], bool], take_out: Callable[[], None], done: Callable[[], None]
    ) -> None:
        """lldb lets the program go when ``take_out`` has been called, and that is ``done``. It is
        where the program stands still next: at the bell, if ``knock`` can have it rung; at the
        user's next command, as another may be under way now; at the prompt. Not where lldb is about
        to let it go on: it would run while the probes are taken out. Any thread."""

        def let_go() -> None:
            try:
                take_out()
            finally:
                self._inferior.process.Detach()

        self._begin(knock, let_go, done)

    def _begin(
        self, knock: Callable[[], bool], leave: Callable[[], None], done: Callable[[], None]
    ) -> None:
        def finish() -> None:
            try:
                self._guarded(leave)
            finally:
                done()

        self._wanted = finish
        begin_thread(lambda: self._look(knock), "darc-leave")

    def _look(self, knock: Callable[[], bool]) -> None:
        rung, still = False, 0
        while self.is_wanted:
            # By what the kernel tells: in synchronous mode lldb answers when that stands.
            if self._inferior.seems_to_stand():
                still += 1
                with self._inferior.lock:
                    if not self.goes_by_lldb or still > _STILL_LOOKS:
                        self._leave_if_stopped()
            else:
                still = 0
                if not rung and not knock():
                    self._inferior.process.SendAsyncInterrupt()
                rung = True
            time.sleep(_LOOK_SECONDS)

    def _leave_if_stopped(self) -> None:
        with self._inferior.asking():
            if self._inferior.state is not State.RUNNING:
                self.now()

    def now(self, *, goes_on: bool = False) -> None:
        """Does what :meth:`ask` asked for, if it did, with all threads standing still; ``goes_on``:
        lldb is about to let it go on."""
        leave, self._wanted = self._wanted, None
        if leave is not None:
            self.goes_by_lldb = self.goes_by_lldb or goes_on
            leave()
            if not goes_on:
                time.sleep(_END_SECONDS)  # nothing else is to be done before lldb ends
