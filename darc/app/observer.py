"""What becomes of an analysis as the debugger tells of the program: it stops, goes on, ends, is
lost or let go."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from darc.app.beginning import Beginning
from darc.app.current import Current
from darc.app.lettinggo import LettingGo
from darc.app.monitor import Monitor
from darc.app.stay import Stay
from darc.app.telling import Telling
from darc.app.waiting import Waiting
from darc.debuggee.debuggee import Debuggee
from darc.model.bare import Bare
from darc.model.errors import DarcError
from darc.model.parameters import OnFinish, Parameters
from darc.session.message import Message
from darc.session.session import Session
from darc.target.outcome import Outcome
from darc.target.target import Target


class Observer:
    """Of the program that the debugger has. While it runs, and something is analysed, a monitor
    watches it."""

    def __init__(  # noqa: PLR0913 - as many hear of the program, and none of these belong together
        self,
        target: Target,
        choose_debuggee: Callable[[Target], Debuggee],
        *,
        current: Current,
        waiting: Waiting,
        stay: Stay,
        telling: Telling,
        letting_go: LettingGo,
        beginning: Beginning,
        parameters: Callable[[], Parameters],
        emit: Callable[[str], None],
    ) -> None:
        """``choose_debuggee`` tells what the debugger has stopped; ``parameters`` are those that
        ``set darc`` keeps, and ``emit`` shows text to the user."""
        self._target = target
        self._choose_debuggee = choose_debuggee
        self._current = current
        self._waiting = waiting
        self._stay = stay
        self._telling = telling
        self._letting_go = letting_go
        self._beginning = beginning
        self._parameters = parameters
        self._emit = emit
        self._monitor: Monitor | None = None
        self._is_killed = False
        """Whether the user has asked for the program's end at this stop."""
        target.when_modules_change(self._modules_changed)
        target.user_breaks.when_changed(self._breakpoints_changed)

    @property
    def _session(self) -> Session | None:
        return self._current.session

    # -------------------------------------------------------------------- it stops

    def before_stop(self) -> None:
        """The program is about to stop for the user: nobody is to see a probe."""
        if self._session is not None:
            self._session.pauses.begin()

    def on_stop(self, *, may_go_on: bool = False) -> None:
        """The program stopped for the user. Where it will probably go on at once
        (``may_go_on``), what watches it while it runs is left alone; :meth:`rest` is called if it
        does not."""
        if self._session is not None:
            self._session.pauses.stands()
        if not may_go_on:
            self.rest()
        session = self._session
        if session is None:
            if self._waiting and self._target.attached:
                self._modules_changed()  # not every debugger tells of files at an attach
            if self._waiting.request is not None:
                self._telling.tell_of_signal(self._waiting.request.spec, waits=True)
            return
        self._current.journal.stands()
        session.pauses.begin()
        session.pauses.end_if_late()
        called_off = session.deadline.take_called_off()
        if called_off:
            self._emit("darc: Ctrl-C: the program blocks it, and was stopped by darc")
            session.pauses.take_interrupt()
        session.pauses.end_if_interrupted(called_off=called_off)
        self._telling.tell_what_there_is()
        if session.alive and not session.analysis.finished:
            self._telling.tell_of_signal(session.spec)

    def passes(self) -> bool:
        """The program has stopped, and the debugger will let it go on by itself, as the user has
        told it to. Whether that is none of darc's business: else it is a stop for the user."""
        return self._session is not None and self._session.pauses.passes()

    @property
    def is_passing(self) -> bool:
        """Whether :meth:`passes` has said so of the stop that the program is at."""
        return self._session is not None and self._session.pauses.passing

    def follow_up(self) -> Outcome:
        """The program stands still at the end of an analysis, and nobody was told. It goes on where
        another one has begun by itself."""
        pursuit, session = self._current.pursuit, self._session
        if pursuit is None or session is None or not pursuit.may_follow(session):
            return Outcome.STOP
        began = time.monotonic()
        pursuit.take(session, session.snapshot())
        while (following := pursuit.next()) is not None:
            entry, request = following
            try:
                self._beginning.begin(session.program, entry, request, follows=True)
            except DarcError as error:
                pursuit.failed(str(error))
                continue
            self.rest()
            pursuit.stood_still(time.monotonic() - began)
            return Outcome.CONTINUE
        self._current.take_best()
        if self._parameters().on_finish is not OnFinish.CONTINUE:
            return Outcome.STOP
        self._telling.tell(Message.RESULT)
        return Outcome.CONTINUE

    def rest(self) -> None:
        """The program stands still, or is gone: nobody watches it."""
        if self._monitor is not None:
            self._monitor.stop()
            self._monitor = None

    # ------------------------------------------------------------------- it goes on

    def goes_on(self) -> None:
        """The user lets the program go on, and not step by step."""
        session = self._session
        if session is not None:
            try:
                self._telling.tell_of_question(session)
                session.pauses.end()
            finally:
                self._target.screen.progress(None)  # the debugger is about to write

    def went_on(self) -> None:
        """The program goes on."""
        self._is_killed = False
        self._waiting.went_on(attached=self._target.attached)
        self._current.journal.goes_on()
        session = self._session
        if session is not None and session.alive and self._monitor is None:
            self._target.screen.runs()
            self._monitor = Monitor(session, self._target, self._telling.live_style)

    def goes_on_by_itself(self) -> None:
        """The program goes on from a stop of darc's, of which the debugger tells nobody."""
        self.goes_on()
        self.went_on()

    def on_child(self) -> None:
        """The debugger goes on with a child of the program: copies of probes are taken out."""
        debuggee = self._choose_debuggee(self._target)
        # It may share its memory with its parent.
        debuggee.clean_up(debuggee.program(), unmap=False)

    # ------------------------------------------------------- it ends, or is let go

    def may_be_killed(self) -> bool:
        """The user asks for the program's end, and may think again. Whether it is as if darc were
        not there; else it is to be left."""
        session = self._session
        self._is_killed = session is not None and session.pauses.are_out
        return self._is_killed

    def on_exit(self) -> None:
        """The program is gone."""
        self.rest()
        session = self._session
        if session is not None:
            # One that was let go on without probes has ended by itself.
            stood = session.pauses.are_out and self._target.bare is Bare.STEPS
            killed = stood and session.debuggee.nature.begins_anew
            session.program_ended()
            message = session.take_message()
            if killed:
                self._wait_for_another(session)
            else:
                self._telling.tell(message)
        self._stay.end()
        self._waiting.program_ended()

    def _wait_for_another(self, session: Session) -> None:
        request = self._current.request
        assert request is not None
        self._waiting.for_another(dataclasses.replace(request, parameters=session.parameters))
        if self._is_killed:
            self._emit(
                f"darc: the analysis of {session.spec} begins anew with the next 'run' "
                "('darc stop' gives it up)"
            )
        self._is_killed = False

    def on_lost(self, pid: int, known: str | None = None) -> None:
        """The debugger knows of the program no more, though that lives; ``known`` tells why, where
        that is known."""
        session = self._session
        if session is None or not session.alive:
            self._stay.end(lost=True)
            self._waiting.program_lost(pid)
            self.on_exit()
            return
        self.rest()
        self._letting_go.lose(session, pid, known)

    def check_leaving(self) -> None:
        """The user is about to have the debugger let the program go.

        Raises:
            UsageError: it runs, and has probes in its code, which could not be taken out.
        """
        self._letting_go.check(self._session)

    def on_leave(self, *, stopped: bool = False) -> None:
        """The debugger lets the program go (detach, quit): nothing of darc stays in it.
        ``stopped`` says that it stands still, though the debugger calls it running."""
        self.rest()
        try:
            self._letting_go.let_go(self._session, stopped=stopped)
        finally:
            self._target.screen.progress(None)

    def stop_to_leave(self) -> None:
        """The debugger is about to leave the program, which has stopped for that alone: every probe
        is taken out."""
        self._letting_go.stop_for_it(self._session)

    # ---------------------------------------------- what the debugger tells besides

    def _modules_changed(self) -> Outcome:
        if self._target.pid is None:
            return Outcome.CONTINUE
        if self._session is not None and self._session.alive:
            self._session.modules_changed()
            if not self._session.alive:
                self._telling.tell_what_there_is()
        session = self._session
        if session is not None and session.is_of_another() and self._waiting.next_program():
            self._current.begin_anew()
        return self._waiting.modules_changed()

    def _breakpoints_changed(self) -> None:
        if self._session is not None and self._session.alive:
            self._session.pauses.breakpoints_changed()
