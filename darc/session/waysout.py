"""The ways out of a session: whatever ends it, what is known stays, and every probe is taken out
that can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from darc.code.program import Program
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import DarcError, WrittenOverError
from darc.model.parameters import OnFinish
from darc.model.status import EndedBy, Status
from darc.session.account import Account
from darc.session.background import Background
from darc.session.brief import SessionBrief
from darc.session.collecting import Collecting
from darc.session.figures import RunFigures
from darc.session.message import Message
from darc.session.probing import Probing
from darc.target.outcome import Outcome

_T = TypeVar("_T")


class WaysOut:
    """Of a ``session`` in ``program``, for a ``brief``."""

    def __init__(  # noqa: PLR0913 - as many things, and none of these belong together
        self,
        session: Probing,
        collecting: Collecting,
        *,
        debuggee: Debuggee,
        program: Program,
        brief: SessionBrief,
        figures: RunFigures,
        account: Account,
        background: Background,
        changed: Callable[[Message], None],
    ) -> None:
        """``changed`` is called where it ends, and the program goes on."""
        self._session = session
        self._collecting = collecting
        self._debuggee = debuggee
        self._program = program
        self._brief = brief
        self._figures = figures
        self._account = account
        self._background = background
        self._changed = changed
        self._message: Message | None = None
        self.left_behind: str | None = None
        """Why probes are still in a program that lives, and what to do about it."""

    # ------------------------------------------------------- what the user is told

    def tell(self, message: Message | None) -> None:
        """This is what the user is to be told at this stop; ``None``: nothing."""
        self._message = message

    def take_message(self) -> Message | None:
        """What it is, once."""
        message, self._message = self._message, None
        return message

    # ------------------------------------------------------------ the program lives

    def found(self) -> Outcome:
        """The analysis has ended by itself."""
        self._end_figures()
        self.tell(Message.RESULT)
        goes_on = self._brief.parameters.on_finish is OnFinish.CONTINUE
        self._collecting.finish()
        if goes_on:
            self._changed(Message.RESULT)
            self.tell(None)
        return Outcome.CONTINUE if goes_on else Outcome.STOP

    def late(self) -> Outcome:
        """``--max-time`` has passed."""
        analysis = self._session.analysis
        died = self.has_died()
        if died or self.is_unloaded():  # no longer time would help
            analysis.collect()
            analysis.close(Status.ENDED if died else Status.STOPPED, alive=True)
        else:
            analysis.finish_early(EndedBy.TIME.value)
            self._account.ends(EndedBy.TIME if analysis.is_cut_short else None)
        return self.found()

    def stop(self, status: Status = Status.STOPPED) -> None:
        """The user wants it, or its function cannot be timed any more."""
        self._background.stands()
        if not self._session.alive:
            return
        self.is_unloaded()
        self._close(status)
        if self._session.alive:
            self._end_figures()
            self._collecting.take_out()

    def no_more(self, why: str) -> None:
        """f0 cannot be timed any more."""
        self._account.notes.append(f"{self._brief.spec} is not timed any more: {why}")
        self.stop()

    def has_died(self) -> bool:
        """Whether nothing will be called any more, of which the user is told."""
        why = self._debuggee.died()
        if why is not None:
            self._account.notes.append(why)  # that shows each once
        return why is not None

    def is_unloaded(self) -> bool:
        """Whether f0 is gone with the file that it was in. Of others the user is told."""
        gone, entry = self._debuggee.unloaded(self._program), self._brief.entry
        for one in gone:
            told = f"{one.name} was unloaded: its functions are not timed any more"
            self._account.notes.append(told)  # that shows each once
        return any(one.start <= entry < one.end for one in gone)

    def abandon(self, why: str) -> None:
        """The debugger has lost the program, which lives on."""
        if not self._session.alive:
            return
        self._account.notes.append(why)
        self.left_behind = why
        self._close(Status.STOPPED)
        if self._session.alive:
            self._end_figures()
            self._collecting.abandon()

    def _close(self, status: Status) -> None:
        def close() -> None:
            self._session.analysis.collect()
            self._session.analysis.close(status, alive=True)

        self.unless_damaged(close, None)

    def _end_figures(self) -> None:
        self._figures.count_stops()
        self._figures.end()

    # ----------------------------------------------------- the program, or its memory, is gone

    def program_ended(self) -> None:
        """The program is gone, and everything that was in it."""
        if not self._session.alive:
            return
        self._end_figures()
        self.tell(Message.END)
        self._collecting.gone(self._close_without_program)

    def _close_without_program(self) -> None:
        analysis, outlives = self._session.analysis, self._session.collector.outlives
        if outlives:
            analysis.collect()
        analysis.close(Status.ENDED, alive=outlives)

    def vanished(self, why: str) -> Outcome:
        """What the probes were put into is not there any more."""
        self._account.notes.append(why)
        self.program_ended()
        self.tell(Message.RESULT)
        return Outcome.STOP

    def damaged(self, why: str) -> Outcome:
        """What is counted with was written over. What is known stays, and the probes are taken out
        by what is known of them here."""
        self._account.notes.append(why)
        self._session.analysis.close(Status.STOPPED, alive=False)
        self._figures.end()
        self.tell(Message.RESULT)
        try:
            self._collecting.take_out()
        except DarcError as error:
            self._account.notes.append(str(error))
        return Outcome.STOP

    def unless_damaged(self, action: Callable[[], _T], otherwise: _T) -> _T:
        """What ``action`` makes of the collector's figures. Where the program has written over
        them, before or meanwhile, or has been killed while it stood still, that is the reason of
        whatever they led to, and the session's end."""
        session = self._session
        why = session.collector.damage() if session.alive else None
        try:
            if why is None:
                return action()
        except Exception as error:
            if session.alive and self._debuggee.is_gone():
                self._account.notes.append("the program was killed while it stood still")
                self.program_ended()
                return otherwise
            why = str(error) if isinstance(error, WrittenOverError) else session.collector.damage()
            if why is None:
                raise
        if session.alive:
            self.damaged(why)
        return otherwise
