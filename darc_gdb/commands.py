"""gdb's commands and parameters, made from the one registry, and who hears of gdb's events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import gdb

from darc.app import commands, failures
from darc.app.app import App
from darc.app.parameters import PARAMETERS, Parameter
from darc.model.errors import DarcError
from darc_gdb import answers, ctrlc
from darc_gdb import target as backend
from darc_gdb.analysed import at_home
from darc_gdb.debuggees import check_runnable, choose_debuggee
from darc_gdb.leaving import Leaving
from darc_gdb.stopping import Stopping
from darc_gdb.target import GdbTarget


def _tell(app: App, error: Exception) -> str:
    """The one line for the user."""
    if above := failures.trace_of(app):
        gdb.write(backend.TARGET.screen.fitting(above), gdb.STDERR)
    return backend.TARGET.screen.fitting(failures.line_of(error))


class _Command(gdb.Command):
    def __init__(self, app: App, name: str, text: str) -> None:
        self.__doc__ = text
        super().__init__(f"darc {name}", gdb.COMMAND_RUNNING)
        self._app = app
        self._name = name

    def _undisturbed(self) -> contextlib.AbstractContextManager[None]:
        """gdb ends threads of its own for that, and begins them anew."""
        if commands.COMMANDS[self._name].only_looks:
            return contextlib.nullcontext()
        return backend.TARGET.callbacks.undisturbed()

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        target = backend.TARGET
        try:
            with self._undisturbed(), at_home(self._app, target), target.memory.unnoticed():
                commands.run(self._app, self._name, argument)
        except KeyboardInterrupt:
            raise
        except gdb.GdbError:
            raise
        except Exception as error:
            raise gdb.GdbError(_tell(self._app, error)) from None

    def complete(self, text: str, word: str | None) -> object:
        # gdb takes the whole line for the name of the file.
        is_alone = len(text.split()) <= 1 and not text.startswith("-")
        if is_alone and commands.completes_files(self._name, text):
            return gdb.COMPLETE_FILENAME
        if word is None:
            return None
        return commands.complete(self._app, self._name, text, word)


class _Prefix(gdb.Command):
    def __init__(self, app: App, text: str) -> None:
        self.__doc__ = text
        super().__init__("darc", gdb.COMMAND_RUNNING, prefix=True)
        self._app = app

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            commands.run(self._app, "", argument)
        except DarcError as error:
            raise gdb.GdbError(_tell(self._app, error)) from None


class _SetPrefix(gdb.Command):
    """Set darc's parameters, for every 'darc start' to come."""

    def __init__(self) -> None:
        super().__init__("set darc", gdb.COMMAND_RUNNING, prefix=True)


class _ShowPrefix(gdb.Command):
    """Show darc's parameters."""

    def __init__(self, app: App) -> None:
        super().__init__("show darc", gdb.COMMAND_RUNNING, prefix=True)
        self._app = app

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            self._app.emit(commands.show_parameter(self._app, argument.strip()))
        except DarcError as error:
            raise gdb.GdbError(_tell(self._app, error)) from None


class _Parameter(gdb.Parameter):
    def __init__(self, app: App, parameter: Parameter, text: str) -> None:
        name = parameter.name
        first, _, rest = text.partition("\n")
        self.set_doc = self.show_doc = first
        self.__doc__ = rest
        values = parameter.values if isinstance(parameter.default, Enum) else ("on", "off")
        if isinstance(parameter.default, (Enum, bool)):  # a closed list, which gdb completes
            super().__init__(f"darc {name}", gdb.COMMAND_RUNNING, gdb.PARAM_ENUM, values)
        else:
            super().__init__(f"darc {name}", gdb.COMMAND_RUNNING, gdb.PARAM_STRING_NOESCAPE)
        self._app = app
        self._parameter = parameter
        self.value = parameter.text_in(app.parameters)

    def get_set_string(self) -> str:
        try:
            commands.set_parameter(self._app, self._parameter.name, str(self.value or ""))
        except DarcError as error:
            self.value = self._parameter.text_in(self._app.parameters)
            raise gdb.GdbError(_tell(self._app, error)) from None
        self.value = self._parameter.text_in(self._app.parameters)
        return ""

    def get_show_string(self, _value: str) -> str:
        return backend.TARGET.screen.fitting(
            commands.show_parameter(self._app, self._parameter.name)
        )


