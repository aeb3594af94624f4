"""What the end of a command line can become."""

from __future__ import annotations

from collections.abc import Sequence

from darc.app.commands.command import Actions, Command
from darc.app.commands.filenames import files
from darc.app.commands.registry import COMMANDS
from darc.model.errors import DarcError
from darc.views.words import LOG_NAME_WIDTH, printable


def complete(app: Actions, name: str, argline: str, word: str) -> list[str]:
    """What ``word``, the end of ``argline``, can become.

    ``word`` may be shorter than the last word of the line where the debugger breaks words at
    other places than spaces. Never raises.
    """
    command = COMMANDS.get(name)
    if command is None:
        return []
    before, typed = _last_word(argline)
    try:
        if completes_files(name, argline):
            candidates = files(typed)
        else:
            candidates = _candidates(app, command, before, typed)
    except DarcError:
        return []
    cut = len(typed) - len(word) if typed.endswith(word) else 0
    fitting = (candidate for candidate in candidates if candidate.startswith(typed))
    return [one[cut:] for one in fitting if _can_be_typed(one) and _can_be_typed(one[cut:])]


def _can_be_typed(text: str) -> bool:
    """Whether it may stand in a list on a terminal, and be typed there; an accent needs the letter
    that it is on."""
    return len(text) <= LOG_NAME_WIDTH and printable(text) == text


def completes_files(name: str, argline: str) -> bool:
    """Whether the debugger is to complete the end of ``argline`` as a file name."""
    command = COMMANDS.get(name)
    if command is None:
        return False
    before, typed = _last_word(argline)
    option = before[-1] if before else typed.partition("=")[0]
    if any(choice.is_file and choice.name == option for choice in command.options):
        return True
    if not command.takes_file or typed.startswith("-"):
        return False
    try:
        return not command.split(before).words
    except DarcError:  # the value of an option is still to come
        return False


def _last_word(argline: str) -> tuple[list[str], str]:
    """The words before the one at the end, which a quote that is open may have begun."""
    start, quote = 0, ""
    for at, character in enumerate(argline):
        if quote:
            quote = "" if character == quote else quote
        elif character.isspace():
            start = at + 1
        elif character in ("'", '"') and at == start:
            quote = character
    return argline[:start].split(), argline[start:]


def _candidates(app: Actions, command: Command, before: Sequence[str], typed: str) -> list[str]:
    options = {option.name: option for option in command.options}
    if before and before[-1] in options:
        return options[before[-1]].completions(app, typed)
    name, equals, text = typed.partition("=")
    if equals and name in options:
        return [f"{name}={value}" for value in options[name].completions(app, text)]
    if typed.startswith("-"):
        return [option for option in options if option not in before]
    if command.complete_argument is None or (command.takes_one and _has_argument(command, before)):
        return list(options) if not typed else []
    if typed[:1] in ("'", '"'):
        quote = typed[0]
        return [f"{quote}{name}{quote}" for name in command.complete_argument(app, typed[1:])]
    return command.complete_argument(app, typed)


def _has_argument(command: Command, before: Sequence[str]) -> bool:
    try:
        return bool(command.split(before).words)
    except DarcError:
        return False
