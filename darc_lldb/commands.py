"""lldb's commands and parameters, made from the one registry, and lldb's events."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

import lldb

from darc.app import commands, failures, monitor
from darc.app.app import App
from darc.app.parameters import PARAMETERS
from darc.debuggee import beside
from darc.debuggee.process import ProcessDebuggee
from darc.model.errors import TargetError
from darc.target.target import State
from darc.views import glyphs
from darc_lldb import overrides, stophook
from darc_lldb.callbacks import Callbacks
from darc_lldb.farewell import Farewell
from darc_lldb.inferior import Inferior
from darc_lldb.target import LldbTarget

APPS: dict[int, App] = {}
"""The application of each debugger, by the debugger's id."""

_SETTINGS = (
    "append clear insert-after insert-before list read remove replace set show write".split()
)
_COMPLETIONS = {
    "darc start": "symbol",
    "darc save": "disk-file",
    "darc resume": "disk-file",
    "darc report": "disk-file",
}
"""What lldb itself can complete behind a command, from release 16 on; no extension may."""

_CONTAINERS = ("set darc", "darc", "set", "show")

_DETACHING = "process detach"
_DELETING = "target delete"
_QUITTING = "quit"
_KILLING = "process kill"
_CONTINUING = ("process continue", "thread continue")
_LAUNCHING = "process launch"
_GOING_ON = (
    *_CONTINUING,
    "thread step-in",
    "thread step-inst",
    "thread step-inst-over",
    "thread step-out",
    "thread step-over",
    "thread until",
)
_LOOKING = (
    "disassemble",
    "expression",
    "frame info",
    "frame select",
    "frame variable",
    "memory find",
    "memory read",
    "process save-core",
    "process status",
    "register read",
    "thread backtrace",
    "thread info",
    "thread list",
    "thread select",
)
"""After the user's Ctrl-C lldb calls no stop hook: who looks at once is to see no probes either."""


def _tell(app: App, error: Exception) -> str:
    """The one line for the user, below a traceback where that is wanted."""
    return _fitting(failures.trace_of(app) + failures.line_of(error))


def _fitting(text: str) -> str:
    return glyphs.fitting(text, glyphs.locale_encoding(os.environ))


class _Command:
    """What is common to the classes that :func:`_define` makes."""

    action: Callable[[App, str], None]
    short = long = ""

    def __init__(self, debugger: lldb.SBDebugger, namespace: dict[str, object]) -> None:
        self._number = debugger.GetID()

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        argument: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        app, target = APPS[self._number], stophook.TARGETS[self._number]
        try:
            with target.inferior.lock, target.inferior.staying():
                target.settle()
                type(self).action(app, argument)
                target.stopping.wait()
        except Exception as error:
            result.SetError(_tell(app, error))
            return
        result.SetStatus(lldb.eReturnStatusSuccessFinishNoResult)

    def get_short_help(self) -> str:
        return self.short

    def get_long_help(self) -> str:
        return self.long


class _Settings:
    """``set NAME …``, which lldb takes for ``settings NAME …`` where darc is not loaded."""

    name = ""

    def __init__(self, debugger: lldb.SBDebugger, namespace: dict[str, object]) -> None:
        """Nothing is kept."""

    def __call__(
        self,
        debugger: lldb.SBDebugger,
        argument: str,
        context: lldb.SBExecutionContext,
        result: lldb.SBCommandReturnObject,
    ) -> None:
        own = lldb.SBCommandReturnObject()
        debugger.GetCommandInterpreter().HandleCommand(f"settings {self.name} {argument}", own)
        result.PutCString((own.GetOutput() or "").rstrip("\n"))
        if own.Succeeded():
            result.SetStatus(own.GetStatus())
        else:
            result.SetError((own.GetError() or "").removeprefix("error: ").rstrip("\n"))

    def get_short_help(self) -> str:
        return f"The same as 'settings {self.name}'."


def _pass_on(interpreter: lldb.SBCommandInterpreter, name: str) -> None:
    """Makes the command ``set NAME``."""
    made = "Settings_" + name.replace("-", "_")
    globals()[made] = type(made, (_Settings,), {"name": name})
    _execute(interpreter, f"command script add -o -c darc_lldb.commands.{made} set {name}")


