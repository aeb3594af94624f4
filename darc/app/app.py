"""What the commands do, on whichever debugger: one application over one target.

The debugger's package creates one :class:`App`, passes commands to
:func:`darc.app.commands.run`, and tells its :class:`~darc.app.observer.Observer` of the program's
stops and ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from darc.app.beginning import Beginning
from darc.app.completing import functions_beginning
from darc.app.current import Current
from darc.app.finding import Request
from darc.app.lettinggo import LettingGo
from darc.app.observer import Observer
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
from darc.model.parameters import Parameters
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.session.session import Session
from darc.target.target import State, Target
from darc.views.style import Style
from darc.views.treeview import drawn_nodes
from darc.views.words import Shown, message, wrapped


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
        self._parameters = Parameters()
        self._current = current = Current()
        self._waiting = Waiting(target, self)
        self._stay = Stay(target, self.emit)
        self._telling = telling = Telling(target, current, lambda: self.style, self.emit)
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
        self.observer = Observer(
            target,
            choose_debuggee,
            current=current,
            waiting=self._waiting,
            stay=self._stay,
            telling=telling,
            letting_go=LettingGo(target, self._stay, self.emit, telling.tell_as_it_leaves),
            beginning=self._beginning,
            parameters=lambda: self._parameters,
            emit=self.emit,
        )
        """Whom the debugger tells of the program."""

    @property
    def parameters(self) -> Parameters:
        """What ``set darc`` keeps."""
        return self._parameters

    @property
    def style(self) -> Style:
        """How views are drawn on the debugger's terminal, by the parameters that hold now: for
        commands, and for what is told without being asked."""
        screen = self._target.screen
        return Style(screen.width, screen.colour, self._parameters.verbose, wraps=screen.wraps)

    @property
    def session(self) -> Session | None:
        """The session, also after its end."""
        return self._current.session

    def emit(self, text: str) -> None:
        """Shows text to the user: what a view made, or a message of one line, which is wrapped at a
        terminal."""
        self._target.screen.emit(text if isinstance(text, Shown) else self._wrapped(message(text)))

    def _wrapped(self, text: str) -> str:
        screen = self._target.screen
        is_wrapped = screen.wraps and screen.width > 0
        return "\n".join(wrapped(text, screen.width)) if is_wrapped else text

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

    def analyse(self, request: Request, pursuit: Pursuit | None = None) -> None:
        """What a command that begins an analysis asks for; ``pursuit`` tells what comes behind it.
        Raises DarcError: it cannot be."""
        self._beginning.make_room(request)
        self.observer.rest()
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

    def goes_on(self) -> None:
        """What has waited has begun, and the program goes on: the debugger tells nobody."""
        self.observer.goes_on_by_itself()

    def stop(self) -> None:
        """``darc stop``."""
        if self._waiting or self._waiting.again is not None:
            self._waiting.cancel()
            self.emit("darc: waits no more")
            self._current.recall()
            self._stay.give_back()
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
        self.observer.rest()
        self._stay.give_back()
        self.emit("darc: every probe is out")
        self._stay.tell_of_children(session.debuggee)

    def _take_out_anothers(self) -> bool:
        """Whether a debugger that was killed, or an error, had left something in the program: the
        user is told what is out now, and what is not."""
        if self._target.state is not State.STOPPED:
            return False
        try:
            debuggee, program = self.look()
            # Behind an analysis of its own what is there is this debugger's.
            notes = debuggee.clean_up(program, of_memory=self.session is None)
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
            raise UsageError(
                f"the program runs: interrupt it first ('{self._target.interrupted_by}')"
            )

    def look(self) -> tuple[Debuggee, Program]:
        """What the debugger has now. Raises DarcError."""
        return self._beginning.look()

    def lookup(self) -> Lookup:
        """What names mean in the program that the debugger has now. Raises DarcError."""
        return self._beginning.lookup()

    def tell(self) -> None:
        """Shows what the session has to say at this stop, if anything."""
        self._telling.tell_what_there_is()

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

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""
        return bool(self._waiting) or (self.session is not None and self.session.alive)
