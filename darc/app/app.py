"""What the commands do, on whichever debugger: one application over one target.

The debugger's package creates one :class:`App`, passes commands to
:func:`darc.app.commands.run`, and tells the application of the program's stops and ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from darc.analyses.rootcauses import RootCauses
from darc.app.heart import Heart
from darc.code import runtimes
from darc.code.demangle import display_name
from darc.code.elf import Image
from darc.code.program import (
    Program,
    address_of,
    find_symbols,
    inlined_only,
    instead,
    is_called,
    load_image,
    not_found,
    split_spec,
    symbol_spelling,
)
from darc.debuggee.ground import Ground
from darc.debuggee.process_ground import ProcessGround
from darc.model.errors import (
    AmbiguousError,
    DarcError,
    InlinedError,
    NotFoundError,
    UnchosenError,
    UnsupportedError,
    UsageError,
)
from darc.model.parameters import Parameters, Probes
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.pads.foothold import Foothold
from darc.saved import refit, storage
from darc.saved.files import replace_file
from darc.session.session import Message, Session
from darc.target.target import Outcome, State, Target
from darc.views import render
from darc.views.words import Shown, message

_CANNOT_WAIT = (
    "in a program that was attached to darc waits for no function, as a breakpoint is its end if "
    "the debugger is killed: let it go on a little, then type 'darc start' again"
)


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
        self._pending: tuple[str, Parameters] | None = None
        self._again: tuple[str, Parameters] | None = None
        """What waits for the next program, as the one before was killed at a stop."""
        self._resumed: storage.Stored | None = None
        self._failure: DarcError | None = None
        self._is_found = False
        self._copies: list[str] = []
        """What the callers of f0 may call in its place."""
        self._is_of_file = False
        """Whether f0 is an address of the program's file, as it was typed before that ran."""
        self._heart: Heart | None = None
        self._foothold: Foothold | None = None
        self._choice: Callable[[], None] = lambda: None
        """Takes back what waits for f0 to be chosen."""
        self._begin_break: Callable[[], None] = lambda: None
        """Takes back what waits for the program to begin."""
        self._waits_for_begin = False
        self._leave_alone: Callable[[], None] = lambda: None
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
        self._start(function, self._parameters.overridden(overrides), None)

    def save(self, file: Path) -> None:
        """``darc save``."""
        if self._session is None and self._pending is not None:
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
        self._start(stored.spec, refit.new_parameters(stored, overrides), stored)

    def _start(self, function: str, parameters: Parameters, resumed: storage.Stored | None) -> None:
        if self._session is not None and self._session.alive:
            raise UsageError(
                f"{self._session.spec} is being analysed: 'darc stop' before another 'darc start'"
            )
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) before 'darc start'")
        self._forget()
        self._resumed = resumed
        if self._target.state is State.NONE:
            self._check_file(function)
            self._pending = (function, parameters)
            self.emit(f"darc: waits for {function}: type 'run'")
            return
        self._ground = self._choose_ground(self._target)
        self._ground.check_supported()
        self._leave_alone()
        self._leave_alone = self._ground.watch_over()
        program = self._program()
        try:
            entry = self._find(program, function)
        except UnchosenError as error:
            if not self._may_wait(parameters):
                raise NotFoundError(f"{error}; {_CANNOT_WAIT}") from None
            self._pending = (function, parameters)
            self._await_choice(error.resolver)
            self.emit(f"darc: {error}: waits for it")
            return
        except NotFoundError as error:
            self._check_inlined(function)
            if not self._ground.tells_of_files:
                raise
            if not self._may_wait(parameters):
                raise NotFoundError(f"{error}; {_CANNOT_WAIT}") from None
            if not self._target.accepts_pending(f"{error}; wait for a library that has it?"):
                raise
            self._pending = (function, parameters)
            self.emit(f"darc: {error}: waits for a library that has it")
            return
        if self._ground.is_at_start() and self._may_begin_late(program, parameters):
            self._wait_for(entry, function, parameters)
            self.emit(f"darc: the program has not begun yet: waits for {function}")
            return
        self._begin(program, entry, function, parameters)
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
        if self._pending is not None or self._again is not None:
            self._pending = None
            self._again = None
            self._waits_no_more()
            self.emit("darc: waits no more")
            return
        if not (self._session is not None and self._session.alive) and self._take_out_anothers():
            return
        session = self._need_session()
        if session.alive:
            self._need_stopped()
            session.stop()
        self._rest()
        self._give_back()
        self.emit("darc: every probe is out")

    def _take_out_anothers(self) -> bool:
        """Whether a debugger that was killed, or an error, had left probes in the program, which
        are out now."""
        if self._target.state is not State.STOPPED:
            return False
        program = self._program()
        assert self._ground is not None
        notes = self._ground.clean_up(program)
        if self._foothold is not None and not self._foothold.is_there():
            self._close_foothold()
        for note in notes:
            self.emit(f"darc: {note}")
        return bool(notes)

    def snapshot(self) -> Snapshot:
        """What is known now."""
        if self._session is None and self._pending is not None:
            function, parameters = self._pending
            return Snapshot(
                function, Status.PENDING, parameters.probes.value, parameters=parameters
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
            return [m.image for m in self._program().modules_called(scope)]
        path = self._target.executable
        if path is None or (scope is not None and not is_called(path, scope)):
            return []
        return [load_image(Path(path))]

    # ------------------------------------------------------------------ events

    def on_stop(self) -> None:
        """The program stopped for the user."""
        self._rest()
        session = self._session
        if session is None:
            if self._pending is not None and self._target.attached:
                self._modules_changed()  # not every debugger tells of files at an attach
            return
        self._target.journal.stands(True)
        session.on_user_stop()
        session.end_if_late()
        self._tell(session.take_message())

    @property
    def is_busy(self) -> bool:
        """Whether a function is analysed or waited for."""
        return self._pending is not None or (self._session is not None and self._session.alive)

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
        self._rest()
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
        if self._pending is not None:
            function, _ = self._pending
            path = self._target.executable
            names = [s.name for s in load_image(Path(path)).symbols] if path is not None else []
            uncalled = f"the program ended before {function} was called{instead(self._copies)}"
            self._failure = NotFoundError(
                uncalled if self._is_found else not_found(function, names)
            )
            self._pending = None
            self._waits_no_more()
            self.emit(f"darc: {self._failure}")

    def _wait_for_another(self, session: Session) -> None:
        """The user has killed the program at a stop, perhaps by another 'run'."""
        self._again = (session.spec, session.parameters)
        self._target.await_start()

    def on_leave(self, *, stopped: bool = False) -> None:
        """The debugger lets the program go (detach, quit): nothing of darc stays in it.
        ``stopped`` says that it stands still, though the debugger calls it running."""
        self._rest()
        session = self._session
        if session is not None and session.alive:
            if stopped or self._target.state is State.STOPPED:
                session.stop()
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

    def _leave_process(self) -> None:
        leave, self._leave_alone = self._leave_alone, lambda: None
        leave()
        self._close_foothold()

    def _close_foothold(self) -> None:
        if self._foothold is not None:
            self._foothold.close()
            self._foothold = None
            self._target.hide_pads()

    def _need_session(self) -> Session:
        if self._session is None:
            if self._failure is not None:
                raise self._failure
            raise UsageError("nothing is being analysed: type 'darc start FUNCTION'")
        return self._session

    def _need_stopped(self) -> None:
        if self._target.state is State.RUNNING:
            raise UsageError("the program runs: interrupt it (Ctrl-C) first")

    def _forget(self) -> None:
        self._rest()
        self._session = None
        self._pending = None
        self._again = None
        self._resumed = None
        self._is_found = False
        self._is_of_file = False
        self._failure = None
        self._waits_no_more()

    def _waits_no_more(self) -> None:
        self._target.cancel_break()
        self._forget_choice()
        self._forget_begin()
        self._waits_for_begin = False

    def _program(self) -> Program:
        self._ground = self._choose_ground(self._target)
        return self._ground.program()

    def _find(self, program: Program, function: str, *, hint: bool = True) -> int:
        """f0 in the program; that of a session that is resumed by what is stored of it. ``hint``
        is as in :meth:`~darc.code.program.Program.find`."""
        if self._resumed is None and self._is_of_file:
            return self._at_file_address(program, function)
        if self._resumed is None:
            return program.find(function, hint=hint)
        stored = self._resumed
        entry = refit.locate(stored.root.function, program.modules, stored.modules)
        if entry is not None and program.is_code(entry):
            return entry
        if function.startswith("*"):  # an address of another run means nothing
            named = stored.root.function
            raise NotFoundError(f"the function {named.symbol} of {named.module} is not there")
        return program.find(function, hint=hint)

    def _at_file_address(self, program: Program, function: str) -> int:
        """Where the code is now that has this address in the program's file."""
        assert self._ground is not None
        entry = self._ground.entry()
        module = None if entry is None else program.module_at(entry)
        if module is None:
            raise NotFoundError(f"the program's own file is not loaded: {function} cannot be found")
        return program.find(f"*{address_of(function) + module.bias:#x}")

    def _check_file(self, function: str) -> None:
        """Before 'run', what is wrong already is told at once."""
        path = self._target.executable
        if path is None:
            raise UsageError("there is no program: type 'file PROGRAM', or attach to a process")
        self._check_runnable(self._target)
        image = load_image(Path(path))
        runtimes.check(image, Path(path).name)
        if function.startswith("*") and self._resumed is None:
            segment = image.segment_of(address_of(function))
            self._is_of_file = segment is not None and segment.executable
        plain = not any(c in function for c in "!:*") or "::" in function
        matches = find_symbols([(image, 0)], function) if plain else set()
        names = {symbol_spelling(image.names_at(a)[0]) for a in matches}
        if len(matches) > 1 and len(names) == len(matches):
            listed = ", ".join(sorted(names))
            raise AmbiguousError(f"{function} names {len(matches)} functions: take one of {listed}")
        is_known = bool(matches) or (
            not function.isidentifier() and bool(self._target.functions_called(function))
        )
        if plain and not is_known:
            self._check_inlined(function)
            missing = not_found(function, (s.name for s in image.symbols))
            if not self._target.accepts_pending(f"{missing}; wait for a library that has it?"):
                raise NotFoundError(missing)

    def _check_inlined(self, function: str) -> None:
        """Of a name that no code has. Raises InlinedError: there are copies of it elsewhere."""
        hosts = self._target.inlined_into(split_spec(function)[1])
        if hosts:
            raise InlinedError(inlined_only(function, hosts))

    def _modules_changed(self) -> None:
        if self._target.pid is None:
            return
        if self._session is not None and self._session.alive:
            self._session.modules_changed()
        if self._again is not None and self._session is not None and self._session.is_of_another():
            self._pending, self._again = self._again, None
            self.emit(f"darc: analyses {self._pending[0]} again in this run of the program")
        if self._pending is None:
            return
        function, _ = self._pending
        try:
            program = self._program()
            self._await_begin()
            if self._pending is None:
                return
            entry = self._find(program, function, hint=False)
        except UnchosenError as error:
            if self._may_wait(self._pending[1]):
                self._await_choice(error.resolver)
            return
        except NotFoundError:
            return  # it may come with a later library
        except DarcError as error:
            self._fail(error)
            return
        if not self._may_wait(self._pending[1]):
            self._fail(UsageError(f"{function} is there now; {_CANNOT_WAIT}"))
            return
        self._wait_for(entry, *self._pending)

    def _await_begin(self) -> None:
        """What will fail is told when all that is loaded with the program is there, not at its
        end."""
        ground = self._ground
        entry = None if ground is None or self._waits_for_begin else ground.entry()
        if ground is None or entry is None or ground.danger_of_breakpoints() is not None:
            return
        # lldb tells of files there, a static program has none to wait for.
        is_there = any(entry <= pc < entry + 16 for pc in self._target.program_counters().values())
        if not is_there and not ground.is_at_start():
            return

        def begin() -> Outcome:
            self._forget_begin()
            self._begins()
            return Outcome.CONTINUE

        self._waits_for_begin = True
        if is_there:
            self._begins()
            return
        self._begin_break = self._target.set_break(entry, lambda _: begin)

    def _forget_begin(self) -> None:
        take_back, self._begin_break = self._begin_break, lambda: None
        take_back()

    def _begins(self) -> None:
        if self._pending is None:
            return
        function, _ = self._pending
        try:
            program = self._program()
            entry = self._find(program, function)
            assert self._ground is not None
            self._ground.check(program, program.function_at(entry), function)
        except UnchosenError:
            return  # that is waited for
        except NotFoundError as error:
            try:
                self._check_inlined(function)
            except InlinedError as inlined:
                self._fail(inlined)
            else:
                self.emit(f"darc: {error}: waits for a library that has it")
        except DarcError as error:
            self._fail(error)

    def _may_wait(self, parameters: Parameters) -> bool:
        """Whether a breakpoint may stand at f0 until it is called: of a killed debugger's it would
        be the end of a program that was attached to."""
        if parameters.probes is Probes.BREAKPOINT or self._ground is None:
            return True
        return self._ground.danger_of_breakpoints() is None

    def _may_begin_late(self, program: Program, parameters: Parameters) -> bool:
        """Of a program without thread-local storage: whether to wait for f0. One that never has any
        begins at once where darc may not wait.

        Raises:
            UnsupportedError: it will have some, and nobody may wait for that.
        """
        if self._may_wait(parameters):
            return True
        if any(module.name.startswith("ld") for module in program.modules):
            raise UnsupportedError(f"the program has not begun yet; {_CANNOT_WAIT}")
        return False

    def _await_choice(self, resolver: int) -> None:
        """f0 is what the function at ``resolver`` returns when the program first calls it."""
        target = self._target

        def called(thread: int) -> Callable[[], Outcome]:
            word = target.read(target.read_register(thread, "rsp"), 8)
            back = int.from_bytes(word, "little")

            def follow() -> Outcome:
                self._forget_choice()
                self._choice = target.set_break(back, chosen)
                return Outcome.CONTINUE

            return follow

        def chosen(thread: int) -> Callable[[], Outcome]:
            entry = target.read_register(thread, "rax")

            def wait() -> Outcome:
                if self._pending is not None:
                    self._wait_for(entry, *self._pending)
                return Outcome.CONTINUE

            return wait

        self._forget_choice()
        self._choice = target.set_break(resolver, called)
        self._is_found = True

    def _forget_choice(self) -> None:
        take_back, self._choice = self._choice, lambda: None
        take_back()

    def _wait_for(self, entry: int, function: str, parameters: Parameters) -> None:
        """The analysis begins at the first call of f0, where it is known now."""
        self._pending = (function, parameters)
        self._is_found = True
        self._copies = self._program().private_copies(entry, live=False)
        self._forget_choice()
        self._target.break_once(entry, lambda: self._arrived(entry))

    def _breakpoints_changed(self) -> None:
        if self._session is not None and self._session.alive:
            self._session.breakpoints_changed()

    def _arrived(self, entry: int) -> None:
        """The program is at f0's first instruction for the first time."""
        if self._pending is None:
            return
        function, parameters = self._pending
        try:
            self._begin(self._program(), entry, function, parameters)
        except DarcError as error:
            self._fail(error)
        except Exception as error:
            self._failure = UsageError(f"{function} could not be analysed: {error!r}")
            raise
        finally:
            self._pending = None  # whatever happened, the wait is over

    def _fail(self, error: DarcError) -> None:
        self._pending = None
        self._waits_no_more()
        self._failure = error
        self.emit(f"darc: {error}")

    def _begin(self, program: Program, entry: int, function: str, parameters: Parameters) -> None:
        assert self._ground is not None
        resumed = self._resumed
        session = Session(
            self._target,
            self._ground,
            program,
            entry,
            function,
            parameters,
            analysis=functools.partial(RootCauses, resumed=resumed),
            changed=self._tell,
            foothold=self._foothold,
            notes=() if resumed is None else refit.opening_notes(resumed, parameters),
        )
        try:
            session.install()
        finally:
            self._foothold = session.foothold
        self._pending = None
        self._waits_for_begin = False
        self._session = session
        session.on_user_stop()  # the patches come with the program's going on
        for line in session.openings:
            self.emit(f"darc: {line}")

    def _rest(self) -> None:
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