def _define(
    interpreter: lldb.SBCommandInterpreter, path: str, text: str, action: Callable[[App, str], None]
) -> None:
    """Makes the command ``path`` with the help ``text``."""
    text = _fitting(text)
    name = "Command_" + path.replace(" ", "_").replace("-", "_")
    short = " ".join(text.partition("\n\n")[0].splitlines()).split(". ")[0].rstrip(".") + "."
    members = {"action": action, "short": short, "long": text}
    globals()[name] = type(name, (_Command,), members)
    options = f"-o -s current -c darc_lldb.commands.{name}"
    kind = _COMPLETIONS.get(path)
    if kind is None or not _try(interpreter, f"command script add {options} -C {kind} {path}"):
        _execute(interpreter, f"command script add {options} {path}")


def _contain(interpreter: lldb.SBCommandInterpreter, path: str, text: str) -> None:
    short, _, rest = text.replace('"', "'").partition("\n")
    rest = rest.removeprefix("Usage: ")  # lldb writes "Syntax: " before it
    _execute(interpreter, f'command container add -o -h "{short}" -H "{rest}" {path}')


def _try(interpreter: lldb.SBCommandInterpreter, command: str) -> bool:
    """Whether this lldb knows the command."""
    result = lldb.SBCommandReturnObject()
    interpreter.HandleCommand(command, result)
    return bool(result.Succeeded())


def _execute(interpreter: lldb.SBCommandInterpreter, command: str) -> None:
    result = lldb.SBCommandReturnObject()
    interpreter.HandleCommand(command, result)
    if not result.Succeeded():
        raise RuntimeError(f"{command}: {result.GetError()}")


def _add_commands(interpreter: lldb.SBCommandInterpreter) -> None:
    _contain(interpreter, "darc", commands.help_text(""))
    for name in commands.COMMANDS:
        _define(interpreter, f"darc {name}", commands.help_text(name), _runner(name))
    _define(
        interpreter,
        "darc help",
        "Show what 'help darc' shows.\nUsage: darc help [COMMAND]",
        lambda app, argument: commands.run(app, "", f"help {argument}"),
    )
    _contain(interpreter, "set", "Set darc's parameters; everything else is 'settings'.")
    _contain(interpreter, "show", "Show darc's parameters.")
    for name in _SETTINGS:
        _pass_on(interpreter, name)
    _contain(interpreter, "set darc", "Set darc's parameters, for every 'darc start' to come.")
    for parameter in PARAMETERS:
        name = parameter.name
        _define(interpreter, f"set darc {name}", commands.parameter_help(name), _setter(name))
    text = "Show darc's parameters, or the one that is named.\nUsage: show darc [PARAMETER]"
    _define(
        interpreter,
        "show darc",
        text,
        lambda app, argument: app.emit(commands.show_parameter(app, argument.strip())),
    )


def _runner(name: str) -> Callable[[App, str], None]:
    def run(app: App, argument: str) -> None:
        if name in commands.COMMANDS and commands.COMMANDS[name].begins:
            stophook.TARGETS[_number_of(app)].prepare()
        commands.run(app, name, argument)

    return run


def _number_of(app: App) -> int:
    return next(number for number, known in APPS.items() if known is app)


def _setter(name: str) -> Callable[[App, str], None]:
    return lambda app, argument: commands.set_parameter(app, name, argument.strip())


def _connect(debugger: lldb.SBDebugger, app: App, target: LldbTarget) -> None:
    inferior, stopping = target.inferior, target.stopping
    inferior.is_busy = lambda: app.is_busy
    inferior.callbacks = Callbacks(
        failed=lambda error: target.screen.complain(_tell(app, error)),
        on_user_stop=app.on_stop,
        follow_up=app.follow_up,
        goes_on=app.before_continue,
        went_on=app.on_resume,
        end=app.on_exit,
        lost=app.on_lost,
    )

    def guarded(action: Callable[[], None], *, goes_on: bool = False) -> Callable[[], None]:
        def run() -> None:
            with inferior.lock, inferior.staying():
                try:
                    target.settle()
                    action()
                except Exception as error:  # told to the user, in one place
                    inferior.callbacks.failed(error)
                if goes_on:
                    stopping.leaving.goes_on = True

        return run

    def before(command: str, action: Callable[[], None]) -> None:
        """Where lldb's command is about the target that darc is about."""

        def run(_arguments: Sequence[str]) -> None:
            if not inferior.is_away:
                action()
            elif command in _CONTINUING or (command == _LAUNCHING and app.session is None):
                _tell_the_way_home(app, target)

        overrides.before(debugger, command, run)

    def before_continue() -> None:
        target.look_at_breakpoints()
        app.before_continue()
        before_launch()

    def before_launch() -> None:
        if app.is_busy:
            stopping.others.sleep()

    for command in _GOING_ON:
        action = before_continue if command in _CONTINUING else target.look_at_breakpoints
        before(command, guarded(action, goes_on=True))
    for command in _LOOKING:
        before(command, guarded(lambda: None))
    before(_LAUNCHING, guarded(before_launch))

    def before_kill() -> None:
        if not app.may_be_killed():
            app.on_leave()

    before(_KILLING, guarded(before_kill))

    def before_leaving() -> None:
        # Where lldb reads its commands from no terminal the program may run meanwhile, or stand
        # still for darc alone.
        with inferior.lock:
            state, goes_on = inferior.state, stopping.leaving.goes_on
            runs = state is State.RUNNING or (state is State.STOPPED and goes_on)
            if not (runs and target.was_prepared):
                guarded(app.on_leave)()
                return
        stopping.leaving.stop_for(lambda: monitor.ring_to_leave(app.session), app.on_leave)

    def before_deleting(arguments: Sequence[str]) -> None:
        if _deletes(inferior, arguments):
            before_leaving()

    before(_DETACHING, before_leaving)
    overrides.before(debugger, _DELETING, before_deleting)
    overrides.before(debugger, _QUITTING, lambda _arguments: before_leaving())


