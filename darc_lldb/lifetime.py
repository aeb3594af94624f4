"""The life of the process that is analysed: one is met, executes another file, loads files, and
ends, or lldb has it no more.

lldb tells of little of that. What is done at a stop notices a process that is new
(:mod:`darc_lldb.stopping`), and the watcher sees its end.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable

import lldb

from darc.debuggee import beside, procfs
from darc.model.errors import TargetError
from darc.target.outcome import Outcome, carry_out
from darc_lldb import release
from darc_lldb.bell import LldbBell
from darc_lldb.inferior import Inferior
from darc_lldb.otherhooks import OtherHooks
from darc_lldb.ownstops import OwnBreakpoints
from darc_lldb.threads import LldbThreads
from darc_lldb.watcher import Watcher

_TELLS_OF_OTHERS = 22
"""The release of lldb that is known to stop a program whose first thread has ended."""
_LET_GO = (
    "the first thread of process {pid} has ended, for which this lldb waits at every stop for "
    "ever: it was made to let the program go, which lives; {left}"
)
_CLEAN = "nothing of darc's is in its code"
_ASLEEP = "the probes in it sleep"


class Lifetime:
    """Of the process that ``inferior`` has."""

    def __init__(
        self,
        inferior: Inferior,
        threads: LldbThreads,
        own: OwnBreakpoints,
        *,
        others: OtherHooks,
        bell: LldbBell,
        hears_stand: Callable[[], bool],
    ) -> None:
        """``hears_stand`` is what its watcher tells by
        :meth:`darc_lldb.watcher.Informed.hears_stand`."""
        self._inferior = inferior
        self._threads = threads
        self._own = own
        self._others = others
        self._bell = bell
        self._hears_stand = hears_stand
        self._modules_handler: Callable[[], Outcome] | None = None
        self._release: str | None = None

    # ---------------------------------------------------------------- what fails

    def guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of lldb, where nobody would see its exception."""
        carry_out(function, failed=self.tell, instead=None)

    def tell(self, error: Exception) -> None:
        """What failed; or that lldb has the program no more, of which it may not know itself."""
        pid = self._inferior.known
        if pid is not None and isinstance(error, TargetError) and procfs.is_let_go(pid):
            self.ended(pid)
        else:
            self._inferior.callbacks.failed(error)

    # --------------------------------------------------------------- at its stops

    def meet(self, process: lldb.SBProcess) -> None:
        """Takes note of a new process, and of the end of the one before."""
        inferior, pid = self._inferior, int(process.GetProcessID())
        if pid == inferior.known:
            return
        if inferior.known is not None:
            self.ended(inferior.known)
        self._threads.forget()
        if not inferior.is_local() or inferior.is_core(process):
            return
        try:
            watcher = Watcher(pid, self)
        except ProcessLookupError:
            return  # it was killed, and lldb is about to notice
        inferior.meet(process, watcher)

    def executed(self) -> None:
        """It executes another file, in which nothing is at its place."""
        self._threads.forget()
        self.modules_changed()

    def tell_of_modules(self, handler: Callable[[], Outcome] | None) -> None:
        """``handler`` is told from now on that it may have other files; ``None``: nobody is."""
        self._modules_handler = handler

    def modules_changed(self) -> Outcome:
        """It may have other files now."""
        handler = self._modules_handler
        if handler is None:
            return Outcome.CONTINUE
        return carry_out(handler, failed=self.tell, instead=Outcome.CONTINUE)

    # ------------------------------------------------------- what the watcher sees

    def ended(self, pid: int) -> None:
        """The watcher saw the process end, or that nobody traces it; or lldb told so."""
        inferior = self._inferior
        with inferior.lock:
            watcher = inferior.watcher
            if watcher is not None and threading.current_thread() is watcher.thread:
                inferior.may_ask(False)
            if pid != inferior.known:
                return
            inferior.lose()
            self._own.forget_places()
            self._others.program_ended()
            lost = not procfs.is_gone(pid)
            callbacks = inferior.callbacks
            why, self._release = self._release, None
            tell = functools.partial(callbacks.lost, pid, why)
            self.guarded(tell if lost else callbacks.end)
            self._bell.forget()

    def went_on(self) -> None:
        """The watcher saw the program go on."""
        self._inferior.may_ask(False)
        self.guarded(self._inferior.callbacks.went_on)

    def hears_stand(self) -> bool:
        """The watcher saw the program stand still and no stop hook was called."""
        return self._hears_stand()

    def stuck(self, pid: int) -> None:
        """The watcher saw the server of an lldb wait for the first thread, which has ended. The
        program would stand still for ever: it gets its code back, and that server is ended."""
        if release.major() >= _TELLS_OF_OTHERS:
            return
        with self._inferior.lock, contextlib.suppress(TargetError, ProcessLookupError):
            is_known = pid == self._inferior.known and beside.is_noted(pid)
            if not is_known or not procfs.tracer(pid):
                return
            is_clean = beside.let_go(pid, stands=True)
            self._release = _LET_GO.format(pid=pid, left=_CLEAN if is_clean else _ASLEEP)
