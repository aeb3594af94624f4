"""gdb's commands and parameters, made from the one registry, and gdb's events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import Enum
from typing import Any

import gdb

from darc.app import commands, failures, monitor
from darc.app.app import App
from darc.app.parameters import PARAMETERS, Parameter
from darc.model.errors import DarcError
from darc.target.target import State
from darc_gdb import ctrlc
from darc_gdb import target as backend
from darc_gdb.debuggees import check_runnable, choose_debuggee
from darc_gdb.farewell import Farewell
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
        return backend.TARGET.hooks.undisturbed()

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            with self._undisturbed(), _home(self._app), backend.TARGET.memory.unnoticed():
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


def _connect(app: App, target: GdbTarget, undo: contextlib.ExitStack) -> None:
    def failed(error: Exception) -> None:
        gdb.write(_tell(app, error) + "\n", gdb.STDERR)

    last: list[Callable[[gdb.StopEvent], None]] = []

    def on_stop(event: gdb.StopEvent) -> None:
        # Before the handlers of those that came later, which are to see no probes.
        if not last:
            at_stop(event)

    @ctrlc.patient
    def on_stop_last(event: gdb.StopEvent) -> None:
        gdb.events.stop.disconnect(last.pop())
        at_stop(event)

    def hears_stops_last() -> None:
        if last:
            gdb.events.stop.disconnect(last.pop())
        last.append(on_stop_last)
        gdb.events.stop.connect(on_stop_last)

    def at_stop(event: gdb.StopEvent) -> None:
        target.stopped(event)
        if target.settle(event):
            return
        try:
            with _home(app):
                is_passed = target.user_breaks.hits.will_go_on(event) and app.passes()
        except Exception as error:
            failed(error)
            is_passed = False
        if not is_passed:
            on_user_stop(brief=target.user_breaks.hits.may_go_on(event))

    def before_stop() -> None:
        with _home(app):
            app.before_stop()

    def on_user_stop(*, brief: bool = False) -> None:
        target.at_prompt()
        try:
            with _home(app):
                app.on_stop(brief=brief)
        except Exception as error:
            failed(error)
        finally:
            if not brief:
                farewell.rest()

    def undisturbed() -> contextlib.AbstractContextManager[None]:
        """gdb does not leave a program that it has attached to in the middle of this."""
        return farewell.holding() if target.attached else contextlib.nullcontext()

    def at_prompt() -> None:
        if app.is_passing:
            on_user_stop()  # what was to let it go on has not come to that
        elif target.state is State.STOPPED:
            app.rest()
            farewell.rest()
        target.at_prompt()
        farewell.release(at_prompt=True)

    def on_exit(event: gdb.ExitedEvent) -> None:
        if not target.inferiors.is_home(event.inferior):
            return  # a child that gdb had as well
        farewell.rest()
        target.on_exit()
        try:
            app.on_exit()
        except Exception as error:
            failed(error)

    def on_leave(*_args: object) -> None:
        try:
            with _home(app):
                app.on_leave()
        except Exception as error:
            failed(error)

    def on_exiting(event: object) -> None:
        target.threads.settle_selection()
        on_leave(event)

    def on_new_inferior(event: gdb.NewInferiorEvent) -> None:
        busy = app.session is not None and app.session.alive
        forked = busy and target.inferiors.has_forked(event.inferior)
        if forked and str(gdb.parameter("follow-fork-mode")) == "child":
            app.on_leave(stopped=True)  # gdb will let the parent go, or keep it as it is

    def begin_to_leave(pid: int) -> bool:
        """See :class:`Farewell`."""

        def prepare() -> None:
            target.bell.leaving = leave_at_bell

        def interrupt() -> None:
            """It stops as at Ctrl-C, and gdb leaves there."""
            gdb.post_event(lambda: gdb.execute("interrupt", to_string=True))

        return monitor.ring_to_leave(app.session, prepare, interrupt)

    def leave_at_bell() -> None:
        try:
            if app.session is not None:
                app.session.stop()
        finally:
            farewell.out()

    farewell = Farewell(begin_to_leave)

    def went_on() -> None:
        on_continue(None)

    def on_continue(_event: object) -> None:
        with target.inferiors.at_children() as children:
            for _ in children:
                app.on_child()
        pid = target.pid
        if pid is not None and app.session is not None and app.session.alive and target.attached:
            farewell.watch(pid)  # before the monitor, which is not to get the signals either
        with _home(app):
            app.on_resume()

    def follows_up() -> bool:
        with _home(app):
            return app.follow_up()

    def goes_on() -> None:
        with _home(app):
            target.bell.see_to_it()
            if not target.dies:
                if target.attached and app.session is not None and app.session.alive:
                    farewell.hold()
                app.before_continue()

    def guarded(handler: Callable[[Any], None]) -> Callable[[Any], None]:
        def guard(event: Any) -> None:
            try:
                handler(event)
            except Exception as error:
                failed(error)

        return guard

    target.hooks.failed = failed
    target.hooks.before_stop = before_stop
    target.hooks.on_user_stop = on_user_stop
    target.hooks.follows_up = follows_up
    target.hooks.goes_on = goes_on
    target.hooks.went_on = went_on
    target.hooks.hears_stops_last = hears_stops_last
    target.hooks.undisturbed = undisturbed
    for registry, handler in (
        (gdb.events.stop, on_stop),
        (gdb.events.exited, on_exit),
        (gdb.events.cont, guarded(on_continue)),
        (gdb.events.new_inferior, guarded(on_new_inferior)),
        (gdb.events.before_prompt, at_prompt),
        (gdb.events.gdb_exiting, on_exiting),
        *target.listeners(),
    ):
        waiting: Callable[..., None] = ctrlc.patient(handler)  # type: ignore[arg-type]
        registry.connect(waiting)
        undo.callback(registry.disconnect, waiting)
    _LeaveHook(on_leave, undo)
    _ContinueHook(app, undo)


def _home(app: App) -> contextlib.AbstractContextManager[None]:
    """While an inferior is analysed, darc's commands are about that one."""
    if app.session is not None and app.session.alive:
        return backend.TARGET.inferiors.at_home()
    return contextlib.nullcontext()


class _LeaveHook(gdb.Command):
    """Called by gdb before the program is let go or killed: takes darc's probes out of it."""

    def __init__(self, on_leave: object, undo: contextlib.ExitStack) -> None:
        super().__init__("maintenance darc-leave", gdb.COMMAND_MAINTENANCE)
        self._on_leave = on_leave
        for command in ("detach", "disconnect", "kill"):
            _hook(command, "maintenance darc-leave", undo)

    def invoke(self, argument: str, from_tty: bool) -> None:
        assert callable(self._on_leave)
        self._on_leave()


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
            with backend.TARGET.memory.unnoticed():
                backend.TARGET.hooks.goes_on()
        except Exception as error:
            raise gdb.GdbError(_tell(self._app, error)) from None


def _hook(command: str, action: str, undo: contextlib.ExitStack) -> None:
    """Adds to the user's own hook, if there is one."""
    try:
        shown = gdb.execute(f"show user hook-{command}", to_string=True)
        own = [line.strip() for line in shown.splitlines()[1:] if line.strip()]
    except gdb.error:
        own = []
    lines = [line for line in own if line != action]

    def define(*added: str) -> None:
        gdb.execute("\n".join([f"define hook-{command}", *lines, *added, "end"]), to_string=True)

    undo.callback(define)
    define(action)


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
