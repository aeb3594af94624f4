"""What becomes of gdb's events: who of the target's parts hears of stops, of going on and of the
program's end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gdb

from darc.model.bare import Bare
from darc.target.outcome import Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_gdb.bell import GdbBell
from darc_gdb.breaks import GdbBreaks
from darc_gdb.deciding import Deciding
from darc_gdb.inferiors import Inferiors
from darc_gdb.loadedfiles import LoadedFiles
from darc_gdb.screen import GdbScreen
from darc_gdb.stopsignal import StopSignal
from darc_gdb.threads import GdbThreads, selected, tid
from darc_gdb.user_breaks import GdbUserBreakpoints


@own_thread
class EventHandlers:
    """Of the program that gdb has selected."""

    def __init__(  # noqa: PLR0913 - as many hear of events, and none of these belong together
        self,
        turn: Turn,
        *,
        screen: GdbScreen,
        inferiors: Inferiors,
        threads: GdbThreads,
        deciding: Deciding,
        bell: GdbBell,
        breaks: GdbBreaks,
        user_breaks: GdbUserBreakpoints,
        files: LoadedFiles,
    ) -> None:
        self.turn = turn
        self._screen = screen
        self._inferiors = inferiors
        self._threads = threads
        self._deciding = deciding
        self._bell = bell
        self._breaks = breaks
        self._user_breaks = user_breaks
        self._files = files
        self.signal = StopSignal()
        self.resumed = 0
        """How often gdb has told that it lets the program go on."""
        self.is_let_go = False
        """Whether the user has let it go on without probes, and not by steps."""
        self._own_stops = 0
        """How many stops of darc's own there had been at the latest for the user."""

    def all(self) -> Sequence[tuple[Any, Callable[[Any], None]]]:
        """What to connect with which of gdb's events."""
        events = gdb.events
        found = [
            (events.new_objfile, self._files.changed),
            (events.breakpoint_created, self._user_breaks.heard_of),
            (events.breakpoint_deleted, self._bell.deleted),
            (events.breakpoint_deleted, lambda _breakpoint: self._user_breaks.moved()),
            (events.breakpoint_modified, self._heard_of),
            (events.memory_changed, lambda _event: self._threads.moved()),
            (events.cont, lambda _event: self._went_on()),
        ]
        if hasattr(events, "inferior_call"):
            found.append((events.inferior_call, self._user_breaks.hits.on_call))
        if hasattr(events, "free_objfile"):
            found.append((events.free_objfile, self._files.changed))
        return found

    def _heard_of(self, breakpoint_: gdb.Breakpoint) -> None:
        """It was changed, or hit: gdb counts that before it writes of a stop."""
        if breakpoint_.number > 0:
            self._screen.live(None)
        self._user_breaks.heard_of(breakpoint_)

    # -------------------------------------------------------------------- it goes on

    @property
    def dies(self) -> bool:
        """Whether the program stands where it has stopped for a signal that will probably be its
        end."""
        is_still_there = self._own_stops == self._deciding.own_stops
        return is_still_there and self.signal.ends(int(gdb.selected_inferior().pid) or None)

    @property
    @any_thread
    def bare(self) -> Bare:
        """By what the program runs without probes. Any thread."""
        if not self.is_let_go:
            return Bare.STEPS
        return Bare.LET_GO if self.signal.is_handled is None else Bare.SIGNAL

    @property
    @any_thread
    def goes_on_unseen(self) -> bool:
        """Whether probes that are out are to come back, as it may have been let go on and not by
        steps. Any thread."""
        if self.is_let_go:
            return self.signal.is_handled is not False
        return self._screen.is_driven

    def goes_to_its_end(self) -> None:
        """The user lets it go on from where :attr:`dies` is so."""
        self.signal.goes_on()
        self.lets_go()

    def continues(self) -> None:
        """The user lets the program go on by 'continue'."""
        self.is_let_go = False

    def lets_go(self) -> None:
        """The user lets it go on in another way than by 'continue' and by steps."""
        self.is_let_go = True

    def _went_on(self) -> None:
        self._bell.pass_again()
        self._threads.moved()
        self._user_breaks.moved()
        self._inferiors.went_on()
        self.resumed += 1
        self._user_breaks.hits.forget()
        self._screen.went_on()

    # --------------------------------------------------------------------- it stops

    def stands(self, event: gdb.StopEvent) -> None:
        """Every stop of the program."""
        self._own_stops = self._deciding.own_stops
        self._screen.stands()
        self._files.go_on()
        pid, thread = int(gdb.selected_inferior().pid) or None, selected()
        self.signal.stands(event, pid, None if thread is None else tid(thread))

    def take_stop(self, event: gdb.StopEvent) -> Outcome:
        """At a stop, after all other handlers, which may do what they like, but not let the program
        go on: it goes on by itself where the stop is darc's alone."""
        return self._deciding.take_stop(self._is_own(event))

    def _is_own(self, event: gdb.StopEvent) -> bool:
        """Whether nothing but breakpoints of darc's has stopped the program."""
        if isinstance(event, gdb.SignalEvent):
            return self._bell.is_owed(event)
        if not isinstance(event, gdb.BreakpointEvent):
            return False
        return all(self._breaks.owns(b) or self._bell.owns(b) for b in event.breakpoints)

    def at_prompt(self, *, runs: bool = False) -> None:
        """Before every prompt and at every stop for the user; ``runs``: the program does, which was
        let go on with '&'."""
        self.is_let_go = self.is_let_go and runs
        self._inferiors.stands()
        self._threads.moved()
        self._deciding.bury()

    def ended(self) -> None:
        """The program is gone, and what was set at its addresses."""
        self._threads.moved()
        self._files.go_on()
        self._deciding.forget()
        self._bell.forget()
        self._breaks.forget()
