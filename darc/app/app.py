"""What the commands do, on whichever debugger: one application over one target.

The debugger's package creates one :class:`App`, passes commands to
:func:`darc.app.commands.run`, and tells the application of the program's stops and ends.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from darc.analyses.rootcauses import RootCauses
from darc.app import finding
from darc.app.finding import Request
from darc.app.heart import Heart
from darc.app.waiting import Waiting, may_begin_late
from darc.code.demangle import display_name
from darc.code.elf import Image
from darc.code.modules import load_image
from darc.code.program import Program
from darc.code.spelling import is_called, split_spec
from darc.debuggee.ground import Ground
from darc.debuggee.process_ground import ProcessGround
from darc.model.errors import (
    NotFoundError,
    UnchosenError,
    UsageError,
)
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.pads.foothold import Foothold
from darc.saved import refit, storage
from darc.saved.files import replace_file
from darc.session.session import Message, Session
from darc.target.target import State, Target
from darc.views import render
from darc.views.words import Shown, message

_ASLEEP = "the probes in it sleep; attach to it again and type 'darc stop' to take them out"


class App:
    """The state behind the commands: parameters, at most one session, what it waits for."""

    def __init__(
        self,
        target: Target,
        choose_ground: Callable[[Target], Ground] = ProcessGround,
        check_runnable: Callable[[Target], None] = lambda target: None,
    ) -> None:
        """``choose_ground`` tells what the debugger has stopped; ``check_runnable`` raises
        UsageError where the debugger has a file that cannot be run."""
        self._target = target
        self._choose_ground = choose_ground
        self._check_runnable = check_runnable
        self._ground: Ground | None = None
        self._parameters = Parameters()
        self._session: Session | None = None
        self._request: Request | None = None
        """What the session is for."""
        self._waiting = Waiting(target, self)
        self._heart: Heart | None = None
        self._foothold: Foothold | None = None
        self._leave_alone: Callable[[bool], None] = lambda lost: None
        """Lets the ground know that the debugger lets it go."""
        target.when_modules_change(self._modules_changed)
        target.when_breakpoints_change(self._breakpoints_changed)

    # ---------------------------------------------------------------- commands

    @property
    def parameters(self) -> Parameters:
        """What ``set darc`` keeps."""
        return self._parameters

    @property
    def colour(self) -> bool:
        """Whether output takes escape codes."""
        return self._target.colour

    @property
    def width(self) -> int:
        """Columns of the output."""
        return self._target.width

    @property
    def session(self) -> Session | None:
        """The session, also after its end."""
        return self._session

    def emit(self, text: str) -> None:
        """Shows text to the user: what a view made, or a message of one line."""
        self._target.emit(text if isinstance(text, Shown) else message(text))

    def set_parameter(self, name: str, text: str) -> None:
        """``set darc NAME TEXT``."""
        self._parameters = self._parameters.with_text(name, text)

    def start(self, function: str, overrides: dict[str, object]) -> None:
        """``darc start``: at once where the program is stopped, else when it comes to f0."""
        self.analyse(Request(function, self._parameters.overridden(overrides), RootCauses))

    def save(self, file: Path) -> None:
        """``darc save``."""
        if self._session is None and self._waiting:
            raise UsageError("nothing was collected yet: type 'run', then 'darc save' at a stop")
        session = self._need_session()
        if session.alive:
            self._need_stopped()
        replace_file(file, storage.to_text(session.stored()) + "\n")
        self.emit(f"darc: session saved to {file}: 'darc resume {file}' goes on with it")

    def resume(self, file: Path, overrides: dict[str, object]) -> None:
        """``darc resume``: as ``darc start`` with what is stored."""
        stored = storage.read_file(file)
        refit.check_overrides(stored, overrides)
        parameters = refit.new_parameters(stored, overrides)
        make = functools.partial(RootCauses, resumed=stored)
        self.analyse(Request(stored.spec, parameters, make, stored))

    def analyse(self, request: Request) -> None:
        """What a command that begins an analysis asks for. Raises DarcError: it cannot be."""
        if self._session is not None and self._session.alive:
            raise UsageError(
                f"{self._session.spec} is being analysed: 'darc stop' before another 'darc start'"
            )
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) before 'darc start'")
        self._forget()
        function, parameters = request.function, request.parameters
        if self._target.state is State.NONE:
            self._check_runnable(self._target)
            self._waiting.for_program(finding.check_file(self._target, request))
            return
        self._ground = ground = self._choose_ground(self._target)
        ground.check_supported()
        self._leave_alone(False)
        self._leave_alone = ground.watch_over()
        ground, program = self.look()
        try:
            entry = finding.find(program, ground, self._target, request)
        except UnchosenError as error:
            self._waiting.for_choice(request, ground, error)
            return
        except NotFoundError as error:
            self._waiting.for_library(request, ground, error)
            return
        if ground.is_at_start() and may_begin_late(ground, program, parameters):
            self._waiting.for_call(entry, request)
            self.emit(f"darc: the program has not begun yet: waits for {function}")
            return
        self.begin(program, entry, request)
        self.emit(f"darc: analyses {function}: 'continue'")

    def peak(self, spec: str) -> None:
        """``darc peak``."""
        session = self._need_session()
        self._need_stopped()
        analysis = session.analysis
        if not isinstance(analysis, RootCauses):
            raise UsageError("'darc peak' is for what 'darc start' has begun")
        session.follow(lambda: analysis.choose_peak(spec))
        if session.finished:
            self._tell(session.take_message())
        else:
            self.emit(f"darc: peak {spec} of {session.spec} is chosen: 'continue' to descend")

    def descend(self, ids: Sequence[str]) -> None:
        """``darc descend``."""
        session = self._need_session()
        self._need_stopped()
        nodes = [session.root.find(i) for i in ids]
        analysis = session.analysis
        if not isinstance(analysis, RootCauses):
            raise UsageError("'darc descend' is for what 'darc start' has begun")
        session.follow(lambda: analysis.descend(nodes))
        if session.finished:
            self._tell(session.take_message())

    def stop(self) -> None:
        """``darc stop``."""
        if self._waiting or self._waiting.again is not None:
            self._waiting.cancel()
            self.emit("darc: waits no more")
            return
        if not (self._session is not None and self._session.alive) and self._take_out_anothers():
            return
        session = self._need_session()
        if session.alive:
            self._need_stopped()
            session.stop()
        self.rest()
        self._give_back()
        self.emit("darc: every probe is out")

    def _take_out_anothers(self) -> bool:
        """Whether a debugger that was killed, or an error, had left probes in the program, which
        are out now."""
        if self._target.state is not State.STOPPED:
            return False
        ground, program = self.look()
        notes = ground.clean_up(program)
        if self._foothold is not None and not self._foothold.is_there():
            self._close_foothold()
        for note in notes:
            self.emit(f"darc: {note}")
        return bool(notes)

    def snapshot(self) -> Snapshot:
        """What is known now."""
        request = self._waiting.request
        if self._session is None and request is not None:
            parameters = request.parameters
            return Snapshot(
                request.function, Status.PENDING, parameters.probes.value, parameters=parameters
            )
        return self._need_session().snapshot()

    def complete_function(self, prefix: str) -> list[str]:
        """Functions whose name begins with ``prefix``."""
        scope, start = split_spec(prefix)
        if scope is not None and not scope.endswith("!"):
            found = self._target.functions_of(scope, start)
            return sorted(f"{scope}:{name}" for name in found if name.startswith(start))
        names = set()
        last = start.rsplit("::", 1)[-1]
        for image in self._images(scope):
            for symbol in image.symbols:
                if last in symbol.name and (name := display_name(symbol.name)).startswith(start):
                    names.add((scope or "") + name)
        return sorted(names)

    def _images(self, scope: str | None) -> list[Image]:
        """The files of the program; those of the name in ``scope``, as ``lib.so!``, if any."""
        if self._target.state is not State.NONE:
            return [m.image for m in self.look()[1].modules_called(scope)]
        path = self._target.executable
        if path is None or (scope is not None and not is_called(path, scope)):
            return []
        return [load_image(Path(path))]

    # ------------------------------------------------------------------ events

    def on_stop(self, *, brief: bool = False) -> None:
        """The program stopped for the user. Where it will probably go on at once (``brief``), what
        watches it while it runs is left alone; :meth:`rest` is called if it does not."""
        if self._session is not None:
            self._session.stands()
        if not brief:
            self.rest()
        session = self._session
        if session is None:
            if self._waiting and self._target.attached:
                self._modules_changed()  # not every debugger tells of files at an attach
            return
        self._target.journal.stands(True)
        session.on_user_stop()
        session.end_if_late()
        self._tell(session.take_message())

    def passes(self) -> bool:
        """The program has stopped, and the debugger will let it go on by itself, as the user has
        told it to. Whether that is none of darc's business: else it is a stop for the user."""
        return self._session is not None and self._session.passes()

    @property
    def is_passing(self) -> bool:
        """Whether :meth:`passes` has said so of the stop that the program is at."""
        return self._session is not None and self._session.passing

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""
        return bool(self._waiting) or (self._session is not None and self._session.alive)

    def before_stop(self) -> None:
        """The program is about to stop for the user: nobody is to see a probe."""
        if self._session is not None:
            self._session.on_user_stop()

    def before_continue(self) -> None:
        """The user lets the program go on, and not step by step."""
        if self._session is not None:
            self._session.before_resume()

    def on_resume(self) -> None:
        """The program goes on."""
        self._target.journal.stands(False)
        session = self._session
        if session is not None and session.alive and self._heart is None:
            style = render.Style(self.width, self.colour)
            self._heart = Heart(session, self._target, style)

    def on_exit(self) -> None:
        """The program is gone."""
        self.rest()
        session = self._session
        if session is not None:
            killed = session.paused
            session.program_ended()
            message = session.take_message()
            if killed:
                self._wait_for_another(session)
            else:
                self._tell(message)
        self._leave_process()
        self._waiting.program_ended()

    def _wait_for_another(self, session: Session) -> None:
        request = self._request
        assert request is not None
        self._waiting.for_another(dataclasses.replace(request, parameters=session.parameters))

    def on_lost(self, pid: int) -> None:
        """The debugger knows of the program no more, though that lives."""
        session = self._session
        if session is None or not session.alive:
            self.on_exit()
            return
        self.rest()
        bare, why = session.paused, f"the debugger has lost process {pid}, which lives"
        if not bare:
            why = f"{why}: {_ASLEEP}"
        session.abandon(why)
        self._leave_process(lost=True)
        if not bare:  # else perhaps the debugger has let it go and is about to end
            self.emit(f"darc: {why}")

    def on_leave(self, *, stopped: bool = False) -> None:
        """The debugger lets the program go (detach, quit): nothing of darc stays in it.
        ``stopped`` says that it stands still, though the debugger calls it running."""
        self.rest()
        session = self._session
        if session is not None and session.alive:
            if stopped or self._target.state is State.STOPPED:
                session.stop()
            elif self._target.attached and session.is_readable:
                session.abandon(f"the program was let go of while it ran: {_ASLEEP}")
            else:
                session.program_ended()
        if not stopped and self._target.attached:
            self._give_back()
        self._leave_process()

    def on_child(self) -> None:
        """The debugger goes on with a child of the program: copies of probes are taken out."""
        target = self._target
        before = target.journal
        try:
            ground = self._choose_ground(target)
            # It may share its memory with its parent.
            ground.clean_up(ground.program(), unmap=False)
        finally:
            target.journal = before

    # ----------------------------------------------------------------- workings

    def _give_back(self) -> None:
        """Darc's memory in the program, where nothing needs it any more."""
        foothold = self._foothold
        if foothold is None or self._target.state is not State.STOPPED:
            return
        if foothold.give_back():
            self._foothold = None
            self._target.hide_pads()

    def _leave_process(self, *, lost: bool = False) -> None:
        leave, self._leave_alone = self._leave_alone, lambda lost: None
        leave(lost)
        self._close_foothold()

    def _close_foothold(self) -> None:
        if self._foothold is not None:
            self._foothold.close()
            self._foothold = None
            self._target.hide_pads()

    def _need_session(self) -> Session:
        if self._session is None:
            if self._waiting.failure is not None:
                raise self._waiting.failure
            raise UsageError("nothing is being analysed: type 'darc start FUNCTION'")
        return self._session

    def _need_stopped(self) -> None:
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) first")

    def _forget(self) -> None:
        self.rest()
        self._session = None
        self._request = None
        self._waiting.cancel()
        self._waiting.failure = None

    def look(self) -> tuple[Ground, Program]:
        """What the debugger has now. Raises DarcError."""
        self._ground = ground = self._choose_ground(self._target)
        return ground, ground.program()

    def _modules_changed(self) -> None:
        if self._target.pid is None:
            return
        if self._session is not None and self._session.alive:
            self._session.modules_changed()
        if self._session is not None and self._session.is_of_another():
            self._waiting.next_program()
        self._waiting.modules_changed()

    def _breakpoints_changed(self) -> None:
        if self._session is not None and self._session.alive:
            self._session.breakpoints_changed()

    def begin(self, program: Program, entry: int, request: Request) -> None:
        """Begins the analysis of f0, which is at ``entry``, as the program is stopped now. Raises
        DarcError: it cannot be; whatever was changed was undone."""
        assert self._ground is not None
        resumed, parameters = request.resumed, request.parameters
        session = Session(
            self._target,
            self._ground,
            program,
            entry,
            request.function,
            parameters,
            analysis=request.analysis,
            changed=self._tell,
            foothold=self._foothold,
            notes=() if resumed is None else refit.opening_notes(resumed, parameters),
        )
        try:
            session.install()
        finally:
            self._foothold = session.foothold
        self._waiting.begun()
        self._request = request
        self._session = session
        session.on_user_stop()  # the patches come with the program's going on
        for line in session.openings:
            self.emit(f"darc: {line}")

    def rest(self) -> None:
        """The program stands still, or is gone: nobody watches it."""
        if self._heart is not None:
            self._heart.stop()
            self._heart = None

    def _tell(self, what: Message | None) -> None:
        """Shows what the session has to say at a stop."""
        session = self._session
        if what is None or session is None:
            return
        style = render.Style(self.width, self.colour, self._parameters.verbose)
        shown = session.snapshot(
            lines=what is not Message.END
        )  # lldb tells of an end on another thread
        if what is Message.CHOOSE_PEAK:
            self.emit(render.histogram(shown, style))
            self.emit("darc: choose a peak ('darc peak N'), then 'continue'")
        elif what is Message.CHOOSE_NODES:
            self.emit(render.tree(shown, style))
            self.emit("darc: choose where to descend ('darc descend FNODE…'), then 'continue'")
        elif shown.paths:
            self.emit(render.paths(shown, style))
        else:
            self.emit((render.early_end if what is Message.END else render.status)(shown, style))