def stand_by() -> None:
    """darc is loaded: from now on it hears that gdb is told to end."""
    backend.TARGET.callbacks.stand_by()


def _connect(app: App, target: GdbTarget, undo: contextlib.ExitStack) -> None:
    leaving = Leaving(app, target)
    stopping = Stopping(app, target, leaving.farewell)
    callbacks = target.callbacks
    callbacks.failed = lambda error: _complain(app, error)
    callbacks.before_stop = stopping.before_stop
    callbacks.on_user_stop = stopping.on_user_stop
    callbacks.follow_up = stopping.follow_up
    callbacks.goes_on = stopping.goes_on
    callbacks.went_on = stopping.went_on
    callbacks.hears_stops_last = stopping.hears_stops_last
    callbacks.undisturbed = leaving.undisturbed
    callbacks.is_to_leave = target.screen.leaves = leaving.farewell.is_wanted
    callbacks.stand_by = leaving.farewell.stand_by
    stop_hook = _StopHook(app, stopping, undo)
    callbacks.hears_stops_first = stop_hook.stand_first
    gdb.events.before_prompt.connect(stopping.before_prompt)
    undo.callback(gdb.events.before_prompt.disconnect, stopping.before_prompt)
    handlers: Iterable[tuple[Any, Callable[..., None]]] = (
        (gdb.events.stop, stopping.on_stop),
        (gdb.events.exited, leaving.on_exit),
        (gdb.events.cont, stopping.on_continue),
        (gdb.events.new_inferior, leaving.on_new_inferior),
        (gdb.events.before_prompt, stopping.at_prompt),
        (gdb.events.gdb_exiting, leaving.on_exiting),
        *target.handlers(),
    )
    for registry, handler in handlers:
        waiting = ctrlc.patient(handler)
        registry.connect(waiting)
        undo.callback(registry.disconnect, waiting)
    _LeaveHook(app, leaving, undo)
    _ContinueHook(app, undo)
    _GoHook(undo)
    _BeginHook(undo)


def _complain(app: App, error: Exception) -> None:
    gdb.write(_tell(app, error) + "\n", gdb.STDERR)


