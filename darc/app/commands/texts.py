"""Help, and the words of ``set darc`` and ``show darc``."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from darc.app.commands.command import Actions
from darc.app.commands.registry import COMMANDS, find_command
from darc.app.parameters import PARAMETERS, find_parameter
from darc.views.words import Shown, message

SET_HELP = "Set darc's parameters, for every 'darc start' to come."
"""Of ``set darc``,"""

SHOW_HELP = "Show darc's parameters."
"""and of ``show darc``."""


def help_text(name: str) -> str:
    """The long help of a command, which ends in examples; ``""`` is that of ``darc`` itself."""
    if not name:
        return _prefix_help()
    command = find_command(name)
    parts = [f"{command.summary}\nUsage: {command.usage}", _wrap(command.details)]
    if command.options:
        rows = [(f"{option.name} {option.metavar}", option.help) for option in command.options]
        parts.append("Options:\n" + _table(rows))
    parts.append("Examples:\n" + _table([(f"{line}", doc) for line, doc in command.examples]))
    return "\n\n".join(parts)


def set_parameter(app: Actions, name: str, text: str) -> None:
    """``set darc NAME TEXT``. Raises :class:`UsageError`."""
    app.set_parameter(name, text)


def show_parameter(app: Actions, name: str = "") -> Shown:
    """The text of ``show darc NAME``, or of ``show darc``. Raises :class:`UsageError`."""
    shown = [find_parameter(name)] if name else PARAMETERS
    texts = ((parameter.name, parameter.text_in(app.parameters)) for parameter in shown)
    return Shown("\n".join(message(f"darc {name}: {text}") for name, text in texts))


def show(app: Actions, argument: str) -> None:
    """``show darc ARGUMENT``. Raises :class:`UsageError`."""
    app.emit(show_parameter(app, argument.strip()))


def parameter_help(name: str) -> str:
    """The long help of ``set darc NAME`` and ``show darc NAME``. Raises :class:`UsageError`."""
    parameter = find_parameter(name)
    valid = _wrap(f"Valid: {parameter.domain.valid}. The default is {parameter.default_text}.")
    lines = [_wrap(parameter.doc), valid]
    if parameter.option:
        lines.append(f"'darc start FUNCTION {parameter.option} {parameter.metavar}' overrides it.")
    return "\n".join([*lines, "", "Example:", f"  set darc {parameter.name} {parameter.example}"])


def _prefix_help() -> str:
    rows = [(f"darc {command.name}", command.summary) for command in COMMANDS.values()]
    kept = ", ".join(parameter.name for parameter in PARAMETERS)
    return "\n\n".join(
        [
            "Find the root causes of a latency peak.\nUsage: darc COMMAND [ARGUMENTS]",
            _wrap(
                "darc times the calls of a function, shows its latency profile with its peaks and "
                "descends from the chosen peak, level by level, to the calls that cause it."
            ),
            "Commands ('help darc COMMAND' tells more):\n" + _table(rows),
            _wrap(f"Parameters of 'set darc' and 'show darc': {kept}."),
            "Examples:\n"
            + _table(
                [
                    ("darc start handle", "profile the function handle, then"),
                    ("run", "run until its peaks are on the screen,"),
                    ("darc peak last", "choose the slowest peak,"),
                    ("continue", "and let darc find what causes it."),
                ]
            ),
        ]
    )


def _wrap(text: str) -> str:
    return "\n".join(textwrap.fill(part, 79) for part in text.split("\n"))


def _table(rows: Sequence[tuple[str, str]]) -> str:
    left = min(max(len(name) for name, _ in rows), 26)
    lines = []
    for name, doc in rows:
        indent = " " * (left + 4)
        text = textwrap.fill(doc, 79, initial_indent=indent, subsequent_indent=indent)
        fits = len(name) <= left
        lines.append(
            f"  {name}".ljust(left + 4) + text[left + 4 :] if fits else f"  {name}\n{text}"
        )
    return "\n".join(lines)
