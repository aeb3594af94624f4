"""A thread that runs while the program does: signs of life for the pads, the live line, and the
time limit. It never asks the debugger (:mod:`darc.target.ownthread`), only memory and signals.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import threading
import time
from collections.abc import Callable

from darc.model.errors import DarcError
from darc.session.session import Session
from darc.target.ownthread import begin_thread
from darc.target.target import Target
from darc.views.general.live import live, untimed
from darc.views.style import Style
from darc.views.words import Shown

_TICK_SECONDS = 0.1
"""Half of what a sign of life counts for (``darc/debuggee/process_pads.py``)."""

_FIRST_LOOK = 0.001
"""Seconds until the first look at the profile."""

_LEAST_WAIT = 0.0005
"""Between two looks."""

_GRACE_SECONDS = 0.2
"""How long an agent that may not ring by itself waits before it is done for it."""

_KEPT_SECONDS = 0.3
"""A Ctrl-C that waits in the program for so long has found no thread that takes it."""

_AGAIN = 1.0
"""Seconds between two knocks, where only the debugger can stop the program and has not yet."""

_RINGING_SECONDS = 3.0
"""How long one that may ring has for it, on a busy machine."""


_TERMINAL = 2
"""The descriptor of the debugger's on which the line is."""

_RARER, _LONGEST_BETWEEN = 3.0, 60.0
"""By how much the time between lines that stay grows, and the longest there is, in seconds."""

_FIRST_IN_SCRIPTS = 10.0
"""Seconds before the first of them where there is no terminal: most searches are over by then."""

_BETWEEN_LOOKS = 1.0
"""Seconds between looks, in scripts, whether calls come that cannot be timed."""

_BARE_SECONDS = 1.0
"""What runs for longer without probes under a front end was not let go on for a step."""

_DEEP_SECONDS = 1.0
"""How long a stop is put off while a thread is in a wait that no signal ends."""

_DEEP_NOTE = (
    "a thread waited for a child of its vfork, or for a device, for longer than a second: the "
    "program was stopped all the same, until it came back"
)


