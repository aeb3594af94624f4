"""What is done where the program stops and goes on.

Everything happens in lldb's stop hook (:mod:`darc_lldb.stophook`), which is called at every stop
that lldb would show, with all threads stopped, on whichever thread lldb handles its events. There
memory may be written and functions called, and the program goes on, without the user's command
noticing, when the hook says so. A breakpoint's callback would not do: functions may not be called
in it.

The watcher tells of what lldb calls no hook for: the user's Ctrl-C; and that it goes on, and its
end (:mod:`darc_lldb.lifetime`).
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import lldb

from darc.app.presses import counted
from darc.debuggee import procfs
from darc.debuggee.bell import ASKED_FOR, unblocked
from darc.debuggee.passedon import PassedOn
from darc.model.errors import TargetError
from darc.target.outcome import Outcome, carry_out
from darc.target.ownthread import Turn
from darc.target.target import State
from darc_lldb import signals
from darc_lldb.bell import LldbBell
from darc_lldb.calls import Calls
from darc_lldb.departure import Departure
from darc_lldb.frames import LldbFrames
from darc_lldb.inferior import Inferior
from darc_lldb.lifetime import Lifetime
from darc_lldb.otherhooks import OtherHooks
from darc_lldb.ownstops import OwnBreakpoints, Reason
from darc_lldb.screen import LldbScreen
from darc_lldb.threads import LldbThreads
from darc_lldb.user_breaks import LldbUserBreakpoints

_PRESSED = "Ctrl-C came while darc was at work at this stop: the program stays as it is"
"""lldb forgets one that comes while it stands still."""


@dataclass(frozen=True)
class _Heard:
    """Why the threads of a program stopped."""

    numbers: frozenset[int]
    """The signals of the bell then;"""
    reasons: Sequence[Reason]
    """of all threads that had one,"""
    rung: Sequence[Reason]
    """which of these are one of those signals,"""
    own: Sequence[Reason]
    """and which of these darc's."""
    launching: bool
    """Whether lldb stops it as it begins."""

    @staticmethod
    def of(
        process: lldb.SBProcess, numbers: frozenset[int], own: OwnBreakpoints, bell: LldbBell
    ) -> _Heard:
        """A call changes what lldb knows of its thread's stop: all are looked at before."""
        reasons = [reason for t in process if (reason := Reason.of(t, own)) is not None]
        launching = own.awaits_start and all(r.signal in signals.INTERRUPTS for r in reasons)
        rung = [reason for reason in reasons if reason.signal in numbers]
        darcs = [reason for reason in rung if bell.is_own(process, reason)]
        return _Heard(numbers, reasons, rung, darcs, launching=launching)


