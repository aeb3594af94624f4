"""Command lines as typed: words, options and their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from darc.app.parameters import PARAMETERS, Parameter
from darc.model.errors import UsageError, near


def split_line(argline: str) -> list[str]:
    """The words of a command line; quotes keep spaces. Raises :class:`UsageError`."""
    try:
        return shlex.split(argline)
    except ValueError:
        raise UsageError(f"a quote is not closed in: {argline.strip()}") from None


def split_options(
    command: str, words: Iterable[str], options: Mapping[str, str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments and the options, with their texts, among ``words``.

    ``options`` maps each option that ``command`` has to the metavariable of its value. Both
    ``--peak last`` and ``--peak=last`` are read, and an argument goes on while one of its
    brackets is open. Raises :class:`UsageError` for an unknown option and a missing value.
    """
    arguments: list[str] = []
    found: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if arguments and _is_open(arguments[-1]):
            arguments[-1] += f" {word}"
            continue
        if not word.startswith("-"):
            arguments.append(word)
            continue
        option, equals, text = word.partition("=")
        if option not in options:
            hint = near(option, options) or f"; see 'help {command}'"
            raise UsageError(f"{command} has no option '{option}'{hint}")
        if not equals:
            value = next(rest, None)
            if value is None or value in options:
                raise UsageError(f"{option} needs a value: {option} {options[option]}")
            text = value
        found.append((option, text))
    return arguments, found


def number_in(text: str) -> int | None:
    """The number that a word is, of at most nine digits; ``None``: it is none."""
    is_one = text.isascii() and text.isdecimal() and len(text) < 10
    return int(text) if is_one else None


def _is_open(name: str) -> bool:
    if name.endswith("operator"):
        return True
    plain = re.sub(r"operator\s*(<=>|<<=?|>>=?|->\*?|[<>]=?|\(\))|->", "", name)
    return plain.count("(") > plain.count(")") or plain.count("<") > plain.count(">")


START_OPTIONS: Mapping[str, Parameter] = {
    parameter.option: parameter for parameter in PARAMETERS if parameter.option is not None
}


def options_of(*fields: str) -> Mapping[str, Parameter]:
    """Those options of ``darc start`` that set these fields of the parameters: what a command takes
    to which the others mean nothing."""
    return {option: one for option, one in START_OPTIONS.items() if one.field in fields}


def parse_overrides(
    command: str,
    arguments: str | Sequence[str],
    taken: Mapping[str, Parameter] = START_OPTIONS,
) -> tuple[list[str], dict[str, object]]:
    """The arguments, and the overrides by field name, of a command with the options of ``darc
    start``, or those of them that are ``taken``. Raises :class:`UsageError` for every option that
    is not right."""
    words = split_line(arguments) if isinstance(arguments, str) else arguments
    metavars = {option: parameter.metavar for option, parameter in taken.items()}
    names, options = split_options(command, words, metavars)
    overrides: dict[str, object] = {}
    for option, text in options:
        parameter = taken[option]
        overrides[parameter.field] = parameter.read(text)
    return names, overrides


def parse_start_options(
    arguments: str | Sequence[str],
    command: str = "darc start",
    taken: Mapping[str, Parameter] = START_OPTIONS,
) -> tuple[str, dict[str, object]]:
    """The function and the overrides, by field name, that ``darc start`` was given, or another
    ``command`` with those of its options that are ``taken``.

    A function's name may hold spaces inside quotes, ``()`` or ``<>``. Raises
    :class:`UsageError` when it is missing or there are two, and for every option that is not
    right.
    """
    names, overrides = parse_overrides(command, arguments, taken)
    if not names:
        more = "--peak P" if "--peak" in taken else "OPTIONS"
        raise UsageError(f"{command} needs a function: {command} FUNCTION [{more}]")
    if len(names) > 1:
        raise UsageError(
            f"{command} takes one function, not '{names[0]}' and '{names[1]}'; "
            "put quotes around a name that holds spaces"
        )
    return names[0], overrides
