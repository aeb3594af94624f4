"""A request that waits: for the program, for the library that has f0, or for f0 to be chosen.

The analysis begins at the first call of f0 from where that is known. Whatever waits has a
breakpoint in the program at most, and one method takes it back: :meth:`Waiting.cancel`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from darc.app import finding, naming
from darc.app.finding import Request
from darc.app.firstcall import FirstCall
from darc.code.lookup import Lookup
from darc.code.modules import load_image
from darc.code.processor import RESULT, STACK_POINTER, slot_at_entry
from darc.code.program import Program
from darc.code.spelling import instead, not_found
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.duties import TakesBreakpoints
from darc.model.errors import (
    AmbiguousError,
    DarcError,
    NotFoundError,
    TargetError,
    UnchosenError,
    UnsupportedError,
    UsageError,
)
from darc.model.libraries import is_loader
from darc.model.parameters import Parameters
from darc.target.outcome import Outcome
from darc.target.target import Target

_NOT_LOADED = (
    "no file that is loaded has it. If a library is to bring it, let the program go on until that "
    "is there, then type 'darc %s' again: in one that was attached to darc does not wait, as a "
    "breakpoint is its end if the debugger is killed"
)

_ATTACH_AGAIN = "the debugger has no program: attach to one and type 'darc %s' again, or type 'run'"

_CANNOT_WAIT = (
    "in a program that was attached to darc waits for no function, as a breakpoint is its end if "
    "the debugger is killed: let it go on a little, then type 'darc %s' again"
)


class LetsWait(Protocol):
    """Who lets requests wait."""

    def look(self) -> tuple[Debuggee, Program]:
        """What the debugger has now. Raises DarcError."""

    def begin(self, program: Program, entry: int, request: Request) -> None:
        """f0 is at ``entry``, and is called now, or was. Raises DarcError."""

    def goes_on(self) -> None:
        """The program goes on, and the debugger will not say so."""

    def emit(self, text: str) -> None:
        """Shows text to the user."""


class Waiting:
    """At most one request that waits."""

    def __init__(self, target: Target, app: LetsWait) -> None:
        self._target = target
        self._app = app
        self.request: Request | None = None
        """What waits."""
        self.again: Request | None = None
        """What waits for the next program, as the one before was killed at a stop."""
        self.failure: DarcError | None = None
        """Why the last one came to nothing."""
        self._was_attached = False
        """Whether the program that ran last was attached to."""
        self._is_found = False
        self._copies: list[str] = []
        """What the callers of f0 may call in its place."""
        self._choice: Callable[[], None] = lambda: None
        """Takes back what waits for f0 to be chosen."""
        self._begin_break: Callable[[], None] = lambda: None
        """Takes back what waits for the program to begin."""
        self._awaits_begin = False
        self._will_begin = False
        """Whether that is still to come."""
        self._first_call: FirstCall | None = None
        """Watches what waits for f0's first call."""
        self._looked: tuple[Request, int | None, Debuggee, bytes] | None = None
        """For what, in which program, and what was mapped there when all was looked at."""

    def __bool__(self) -> bool:
        return self.request is not None

    # -------------------------------------------------------------------- begin

    def for_program(self, request: Request, missing: str | None = None) -> None:
        """There is no program yet; ``missing`` says so where the function is not there either."""
        self.request = request
        how = _ATTACH_AGAIN % request.command if self._was_attached else "type 'run'"
        if missing is None:
            self._app.emit(f"darc: waits for {request.function}: {how}")
        else:
            self._app.emit(f"darc: {missing}: waits for a library that has it: {how}")

    def for_another(self, request: Request) -> None:
        """The user has killed the program at a stop, perhaps by another 'run'."""
        self.again = request
        self._target.await_start()

    def for_choice(self, request: Request, debuggee: Debuggee, error: UnchosenError) -> None:
        """f0 is what a function of the program will return.

        Raises:
            NotFoundError: darc may not wait there.
        """
        if not may_wait(debuggee, request.parameters):
            raise NotFoundError(f"{error}; {_CANNOT_WAIT % request.command}") from None
        self.request = request
        self._await_choice(error.resolver)
        self._app.emit(f"darc: {error}: waits for it")

    def for_library(self, request: Request, debuggee: Debuggee, error: NotFoundError) -> None:
        """f0 is not there, and may come with a library.

        Raises:
            NotFoundError: it cannot, or darc may not wait there, or the user does not want to.
        """
        naming.check_elsewhere(self._target, request.function)
        if not debuggee.tells_of_files:
            raise error
        if not may_wait(debuggee, request.parameters):
            raise NotFoundError(f"{error}; {_NOT_LOADED % request.command}") from None
        if not self._target.screen.accepts_pending(f"{error}; wait for a library that has it?"):
            raise error
        self.request = request
        self._app.emit(f"darc: {error}: waits for a library that has it")

    def for_call(self, program: Program, entry: int, request: Request) -> None:
        """Until f0 is called, which is at ``entry`` of the ``program`` as it is now."""
        self.request = request
        self._is_found = True
        self._copies = Lookup(program, self._target).private_copies(entry, live=False)
        self._forget_choice()
        self._target.breaks.break_once(entry, lambda: self._arrived(entry))
        debuggee = self._app.look()[0]
        has_breakpoints = request.parameters.probes.can.uses_breakpoints
        if debuggee.is_readable_while_it_runs and not has_breakpoints:
            self._watch_no_more()
            self._first_call = FirstCall(debuggee, entry, lambda: self._missed(entry))

    # ---------------------------------------------------------------------- end

    def cancel(self) -> None:
        """Nothing waits any more."""
        self.request = None
        self.again = None
        self._is_found = False
        self._take_back()

    def begun(self) -> None:
        """The analysis of it has begun."""
        self.request = None
        self._awaits_begin = False

    def fail(self, error: DarcError) -> None:
        """Nothing can come of it, and the user is told."""
        self.request = None
        self._take_back()
        self.failure = error
        self._app.emit(f"darc: {error}")

    def forget_failure(self) -> None:
        """Another one takes the place of what came to nothing."""
        self.failure = None

    def went_on(self, *, attached: bool) -> None:
        """A program goes on, which was ``attached`` to, or launched."""
        self._was_attached = attached

    def program_ended(self) -> None:
        """The program is gone."""
        request = self.request
        if request is None:
            return
        path = self._target.executable
        names = [s.name for s in load_image(Path(path)).symbols] if path is not None else []
        function = request.function
        uncalled = f"the program ended before {function} was called{instead(self._copies)}"
        uncalled += self._target.unseen_calls
        is_known = self._is_found or function in names  # it may have been killed as it began
        self.fail(NotFoundError(uncalled if is_known else not_found(function, names)))

    def program_lost(self, pid: int) -> None:
        """The debugger has it no more: it has let it go without a word, or lost it."""
        request, gone = self.request, f"the debugger has process {pid} no more, which lives"
        how = f"if it stays stopped, 'kill -CONT {pid}' lets it go on"
        if request is not None:
            self.fail(TargetError(f"{gone}: {request.function} was not called; {how}"))
        elif self.failure is not None:  # as that was lost, perhaps
            self._app.emit(f"darc: {gone}; {how}")

    def _watch_no_more(self) -> None:
        first_call, self._first_call = self._first_call, None
        if first_call is not None:
            first_call.stop()

    def _take_back(self) -> None:
        self._watch_no_more()
        self._target.breaks.cancel_break()
        self._forget_choice()
        self._forget_begin()
        self._awaits_begin = False

    def _forget_choice(self) -> None:
        take_back, self._choice = self._choice, lambda: None
        take_back()

    def _forget_begin(self) -> None:
        take_back, self._begin_break = self._begin_break, lambda: None
        self._will_begin = False
        take_back()

    # ------------------------------------------------------------------- events

    def next_program(self) -> bool:
        """Another program runs than that which was killed. Whether something waits for it."""
        if self.again is None:
            return False
        self.request, self.again = self.again, None
        self._app.emit(
            f"darc: {self.request.verb} {self.request.spec} again in this run of the program"
        )
        return True

    def modules_changed(self) -> Outcome:
        """The program has loaded or unloaded files: f0 may be there now. Whether it is to stop, as
        nothing can come of the wait."""
        request = self.request
        if request is None or (self._has_looked(request) and not self._is_news(request)):
            return Outcome.CONTINUE
        try:
            debuggee, program = self._app.look()
            outcome = self._await_begin(debuggee)
            if self.request is None:
                return outcome
            entry = finding.find(program, debuggee, self._target, request, hint=False)
            self._looks_no_more(request, debuggee)
        except UnchosenError as error:
            self._looks_no_more(request, debuggee)
            if may_wait(debuggee, request.parameters):
                self._await_choice(error.resolver)
            return Outcome.CONTINUE
        except NotFoundError:
            self._looks_no_more(request, debuggee)
            return Outcome.CONTINUE  # it may come with a later library
        except DarcError as error:
            if self._will_begin:  # then it is told again, at a better place to stop
                return Outcome.CONTINUE
            return self._failed(error)
        if not may_wait(debuggee, request.parameters):
            why = _CANNOT_WAIT % request.command
            self.fail(UsageError(f"{request.function} is there now; {why}"))
            return Outcome.CONTINUE
        self.for_call(program, entry, request)
        return Outcome.CONTINUE

    def _failed(self, error: DarcError) -> Outcome:
        """As :meth:`fail`, where the program goes on next. It stops where the user is to choose
        other words. One that was attached to has other things to do."""
        self.fail(error)
        is_to_choose = isinstance(error, AmbiguousError | NotFoundError | UsageError)
        stops = is_to_choose and not self._target.attached
        return Outcome.STOP if stops else Outcome.CONTINUE

    def _looks_no_more(self, request: Request, debuggee: Debuggee) -> None:
        """As long as nothing else is mapped: the debugger tells of each file by itself, of hundreds
        when a program has just mapped all of its libraries, and they were all there the first
        time."""
        mapped = debuggee.mapped()
        pid = self._target.pid
        self._looked = None if mapped is None else (request, pid, debuggee, mapped)

    def _is_news(self, request: Request) -> bool:
        """Whether the debugger has read the name of f0 where nothing else is mapped than when darc
        looked: it reads files one by one, when all of them are there."""
        return finding.asks_debugger(request) and finding.debugger_knows(self._target, request)

    def _has_looked(self, request: Request) -> bool:
        if self._looked is None:
            return False
        known, pid, debuggee, mapped = self._looked
        return known is request and pid == self._target.pid and debuggee.mapped() == mapped

    def _await_begin(self, debuggee: Debuggee) -> Outcome:
        """What will fail is told when all that is loaded with the program is there, not at its
        end."""
        entry = None if self._awaits_begin else debuggee.entry()
        if entry is None or debuggee.danger_of_breakpoints() is not None:
            return Outcome.CONTINUE
        # lldb tells of files there, a static program has none to wait for.
        is_there = any(
            entry <= pc < entry + 16 for pc in self._target.threads.program_counters().values()
        )
        if not is_there and not debuggee.is_at_start():
            return Outcome.CONTINUE

        def begin() -> Outcome:
            self._forget_begin()
            return self._begins()

        self._awaits_begin = True
        if is_there:
            return self._begins()
        self._begin_break = self._target.breaks.set_break(entry, lambda _: begin)
        self._will_begin = True
        return Outcome.CONTINUE

    def _begins(self) -> Outcome:
        request = self.request
        if request is None:
            return Outcome.CONTINUE
        try:
            debuggee, program = self._app.look()
            entry = finding.find(program, debuggee, self._target, request)
            debuggee.check(program, program.names.function_at(entry), request.function)
        except UnchosenError:
            pass  # that is waited for
        except NotFoundError as error:
            try:
                naming.check_elsewhere(self._target, request.function)
            except DarcError as elsewhere:
                return self._failed(elsewhere)
            self._app.emit(f"darc: {error}: waits for a library that has it")
        except DarcError as error:
            return self._failed(error)
        return Outcome.CONTINUE

    def _await_choice(self, resolver: int) -> None:
        """f0 is what the function at ``resolver`` returns when the program first calls it."""
        target = self._target

        def called(thread: int) -> Callable[[], Outcome]:
            stack = target.threads.read_register(thread, STACK_POINTER)
            word = target.memory.read(slot_at_entry(stack), 8)
            back = int.from_bytes(word, "little")

            def follow() -> Outcome:
                self._forget_choice()
                self._choice = target.breaks.set_break(back, chosen)
                return Outcome.CONTINUE

            return follow

        def chosen(thread: int) -> Callable[[], Outcome]:
            entry = target.threads.read_register(thread, RESULT)

            def wait() -> Outcome:
                if self.request is not None:
                    self.for_call(self._app.look()[1], entry, self.request)
                return Outcome.CONTINUE

            return wait

        self._forget_choice()
        self._choice = target.breaks.set_break(resolver, called)
        self._is_found = True

    def _arrived(self, entry: int) -> Outcome:
        """The program is at f0's first instruction for the first time."""
        request = self.request
        if request is None:
            return Outcome.CONTINUE
        self._watch_no_more()
        self.request = None  # whatever happens, the wait is over: what darc maps is no new file
        try:
            self._app.begin(self._app.look()[1], entry, request)
        except DarcError as error:
            return self._failed(error)
        except Exception as error:
            self.failure = UsageError(f"{request.function} could not be analysed: {error!r}")
            raise
        return Outcome.CONTINUE

    def _missed(self, entry: int) -> None:
        """The program runs without the breakpoint at f0 that the debugger believes in."""
        request = self.request
        if request is None:
            return
        self._target.breaks.cancel_break()
        self._app.emit(
            "darc: another process shares the program's memory, or an exec has made it anew: the "
            "debugger's breakpoints are gone from it, and "
            f"{request.function} is analysed from here on"
        )
        self._arrived(entry)
        self._app.goes_on()


def may_wait(debuggee: TakesBreakpoints, parameters: Parameters) -> bool:
    """Whether a breakpoint may stand at f0 until it is called: of a killed debugger's it would be
    the end of a program that was attached to."""
    if parameters.probes.can.uses_breakpoints:
        return True
    return debuggee.danger_of_breakpoints() is None


def may_begin_late(debuggee: Debuggee, program: Program, request: Request) -> bool:
    """Of a program without thread-local storage: whether to wait for f0. One that never has any
    begins at once where darc may not wait.

    Raises:
        UnsupportedError: it will have some, and nobody may wait for that.
    """
    if may_wait(debuggee, request.parameters):
        return True
    if any(is_loader(module.name) for module in program.modules):
        raise UnsupportedError(f"the program has not begun yet; {_CANNOT_WAIT % request.command}")
    return False
