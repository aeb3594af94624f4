"""What the commands do, on whichever debugger: one application over one target.

The debugger's package creates one :class:`App`, passes commands to
:func:`darc.app.commands.run`, and tells the application of the program's stops and ends.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable

from darc.app.beginning import Beginning
from darc.app.completing import functions_beginning
from darc.app.current import Current
from darc.app.finding import Request
from darc.app.lettinggo import LettingGo
from darc.app.monitor import Monitor
from darc.app.parameters import find_parameter, with_text
from darc.app.pursuit import Pursuit
from darc.app.stay import Stay
from darc.app.telling import Telling
from darc.app.waiting import Waiting
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.debuggee.debuggee import Debuggee
from darc.model.contexts import Context
from darc.model.errors import (
    DarcError,
    TargetError,
    UsageError,
)
from darc.model.parameters import OnFinish, Parameters
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.session.message import Message
from darc.session.session import Session
from darc.target.outcome import Outcome
from darc.target.target import State, Target
from darc.views.style import Style
from darc.views.treeview import drawn_nodes
from darc.views.words import Shown, message


class App:
    """The state behind the commands: parameters, at most one session, what it waits for."""

    def __init__(
        self,
        target: Target,
        choose_debuggee: Callable[[Target], Debuggee],
        check_runnable: Callable[[Target], None] = lambda target: None,
    ) -> None:
        """``choose_debuggee`` tells what the debugger has stopped; ``check_runnable`` raises
        UsageError where the debugger has a file that cannot be run."""
        self._target = target
        self._choose_debuggee = choose_debuggee
        self._parameters = Parameters()
        self._current = current = Current()
        self._waiting = Waiting(target, self)
        self._monitor: Monitor | None = None
        self._is_killed = False
        """Whether the user has asked for the program's end at this stop."""
        self._stay = Stay(target, self.emit)
        self._telling = telling = Telling(target, current, lambda: self._parameters, self.emit)
        self._letting_go = LettingGo(target, self._stay, self.emit, telling.tell_as_it_leaves)
        self._beginning = Beginning(
            target,
            choose_debuggee,
            check_runnable,
            current=current,
            waiting=self._waiting,
            stay=self._stay,
            tell=telling.tell,
            emit=self.emit,
        )
        target.when_modules_change(self._modules_changed)
        target.user_breaks.when_changed(self._breakpoints_changed)

    # ---------------------------------------------------------------- commands

    @property
    def parameters(self) -> Parameters:
        """What ``set darc`` keeps."""
        return self._parameters

    @property
    def colour(self) -> bool:
        """Whether output takes escape codes."""
        return self._target.screen.colour

    @property
    def width(self) -> int:
        """Columns of the output."""
        return self._target.screen.width

    @property
    def session(self) -> Session | None:
        """The session, also after its end."""
        return self._current.session

    def emit(self, text: str) -> None:
        """Shows text to the user: what a view made, or a message of one line."""
        self._target.screen.emit(text if isinstance(text, Shown) else message(text))

    def set_parameter(self, name: str, text: str) -> None:
        """``set darc NAME TEXT``. What an analysis that has begun was given stays as it is, and the
        user is told."""
        self._parameters = with_text(self._parameters, name, text)
        parameter = find_parameter(name)
        if parameter.is_for_showing:
            return
        session, request = self.session, self._waiting.request
        if session is not None and session.alive and not session.analysis.finished:
            spec, given = session.spec, session.parameters
        elif request is not None:
            spec, given = request.spec, request.parameters
        else:
            return
        kept, wanted = parameter.text_in(given), parameter.text_in(self._parameters)
        if kept != wanted:
            self.emit(
                f"darc: {parameter.name} {wanted} holds for the next analysis; that of {spec} goes "
                f"on with {kept}: 'darc stop', and start it again"
            )

    def follow_up(self) -> Outcome:
        """The program stands still at the end of an analysis, and nobody was told. It goes on where
        another one has begun by itself."""
        pursuit, session = self._current.pursuit, self.session
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
        if self._parameters.on_finish is not OnFinish.CONTINUE:
            return Outcome.STOP
        self._telling.tell(Message.RESULT)
        return Outcome.CONTINUE

    def analyse(self, request: Request, pursuit: Pursuit | None = None) -> None:
        """What a command that begins an analysis asks for; ``pursuit`` tells what comes behind it.
        Raises DarcError: it cannot be."""
        self._beginning.make_room(request)
        self.rest()
        kept = self._current.forget()
        self._waiting.cancel()
        self._waiting.forget_failure()
        try:
            self._beginning.begin_or_wait(request, pursuit)
        except (DarcError, KeyboardInterrupt):
            if self.session is None and not self._waiting:  # what there was is there still
                self._current.take_back(kept)
            raise

    def begin(self, program: Program, entry: int, request: Request) -> None:
        """What has waited begins: f0 is at ``entry``. Raises DarcError."""
        self._beginning.begin(program, entry, request)

    def stop(self) -> None:
        """``darc stop``."""
        if self._waiting or self._waiting.again is not None:
            self._waiting.cancel()
            self.emit("darc: waits no more")
            return
        if not (self.session is not None and self.session.alive) and self._take_out_anothers():
            return
        session = self.need_session()
        if session.ways_out.left_behind is not None and self._target.state is not State.STOPPED:
            self.emit(f"darc: {session.ways_out.left_behind}")
            return
        if session.alive:
            self.need_stopped()
            session.stop()
        self.rest()
        self._stay.give_back()
        self.emit("darc: every probe is out")

    def _take_out_anothers(self) -> bool:
        """Whether a debugger that was killed, or an error, had left probes in the program, which
        are out now."""
        if self._target.state is not State.STOPPED:
            return False
        try:
            debuggee, program = self.look()
            notes = debuggee.clean_up(program)
        except TargetError:
            if self.session is None:
                raise
            return False  # no more can be looked at: what this debugger's analysis had in it is out
        self._stay.forget_if_gone()
        for note in notes:
            self.emit(f"darc: {note}")
        return bool(notes)

    def need_session(self) -> Session:
        """The session, also after its end. Raises DarcError that tells why there is none."""
        if self.session is None:
            if self._waiting.failure is not None:
                raise self._waiting.failure
            if self._waiting.request is not None:
                raise UsageError(
                    f"waits for {self._waiting.request.function}, of which no call was seen yet: "
                    "let the program go on"
                )
            raise UsageError("nothing is being analysed: type 'darc start FUNCTION'")
        return self.session

    def need_stopped(self) -> None:
        """Raises UsageError where the program runs."""
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) first")

    def look(self) -> tuple[Debuggee, Program]:
        """What the debugger has now. Raises DarcError."""
        return self._beginning.look()

    def lookup(self) -> Lookup:
        """What names mean in the program that the debugger has now. Raises DarcError."""
        return Lookup(self.look()[1], self._target)

    def tell(self) -> None:
        """Shows what the session has to say at this stop, if anything."""
        self._telling.tell(None if self.session is None else self.session.take_message())

    def snapshot(self, *, lines: bool = True, tree: bool = False) -> Snapshot:
        """What is known now, with the source lines of the paths, and of the ``tree`` as far as that
        is drawn; without ``lines`` no line of source is asked for."""
        request = self._waiting.request
        if self.session is None and request is not None:
            parameters = request.parameters
            return Snapshot(
                request.spec,
                Status.PENDING,
                parameters.probes,
                program=ProgramFigures(in_peak_calls=0, probes=0),
                parameters=parameters,
                parts=request.parts,
            )
        session = self.need_session()
        if not tree:
            return self._current.shown(session, lines=lines)
        drawn = functools.partial(drawn_nodes, verbose=self._parameters.verbose)
        return self._current.shown(session, lines=lines, tree=drawn)

    def table(self) -> Snapshot | None:
        """What has numbered functions last, until another does; ``None``: nothing has yet."""
        return self._current.table()

    def measured(self) -> list[Context]:
        """The trees that were measured since the debugger began, of any f0, each by itself."""
        return self._current.measured()

    def complete_function(self, prefix: str) -> list[str]:
        """Functions whose name begins with ``prefix``."""
        return functions_beginning(self._target, lambda: self.look()[1], prefix)

    # ------------------------------------------------------------------ events

    def on_stop(self, *, brief: bool = False) -> None:
        """The program stopped for the user. Where it will probably go on at once (``brief``), what
        watches it while it runs is left alone; :meth:`rest` is called if it does not."""
        if self.session is not None:
            self.session.pauses.stands()
        if not brief:
            self.rest()
        session = self.session
        if session is None:
            if self._waiting and self._target.attached:
                self._modules_changed()  # not every debugger tells of files at an attach
            if self._waiting.request is not None:
                self._telling.tell_of_signal(self._waiting.request.spec)
            return
        self._current.journal.stands(stopped=True)
        session.pauses.begin()
        session.pauses.end_if_late()
        called_off = session.deadline.take_called_off()
        if called_off:
            self.emit("darc: Ctrl-C: the program blocks it, and was stopped by darc")
            session.pauses.take_interrupt()
        session.pauses.end_if_interrupted(called_off=called_off)
        self.tell()
        if session.alive and not session.analysis.finished:
            self._telling.tell_of_signal(session.spec)

    def passes(self) -> bool:
        """The program has stopped, and the debugger will let it go on by itself, as the user has
        told it to. Whether that is none of darc's business: else it is a stop for the user."""
        return self.session is not None and self.session.pauses.passes()

    @property
    def is_passing(self) -> bool:
        """Whether :meth:`passes` has said so of the stop that the program is at."""
        return self.session is not None and self.session.pauses.passing

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""
        return bool(self._waiting) or (self.session is not None and self.session.alive)

    def before_stop(self) -> None:
        """The program is about to stop for the user: nobody is to see a probe."""
        if self.session is not None:
            self.session.pauses.begin()

    def before_continue(self) -> None:
        """The user lets the program go on, and not step by step."""
        session = self.session
        if session is not None:
            self._telling.tell_of_question(session)
            session.pauses.end()

    def on_resume(self) -> None:
        """The program goes on."""
        self._is_killed = False
        self._current.journal.stands(stopped=False)
        session = self.session
        if session is not None and session.alive and self._monitor is None:
            style = Style(self.width, self.colour)
            self._monitor = Monitor(session, self._target, style)

    def on_exit(self) -> None:
        """The program is gone."""
        self.rest()
        session = self.session
        if session is not None:
            killed = session.pauses.are_out and session.debuggee.nature.begins_anew
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
            self.emit(
                f"darc: the analysis of {session.spec} begins anew with the next 'run' "
                "('darc stop' gives it up)"
            )
        self._is_killed = False

    def may_be_killed(self) -> bool:
        """The user asks for the program's end, and may think again. Whether it is as if darc were
        not there; else it is to be left."""
        session = self.session
        self._is_killed = session is not None and session.pauses.are_out
        return self._is_killed

    def on_lost(self, pid: int, known: str | None = None) -> None:
        """The debugger knows of the program no more, though that lives; ``known`` tells why, where
        that is known."""
        session = self.session
        if session is None or not session.alive:
            self._stay.end(lost=True)
            self._waiting.program_lost(pid)
            self.on_exit()
            return
        self.rest()
        self._letting_go.lose(session, pid, known)

    def on_leave(self, *, stopped: bool = False) -> None:
        """The debugger lets the program go (detach, quit): nothing of darc stays in it.
        ``stopped`` says that it stands still, though the debugger calls it running."""
        self.rest()
        self._letting_go.let_go(self.session, stopped=stopped)

    def check_leaving(self) -> None:
        """The user is about to have the debugger let the program go.

        Raises:
            UsageError: it runs, and has probes in its code, which could not be taken out.
        """
        self._letting_go.check(self.session)

    def stop_to_leave(self) -> None:
        """The debugger is about to leave the program, which has stopped for that alone: every probe
        is taken out."""
        self._letting_go.stop_for_it(self.session)

    def on_child(self) -> None:
        """The debugger goes on with a child of the program: copies of probes are taken out."""
        debuggee = self._choose_debuggee(self._target)
        # It may share its memory with its parent.
        debuggee.clean_up(debuggee.program(), unmap=False)

    # ----------------------------------------------------------------- workings

    def _modules_changed(self) -> Outcome:
        if self._target.pid is None:
            return Outcome.CONTINUE
        if self.session is not None and self.session.alive:
            self.session.modules_changed()
            if not self.session.alive:
                self.tell()
        if self.session is not None and self.session.is_of_another():
            self._waiting.next_program()
        return self._waiting.modules_changed()

    def _breakpoints_changed(self) -> None:
        if self.session is not None and self.session.alive:
            self.session.pauses.breakpoints_changed()

    def goes_on(self) -> None:
        """The program goes on from a stop of darc's, of which the debugger tells nobody."""
        self.before_continue()
        self.on_resume()

    def rest(self) -> None:
        """The program stands still, or is gone: nobody watches it."""
        if self._monitor is not None:
            self._monitor.stop()
            self._monitor = None
