"""The bell: a signal that stops the program for darc, and that it does not get."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence

import lldb

from darc.debuggee import bell as bells
from darc.debuggee import procfs
from darc.target.bell import Bell, reply
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_lldb.inferior import Inferior
from darc_lldb.ownstops import KEPT, PASSED, Handling, Reason


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
        self._process: lldb.SBProcess | None = None
        self._signals: dict[int, Handling] = {}
        """Its signals, and what lldb did with each of them before."""
        self._before = bells.EarlierBells()
        self._handler: Callable[[], Outcome] | None = None
        self._unstopped: dict[int, Handling] = {}
        """What lldb is to do again with those of :meth:`stop_no_more`."""
        self._kept: dict[int, Handling] = {}
        """What lldb is to do again with those of :meth:`keep`."""

    @property
    def numbers(self) -> frozenset[int]:
        """Its signals."""
        return frozenset(self._signals)

    @property
    def stop_anyway(self) -> frozenset[int]:
        """Those at which the program stops for the user's sake."""
        return frozenset(n for n, before in self._signals.items() if before.stop)

    def arm(self, signal: int, handler: Callable[[], Outcome]) -> None:
        process = self._inferior.stopped_process()
        self._take_back(may_ask=True)
        self.pass_again(process)
        self._before.change(self._number, signal)
        self._number, self._process = signal, process
        numbers = (signal, bells.KNOCK, *self._before)
        self._signals = {one: Handling.of(process, one) for one in numbers}
        for one in self._signals:
            KEPT.apply(process, one)
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
                self._signals.pop(number).apply(process, number)

    @any_thread
    def disarm(self) -> None:
        self._take_back(may_ask=not self._inferior.blind)

    @any_thread
    def forget(self) -> None:
        """The program is gone, and its signals."""
        self._take_back(may_ask=False)
        self._before.forget()
        self._number, self._process = 0, None
        self._kept.clear()

    def stop_no_more(self, process: lldb.SBProcess, number: int) -> None:
        """lldb passes one of the program's own on by itself until :meth:`disarm`: where it comes
        more often than lldb stops and goes on, handlers are nested until there is no stack."""
        if number not in self._signals and number not in self._unstopped:
            self._unstopped[number] = Handling.of(process, number)
            PASSED.apply(process, number)

    def _take_back(self, *, may_ask: bool) -> None:
        self._handler = None
        signals, self._signals = self._signals, {}
        unstopped, self._unstopped = self._unstopped, {}
        if not may_ask or self._process is None:
            return
        for number, before in unstopped.items():
            if Handling.of(self._process, number) == PASSED:  # else the user has said otherwise
                before.apply(self._process, number)
        for number in signals.keys() - self._kept.keys():
            signals[number].apply(self._process, number)

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
        if number not in self._kept:
            self._kept[number] = self._signals.get(number) or Handling.of(process, number)
        dataclasses.replace(KEPT, suppress=keeps).apply(process, number)

    def sort_out(
        self, process: lldb.SBProcess, rung: Sequence[Reason], own: Sequence[Reason]
    ) -> None:
        """Of the signals that threads have stopped with, all that are the bell's: those that are
        not darc's ``own`` come to the program."""
        if own != rung:
            self.leave_to_program(process, own)
        for number in {reason.signal for reason in rung if reason.signal is not None}:
            others = [one for one in rung if one.signal == number and one not in own]
            self.keep(process, number, keeps=not others)

    def pass_again(self, process: lldb.SBProcess) -> frozenset[int]:
        """Undoes :meth:`keep`. Signals that stop the program only to be looked at."""
        kept, self._kept = self._kept, {}
        for number, before in kept.items():
            (KEPT if number in self._signals else before).apply(process, number)
        return frozenset(n for n, before in kept.items() if not (before.stop or n in self._signals))

    def reply(self) -> Outcome:
        """What the handler decides."""
        return reply(self._handler, follow_up=self._follow_up, failed=self._failed)