def _tell_the_way_home(app: App, target: LldbTarget) -> None:
    """The user lets go on what does not run, while another target is analysed, or awaited."""
    inferior, session = target.inferior, app.session
    number = inferior.debugger.GetIndexOfTarget(inferior.target)
    back = f"in another target: 'target select {number}' first"
    if session is None:
        app.emit(f"darc: waits for {app.snapshot(lines=False).function} {back}")
    elif not inferior.lives(inferior.debugger.GetSelectedTarget().GetProcess()):
        app.emit(f"darc: {session.spec} is analysed {back}")


def _deletes(inferior: Inferior, arguments: Sequence[str]) -> bool:
    """Whether 'target delete' with these deletes the target that darc is about."""
    numbers = [int(word) for word in arguments if word.isdecimal()]
    if any(re.fullmatch(r"--a(ll?)?|-[a-z]*a[a-z]*", word) for word in arguments):
        return True
    if not numbers:
        return not inferior.is_away
    return any(inferior.is_home(inferior.debugger.GetTargetAtIndex(one)) for one in numbers)


def _leave_all(done: Callable[[], None]) -> bool:
    """For :class:`Farewell`: each program that darc has been in."""
    entered = [number for number, target in stophook.TARGETS.items() if target.was_prepared]
    left = set(entered)

    def leave(number: int) -> None:
        app = APPS[number]

        def knock() -> bool:
            return monitor.ring_to_leave(app.session)

        stophook.TARGETS[number].stopping.leaving.ask(knock, app.on_leave, lambda: is_left(number))

    def is_left(number: int) -> None:
        left.discard(number)
        if not left:
            done()

    for number in entered:
        leave(number)
    return bool(entered)


def _let_all_go() -> bool:
    """For :class:`Farewell`: without lldb, which hangs."""
    is_clean = True
    for target in stophook.TARGETS.values():
        pid = target.inferior.known
        if pid is not None:
            try:
                is_clean = beside.let_go(pid) and is_clean
            except TargetError:
                is_clean = False  # lldb is asked, if it answers
            except ProcessLookupError:
                pass  # it has ended
    return is_clean


_FAREWELL = Farewell(_leave_all, _let_all_go)


def _ends(_number: int) -> None:
    _FAREWELL.before_end()


def register(debugger: lldb.SBDebugger) -> None:
    """Makes darc known to one debugger."""
    number = debugger.GetID()
    if number in APPS:
        return
    interpreter = debugger.GetCommandInterpreter()
    target = stophook.TARGETS[number] = LldbTarget(debugger)
    app = APPS[number] = App(target, ProcessDebuggee, lambda _target: target.check_runnable())
    try:
        _add_commands(interpreter)
        _connect(debugger, app, target)
        _execute(interpreter, "target stop-hook add -P darc_lldb.stophook.StopHook")
        _FAREWELL.watch()
        if hasattr(debugger, "SetDestroyCallback"):  # since lldb 16
            debugger.SetDestroyCallback(_ends)
    except BaseException:
        for path in _CONTAINERS:
            _try(interpreter, f"command container delete {path}")
        del stophook.TARGETS[number], APPS[number]
        raise
