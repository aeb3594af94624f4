"""The bell: a signal that stops the program for darc, and that it does not get."""

from __future__ import annotations

from collections.abc import Callable

import lldb

from darc.debuggee import bell as bells
from darc.debuggee import procfs
from darc.target.target import Outcome
from darc_lldb.stops import Reason, Signal


class Bell:
    """One at a time. ``failed`` tells the user of an error; ``follows_up`` whether another analysis
    has begun where the program was to stop for the user, and lets it go on then."""

    def __init__(self, failed: Callable[[Exception], None], follows_up: Callable[[], bool]) -> None:
        self._failed = failed
        self._follows_up = follows_up
        self._signal: Signal | None = None
        self._handler: Callable[[], Outcome] | None = None
        self._kept: tuple[int, bool, bool] | None = None

    @property
    def number(self) -> int | None:
        """Its signal."""
        return None if self._signal is None else self._signal.number

    @property
    def stops_anyway(self) -> bool:
        """Whether the program stops at that signal for the user's sake."""
        return self._signal is not None and self._signal.stopped_before

    def arm(self, process: lldb.SBProcess, number: int, handler: Callable[[], Outcome]) -> None:
        """See :meth:`darc.target.target.Target.arm_bell`."""
        self.disarm()
        self._signal = Signal(process, number)
        self._handler = handler

    def change(self, process: lldb.SBProcess, number: int) -> None:
        """See :meth:`darc.target.target.Target.change_bell`."""
        if self._handler is not None:
            self.arm(process, number, self._handler)

    def disarm(self, *, may_ask: bool = True) -> None:
        """Takes back what :meth:`arm` set, as far as lldb may be asked."""
        self._handler = None
        signal, self._signal = self._signal, None
        if signal is not None and may_ask:
            signal.restore()

    @staticmethod
    def is_own(process: lldb.SBProcess, reason: Reason) -> bool:
        """Whether the program does not hear the signal in any case, or it bears darc's mark."""
        assert reason.signal is not None
        if not procfs.catches(int(process.GetProcessID()), reason.signal):
            return True
        info = process.GetThreadByID(reason.thread).GetSiginfo()
        value = info.GetValueForExpressionPath("._sifields._rt.si_sigval.sival_ptr")
        code = info.GetChildMemberWithName("si_code")
        return bells.is_marked(code.GetValueAsSigned(), value.GetValueAsUnsigned())

    def keep(self, process: lldb.SBProcess, number: int, *, keeps: bool) -> None:
        """The program is not to get the signal that a thread has stopped with, or is to get it.
        The next one is looked at, also where that is the bell no more: lldb would keep it, too."""
        signals = process.GetUnixSignals()
        suppress, stop = signals.GetShouldSuppress(number), signals.GetShouldStop(number)
        self._kept = (number, bool(suppress), bool(stop))
        signals.SetShouldSuppress(number, keeps)
        signals.SetShouldStop(number, True)

    def pass_again(self, process: lldb.SBProcess) -> int | None:
        """Undoes :meth:`keep`. A signal that stops the program only to be looked at."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        number, suppress, stop = kept
        signals = process.GetUnixSignals()
        signals.SetShouldSuppress(number, suppress)
        signals.SetShouldStop(number, stop)
        return None if stop else number

    def answer(self) -> bool:
        """What the handler decides. True: the program is to stop for the user."""
        handler = self._handler
        if handler is None:
            return False
        try:
            return handler() is Outcome.STOP and not self._follows_up()
        except Exception as error:  # told to the user, in one place
            self._failed(error)
            return True
