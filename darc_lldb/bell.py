"""The bell: a signal that stops the program for darc, and that it does not get."""

from __future__ import annotations

from collections.abc import Callable, Collection

import lldb

from darc.debuggee import bell as bells
from darc.debuggee import procfs
from darc.target.bell import Bell, answer
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_lldb.inferior import Inferior
from darc_lldb.ownstops import Reason, Signal


@own_thread
class LldbBell(Bell):
    """One at a time, for ``inferior``."""

    def __init__(
        self,
        turn: Turn,
        inferior: Inferior,
        failed: Callable[[Exception], None],
        follow_up: Callable[[], Outcome],
    ) -> None:
        """``failed`` tells the user of an error; ``follow_up`` begins another analysis where
        the program was to stop for the user, and it goes on then."""
        self.turn = turn
        self._inferior = inferior
        self._failed = failed
        self._follow_up = follow_up
        self._number = 0
        self._signals: dict[int, Signal] = {}
        self._before = bells.EarlierBells()
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

    def arm(self, signal: int, handler: Callable[[], Outcome]) -> None:
        process = self._inferior.stopped()
        self._take_back(may_ask=True)
        self._before.change(self._number, signal)
        self._number = signal
        numbers = (signal, bells.KNOCK, *self._before)
        self._signals = {one: Signal(process, one) for one in numbers}
        self._handler = handler

    def change(self, signal: int) -> None:
        if self._handler is not None:
            self.arm(signal, self._handler)

    def leave_to_program(self, process: lldb.SBProcess, own: Collection[Reason]) -> None:
        """Signals that were the bell, where none of darc's is under way, as by those that threads
        have stopped with: a program that gets many is not to stop for each."""
        here = {reason.signal for reason in own}
        pid = int(process.GetProcessID())
        for number in self._signals.keys() & self._before.late - here:
            if not procfs.is_pending(pid, number):
                self._before.leave({number})
                self._signals.pop(number).restore()

    @any_thread
    def disarm(self) -> None:
        self._take_back(may_ask=not self._inferior.blind)

    @any_thread
    def forget(self) -> None:
        """The program is gone, and its signals."""
        self._take_back(may_ask=False)
        self._before.forget()
        self._number = 0

    def _take_back(self, *, may_ask: bool) -> None:
        self._handler = None
        signals, self._signals = self._signals, {}
        for signal in signals.values():
            if may_ask:
                signal.restore()

    def is_own(self, process: lldb.SBProcess, reason: Reason) -> bool:
        """Whether it is the bell's and the program does not hear it in any case, or it bears darc's
        mark."""
        pid = int(process.GetProcessID())
        if reason.signal == self._number and not procfs.catches(pid, self._number):
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

    def answer(self) -> Outcome:
        """What the handler decides."""
        return answer(self._handler, follow_up=self._follow_up, failed=self._failed)
