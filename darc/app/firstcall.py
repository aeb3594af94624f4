"""A breakpoint that waits for f0's first call, and may vanish from under the debugger.

A debugger that lets a child of the program go takes its breakpoints out of the child's memory. That
of a child that shares it (``clone`` with CLONE_VM, and no thread) is the program's own: they are
gone there, too, and no debugger knows (gdb, lldb). Writing them anew would be the end of the child,
which nobody traces, as soon as it came there. So the program is stopped, and the analysis begins in
the middle of it, as in one that was attached to; pads are no harm to such a child.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from darc.debuggee.debuggee import Debuggee
from darc.target.outcome import Outcome
from darc.target.ownthread import begin_thread

_LOOK_SECONDS = 0.02
_LOOKS = 3
"""So many looks in a row find the program running without the breakpoint: the debugger itself takes
it out for one instruction, to step over it."""
_AGAIN_SECONDS = 1.0


class FirstCall:
    """Watches the breakpoint at f0's ``entry`` from its making until :meth:`stop`; ``missed`` is
    called with everything stopped if that vanishes."""

    def __init__(self, debuggee: Debuggee, entry: int, missed: Callable[[], None]) -> None:
        self._debuggee = debuggee
        self._entry = entry
        self._missed = missed
        self._done = threading.Event()
        self._is_missed = False
        self._signal = debuggee.arm_limit(self._rang)
        self._thread = begin_thread(self._run, "darc first call")

    def stop(self) -> None:
        """The breakpoint is not waited for any more."""
        self._done.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._debuggee.disarm_limit()

    def _run(self) -> None:
        looks = 0
        wait = _LOOK_SECONDS
        while not self._done.wait(wait):
            wait = _LOOK_SECONDS
            looks = looks + 1 if self._debuggee.lacks_breakpoint(self._entry) else 0
            if looks >= _LOOKS and self._signal is not None:
                looks, wait = 0, _AGAIN_SECONDS
                self._is_missed = True
                if not self._debuggee.is_signalled(self._signal):
                    self._debuggee.send(self._signal)

    def _rang(self) -> Outcome:
        """The bell's signal: darc's own, or one of the program's that it ignores."""
        if self._is_missed and not self._done.is_set():
            self._missed()
        return Outcome.CONTINUE