class Monitor:
    """One thread, from its making until :meth:`stop`."""

    def __init__(self, session: Session, target: Target, style: Style) -> None:
        """``style`` is that of the live line, as the debugger has it now."""
        self._session = session
        self._style = style
        self._columns = _columns()
        self._target = target
        self._done = threading.Event()
        self._deep_since: float | None = None
        self._knocked = -_AGAIN
        self._kept_since = math.inf if self._keeps_interrupt else None
        """Since when a Ctrl-C waits in the program; inf: that was heard of."""
        self._stops = 0
        """How many there had been by then."""
        self._has_line = target.screen.has_live_line
        self._between = 1.0 if self._has_line else _FIRST_IN_SCRIPTS / _RARER
        self._next_untimed = -math.inf
        self._next_line = -math.inf if self._has_line else time.monotonic() + _FIRST_IN_SCRIPTS
        self._thread = begin_thread(self._run, "darc")
        if session.debuggee.is_readable_while_it_runs:
            begin_thread(self._help, "darc ahead")

    def stop(self) -> None:
        """Waits for the thread to end, and takes the live line away."""
        self._done.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._target.screen.live(None)

    def _help(self) -> None:
        """Prepares for decisions, on a thread of its own: a step may take longer than there may be
        between two signs of life. It ends by itself, soon after :meth:`stop`."""
        wait = _FIRST_LOOK
        while not self._done.wait(wait) and self._session.alive:
            wait = _TICK_SECONDS
            with contextlib.suppress(DarcError):  # the program is gone, or its tables are damaged
                wait = min(self._session.background.look_ahead(), _TICK_SECONDS)

    def _stands(self) -> bool:
        """Whether the debugger has stopped the program: it may be telling so at this moment."""
        return self._session.debuggee.is_stopped()

    def _run(self) -> None:
        begin = time.monotonic()
        late_since: float | None = None
        next_tick = begin + _TICK_SECONDS
        wait = _FIRST_LOOK
        while not self._done.wait(wait):
            session = self._session
            if not session.alive:
                return
            try:
                look = (
                    session.background.look()
                    if session.debuggee.is_readable_while_it_runs
                    else _TICK_SECONDS
                )
                now = time.monotonic()
                if session.background.urgent is not None:
                    look = self._stop_in(session.background.urgent, now, look)
                wait = min(max(look, _LEAST_WAIT), max(next_tick - now, 0))
                if now < next_tick:
                    continue
                next_tick = now + _TICK_SECONDS
                wait = min(max(look, _LEAST_WAIT), _TICK_SECONDS)
                if session.debuggee.is_readable_while_it_runs:
                    session.beat()
                if now - begin >= 1 and not self._stands():
                    self._show(now)
                self._hear_interrupt(now)
                late_since = self._knock(late_since, now)
            except AssertionError:
                raise  # the debugger was asked, from here
            except Exception as error:  # the program is gone, or has written over the tables
                wait = _TICK_SECONDS
                if not session.debuggee.is_readable_while_it_runs or session.debuggee.is_gone():
                    return  # the debugger will tell
                self._tell_of(error)
                late_since = self._insist(late_since, time.monotonic())

    def _tell_of(self, error: Exception) -> None:
        """What neither the program nor its tables can be the cause of is one of darc's own."""
        if not isinstance(error, (DarcError, OSError)):
            self._session.note(f"internal error beside the program that runs: {error!r}")

    def _show(self, now: float) -> None:
        """How far it is. Where there is no terminal, or the program writes on it as well, in lines
        that stay."""
        screen, session = self._target.screen, self._session
        if self._has_line and not session.debuggee.writes_on(_TERMINAL):
            screen.live(self._line())
            return
        self._tell_untimed(now)
        if now >= self._next_line:
            self._between = min(_RARER * self._between, _LONGEST_BETWEEN)
            self._next_line = now + self._between
            screen.leave(self._line())

    def _tell_untimed(self, now: float) -> None:
        """Once, and soon: a script would wait for ever for calls that are timed."""
        if now < self._next_untimed:
            return
        shown = self._session.account.live_snapshot()
        self._next_untimed = math.inf if shown.generated else now + _BETWEEN_LOOKS
        if shown.generated:
            self._target.screen.leave(untimed(shown, self._line_style()))

    def _stop_in(self, own: int, now: float, look: float) -> float:
        """Stops the program in the thread with the id ``own``, as the program knows it; tells in
        how many seconds to look again."""
        number, stops = self._session.collector.summons.signal, self._session.account.cost.stops
        if number is None or (now - self._knocked < _AGAIN and stops == self._stops):
            return look
        if self._session.debuggee.is_signalled(number) or self._is_awaited(now):
            return look
        self._knocked, self._stops = now, stops
        self._session.debuggee.send(number, own)
        return look

    def _line(self) -> Shown:
        shown, style = self._session.account.live_snapshot(), self._line_style()
        return live(shown, style, is_stepped=self._session.pauses.are_out)

    def _line_style(self) -> Style:
        """A terminal whose window has another size than at the start has the last word, as it has
        with the debugger."""
        columns = _columns()
        if columns != self._columns:
            self._columns = columns
            self._style = dataclasses.replace(self._style, width=columns)
        return self._style

    @property
    def _keeps_interrupt(self) -> bool:
        """Whether the user's Ctrl-C may wait in the program, which blocks it."""
        by_signal = self._target.interrupts_by_signal
        return by_signal and self._session.debuggee.keeps_interrupt()

    def _hear_interrupt(self, now: float) -> None:
        """The user's Ctrl-C, where the program blocks it: the debugger would wait for ever. One
        that waits is not taken out of the program, and counts once."""
        session = self._session
        if self._stands():
            return
        if not self._keeps_interrupt:
            self._kept_since = None
        elif self._kept_since is None:
            self._kept_since = now
        elif now - self._kept_since >= _KEPT_SECONDS:
            self._kept_since = math.inf
            number = session.collector.summons.signal
            if number is not None:
                session.deadline.call_off()
                session.debuggee.send(number)

    def _knock(self, late_since: float | None, now: float) -> float | None:
        """When the agent may not ring by itself (seccomp), or f0 is not called any more at the
        time limit, the program is stopped by a signal from here."""
        left = self._session.deadline.seconds_left
        if not self._session.debuggee.is_readable_while_it_runs:
            if left is None or left > 0 or (late_since is not None and now - late_since < _AGAIN):
                return late_since
            self._session.debuggee.knock()
            return now
        if left is not None and left <= 0:
            self._session.background.hurry()
        elif not self._session.background.rings and not self._runs_bare:
            return None
        if late_since is None:
            return now
        patience = _RINGING_SECONDS if self._session.background.rings_itself else _GRACE_SECONDS
        if self._runs_bare:
            patience = _BARE_SECONDS
        if now - late_since >= patience:
            number = self._session.collector.summons.signal
            # The debugger may take its time. One signal too many would come to the program, or
            # stop it for the user, once darc does not listen any more.
            if number is not None:
                # Nor is patience begun anew: a program whose own signals stop it again and again
                # is hardly ever found without one.
                if self._session.debuggee.is_signalled(number) or self._is_awaited(now):
                    return late_since
                self._session.debuggee.send(number)
            return now
        return late_since

    @property
    def _runs_bare(self) -> bool:
        """Whether the program may have been let go on, and not by a command that darc hears of: the
        probes are to come back."""
        return self._target.goes_on_unseen and self._session.pauses.are_out

    def _insist(self, late_since: float | None, now: float) -> float | None:
        """The debugger is to see what has become of the tables: the program is stopped by a signal
        from here, whatever they say."""
        if late_since is not None and now - late_since < _RINGING_SECONDS:
            return late_since
        number = self._session.collector.summons.signal
        if number is not None and not self._session.debuggee.is_signalled(number):
            self._session.debuggee.send(number)
        return now

    def _is_awaited(self, now: float) -> bool:
        """Whether a thread waits so that the stop would last until it comes back, with all others
        stopped. It is given a second."""
        if not self._session.debuggee.waits_deeply():
            self._deep_since = None
            return False
        if self._deep_since is None:
            self._deep_since = now
        if now - self._deep_since < _DEEP_SECONDS:
            return True
        self._deep_since = None
        self._session.note(_DEEP_NOTE)
        return False


def _columns() -> int:
    """The terminal's own width, 0 where there is none."""
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 0


def ring_to_leave(
    session: Session | None,
    prepare: Callable[[], None] = lambda: None,
    interrupt: Callable[[], None] | None = None,
) -> bool:
    """The debugger is about to leave: has the program stop at the bell, for the probes to be taken
    out, when ``prepare`` has said what the bell is to do; where the bell takes no signal (a
    machine's), by ``interrupt``. Whether it will: not where no probes are. Any thread."""
    if session is None or not session.alive or session.pauses.are_out or session.debuggee.is_gone():
        return False
    number = session.collector.summons.signal
    if number is None:
        if interrupt is not None:
            interrupt()
        return interrupt is not None
    prepare()
    session.debuggee.send(number)
    return True
