"""Where darc has a say in what gdb does: who hears of which of gdb's events, and what comes before
gdb's own commands (``define hook-COMMAND``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import gdb

from darc.app.app import App
from darc.model.errors import DarcError
from darc_gdb import ctrlc, printed
from darc_gdb import target as backend
from darc_gdb.callbacks import GdbCallbacks
from darc_gdb.departure import Departure
from darc_gdb.failures import complain, gdb_error
from darc_gdb.stopping import Stopping
from darc_gdb.target import GdbTarget


def stand_by() -> None:
    """darc is loaded: from now on it hears that gdb is told to end."""
    backend.TARGET.inferiors.callbacks.stand_by()


def connect(app: App, target: GdbTarget, undo: contextlib.ExitStack) -> None:
    """From now on darc hears of gdb's events, and is asked before gdb's own commands; ``undo`` is
    how it does not any more."""
    departure = Departure(app, target)
    stopping = Stopping(app, target, departure.farewell)
    stop_hook = _StopHook(app, stopping, undo)
    farewell = departure.farewell
    callbacks = GdbCallbacks(
        failed=lambda error: complain(app, error),
        on_user_stop=stopping.on_user_stop,
        follow_up=stopping.follow_up,
        goes_on=stopping.goes_on,
        went_on=stopping.went_on,
        before_stop=stopping.before_stop,
        hears_stops_first=stop_hook.stand_first,
        hears_stops_last=stopping.hears_stops_last,
        is_to_leave=farewell.is_wanted,
        stand_by=farewell.stand_by,
        undisturbed=departure.undisturbed,
    )
    target.inferiors.serve(callbacks)
    target.screen.end_by(farewell.is_wanted)
    _hear(target, departure, stopping, undo)
    _LeaveHook(app, departure, undo)
    _ContinueHook(app, undo)
    _GoHook(undo)
    _BeginHook(undo)


def _hear(
    target: GdbTarget, departure: Departure, stopping: Stopping, undo: contextlib.ExitStack
) -> None:
    gdb.events.before_prompt.connect(stopping.before_prompt)
    undo.callback(gdb.events.before_prompt.disconnect, stopping.before_prompt)
    handlers: Iterable[tuple[Any, Callable[..., None]]] = (
        (gdb.events.stop, stopping.on_stop),
        (gdb.events.exited, departure.on_exit),
        (gdb.events.cont, stopping.on_continue),
        (gdb.events.new_inferior, departure.on_new_inferior),
        (gdb.events.before_prompt, stopping.at_prompt),
        (gdb.events.gdb_exiting, departure.on_exiting),
        *target.handlers.all(),
    )
    for registry, handler in handlers:
        waiting = ctrlc.patient(handler)
        registry.connect(waiting)
        undo.callback(registry.disconnect, waiting)


class _LeaveHook(gdb.Command):
    """Called by gdb before the program is let go or killed: takes darc's probes out of it."""

    def __init__(self, app: App, departure: Departure, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-leave", gdb.COMMAND_MAINTENANCE)
        self._app = app
        self._departure = departure
        self._is_told = False
        for command in ("detach", "disconnect"):
            _hook(command, "maintenance darc-leave", undo)
        for command in ("kill", "quit"):
            _hook(command, f"maintenance darc-leave {command}", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        with ctrlc.waits():  # what was to be taken out half way would stay in
            if argument == "kill":
                self._departure.on_kill()
            elif argument == "quit":  # gdb tells when it does: the user may not want to, after all
                self._check_once()
            else:
                self._check()
                self._departure.on_leave()

    def _check(self, also: str = "") -> None:
        try:
            self._departure.check()
        except DarcError as error:
            raise gdb_error(self._app, error, also) from None

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
            backend.TARGET.handlers.continues()
            with ctrlc.waits(), backend.TARGET.memory.unnoticed():
                backend.TARGET.inferiors.callbacks.hold_still()
                backend.TARGET.inferiors.callbacks.goes_on()
        except Exception as error:
            raise gdb_error(self._app, error) from None


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
        backend.TARGET.handlers.lets_go()


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
            target.inferiors.callbacks.guarded(self._stopping.before_others)


def _hook(command: str, action: str, undo: contextlib.ExitStack) -> None:
    """Adds to the user's own hook, if there is one."""
    lines = _without(action, _lines_of(command))
    undo.callback(_define, command, lines)
    _define(command, [*lines, action])


def _lines_of(command: str) -> list[str]:
    """The user's hook of a command, with darc's own lines as they were defined."""
    lines = printed.hook_lines(command)
    return [line.strip() if line.startswith("  maintenance darc-") else line for line in lines]


def _without(action: str, lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line != action]


def _define(command: str, lines: Iterable[str]) -> None:
    gdb.execute("\n".join([f"define hook-{command}", *lines, "end"]), to_string=True)
