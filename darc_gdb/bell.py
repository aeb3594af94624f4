"""The bell: a catchpoint for a signal that the agent, or darc itself, sends."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable

import gdb

from darc.debuggee import bell, procfs
from darc.debuggee.passedon import PassedOn
from darc.model.errors import TargetError
from darc.target.bell import Bell, reply
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_gdb import later, printed
from darc_gdb.deciding import Deciding, commands
from darc_gdb.inferiors import Inferiors
from darc_gdb.screen import GdbScreen, is_batch
from darc_gdb.threads import GdbThreads, selected
from darc_gdb.tracee import Tracee
from darc_gdb.translated import translated


class _Condition(gdb.Function):
    """The condition of the catchpoint for the bell's signal: with all threads stopped it lets darc
    decide, and in most cases the program goes on without the user's command noticing."""

    def __init__(self, bell: GdbBell) -> None:
        super().__init__("_darc_own_until_darc_stop")
        self._bell = bell

    def invoke(self, *_arguments: gdb.Value) -> int:
        stops = self._bell.rang()
        if stops:
            self._bell.about_to_stop()
        else:
            self._bell.goes_on_unseen()
        return int(stops)


@own_thread
class GdbBell(Bell):
    """A catchpoint whose condition decides."""

    def __init__(
        self,
        turn: Turn,
        inferiors: Inferiors,
        deciding: Deciding,
        *,
        threads: GdbThreads,
        screen: GdbScreen,
    ) -> None:
        self.turn = turn
        self._inferiors = inferiors
        self._deciding = deciding
        self._threads = threads
        self._screen = screen
        self._passed_on = PassedOn(screen.emit, stops_by="catch signal {}")
        self._catchpoint: gdb.Breakpoint | None = None
        self._handler: Callable[[], Outcome] | None = None
        self._signal = 0
        self._caught: frozenset[int] = frozenset()
        self._before = bell.EarlierBells()
        """Of these one of the program's may come while gdb is told to pass none on."""
        self._withheld: str | None = None
        """The signal that gdb is told not to pass on, as the one that it has now is darc's."""
        self._asked = False
        """Whether darc itself is about to stop the program."""
        self._leaving: Callable[[], None] | None = None
        """What the bell is to do now, as gdb is about to leave."""
        self._passed: frozenset[int] = frozenset()
        """Signals of :data:`~darc.debuggee.bell.ASKED_FOR` that are caught for that."""
        self._unstopped: dict[str, bool] = {}
        """Those that have come, at which gdb is told not to stop; and whether it told of them."""

    def announce(self) -> None:
        """Tells gdb of it."""
        _Condition(self)

    def owns(self, breakpoint_: gdb.Breakpoint) -> bool:
        """Whether it is the catchpoint."""
        return breakpoint_ is self._catchpoint

    def deleted(self, breakpoint_: gdb.Breakpoint) -> None:
        """'delete' takes darc's catchpoint with it: it is made anew before the program goes on."""
        if self.owns(breakpoint_):
            self._catchpoint = None

    def see_to_it(self) -> None:
        """The catchpoint is there, where there is to be one."""
        if self._handler is not None and self._catchpoint is None:
            self.arm(self._signal, self._handler)

    def is_owed(self, event: gdb.SignalEvent) -> bool:
        """Whether a stop for a signal is one at which the handler is to decide: some gdb tell of a
        catchpoint so."""
        names = {signal.Signals(number).name for number in self._caught}
        return self._deciding.owes(self.reply) and event.stop_signal in names

    @translated
    def arm(self, number: int, handler: Callable[[], Outcome]) -> None:
        self._handler = handler
        self._listen_to(number)
        self._deciding.bury()
        self._catch()

    def _listen_to(self, number: int) -> None:
        self._before.change(self._signal, number)
        self._signal = number

    def _catch(self) -> None:
        """gdb stops at the signal, which a thread sends itself, if :meth:`rang` says so; at the
        monitor's knock, too, and at what was the bell before."""
        caught = frozenset({self._signal})
        if self._signal != signal.SIGINT:
            self._passed = _stopped_at(bell.ASKED_FOR) if is_batch() else frozenset()
            caught |= {bell.KNOCK, *self._before, *self._passed}
        if self._catchpoint is not None and self._catchpoint.is_valid():
            if self._caught == caught:
                return
            self._catchpoint.delete()
        self._caught = caught
        names = " ".join(signal.Signals(number).name for number in caught)
        gdb.execute(f"catch signal {names}", to_string=True)
        made = int(gdb.parse_and_eval("$bpnum"))
        self._catchpoint = next(b for b in gdb.breakpoints() if b.number == made)
        self._catchpoint.condition = "$_darc_own_until_darc_stop()"
        self._catchpoint.commands = commands()

    @translated
    def change(self, number: int) -> None:
        self._listen_to(number)
        self._catch_anew()

    def _catch_anew(self) -> None:
        self._catch_no_more()
        self._catch()

    def _catch_no_more(self) -> None:
        """Also while gdb is looking at the catchpoint: one that is still there until gdb looks
        elsewhere would let darc decide a second time at each signal."""
        before, self._catchpoint = self._catchpoint, None
        if before is not None and before.is_valid():
            before.enabled = False
            self._deciding.doom(before)

    def forget(self) -> None:
        """The program is gone, and what was sent to it."""
        self._before.forget()
        if self._handler is None:
            self._signal = 0

    def pass_again(self) -> None:
        """What :meth:`_is_programs` withheld is over."""
        withheld, self._withheld = self._withheld, None
        if withheld is not None:
            gdb.execute(f"handle {withheld} pass", to_string=True)

    def _is_programs(self) -> bool:
        """Whether the signal that gdb has now is one of the program's own, which it hears or is to
        be stopped by. One of darc's is not passed on then, whether the program has a handler for
        it or not: a thread that gdb lets go on first may set one."""
        self.pass_again()
        pid = int(gdb.selected_inferior().pid)
        if not pid or self._signal == signal.SIGINT:
            return False
        now, is_marked = _signal_now()
        if is_marked:
            self._withhold(signal.Signals(now).name)
            return False
        is_other = now == bell.KNOCK or now in self._before or now in self._passed
        return is_other or procfs.catches(pid, self._signal)

    def _withhold(self, name: str) -> None:
        if printed.handling(name)[2]:
            gdb.execute(f"handle {name} nopass", to_string=True)
            self._withheld = name

    def _leave_to_program(self) -> None:
        """Signals that were the bell, where none of darc's is under way: a program that gets many
        is not to stop for each."""
        late = self._before.late
        if not late or not self._deciding.all_stop:
            return
        pid = int(gdb.selected_inferior().pid)
        over = {n for n in late if not procfs.is_pending(pid, n) and not _is_held(pid, n)}
        if over:
            self._before.leave(over)
            self._catch_anew()

    def _stops_for_user(self) -> bool:
        """Whether it does at the program's own signal that gdb has now."""
        now = _signal_now()[0]
        if now not in self._caught or (now != bell.KNOCK and now not in self._passed):
            return False
        name = signal.Signals(now).name
        if now in self._passed and procfs.catches(int(gdb.selected_inferior().pid), now):
            self._passed_on.tell(name)
            self._stop_no_more(name)
            return False
        stops, tells, _ = printed.handling(name)
        if tells:
            gdb.write(f"\nThread received signal {name}.\n")
        return self._deciding.stays(Outcome.STOP if stops else Outcome.CONTINUE)

    def _stop_no_more(self, name: str) -> None:
        """gdb passes it on by itself until :meth:`disarm`: where it comes more often than gdb stops
        and goes on, handlers that may be interrupted by it are nested until there is no stack."""
        _, tells, _ = printed.handling(name)
        self._unstopped[name] = tells
        gdb.execute(f"handle {name} nostop noprint pass", to_string=True)
        self._catch_anew()

    def _stop_again(self) -> None:
        for name, tells in self._unstopped.items():
            if printed.handling(name) == (False, False, True):  # else the user has said otherwise
                gdb.execute(f"handle {name} stop {'' if tells else 'no'}print", to_string=True)
        self._unstopped.clear()

    def arm_interrupt(self, handler: Callable[[], Outcome]) -> None:
        """``handler`` decides, with all threads stopped, after :meth:`interrupt`. The user's own
        Ctrl-C stops as always. Taken back by :meth:`disarm`."""

        def decide() -> Outcome:
            asked, self._asked = self._asked, False
            if asked:
                return handler()
            return self._interrupted()

        self._asked = False
        self.arm(signal.SIGINT, decide)

    def _interrupted(self) -> Outcome:
        gdb.write("\nProgram received signal SIGINT, Interrupt.\n")
        self._inferiors.callbacks.hold_still()
        return Outcome.STOP

    @any_thread
    def interrupt(self) -> None:
        """Stops the program for the handler of :meth:`arm_interrupt`, if it runs. Any thread."""
        later.post(self._interrupt)

    def _interrupt(self) -> None:
        if self._handler is not None and _runs():
            self._asked = True
            gdb.execute("interrupt", to_string=True)

    @translated
    def disarm(self) -> None:
        self._handler = None
        self._stop_again()
        self._catch_no_more()
        self._deciding.bury()

    @any_thread
    def leave(self, leave: Callable[[], None]) -> None:
        """gdb is about to leave: that is what the bell does when it rings next."""
        self._leaving = leave

    def about_to_stop(self) -> None:
        """gdb is going to tell of a stop, before it tells anybody else of it."""
        self._screen.clear()

    def goes_on_unseen(self) -> None:
        """gdb is about to let the program go on, and tells nobody."""
        self._deciding.goes_on_unseen()

    def rang(self) -> bool:
        """The catchpoint's condition: whether gdb is to stop for real."""
        if self._deciding.errand:
            return True
        if self._handler is None and self._signal == signal.SIGINT:
            return self._interrupted() is Outcome.STOP  # the catchpoint is not buried yet
        hears = self._handler is not None and self._inferiors.is_home(gdb.selected_inferior())
        if self._is_programs():
            if hears:
                self._leave_to_program()
            return self._stops_for_user()
        if not hears:
            return False
        self._deciding.stopped_for_darc()
        if not self._deciding.all_stop:
            return self._deciding.owe(self.reply)
        self._threads.moved()
        with self._deciding.undisturbed():
            return self._deciding.stays(self.reply())

    def reply(self) -> Outcome:
        """What the handler decides."""
        if self._handler is None:
            return Outcome.CONTINUE
        if self._leaving is not None:
            leave, self._leaving = self._leaving, None
            with self._deciding.undisturbed():
                leave()
            return Outcome.CONTINUE
        with self._deciding.undisturbed():
            return reply(
                self._handler, follow_up=self._follow_up, failed=self._inferiors.callbacks.failed
            )

    def _follow_up(self) -> Outcome:
        """What becomes of the program where another analysis may follow by itself."""
        if self._inferiors.callbacks.follow_up() is Outcome.STOP:
            return Outcome.STOP
        self._inferiors.callbacks.goes_on()
        self._inferiors.callbacks.went_on()  # gdb tells of users' commands alone
        return Outcome.CONTINUE


def _stopped_at(numbers: Iterable[int]) -> frozenset[int]:
    """Those of these signals at which gdb stops, and which it passes on then."""
    found = {number: printed.handling(signal.Signals(number).name) for number in numbers}
    return frozenset(number for number, (stops, _, passes) in found.items() if stops and passes)


def _signal_now() -> tuple[int, bool]:
    """The number of the signal that gdb has now, and whether that bears darc's mark; 0: gdb does
    not tell."""
    try:
        info = gdb.convenience_variable("_siginfo")
        if info is None:
            return 0, False
        value = info["_sifields"]["_rt"]["si_sigval"]["sival_ptr"]
        return int(info["si_signo"]), bell.is_marked(int(info["si_code"]), int(value))
    except gdb.error:
        return 0, False


def _is_held(pid: int, number: int) -> bool:
    """Whether gdb has stopped a thread with darc's signal, which it has not told of yet."""
    held = set()
    for thread in procfs.threads(pid):
        with contextlib.suppress(TargetError):  # it has ended
            held.add(Tracee(pid, thread).held())
    return (number, True) in held


def _runs() -> bool:
    if not gdb.selected_inferior().pid:
        return False
    thread = selected()
    return thread is None or not thread.is_valid() or thread.is_running()
