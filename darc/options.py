"""Command lines as typed: words, options and their values."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping

from darc.errors import UsageError


def near(word: str, words: Iterable[str]) -> str:
    """``"; did you mean --peak?"`` for the words closest to ``word``, or nothing."""
    found = difflib.get_close_matches(word, list(words), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""


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


def _is_open(name: str) -> bool:
    if name.endswith("operator"):
        return True
    plain = re.sub(r"operator\s*(<=>|<<=?|>>=?|->\*?|[<>]=?|\(\))|->", "", name)
    return plain.count("(") > plain.count(")") or plain.count("<") > plain.count(">")