class _LeaveHook(gdb.Command):
    """Called by gdb before the program is let go or killed: takes darc's probes out of it."""

    def __init__(self, app: App, leaving: Leaving, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-leave", gdb.COMMAND_MAINTENANCE)
        self._app = app
        self._leaving = leaving
        self._is_told = False
        for command in ("detach", "disconnect"):
            _hook(command, "maintenance darc-leave", undo)
        for command in ("kill", "quit"):
            _hook(command, f"maintenance darc-leave {command}", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        with ctrlc.waits():  # what was to be taken out half way would stay in
            if argument == "kill":
                self._leaving.on_kill()
            elif argument == "quit":  # gdb tells when it does: the user may not want to, after all
                self._check_once()
            else:
                self._check()
                self._leaving.on_leave()

    def _check(self, also: str = "") -> None:
        try:
            self._leaving.check()
        except DarcError as error:
            raise gdb.GdbError(f"{_tell(self._app, error)}{also}") from None

    def _check_once(self) -> None:
        """Who asks again wants to leave in any case."""
        self._is_told, is_again = False, self._is_told
        if not is_again:
            try:
                self._check(", or 'quit' again: the probes stay in it then, asleep")
            except gdb.GdbError:
                self._is_told = True
                raise


class _ContinueHook(gdb.Command):
    """Called by gdb before 'continue': puts darc's patches back. Step by step the program runs
    without them, and so it crashes: core file and handlers see its own code. When it runs on for
    long, the monitor of the session rings for them."""

    def __init__(self, app: App, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-continue", gdb.COMMAND_MAINTENANCE)
        self._app = app
        _hook("continue", "maintenance darc-continue", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if backend.TARGET.deciding.errand:
            return
        try:
            backend.TARGET.is_let_go = False
            with ctrlc.waits(), backend.TARGET.memory.unnoticed():
                backend.TARGET.callbacks.goes_on()
        except Exception as error:
            raise gdb.GdbError(_tell(self._app, error)) from None


class _GoHook(gdb.Command):
    """Called by gdb before 'jump' and 'signal', which let the program go on as 'continue' does. The
    patches are not put back yet, as it may go on in their midst: the monitor rings for them."""

    def __init__(self, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-go", gdb.COMMAND_MAINTENANCE)
        for command in ("jump", "signal"):
            _hook(command, "maintenance darc-go", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        with ctrlc.waits():
            backend.TARGET.bell.see_to_it()
        backend.TARGET.is_let_go = True


class _BeginHook(gdb.Command):
    """Called by gdb before there is a program: what it did not grant darc while there was an
    earlier one it may grant now."""

    def __init__(self, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-begin", gdb.COMMAND_MAINTENANCE)
        for command in ("attach", "run", "start", "starti"):
            _hook(command, "maintenance darc-begin", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        backend.TARGET.announce_again()


class _StopHook(gdb.Command):
    """Called by gdb where the program has stopped, ahead of the user's own hook and of the handlers
    of all extensions, also of those that were there before darc: they are to find the program's own
    code and stacks."""

    ACTION = "maintenance darc-stop"

    def __init__(self, app: App, stopping: Stopping, undo: contextlib.ExitStack) -> None:
        super().__init__(self.ACTION, gdb.COMMAND_MAINTENANCE)
        self._app = app
        self._stopping = stopping
        undo.callback(lambda: _define("stop", _without(self.ACTION, _lines_of("stop"))))
        self.stand_first()

    def stand_first(self) -> None:
        """The user may have defined the hook anew."""
        lines = _lines_of("stop")
        if lines[:1] != [self.ACTION]:
            _define("stop", [self.ACTION, *_without(self.ACTION, lines)])

    def invoke(self, argument: str, from_tty: bool) -> None:
        target = backend.TARGET
        # Behind a command of darc's gdb would carry out those of the breakpoint that it stands at.
        may_execute = target.deciding.all_stop and not target.user_breaks.hits.have_commands
        beside = target.memory.unnoticed() if may_execute else contextlib.nullcontext()
        with ctrlc.waits(), beside, target.memory.handling():
            target.callbacks.guarded(self._stopping.before_others)


def _hook(command: str, action: str, undo: contextlib.ExitStack) -> None:
    """Adds to the user's own hook, if there is one."""
    lines = _without(action, _lines_of(command))
    undo.callback(_define, command, lines)
    _define(command, [*lines, action])


def _lines_of(command: str) -> list[str]:
    """The user's hook of a command, with darc's own lines as they were defined."""
    lines = answers.hook_lines(command)
    return [line.strip() if line.startswith("  maintenance darc-") else line for line in lines]


def _without(action: str, lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line != action]


def _define(command: str, lines: Iterable[str]) -> None:
    gdb.execute("\n".join([f"define hook-{command}", *lines, "end"]), to_string=True)


def register() -> App:
    """Makes darc known to gdb: all of it, or nothing.

    What gdb cannot be made to forget, its commands, comes last, when nothing can go wrong any more.
    """
    target = GdbTarget()
    app = App(target, choose_debuggee, check_runnable)
    texts = {
        name: target.screen.fitting(commands.help_text(name)) for name in ("", *commands.COMMANDS)
    }
    parameters = [
        (parameter, target.screen.fitting(commands.parameter_help(parameter.name)))
        for parameter in PARAMETERS
    ]
    with contextlib.ExitStack() as undo:
        _connect(app, target, undo)
        backend.TARGET = target
        target.announce()
        _Prefix(app, texts.pop(""))
        for name, text in texts.items():
            _Command(app, name, text)
        _SetPrefix()
        _ShowPrefix(app)
        for parameter, text in parameters:
            _Parameter(app, parameter, text)
        undo.pop_all()
    return app
