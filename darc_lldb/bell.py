"""The bell: a signal that stops the program for darc, and that it does not get."""

from __future__ import annotations

from collections.abc import Callable

import lldb

from darc.debuggee import bell as bells
from darc.debuggee import procfs
from darc.target.outcome import Outcome
from darc_lldb.stops import Reason, Signal


class Bell:
    """One at a time. ``failed`` tells the user of an error; ``follows_up`` whether another analysis
    has begun where the program was to stop for the user, and lets it go on then."""

    def __init__(self, failed: Callable[[Exception], None], follows_up: Callable[[], bool]) -> None:
        self._failed = failed
        self._follows_up = follows_up
        self._signals: dict[int, Signal] = {}
        self._handler: Callable[[], Outcome] | None = None
        self._kept: list[tuple[int, bool, bool]] = []

    @property
    def numbers(self) -> frozenset[int]:
        """Its signals."""
        return frozenset(self._signals)

    @property
    def stop_anyway(self) -> frozenset[int]:
        """Those at which the program stops for the user's sake."""
        return frozenset(n for n, signal in self._signals.items() if signal.stopped_before)

    def arm(self, process: lldb.SBProcess, number: int, handler: Callable[[], Outcome]) -> None:
        """See :meth:`darc.target.target.Target.arm_bell`."""
        self.disarm()
        self._signals = {one: Signal(process, one) for one in (number, bells.KNOCK)}
        self._handler = handler

    def change(self, process: lldb.SBProcess, number: int) -> None:
        """See :meth:`darc.target.target.Target.change_bell`."""
        if self._handler is not None:
            self.arm(process, number, self._handler)

    def disarm(self, *, may_ask: bool = True) -> None:
        """Takes back what :meth:`arm` set, as far as lldb may be asked."""
        self._handler = None
        signals, self._signals = self._signals, {}
        for signal in signals.values():
            if may_ask:
                signal.restore()

    @staticmethod
    def is_own(process: lldb.SBProcess, reason: Reason) -> bool:
        """Whether the program does not hear the signal in any case, or it bears darc's mark."""
        assert reason.signal is not None
        is_heard = procfs.catches(int(process.GetProcessID()), reason.signal)
        if not is_heard and reason.signal != bells.KNOCK:
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
        self._kept.append((number, bool(suppress), bool(stop)))
        signals.SetShouldSuppress(number, keeps)
        signals.SetShouldStop(number, True)

    def pass_again(self, process: lldb.SBProcess) -> frozenset[int]:
        """Undoes :meth:`keep`. Signals that stop the program only to be looked at."""
        kept, self._kept = self._kept, []
        signals = process.GetUnixSignals()
        for number, suppress, stop in kept:
            signals.SetShouldSuppress(number, suppress)
            signals.SetShouldStop(number, stop)
        return frozenset(number for number, _, stop in kept if not stop)

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
