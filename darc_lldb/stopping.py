"""What is done where the program stops, goes on and ends.

Everything happens in lldb's stop hook (:mod:`darc_lldb.stophook`), which is called at every stop
that lldb would show, with all threads stopped, on whichever thread lldb handles its events. There
memory may be written and functions called, and the program goes on, without the user's command
noticing, when the hook says so. A breakpoint's callback would not do: functions may not be called
in it.

The watcher tells of what lldb calls no hook for: the user's Ctrl-C, that it goes on, its end.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable

import lldb

from darc.debuggee import beside, procfs
from darc.debuggee.bell import ASKED_FOR, unblocked
from darc.debuggee.passedon import PassedOn
from darc.model.errors import TargetError
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn
from darc.target.target import State
from darc_lldb import release, signals
from darc_lldb.bell import LldbBell
from darc_lldb.calls import Calls
from darc_lldb.frames import LldbFrames
from darc_lldb.inferior import Inferior
from darc_lldb.leaving import Leaving
from darc_lldb.otherhooks import OtherHooks
from darc_lldb.ownstops import OwnBreakpoints, Reason
from darc_lldb.screen import LldbScreen
from darc_lldb.threads import LldbThreads
from darc_lldb.user_breaks import LldbUserBreakpoints
from darc_lldb.watcher import Watcher

_TELLS_OF_OTHERS = 22
"""The release of lldb that is known to stop a program whose first thread has ended."""
_LET_GO = (
    "the first thread of process {pid} has ended, for which this lldb waits at every stop for "
    "ever: it was made to let the program go, which lives; {left}"
)
_CLEAN = "nothing of darc's is in its code"
_ASLEEP = "the probes in it sleep"


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
        self.leaving = Leaving(inferior, self.guarded)
        self.modules_handler: Callable[[], Outcome] | None = None
        self.own_stops = 0
        self._asynchronous = False
        self._told: tuple[int, int] | None = None
        self._release: str | None = None
        self._went_on = False
        self._passed_on = PassedOn(screen.emit)
        self._decided: tuple[int, int, Outcome] | None = None

    def _follow_up(self) -> Outcome:
        outcome = self._inferior.callbacks.follow_up()
        if outcome is Outcome.CONTINUE:
            self._inferior.callbacks.goes_on()
        return outcome

    def guarded(self, function: Callable[[], None]) -> None:
        """Runs something on behalf of lldb, where nobody would see its exception."""
        try:
            function()
        except Exception as error:  # told to the user, in one place
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        """What failed; or that lldb has the program no more, of which it may not know itself."""
        pid = self._inferior.known
        if pid is not None and isinstance(error, TargetError) and procfs.is_let_go(pid):
            self.ended(pid)
        else:
            self._inferior.callbacks.failed(error)

    # ----------------------------------------------------------------- lldb's hook

    def at_stop(self, thread: lldb.SBThread) -> Outcome:
        """The stop hook, which lldb calls for each thread with a reason to stop. ``STOP``: the
        program stays as it is."""
        process = thread.GetProcess()
        if self._calls.at_work or not self._inferior.is_home(process.GetTarget()):
            return Outcome.STOP
        self.leaving.goes_on = False
        if self.leaving.is_wanted:
            self.leaving.now()
            return Outcome.STOP
        key = _stop_of(process)
        if self._decided is None or self._decided[:2] != key:
            self._calls.in_hook = True
            try:
                with self._inferior.staying():
                    outcome = self._look(process)
            finally:
                self._calls.in_hook = False
                self._calls.thread = None
            self._decided = (key[0], int(process.GetStopID()), outcome)
        self.leaving.goes_on = self._decided[2] is Outcome.CONTINUE
        return self._decided[2]

    def _look(self, process: lldb.SBProcess) -> Outcome:
        self._meet(process)
        self._calls.interrupted = False
        looked_at = self.bell.pass_again(process)
        bell = self.bell.numbers
        self._inferior.unwatch()
        # A call changes what lldb knows of its thread's stop: all are looked at before.
        reasons = [reason for t in process if (reason := Reason.of(t, self._own)) is not None]
        stay = any(reason.users for reason in reasons)
        launching = self._own.awaits_start and all(r.signal in signals.INTERRUPTS for r in reasons)
        rung = [reason for reason in reasons if reason.signal in bell]
        own = [reason for reason in rung if self.bell.is_own(process, reason)]
        if any(thread.GetStopReason() == lldb.eStopReasonExec for thread in process):
            self._executed()
        self.own_stops += bool(own) or any(reason.breakpoints for reason in reasons)
        stop_anyway = self.bell.stop_anyway
        for reason in reasons:
            self._calls.thread = reason.thread
            if reason.signal in looked_at:
                continue
            if reason in rung and reason not in own:  # the program's own
                stay = reason.signal in stop_anyway or stay
                continue
            stay = self._react(reason, bell) is Outcome.STOP or stay
            if self._inferior.state is not State.STOPPED:
                return Outcome.STOP
        if own != rung:
            self.bell.leave_to_program(process, own)
        for number in {reason.signal for reason in rung if reason.signal is not None}:
            others = [r for r in rung if r.signal == number and r not in own]
            self.bell.keep(process, number, keeps=not others)
        if stay or self._calls.interrupted:
            for reason in own:
                self._forget_signal(process, reason.thread)
            self._user_stop(launching=launching)
            return Outcome.STOP
        self._went_on = True
        self.guarded(self._inferior.callbacks.went_on)
        if self._inferior.watcher is not None:
            self._inferior.watcher.wait_for_stop()
        return Outcome.CONTINUE

    def _executed(self) -> None:
        """The process executes another file, in which nothing is at its place."""
        self._threads.forget()
        self._tell_modules()

    def _tell_modules(self) -> Outcome:
        try:
            handler = self.modules_handler
            return Outcome.CONTINUE if handler is None else handler()
        except Exception as error:  # told to the user, in one place
            self._tell(error)
            return Outcome.CONTINUE

    def _react(self, reason: Reason, bell: frozenset[int]) -> Outcome:
        """Does what darc itself stopped for; ``bell`` were its signals then."""
        if reason.signal in bell:
            return self.bell.answer()
        if reason.signal is not None:
            return self._at_signal(reason.signal, is_armed=bool(bell))
        own, outcomes = self._own, []
        if any(own.watches_modules(number) for number in reason.breakpoints):
            own.watch_modules(self._inferior.target)
            self._tidy()
            outcomes.append(self._tell_modules())
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
        try:
            outcome = handler()
        except Exception as error:  # told to the user, in one place
            self._tell(error)
            outcome = Outcome.CONTINUE
        if outcome is Outcome.CONTINUE:
            self.guarded(self._inferior.callbacks.goes_on)
        return outcome

    def _hit(self, thread: int, number: int) -> Outcome:
        """A break, with all threads stopped."""
        on_hit = self._own.on_hit(number)
        if on_hit is None:
            return Outcome.CONTINUE
        try:
            deferred = on_hit(thread)
            return Outcome.CONTINUE if deferred is None else deferred()
        except Exception as error:  # told to the user, in one place
            self._tell(error)
            return Outcome.STOP

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

    def settle(self) -> None:
        """Before a command: notices what lldb did not tell."""
        inferior = self._inferior
        self.leaving.goes_on = False
        # At other moments it may be another one: lldb changes it for a breakpoint's callback.
        self._asynchronous = bool(inferior.debugger.GetAsync())
        process = inferior.process
        alive = inferior.lives(process)
        if not alive and inferior.known is not None:
            self.ended(inferior.known)
        if alive and inferior.state is State.STOPPED:
            self.leaving.now()
            self._meet(process)
            if self._told != _stop_of(process) and self._is_interrupted():
                self._interrupt_told()
        self.others.settle()
        self._tidy()

    def settle_here(self) -> None:
        """What the user has selected is analysed from now on."""
        inferior = self._inferior
        inferior.settle_here()
        process = inferior.process
        if inferior.lives(process):
            self._meet(process)
        elif inferior.known is not None:
            self.ended(inferior.known)
        self.others.settle()
        self._tidy()

    def _user_stop(self, *, launching: bool = False) -> None:
        """The program stands, for the user, at a stop; or ``launching``: lldb 22 calls its hooks
        also at the stop in which it finds the program that it has launched."""
        if self._went_on:
            # lldb 22 shows the frames of a stop after which a stop hook let the program go on.
            self._went_on = False
            self.guarded(self._frames.forget)
        self.guarded(self._inferior.callbacks.on_user_stop)
        if not launching:
            self.others.wake()
        self.wait()

    def wait(self) -> None:
        """The program stands still until the user lets it go on."""
        inferior = self._inferior
        if inferior.state is not State.STOPPED:
            return
        self.leaving.goes_on = False
        self._told = _stop_of(inferior.process)
        self._screen.style()
        self._users.note()
        if inferior.watcher is not None:
            inferior.watcher.wait_for_resume()

    def look_at_breakpoints(self) -> None:
        """Before the program goes on: see :meth:`LldbUserBreakpoints.changed`."""
        handler = self._users.changed()
        if handler is not None:
            self.guarded(handler)

    def _interrupt_told(self) -> None:
        self._screen.prompts()
        self._user_stop()

    def _is_interrupted(self) -> bool:
        """Whether nothing but the user's Ctrl-C stopped the program. It may also stand still for
        long in the callback of a breakpoint, and go on afterwards."""
        reasons = (Reason.of(thread, self._own) for thread in self._inferior.process)
        return all(r is None or r.signal in signals.INTERRUPTS for r in reasons)

    # ---------------------------------------------------------- a process, and its end

    def _meet(self, process: lldb.SBProcess) -> None:
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
            inferior.watcher = Watcher(pid, self)
        except ProcessLookupError:
            return  # it was killed, and lldb is about to notice
        inferior.meet(process)

    def ended(self, pid: int) -> None:
        """The watcher saw the process end, or that nobody traces it; or lldb told so."""
        inferior = self._inferior
        with inferior.lock:
            watcher = inferior.watcher
            if watcher is not None and threading.current_thread() is watcher.thread:
                inferior.may_ask(False)
            if pid != inferior.known:
                return
            inferior.known = None
            if watcher is not None:
                watcher.close()
            self._own.forget_places()
            self.others.are_free = True
            lost = not procfs.is_gone(pid)
            callbacks = inferior.callbacks
            why, self._release = self._release, None
            tell = functools.partial(callbacks.lost, pid, why)
            self.guarded(tell if lost else callbacks.end)
            self.bell.forget()

    def resumed(self) -> None:
        """The watcher saw the program go on."""
        self._inferior.may_ask(False)
        self.guarded(self._inferior.callbacks.went_on)

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

    def stands(self) -> bool:
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
