"""The user's stops: the program is shown as if no probe were there, and what becomes of these."""

from __future__ import annotations

from collections.abc import Callable

from darc.debuggee.switchwatch import SwitchWatch
from darc.model.errors import TargetError
from darc.model.status import Status
from darc.session.account import Account
from darc.session.background import Background
from darc.session.deadline import Deadline
from darc.session.message import Message
from darc.session.probing import Probing
from darc.session.waysout import WaysOut
from darc.target.outcome import Outcome
from darc.target.target import Target

_NOT_HEARD = (
    "a Ctrl-C waits in the program, which blocks it, and hides those that follow: the next one is "
    "not heard, and 'darc start … --max-time 1min' or SIGTERM to the debugger ends an analysis"
)


class Pauses:
    """Of a ``session``."""

    def __init__(
        self,
        session: Probing,
        *,
        target: Target,
        switches: SwitchWatch,
        account: Account,
        deadline: Deadline,
        background: Background,
        ways_out: WaysOut,
        changed: Callable[[Message], None],
    ) -> None:
        """``changed`` is called where a breakpoint of the user's ends the session."""
        self._session = session
        self._target = target
        self._switches = switches
        self._account = account
        self._deadline = deadline
        self._background = background
        self._ways_out = ways_out
        self._changed = changed

    def breakpoints_changed(self) -> None:
        """The user has set a breakpoint: darc's probes make way for it."""
        with self._background.stands_for_a_moment():
            self._make_way()

    def _make_way(self) -> None:
        if not self._session.alive:
            return
        why = self._ways_out.unless_damaged(self._session.collector.make_way, None)
        if why is not None:
            self._ways_out.no_more(why)
            self._changed(Message.RESULT)

    def stands(self) -> None:
        """The program has just stopped for the user."""
        self._background.stands()
        if self._session.alive:
            self._switches.stands()
            self._session.collector.stops.stands()

    def begin(self) -> None:
        """The program stopped for the user: show it as if no probe were there."""
        self._background.stands()
        if not self._session.alive:
            return
        if (why := self._session.collector.lost()) is not None:
            self._ways_out.vanished(why)
        elif self._ways_out.has_died():
            self._ways_out.tell(Message.RESULT)
            self._ways_out.stop(Status.ENDED)
        elif self._ways_out.is_unloaded():
            self._ways_out.tell(Message.RESULT)
            self._ways_out.stop()
        else:
            self._switches.stands()
            self._session.analysis.stands()
            self._ways_out.unless_damaged(self._take_away, None)

    def _take_away(self) -> None:
        self._session.collector.stops.pause()
        self._session.analysis.collect()

    def passes(self) -> bool:
        """As :meth:`begin`, where the debugger lets the program go on by itself before anybody
        looks at it: whether the probes are left in."""
        session = self._session
        if not session.alive or session.collector.lost() is not None:
            return False
        return self._ways_out.unless_damaged(session.collector.stops.passes, False)

    @property
    def passing(self) -> bool:
        """Whether they are, and the program stands still."""
        return self._session.alive and self._session.collector.stops.passing

    def end_if_interrupted(self, *, called_off: bool = False) -> None:
        """At a stop for the user that is a Ctrl-C, or was ``called_off`` (see
        :meth:`~darc.session.deadline.Deadline.call_off`): of an analysis that ends with that."""
        interrupted = called_off or self._target.was_interrupted
        if self._session.alive and interrupted and self._session.analysis.ends_at_interrupt:
            self._ways_out.tell(Message.RESULT)
            self._ways_out.stop()

    def take_interrupt(self) -> None:
        """At a stop for the user, whose Ctrl-C waits in the program, which blocks it: the next one
        is to be heard, too."""
        why = "darc cannot take this one out of it"
        try:
            take = self._session.collector.summons.take_interrupt
            if self._ways_out.unless_damaged(take, True):
                return
        except TargetError as error:
            why = str(error)
        self._account.notes.append(f"{_NOT_HEARD}: {why}")

    def end_if_late(self) -> None:
        """At a stop for the user: ``--max-time`` may have passed, and nothing has told, as a kernel
        in kgdb cannot be interrupted."""
        if self._session.alive and self._deadline.has_passed:
            self._ways_out.unless_damaged(self._ways_out.late, Outcome.CONTINUE)

    def end(self) -> None:
        """The program is about to go on: the probes are put back."""
        if self._session.alive:
            self._ways_out.unless_damaged(self._put_back, None)

    def _put_back(self) -> None:
        self._account.notes.extend(self._session.collector.stops.resume())
        self._background.goes_on()

    @property
    def are_out(self) -> bool:
        """Whether the program runs without probes, as the user steps through it. Any thread."""
        return self._session.alive and self._session.collector.stops.paused
