"""darc's commands and parameters as gdb's, made from the one registry."""

from __future__ import annotations

import contextlib
from enum import Enum

import gdb

from darc.app import commands
from darc.app.app import App
from darc.app.parameters import PARAMETERS, Parameter
from darc.model.errors import DarcError
from darc_gdb import hooks
from darc_gdb import target as backend
from darc_gdb.analysed import at_home
from darc_gdb.debuggees import check_runnable, choose_debuggee
from darc_gdb.failures import gdb_error
from darc_gdb.target import GdbTarget


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
        return backend.TARGET.inferiors.callbacks.undisturbed()

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
            raise gdb_error(self._app, error) from None

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
            raise gdb_error(self._app, error) from None


class _SetPrefix(gdb.Command):
    def __init__(self) -> None:
        self.__doc__ = commands.SET_HELP
        super().__init__("set darc", gdb.COMMAND_RUNNING, prefix=True)


class _ShowPrefix(gdb.Command):
    def __init__(self, app: App) -> None:
        self.__doc__ = commands.SHOW_HELP
        super().__init__("show darc", gdb.COMMAND_RUNNING, prefix=True)
        self._app = app

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            commands.show(self._app, argument)
        except DarcError as error:
            raise gdb_error(self._app, error) from None


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
            raise gdb_error(self._app, error) from None
        self.value = self._parameter.text_in(self._app.parameters)
        return ""

    def get_show_string(self, _value: str) -> str:
        return backend.TARGET.screen.fitting(
            commands.show_parameter(self._app, self._parameter.name)
        )


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
        hooks.connect(app, target, undo)
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
