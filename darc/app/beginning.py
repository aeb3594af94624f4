"""How an analysis begins: from what a command asks for, to a session with its probes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from darc.app import finding, naming
from darc.app.current import Current
from darc.app.finding import Request
from darc.app.progress import Progress
from darc.app.pursuit import Pursuit
from darc.app.stay import Stay
from darc.app.waiting import Waiting, may_begin_late
from darc.code.lookup import Lookup
from darc.code.program import Program
from darc.collectors.finder import FinderBrief
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import NotFoundError, UnchosenError, UnsupportedError, UsageError
from darc.saved import refit
from darc.session.brief import Before, SessionBrief
from darc.session.message import Message
from darc.session.session import Session
from darc.target.target import State, Target


class Beginning:
    """In ``target``'s program, whose debuggee ``choose`` tells; ``check_runnable`` raises
    UsageError where the debugger has a file that cannot be run. What begins is the ``current``
    analysis, what cannot begin yet is ``waiting``, and what an earlier one has left is of ``stay``.
    ``tell`` shows what a session has to say, ``emit`` takes what the user should know."""

    def __init__(
        self,
        target: Target,
        choose: Callable[[Target], Debuggee],
        check_runnable: Callable[[Target], None],
        *,
        current: Current,
        waiting: Waiting,
        stay: Stay,
        tell: Callable[[Message | None], None],
        emit: Callable[[str], None],
    ) -> None:
        self._target = target
        self._choose = choose
        self._check_runnable = check_runnable
        self._current = current
        self._waiting = waiting
        self._stay = stay
        self._tell = tell
        self._emit = emit
        self._debuggee: Debuggee | None = None
        self._looked: tuple[Lookup, Debuggee] | None = None

    def look(self) -> tuple[Debuggee, Program]:
        """What the debugger has now. Raises DarcError."""
        self._debuggee = debuggee = self._choose(self._target)
        return debuggee, debuggee.program()

    def lookup(self) -> Lookup:
        """What names mean in what the debugger has now, for a request: the analysis begins in the
        same debuggee. (The program is made anew then: a kernel may have stood where its modules
        cannot be read.) Raises DarcError."""
        debuggee, program = self.look()
        lookup = Lookup(program, self._target)
        self._looked = lookup, debuggee
        return lookup

    def _looked_at(self, request: Request) -> Debuggee:
        """What the debugger has now, as it was made for this request already or is made now. Raises
        DarcError."""
        looked, self._looked = self._looked, None
        if looked is not None and looked[0] is request.lookup:
            return looked[1]
        return self._choose(self._target)

    def make_room(self, request: Request) -> None:
        """Ends what was analysed before, and has ended but for its probes. Raises DarcError: it may
        not be."""
        command, before = request.command, self._current.session
        if request.stops_unseen and not self._target.stops_unseen:
            raise UnsupportedError(f"no 'darc {command}': {self._target.why_stops_are_seen}")
        if (
            before is not None
            and before.analysis.finished
            and before.alive
            and request.replaces_finished
        ):
            before.stop()
            self._looked = None  # there is less in the program by now
        if before is not None and before.alive:
            goes_on, begun = "", self._current.request
            if begun is not None and begun.command == command and begun.next_one:
                goes_on = f"'continue' goes on to {begun.next_one}, "
            with self._target.leaving_home() as is_elsewhere:
                where = " in the program that was selected before" if is_elsewhere else ""
            raise UsageError(
                f"{before.spec} is being analysed{where}: {goes_on}'darc stop' before "
                f"'darc {command}'"
            )
        if self._target.state is State.RUNNING:
            raise UsageError(
                f"the program runs: interrupt it ('{self._target.interrupted_by}') before "
                f"'darc {command}'"
            )

    def begin_or_wait(self, request: Request, pursuit: Pursuit | None) -> None:
        """What a command asks for; ``pursuit`` tells what comes behind it. Raises DarcError: it
        cannot be."""
        current = self._current
        self._stay.give_back_before_another()
        self._target.make_home()
        began = time.monotonic()
        self._target.wait_at_most(request.parameters.max_time)
        current.pursue(pursuit)  # Ctrl-C may come behind what begins
        before = current.session
        try:
            self._find(request, began)
        except KeyboardInterrupt:
            if current.session is not before:  # as its probes were laid down until the program runs
                self._emit("darc: it was set up by then: 'continue' goes on, 'darc stop' ends it")
            raise
        finally:
            if current.session is None and not self._waiting:
                current.pursue(None)
            elif current.session is not before:
                self._was_set_up(pursuit, time.monotonic() - began)

    def _was_set_up(self, pursuit: Pursuit | None, seconds: float) -> None:
        if (session := self._current.session) is not None:
            session.was_set_up(seconds)
            if pursuit is not None:
                pursuit.was_set_up(seconds)

    def _find(self, request: Request, asked: float) -> None:
        """Begins where the function is there, and waits where it may come."""
        function = request.function
        if request.finder is None and request.resumed is None:
            naming.check_form(function, request.command)
        if self._target.state is State.NONE:
            self._check_runnable(self._target)
            progress = Progress(self._target.screen)
            with progress.over(f"looks for {request.spec}"):
                checked = finding.check_file(self._target, request, progress, self._emit)
            self._waiting.for_program(*checked)
            return
        self._debuggee = debuggee = self._looked_at(request)
        if request.stops_unseen or request.reads_beside:
            finding.check_read(request.command, debuggee)
        debuggee.check_supported()
        self._stay.watch_over(debuggee)
        program = debuggee.program()
        finding.check_code(program)
        if request.finder is not None and not debuggee.is_at_start():
            self.begin(program, 0, request, runs=True, asked=asked)
            self._emit(f"darc: {request.verb} {request.spec}: 'continue'")
            return
        progress = Progress(self._target.screen, asked, request.parameters.max_time)
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
            self._emit(f"darc: the program has not begun yet: waits for {function}")
            return
        self.begin(program, entry, request, asked=asked)
        self._emit(f"darc: {request.verb} {request.spec}: 'continue'")

    def _install(self, session: Session) -> None:
        """Raises DarcError: it is refused. What it has mapped is given back at once, as the program
        goes on then, and the debugger may end meanwhile."""
        try:
            session.install()
        except BaseException:
            self._stay.keep(session.remains)
            self._stay.give_back()
            raise
        self._stay.keep(session.remains)

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
        current = self._current
        began, is_first = asked or time.monotonic(), current.session is None
        self._stay.keep_watching(self._debuggee)
        resumed, parameters = request.resumed, request.parameters
        way = request.way
        if request.stops_unseen or request.reads_beside:
            finding.check_read(request.command, self._debuggee)
        if way is not None and (why := way.collector.problem(self._debuggee)) is not None:
            raise UnsupportedError(why)
        # Of one function all is found in any time that there may be.
        limit = None if request.finder is None else parameters.max_time
        progress = Progress(self._target.screen, began, limit)
        notes = () if resumed is None else tuple(refit.opening_notes(resumed, parameters))
        found_notes: Sequence[str] = ()
        if (finder := request.finder) is not None:
            brief = FinderBrief(
                self._target, program, self._debuggee, runs=runs or follows, progress=progress
            )
            with progress.over(f"looks for {finder.text}"):
                found = finder.find(brief)
            entry, way, found_notes = found.entry, found.way, found.notes
        session = Session(
            self._target,
            self._debuggee,
            program,
            SessionBrief(
                entry=entry,
                spec=request.spec,
                parameters=parameters,
                analysis=request.analysis,
                way=way,
            ),
            changed=self._tell,
            before=Before(
                remains=self._stay.remains,
                notes=(*notes, *found_notes),
                spent=time.monotonic() - began,
            ),
            progress=progress,
        )
        with progress.over(f"makes the probes for {request.spec}"):
            self._install(session)
        self._waiting.begun()
        current.begun(session, request)
        if not (follows and session.pauses.passes()):
            session.pauses.begin()  # the patches come with the program's going on
        for line in (*found_notes, *session.openings):
            self._emit(f"darc: {line}")
        session.was_set_up(time.monotonic() - began)
        if current.pursuit is not None and is_first:
            current.pursuit.was_set_up(time.monotonic() - began)
