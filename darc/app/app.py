"""What the commands do, on whichever debugger: one application over one target.

The debugger's package creates one :class:`App`, passes commands to
:func:`darc.app.commands.run`, and tells the application of the program's stops and ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable

from darc.analyses.question import About, Question
from darc.app import finding, naming
from darc.app.completing import functions_beginning
from darc.app.finding import Request
from darc.app.lettinggo import LettingGo
from darc.app.monitor import Monitor
from darc.app.parameters import find_parameter, with_text
from darc.app.progress import Progress
from darc.app.pursuit import Pursuit
from darc.app.stay import Stay
from darc.app.waiting import Waiting, may_begin_late
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.collectors.set_collector import SetCollector
from darc.debuggee.debuggee import Debuggee
from darc.model.contexts import Context, folded, measured_tree
from darc.model.errors import (
    DarcError,
    NotFoundError,
    TargetError,
    UnchosenError,
    UnsupportedError,
    UsageError,
)
from darc.model.parameters import OnFinish, Parameters
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved import refit
from darc.session.message import Message
from darc.session.session import Session
from darc.target.outcome import Outcome
from darc.target.target import State, Target
from darc.views import render
from darc.views.exporters.text import early_end, status
from darc.views.general.histogram import histogram
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
        self._check_runnable = check_runnable
        self._debuggee: Debuggee | None = None
        self._parameters = Parameters()
        self._session: Session | None = None
        self._request: Request | None = None
        """What the session is for."""
        self._measured: list[Context] = []
        """What earlier sessions have measured, a tree for each f0."""
        self._pursuit: Pursuit | None = None
        """Of ``darc why``: what comes after the session."""
        self._table: Snapshot | None = None
        """What had numbered functions last, of an analysis that others have followed."""
        self._unanswered: Session | None = None
        """The session of which the user was told that it waits for an answer."""
        self._waiting = Waiting(target, self)
        self._monitor: Monitor | None = None
        self._is_killed = False
        """Whether the user has asked for the program's end at this stop."""
        self._stay = Stay(target, self.emit)
        self._letting_go = LettingGo(target, self._stay, self.emit, self._tell_as_it_leaves)
        self._told_signals: set[str] = set()
        """Those that the user was told have stopped the program."""
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
        return self._session

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
        session, request = self._session, self._waiting.request
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
        pursuit, session = self._pursuit, self._session
        if pursuit is None or session is None or not pursuit.may_follow(session):
            return Outcome.STOP
        began = time.monotonic()
        pursuit.take(session, session.snapshot())
        while (following := pursuit.next()) is not None:
            entry, request = following
            try:
                self.begin(session.program, entry, request, follows=True)
            except DarcError as error:
                pursuit.failed(str(error))
                continue
            self.rest()
            pursuit.stood_still(time.monotonic() - began)
            return Outcome.CONTINUE
        self._session = pursuit.best or session
        others = (self._measured_by(one) for one in pursuit.sessions if one is not self._session)
        self._measured = folded([*self._measured, *(tree for tree in others if tree is not None)])
        if self._parameters.on_finish is not OnFinish.CONTINUE:
            return Outcome.STOP
        self._tell(Message.RESULT)
        return Outcome.CONTINUE

    def analyse(self, request: Request, pursuit: Pursuit | None = None) -> None:
        """What a command that begins an analysis asks for; ``pursuit`` tells what comes behind it.
        Raises DarcError: it cannot be."""
        self._make_room(request)
        kept = self._session, self._request, self._pursuit, self._measured
        self._forget()
        try:
            self._begin(request, pursuit)
        except DarcError:
            if self._session is None and not self._waiting:  # what there was is there still
                self._session, self._request, self._pursuit, self._measured = kept
            raise

    def _begin(self, request: Request, pursuit: Pursuit | None) -> None:
        self._stay.give_back_before_another()
        self._target.settle_here()
        began = time.monotonic()
        self._target.patience = request.parameters.max_time
        self._pursuit = pursuit  # Ctrl-C may come behind what begins
        try:
            self._begin_or_wait(request, began)
        finally:
            if self._session is None and not self._waiting:
                self._pursuit = None
        if self._session is not None:
            self._session.was_set_up(time.monotonic() - began)
        if pursuit is not None and self._session is not None:
            pursuit.setup_seconds = time.monotonic() - began

    def _make_room(self, request: Request) -> None:
        """Ends what was analysed before, and has ended but for its probes. Raises DarcError: it may
        not be."""
        command = request.command
        if request.stops_unseen and not self._target.stops_unseen:
            raise UnsupportedError(f"no 'darc {command}': {self._target.why_stops_are_seen}")
        before = self._session
        if (
            before is not None
            and before.analysis.finished
            and before.alive
            and request.replaces_finished
        ):
            before.stop()
        if self._session is not None and self._session.alive:
            goes_on = ""
            begun = self._request
            if begun is not None and begun.command == command and begun.next_one:
                goes_on = f"'continue' goes on to {begun.next_one}, "
            with self._target.leaving_home() as is_elsewhere:
                where = " in the program that was selected before" if is_elsewhere else ""
            raise UsageError(
                f"{self._session.spec} is being analysed{where}: {goes_on}'darc stop' before "
                f"'darc {command}'"
            )
        if self._target.state is State.RUNNING:
            raise UsageError(f"the program runs: interrupt it (Ctrl-C) before 'darc {command}'")

    def _begin_or_wait(self, request: Request, asked: float) -> None:
        function = request.function
        if request.members is None and request.resumed is None:
            naming.check_form(function, request.command)
        if self._target.state is State.NONE:
            self._check_runnable(self._target)
            progress = Progress(self._target.screen)
            with progress.over(f"looks for {request.spec}"):
                checked = finding.check_file(self._target, request, progress)
            self._waiting.for_program(*checked)
            return
        self._debuggee = debuggee = self._choose_debuggee(self._target)
        if request.stops_unseen:
            finding.check_kind(request.command, debuggee)
        debuggee.check_supported()
        self._stay.watch_over(debuggee)
        program = debuggee.program()
        if request.members is not None and not debuggee.is_at_start():
            self.begin(program, 0, request, runs=True, asked=asked)
            self.emit(f"darc: {request.verb} {request.spec}: 'continue'")
            return
        progress = Progress(self._target.screen)
        with progress.over(f"looks for {request.spec}"):
            try:
                entry = finding.find_start(
                    program, debuggee, target=self._target, request=request, progress=progress
                )
            except UnchosenError as error:
                self._waiting.for_choice(request, debuggee, error)
                return
            except NotFoundError as error:
                self._waiting.for_library(request, debuggee, error)
                return
        if debuggee.is_at_start() and may_begin_late(debuggee, program, request):
            self._waiting.for_call(program, entry, request)
            self.emit(f"darc: the program has not begun yet: waits for {function}")
            return
        self.begin(program, entry, request, asked=asked)
        self.emit(f"darc: {request.verb} {request.spec}: 'continue'")

    def stop(self) -> None:
        """``darc stop``."""
        if self._waiting or self._waiting.again is not None:
            self._waiting.cancel()
            self.emit("darc: waits no more")
            return
        if not (self._session is not None and self._session.alive) and self._take_out_anothers():
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
            if self._session is None:
                raise
            return False  # no more can be looked at: what this debugger's analysis had in it is out
        self._stay.forget_if_gone()
        for note in notes:
            self.emit(f"darc: {note}")
        return bool(notes)

    def need_session(self) -> Session:
        """The session, also after its end. Raises DarcError that tells why there is none."""
        if self._session is None:
            if self._waiting.failure is not None:
                raise self._waiting.failure
            if self._waiting.request is not None:
                raise UsageError(
                    f"waits for {self._waiting.request.function}, of which no call was seen yet: "
                    "let the program go on"
                )
            raise UsageError("nothing is being analysed: type 'darc start FUNCTION'")
        return self._session

    def need_stopped(self) -> None:
        """Raises UsageError where the program runs."""
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) first")

    def look(self) -> tuple[Debuggee, Program]:
        """What the debugger has now. Raises DarcError."""
        self._debuggee = debuggee = self._choose_debuggee(self._target)
        return debuggee, debuggee.program()

    def lookup(self) -> Lookup:
        """What names mean in the program that the debugger has now. Raises DarcError."""
        return Lookup(self.look()[1], self._target)

    def tell(self) -> None:
        """Shows what the session has to say at this stop, if anything."""
        self._tell(None if self._session is None else self._session.take_message())

    def snapshot(self, *, lines: bool = True, tree: bool = False) -> Snapshot:
        """What is known now, with the source lines of the paths, and of the ``tree`` as far as that
        is drawn; without ``lines`` no line of source is asked for."""
        request = self._waiting.request
        if self._session is None and request is not None:
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
        drawn = functools.partial(drawn_nodes, verbose=self._parameters.verbose)
        shown = session.snapshot(lines=lines, tree=drawn) if tree else session.snapshot(lines=lines)
        return self._with_answer(session, shown)

    def _with_answer(self, session: Session, shown: Snapshot) -> Snapshot:
        """What the session has found, with what the pursuit makes of it, where it is one's."""
        if self._pursuit is None:
            return shown
        return self._pursuit.with_answer(session, shown)

    def table(self) -> Snapshot | None:
        """What has numbered functions last, until another does; ``None``: nothing has yet."""
        if self._session is not None and _numbers(shown := self.snapshot(lines=False)):
            return shown
        return self._table

    def measured(self) -> list[Context]:
        """The trees that were measured since the debugger began: of each earlier f0 one, and that
        of the session that is shown."""
        now = None if self._session is None else self._measured_by(self._session)
        return self._measured if now is None else [*self._measured, now]

    @staticmethod
    def _measured_by(session: Session) -> Context | None:
        shown = session.snapshot(lines=False)
        if shown.ftree is None or shown.profile is None:
            return None
        return measured_tree(shown.ftree, shown.profile.hz)

    def complete_function(self, prefix: str) -> list[str]:
        """Functions whose name begins with ``prefix``."""
        return functions_beginning(self._target, lambda: self.look()[1], prefix)

    # ------------------------------------------------------------------ events

    def on_stop(self, *, brief: bool = False) -> None:
        """The program stopped for the user. Where it will probably go on at once (``brief``), what
        watches it while it runs is left alone; :meth:`rest` is called if it does not."""
        if self._session is not None:
            self._session.pauses.stands()
        if not brief:
            self.rest()
        session = self._session
        if session is None:
            if self._waiting and self._target.attached:
                self._modules_changed()  # not every debugger tells of files at an attach
            if self._waiting.request is not None:
                self._tell_of_signal(self._waiting.request.spec)
            return
        self._target.journal.stands(stopped=True)
        session.pauses.begin()
        session.pauses.end_if_late()
        called_off = session.deadline.take_called_off()
        if called_off:
            self.emit("darc: Ctrl-C: the program blocks it, and was stopped by darc")
        session.pauses.end_if_interrupted(called_off=called_off)
        self.tell()
        if session.alive and not session.analysis.finished:
            self._tell_of_signal(session.spec)

    def _tell_of_signal(self, spec: str) -> None:
        """Once for each signal that the program handles by itself, and that has stopped it."""
        found = self._target.handled_signal
        if found is None or found.name in self._told_signals:
            return
        self._told_signals.add(found.name)
        self.emit(
            f"darc: {spec} is not done: {found.name}, which the program has a handler for, has "
            f"stopped it; 'continue' goes on, and with '{found.command}' it does not stop for that"
        )

    def passes(self) -> bool:
        """The program has stopped, and the debugger will let it go on by itself, as the user has
        told it to. Whether that is none of darc's business: else it is a stop for the user."""
        return self._session is not None and self._session.pauses.passes()

    @property
    def is_passing(self) -> bool:
        """Whether :meth:`passes` has said so of the stop that the program is at."""
        return self._session is not None and self._session.pauses.passing

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""
        return bool(self._waiting) or (self._session is not None and self._session.alive)

    def before_stop(self) -> None:
        """The program is about to stop for the user: nobody is to see a probe."""
        if self._session is not None:
            self._session.pauses.begin()

    def before_continue(self) -> None:
        """The user lets the program go on, and not step by step."""
        session = self._session
        if session is None:
            return
        question = session.analysis.question
        if session is not self._unanswered and question is not None and question.is_waited_for:
            self._unanswered = session
            if session.alive:
                self.emit(f"darc: {question.unanswered}")
        session.pauses.end()

    def on_resume(self) -> None:
        """The program goes on."""
        self._is_killed = False
        self._target.journal.stands(stopped=False)
        session = self._session
        if session is not None and session.alive and self._monitor is None:
            style = Style(self.width, self.colour)
            self._monitor = Monitor(session, self._target, style)

    def on_exit(self) -> None:
        """The program is gone."""
        self.rest()
        session = self._session
        if session is not None:
            # There is no 'run' of a kernel that this could begin anew with.
            killed = session.pauses.are_out and session.debuggee.is_readable_while_it_runs
            session.program_ended()
            message = session.take_message()
            if killed:
                self._wait_for_another(session)
            else:
                self._tell(message)
        self._stay.end()
        self._waiting.program_ended()

    def _wait_for_another(self, session: Session) -> None:
        request = self._request
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
        session = self._session
        self._is_killed = session is not None and session.pauses.are_out
        return self._is_killed

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

    def on_leave(self, *, stopped: bool = False) -> None:
        """The debugger lets the program go (detach, quit): nothing of darc stays in it.
        ``stopped`` says that it stands still, though the debugger calls it running."""
        self.rest()
        self._letting_go.let_go(self._session, stopped=stopped)

    def check_leaving(self) -> None:
        """The user is about to have the debugger let the program go.

        Raises:
            UsageError: it runs, and has probes in its code, which could not be taken out.
        """
        self._letting_go.check(self._session)

    def stop_to_leave(self) -> None:
        """The debugger is about to leave the program, which has stopped for that alone: every probe
        is taken out."""
        self._letting_go.stop_for_it(self._session)

    def on_child(self) -> None:
        """The debugger goes on with a child of the program: copies of probes are taken out."""
        target = self._target
        before = target.journal
        try:
            debuggee = self._choose_debuggee(target)
            # It may share its memory with its parent.
            debuggee.clean_up(debuggee.program(), unmap=False)
        finally:
            target.journal = before

    # ----------------------------------------------------------------- workings

    def _forget(self) -> None:
        self.rest()
        with contextlib.suppress(DarcError):
            self._table = self.table()
        with contextlib.suppress(DarcError):
            self._measured = folded(self.measured())
        self._session = None
        self._request = None
        self._pursuit = None
        self._waiting.cancel()
        self._waiting.failure = None

    def _modules_changed(self) -> Outcome:
        if self._target.pid is None:
            return Outcome.CONTINUE
        if self._session is not None and self._session.alive:
            self._session.modules_changed()
            if not self._session.alive:
                self.tell()
        if self._session is not None and self._session.is_of_another():
            self._waiting.next_program()
        return self._waiting.modules_changed()

    def _breakpoints_changed(self) -> None:
        if self._session is not None and self._session.alive:
            self._session.pauses.breakpoints_changed()

    def begin(
        self,
        program: Program,
        entry: int,
        request: Request,
        *,
        runs: bool = False,
        follows: bool = False,
        asked: float | None = None,
    ) -> None:
        """Begins the analysis of f0, which is at ``entry``, as the program is stopped now; that has
        work to do if it ``runs`` already. One that ``follows`` another goes on with it at once. It
        was ``asked`` for then, on the monotonic clock; ``None``: it begins by itself, now.
        Raises DarcError: it cannot be; whatever was changed was undone."""
        assert self._debuggee is not None
        began, is_first = asked or time.monotonic(), self._session is None
        self._stay.keep_watching(self._debuggee)
        resumed, parameters = request.resumed, request.parameters
        analysis, way = request.analysis, request.way
        if way is not None and (why := way.collector.problem(self._debuggee)) is not None:
            raise UnsupportedError(why)
        progress = Progress(self._target.screen)
        notes = () if resumed is None else tuple(refit.opening_notes(resumed, parameters))
        elsewhere: list[str] = []
        if (members := request.members) is not None:
            with progress.over(f"looks for {members.text}"):
                chosen = finding.find_members(
                    program, self._debuggee, target=self._target, members=members, progress=progress
                )
            if not chosen.functions:
                raise UsageError(f"{members.text}: {chosen.left_out[0][1]}")
            entry = chosen.functions[0].address
            way = SetCollector.of(chosen.functions, runs=runs or follows, progress=progress)
            analysis = functools.partial(members.analysis, left_out=chosen.left_out)
            elsewhere = finding.told_of_modules(chosen.elsewhere)
        session = Session(
            self._target,
            self._debuggee,
            program,
            entry=entry,
            spec=request.spec,
            parameters=parameters,
            analysis=analysis,
            way=way,
            changed=self._tell,
            remains=self._stay.remains,
            notes=(*notes, *elsewhere),
            progress=progress,
            spent=time.monotonic() - began,
        )
        try:
            with progress.over(f"makes the probes for {request.spec}"):
                session.install()
        finally:
            self._stay.remains = session.remains
        self._waiting.begun()
        self._request = request
        self._session = session
        if not (follows and session.pauses.passes()):
            session.pauses.begin()  # the patches come with the program's going on
        for line in (*elsewhere, *session.openings):
            self.emit(f"darc: {line}")
        session.was_set_up(time.monotonic() - began)
        if self._pursuit is not None and is_first:
            self._pursuit.setup_seconds = time.monotonic() - began

    def goes_on(self) -> None:
        """The program goes on from a stop of darc's, of which the debugger tells nobody."""
        self.before_continue()
        self.on_resume()

    def rest(self) -> None:
        """The program stands still, or is gone: nobody watches it."""
        if self._monitor is not None:
            self._monitor.stop()
            self._monitor = None

    def _tell(self, what: Message | None) -> None:
        """Shows what the session has to say at a stop."""
        session = self._session
        if what is None or session is None:
            return
        style = Style(self.width, self.colour, self._parameters.verbose)
        question = session.analysis.question if what is Message.QUESTION else None
        if question is not None and self._pursuit is None:
            self._ask(question, style)
            return
        shown = session.snapshot(
            lines=what is not Message.END
        )  # lldb tells of an end on another thread
        describe = None if self._request is None else self._request.describe
        if self._pursuit is not None:
            self.emit(status(self._with_answer(session, shown), style))
        elif what is Message.PLACE and describe is not None:
            for line in describe(self._target, session, style).splitlines():
                self.emit(line)
        elif shown.paths:
            self.emit(render.paths(shown, style))
        else:
            self.emit((early_end if what is Message.END else status)(shown, style))

    def _ask(self, question: Question, style: Style) -> None:
        if question.about is About.FTREE:
            self.emit(render.tree(self.snapshot(tree=True), style))
        else:
            self.emit(histogram(self.snapshot(), style))
        self.emit(f"darc: {question.text}, then 'continue'")

    def _tell_as_it_leaves(self) -> None:
        """Shows what is known as the debugger ends, or lets the program go: also a profile of f0,
        for which nobody can ask any more."""
        self._tell(Message.END)
        session = self._session
        if session is None or self._pursuit is not None:
            return
        shown = session.snapshot(lines=False)
        is_profile = shown.profile is not None and shown.profile.count and not shown.parts
        if is_profile and not shown.paths:
            style = Style(self.width, self.colour, self._parameters.verbose)
            self.emit(histogram(shown, style))


def _numbers(shown: Snapshot) -> bool:
    """Whether users may call functions that are shown there by numbers."""
    for part in shown.parts.values():
        with contextlib.suppress(NotFoundError):
            if part.function(1) is not None:
                return True
    return False