class Stopping:
    """The stops of ``inferior``."""

    def __init__(  # noqa: PLR0913 - as many things, and none of these belong together
        self,
        turn: Turn,
        inferior: Inferior,
        *,
        calling: Calls,
        threads: LldbThreads,
        own: OwnBreakpoints,
        users: LldbUserBreakpoints,
        frames: LldbFrames,
        screen: LldbScreen,
        tidy: Callable[[], None],
    ) -> None:
        """``tidy`` deletes what is not needed any more."""
        self._inferior = inferior
        self._calls = calling
        self._threads = threads
        self._own = own
        self._users = users
        self._frames = frames
        self._screen = screen
        self._tidy = tidy
        self.others = OtherHooks(inferior)
        self.bell = LldbBell(
            turn, inferior, lambda error: inferior.callbacks.failed(error), self._follow_up
        )
        self.life = Lifetime(
            inferior, threads, own, others=self.others, bell=self.bell, hears_stand=self.hears_stand
        )
        self.departure = Departure(inferior, self.life.guarded)
        self.own_stops = 0
        self._asynchronous = False
        self._told: tuple[int, int] | None = None
        self._went_on = False
        self._passed_on = PassedOn(screen.emit)
        self._decided: tuple[int, int, Outcome] | None = None

    def _follow_up(self) -> Outcome:
        outcome = self._inferior.callbacks.follow_up()
        if outcome is Outcome.CONTINUE:
            self._inferior.callbacks.goes_on()
        return outcome

    # ----------------------------------------------------------------- lldb's hook

    def at_stop(self, thread: lldb.SBThread) -> Outcome:
        """The stop hook, which lldb calls for each thread with a reason to stop. ``STOP``: the
        program stays as it is."""
        process = thread.GetProcess()
        if self._calls.at_work or not self._inferior.is_home(process.GetTarget()):
            return Outcome.STOP
        self.departure.stands()
        if self.departure.is_wanted:
            self.departure.now()
            return Outcome.STOP
        key = _stop_of(process)
        if self._decided is None or self._decided[:2] != key:
            with self._calls.in_hook(), self._inferior.staying(), counted() as presses:
                outcome = self._look(process, presses)
            self._decided = (key[0], int(process.GetStopID()), outcome)
        outcome = self._decided[2]
        if outcome is Outcome.CONTINUE:
            self.departure.lets_go_on()
        else:
            self.departure.stands()
        return outcome

    def _look(self, process: lldb.SBProcess, presses: Callable[[], int]) -> Outcome:
        self.life.meet(process)
        looked_at = self.bell.pass_again(process)
        numbers = self.bell.numbers
        self._inferior.unwatch()
        heard = _Heard.of(process, numbers, self._own, self.bell)
        if any(thread.GetStopReason() == lldb.eStopReasonExec for thread in process):
            self.life.executed()
        self.own_stops += bool(heard.own) or any(one.breakpoints for one in heard.reasons)
        stay = self._react_to_all(heard, looked_at)
        if stay is None:
            return Outcome.STOP
        self.bell.sort_out(process, heard.rung, heard.own)
        if not stay and not self._calls.interrupted and presses():
            stay = True
            self._screen.emit(f"darc: {_PRESSED}")
        if stay or self._calls.interrupted:
            for reason in heard.own:
                self._forget_signal(process, reason.thread)
            self._user_stop(launching=heard.launching)
            return Outcome.STOP
        self._went_on = True
        self.life.guarded(self._inferior.callbacks.went_on)
        if self._inferior.watcher is not None:
            self._inferior.watcher.wait_for_stop()
        return Outcome.CONTINUE

    def _react_to_all(self, heard: _Heard, looked_at: frozenset[int]) -> bool | None:
        """Whether the program is to stay as it is, as far as it did not stop only for signals to be
        ``looked_at``; ``None``: it does not stand there any more."""
        stay = any(reason.users for reason in heard.reasons)
        stop_anyway = self.bell.stop_anyway
        for reason in heard.reasons:
            self._calls.prefer(reason.thread)
            if reason.signal in looked_at:
                continue
            if reason in heard.rung and reason not in heard.own:  # the program's own
                stay = reason.signal in stop_anyway or stay
                continue
            stay = self._react(reason, heard.numbers) is Outcome.STOP or stay
            if self._inferior.state is not State.STOPPED:
                return None
        return stay

    def _react(self, reason: Reason, bell: frozenset[int]) -> Outcome:
        """Does what darc itself stopped for; ``bell`` were its signals then."""
        if reason.signal in bell:
            return self.bell.reply()
        if reason.signal is not None:
            return self._at_signal(reason.signal, is_armed=bool(bell))
        own, outcomes = self._own, []
        if any(own.watches_modules(number) for number in reason.breakpoints):
            own.watch_modules(self._inferior.target)
            self._tidy()
            outcomes.append(self.life.modules_changed())
        if any(own.is_once(number) for number in reason.breakpoints):
            outcomes.append(self._arrived())
        outcomes += [self._hit(reason.thread, number) for number in reason.breakpoints]
        return Outcome.STOP if Outcome.STOP in outcomes else Outcome.CONTINUE

    def _at_signal(self, number: int, *, is_armed: bool) -> Outcome:
        """At one of the program's own; ``is_armed``: something is analysed."""
        pid = self._inferior.known
        is_awaited = is_armed and self._screen.is_script and number in ASKED_FOR
        if pid is None or not is_awaited or not procfs.catches(pid, number):
            return Outcome.STOP
        self._passed_on.tell(signal.Signals(number).name)
        if (process := self._inferior.process) is not None:
            self.bell.stop_no_more(process, number)
        return Outcome.CONTINUE

    def _arrived(self) -> Outcome:
        """At the place of the break that stops once."""
        handler = self._own.once_handler
        self._own.cancel_break()
        self._tidy()
        if handler is None:
            return Outcome.CONTINUE
        outcome = carry_out(handler, failed=self.life.tell, instead=Outcome.CONTINUE)
        if outcome is Outcome.CONTINUE:
            self.life.guarded(self._inferior.callbacks.goes_on)
        return outcome

    def _hit(self, thread: int, number: int) -> Outcome:
        """A break, with all threads stopped."""
        on_hit = self._own.on_hit(number)
        if on_hit is None:
            return Outcome.CONTINUE

        def react() -> Outcome:
            deferred = on_hit(thread)
            return Outcome.CONTINUE if deferred is None else deferred()

        return carry_out(react, failed=self.life.tell, instead=Outcome.STOP)

    def _forget_signal(self, process: lldb.SBProcess, thread: int) -> None:
        """Gives a thread another reason to stop than darc's own signal, which the user would see,
        and at which a batch run would end."""
        number = unblocked(int(process.GetProcessID()), thread)
        if number is None:
            return
        self.bell.keep(process, number, keeps=True)
        with (
            contextlib.suppress(TargetError),  # lldb has lost the program, or it has ended
            self._calls.errand(self._threads.find(thread)) as errand,
        ):
            errand.stand_anew(number)

    # -------------------------------------------------------- commands, and the user

    def catch_up(self) -> None:
        """Before a command: notices what lldb did not tell."""
        inferior = self._inferior
        self.departure.stands()
        # At other moments it may be another one: lldb changes it for a breakpoint's callback.
        self._asynchronous = bool(inferior.debugger.GetAsync())
        process = inferior.process
        alive = inferior.lives(process)
        if not alive and inferior.known is not None:
            self.life.ended(inferior.known)
        if alive and inferior.state is State.STOPPED:
            self.departure.now()
            self.life.meet(process)
            if self._told != _stop_of(process) and self._is_interrupted():
                self._interrupt_told()
        self.others.catch_up()
        self._tidy()

    def make_home(self) -> None:
        """What the user has selected is analysed from now on."""
        inferior = self._inferior
        inferior.make_home()
        process = inferior.process
        if inferior.lives(process):
            self.life.meet(process)
        elif inferior.known is not None:
            self.life.ended(inferior.known)
        self.others.catch_up()
        self._tidy()

    def _user_stop(self, *, launching: bool = False) -> None:
        """The program stands, for the user, at a stop; or ``launching``: lldb 22 calls its hooks
        also at the stop in which it finds the program that it has launched."""
        if self._went_on:
            # lldb 22 shows the frames of a stop after which a stop hook let the program go on.
            self._went_on = False
            self.life.guarded(self._frames.forget)
        self.life.guarded(self._inferior.callbacks.on_user_stop)
        if not launching:
            self.others.wake()
        self.wait()

    def wait(self) -> None:
        """The program stands still until the user lets it go on."""
        inferior = self._inferior
        if inferior.state is not State.STOPPED:
            return
        self.departure.stands()
        self._told = _stop_of(inferior.process)
        self._screen.style()
        self._users.note()
        if inferior.watcher is not None:
            inferior.watcher.wait_for_resume()

    def look_at_breakpoints(self) -> None:
        """Before the program goes on: see :meth:`LldbUserBreakpoints.changed`."""
        handler = self._users.changed()
        if handler is not None:
            self.life.guarded(handler)

    def _interrupt_told(self) -> None:
        self._screen.prompts()
        self._user_stop()

    def _is_interrupted(self) -> bool:
        """Whether nothing but the user's Ctrl-C stopped the program. It may also stand still for
        long in the callback of a breakpoint or at a watchpoint with commands, and go on afterwards:
        as it does, lldb knows of no thread any more why it stopped."""
        reasons = [Reason.of(thread, self._own) for thread in self._inferior.process]
        told = {reason.signal for reason in reasons if reason is not None}
        return bool(told) and told.issubset(signals.INTERRUPTS)

    def hears_stand(self) -> bool:
        """The watcher saw the program stand still and no stop hook was called: lldb calls none at
        the user's Ctrl-C. In synchronous mode there is no Ctrl-C, and lldb may not be asked. Of a
        stop that was told meanwhile there is nothing to say: lldb may be about to leave it."""
        inferior = self._inferior
        with inferior.lock:
            inferior.may_ask(True)
            if not self._asynchronous or inferior.watcher is None:
                return False
            if inferior.state is not State.STOPPED:
                return False
            stop = _stop_of(inferior.process)
            if self._told == stop:
                return True
            if self._decided is not None and self._decided[:2] == stop:
                return False  # the hook has looked at it: lldb is about to leave it
            is_left = not self._is_interrupted() or _stop_of(inferior.process) != stop
            if is_left or inferior.state is not State.STOPPED:
                return False
            self._interrupt_told()
            return True


def _stop_of(process: lldb.SBProcess) -> tuple[int, int]:
    """The process and the number of the stop that it is at."""
    return int(process.GetUniqueID()), int(process.GetStopID())
