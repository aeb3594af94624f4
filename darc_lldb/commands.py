"""darc's commands and parameters as lldb's, made from the one registry."""

from __future__ import annotations

from collections.abc import Callable

import lldb

from darc.app import commands
from darc.app.app import App
from darc.app.parameters import PARAMETERS
from darc.debuggee.process import ProcessDebuggee
from darc_lldb import hooks
from darc_lldb.debuggers import DEBUGGERS, InDebugger, target_of
from darc_lldb.failures import told
from darc_lldb.interpreter import attempt, execute
from darc_lldb.screen import fitting
from darc_lldb.target import LldbTarget

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
        known = DEBUGGERS[self._number]
        app, target = known.app, known.target
        try:
            with target.inferior.lock, target.inferior.staying():
                target.catch_up()
                type(self).action(app, argument)
                target.stopping.wait()
        except Exception as error:
            result.SetError(told(app, error))
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
    execute(interpreter, f"command script add -o -c darc_lldb.commands.{made} set {name}")


def _define(
    interpreter: lldb.SBCommandInterpreter, path: str, text: str, action: Callable[[App, str], None]
) -> None:
    """Makes the command ``path`` with the help ``text``."""
    text = fitting(text)
    name = "Command_" + path.replace(" ", "_").replace("-", "_")
    short = " ".join(text.partition("\n\n")[0].splitlines()).split(". ")[0].rstrip(".") + "."
    members = {"action": action, "short": short, "long": text}
    globals()[name] = type(name, (_Command,), members)
    options = f"-o -s current -c darc_lldb.commands.{name}"
    kind = _COMPLETIONS.get(path)
    if kind is None or not attempt(interpreter, f"command script add {options} -C {kind} {path}"):
        execute(interpreter, f"command script add {options} {path}")


def _contain(interpreter: lldb.SBCommandInterpreter, path: str, text: str) -> None:
    short, _, rest = text.replace('"', "'").partition("\n")
    rest = rest.removeprefix("Usage: ")  # lldb writes "Syntax: " before it
    execute(interpreter, f'command container add -o -h "{short}" -H "{rest}" {path}')


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
    _contain(interpreter, "show", commands.SHOW_HELP)
    for name in _SETTINGS:
        _pass_on(interpreter, name)
    _contain(interpreter, "set darc", commands.SET_HELP)
    for parameter in PARAMETERS:
        name = parameter.name
        _define(interpreter, f"set darc {name}", commands.parameter_help(name), _setter(name))
    text = "Show darc's parameters, or the one that is named.\nUsage: show darc [PARAMETER]"
    _define(interpreter, "show darc", text, commands.show)


def _runner(name: str) -> Callable[[App, str], None]:
    def run(app: App, argument: str) -> None:
        if name in commands.COMMANDS and commands.COMMANDS[name].begins:
            target_of(app).prepare()
        commands.run(app, name, argument)

    return run


def _setter(name: str) -> Callable[[App, str], None]:
    return lambda app, argument: commands.set_parameter(app, name, argument.strip())


_FAREWELL = hooks.farewell_of_all()


def register(debugger: lldb.SBDebugger) -> None:
    """Makes darc known to one debugger."""
    number = debugger.GetID()
    if number in DEBUGGERS:
        return
    interpreter = debugger.GetCommandInterpreter()
    target = LldbTarget(debugger)
    app = App(target, ProcessDebuggee, lambda _target: target.check_runnable())
    DEBUGGERS[number] = InDebugger(target, app)
    try:
        _add_commands(interpreter)
        hooks.connect(debugger, app, target)
        hooks.hear_of_end(debugger, _FAREWELL)
    except BaseException:
        for path in _CONTAINERS:
            attempt(interpreter, f"command container delete {path}")
        del DEBUGGERS[number]
        raise
