"""darc decides while gdb asks whether to stop, or as soon as it can behind that.

gdb asks in the middle of a stop, with all threads standing still where that is set. Then darc does
its work there and nobody else hears of it. Else gdb is to stop: the work is owed, and done when all
other handlers of the stop have been called, or by the commands of darc's breakpoints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import gdb

from darc.target.outcome import Outcome, carry_out
from darc.target.ownthread import Turn, own_thread
from darc_gdb import ctrlc, later, printed
from darc_gdb.asked import as_a_command
from darc_gdb.inferiors import Inferiors
from darc_gdb.memory import GdbMemory
from darc_gdb.screen import has_front_end
from darc_gdb.threads import GdbThreads, selected

_AT_STOP = """python __import__('darc_gdb.target').target.TARGET.deciding.after_stop()
if $_darc_goes
continue
end"""
"""Commands of a breakpoint are code of the user's main module. The program goes on by a command of
gdb's own: Python would wait there for the next stop, and gdb carries out no breakpoint's commands
within another's."""


@own_thread
class Deciding:
    """A decision at a stop of darc's own, and what becomes of the program then."""

    def __init__(
        self, turn: Turn, inferiors: Inferiors, memory: GdbMemory, threads: GdbThreads
    ) -> None:
        self.turn = turn
        self._inferiors = inferiors
        self._memory = memory
        self._threads = threads
        self._is_at_work = False
        self._doomed: list[gdb.Breakpoint] = []
        self._owed: Callable[[], Outcome] | None = None
        """What is to be done as soon as all threads stand still."""
        self._too_early = False
        """Whether a breakpoint's commands were carried out before that was done."""
        self._goes = False
        """Whether the program is to go on when its stop has been told to everybody."""
        self._is_told = False
        """Whether all handlers have heard of a stop that is darc's own."""
        self.all_stop = False
        """Whether all threads stand still when gdb asks."""
        self.own_stops = 0
        """See :attr:`darc.target.target.Target.own_stops`."""
        self.unseen = 0
        """From how many stops the program has gone on, or is about to, of which nobody hears."""
        self.errand = False
        """Whether the program runs for darc's sake alone."""

    def announce(self) -> None:
        """Asks gdb for what is best."""
        self.all_stop = _ask_all_stop()

    def stopped_for_darc(self) -> None:
        """The program has stopped for darc's sake, whether anybody hears of it or not."""
        self.own_stops += 1

    def goes_on_unseen(self) -> None:
        """gdb is about to let the program go on, and tells nobody."""
        self.unseen += 1

    @contextlib.contextmanager
    def on_errand(self) -> Iterator[None]:
        """The program runs for darc's sake alone: to a place, or through a function."""
        self.errand = True
        try:
            yield
        finally:
            self.errand = False

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nothing is deleted meanwhile, as gdb is looking at it, and Ctrl-C in the middle of a
        patch has to wait until the patch is whole."""
        was, self._is_at_work = self._is_at_work, True
        try:
            with (
                ctrlc.waits(),
                self._memory.unnoticed() if self.all_stop else contextlib.nullcontext(),
            ):
                yield
        finally:
            self._is_at_work = was

    def stays(self, outcome: Outcome) -> bool:
        """Whether the program stops for the user. Then other handlers are to find the program's own
        code and stacks, and what darc has to say comes behind all that they show: one that clears
        the screen would take it away."""
        if outcome is not Outcome.STOP:
            return False
        self._inferiors.callbacks.guarded(self._inferiors.callbacks.before_stop)
        self._inferiors.callbacks.hears_stops_last()
        return True

    def owe(self, work: Callable[[], Outcome]) -> bool:
        """gdb is to stop: ``work`` waits until all threads stand still."""
        self._owed, self._too_early, self._goes, self._is_told = work, False, False, False
        self._inferiors.callbacks.hears_stops_last()
        return True

    @property
    def is_concerned(self) -> bool:
        """Whether the program has stopped for darc's sake, and may go on."""
        return self.errand or self._owed is not None

    def take_stop(self, is_own: bool) -> Outcome:
        """See :meth:`darc_gdb.handlers.EventHandlers.take_stop`; ``is_own``: it is darc's alone."""
        if self.errand:
            return Outcome.CONTINUE
        if is_own and self._owed is not None and not self._too_early:
            self._is_told = True  # so the commands may do it
            return Outcome.CONTINUE
        owed, self._owed = self._owed, None
        if owed is None:
            return Outcome.STOP
        with self._memory.handling():
            outcome = self._do(owed)
        if outcome is Outcome.STOP or not is_own:
            return Outcome.STOP
        self._goes = True
        if self._too_early:
            later.post(self._go_on)
        return Outcome.CONTINUE

    def after_stop(self) -> None:
        """The commands of darc's breakpoints. gdb carries them out when everybody was told of the
        stop, or in the middle of that, behind any command that one of those has executed."""
        as_a_command(self._after_stop)

    def _after_stop(self) -> None:
        gdb.set_convenience_variable("_darc_goes", 0)
        if self._owed is not None and self._is_told:
            self._do_what_is_owed()
        elif self._owed is not None or self._memory.in_handlers:
            self._too_early = True
        elif self._goes:
            self._goes = False
            _let_go_on()
        elif not has_front_end():
            _show_frame()

    def _do_what_is_owed(self) -> None:
        owed, self._owed = self._owed, None
        assert owed is not None
        if self._do(owed) is Outcome.CONTINUE:
            _let_go_on()
            return
        self._inferiors.callbacks.on_user_stop()
        if not has_front_end():
            _show_frame()

    def _do(self, owed: Callable[[], Outcome]) -> Outcome:
        self._threads.moved()
        return carry_out(owed, failed=self._inferiors.callbacks.failed, instead=Outcome.STOP)

    def before_prompt(self) -> None:
        """Goes on from stops whose commands gdb has carried out too early. No front end has a
        prompt, nor has a script."""
        while self._goes:
            self._go_on()

    def _go_on(self) -> None:
        goes, self._goes = self._goes, False
        if goes and _stands():
            gdb.execute("continue")

    def owes(self, work: Callable[[], Outcome]) -> bool:
        """Whether that is what is to be done."""
        return self._owed == work

    def forget(self) -> None:
        """The program is gone."""
        self._owed, self._goes = None, False

    def doom(self, breakpoint_: gdb.Breakpoint) -> None:
        """It is to be deleted, as soon as gdb does not look at it."""
        self._doomed.append(breakpoint_)

    def bury(self) -> None:
        """Deletes what could not be deleted while gdb was looking at it, if it is not now."""
        if self._is_at_work:
            return
        for breakpoint_ in self._doomed:
            if breakpoint_.is_valid():
                breakpoint_.delete()
        self._doomed.clear()


def commands() -> str:
    """The commands of darc's breakpoints. To a front end gdb tells where a silent stop is not."""
    return _AT_STOP if has_front_end() else f"silent\n{_AT_STOP}"


def _let_go_on() -> None:
    """When these commands of a breakpoint are over, the program does."""
    gdb.set_convenience_variable("_darc_goes", int(_stands()))


def _show_frame() -> None:
    """Whatever prints its arguments may take a while, and Ctrl-C ends that alone. Where gdb draws
    windows, what it is asked for in Python goes past them to the terminal (``execute_gdb_command``
    in its ``python.c`` takes the console's output)."""
    as_a_command(_write_frame if printed.has_windows() else lambda: gdb.execute("frame"))


def _write_frame() -> None:
    gdb.write(printed.frame())


def _ask_all_stop() -> bool:
    """All threads are to stand still whenever one reports an event. Only settable before there
    is a program; without it darc decides at real stops."""
    with contextlib.suppress(gdb.error):
        gdb.execute("maint set target-non-stop off", to_string=True)
    return printed.stops_all()


def _stands() -> bool:
    thread = selected()
    return thread is not None and thread.is_valid() and not thread.is_running()
