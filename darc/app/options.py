"""Command lines as typed: words, options and their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from darc.app.parameters import PARAMETERS, Parameter
from darc.model.errors import UsageError, near


@dataclass(frozen=True)
class Typed:
    """What was typed behind a command, taken apart by the options that it has."""

    command: str
    """As it is typed, such as ``darc start``."""
    usage: str
    """What may be typed, as its help tells."""
    words: tuple[str, ...]
    """The arguments."""
    options: tuple[tuple[str, str], ...] = ()
    """Each option with its text, in the order in which they were typed."""

    @property
    def texts(self) -> dict[str, str]:
        """The text of each option; the last one, where it was typed twice."""
        return dict(self.options)


class _Lexer(shlex.shlex):
    """Python's, which does not say in its types where it ends."""

    state: str
    """After a line that cannot be split: the quote, or the escape, that is open."""


def split_line(argline: str) -> list[str]:
    """The words of a command line; quotes keep spaces. Raises :class:`UsageError`."""
    lexer = _Lexer(argline, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""  # as shlex.split does
    try:
        return list(lexer)
    except ValueError:
        is_quote = lexer.state in lexer.quotes  # else an escape
        what = "a quote is not closed" if is_quote else "nothing stands behind '\\'"
        raise UsageError(f"{what} in: {argline.strip()}") from None


def split_options(
    command: str, words: Iterable[str], options: Mapping[str, str], *, begins: bool = False
) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments and the options, with their texts, among ``words``.

    ``options`` maps each option that ``command`` has to the metavariable of its value. Both
    ``--peak last`` and ``--peak=last`` are read, and an argument goes on while one of its
    brackets is open; a dash alone, or before a number, is one. Raises :class:`UsageError` for an
    unknown option and a missing value. ``begins`` says that the command begins an analysis, for
    which parameters count that it has no option for.
    """
    arguments: list[str] = []
    found: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if arguments and _is_open(arguments[-1]):
            arguments[-1] += f" {word}"
            continue
        if not word.startswith("-") or word.lstrip("-")[:1].isdecimal() or word == "-":
            arguments.append(word)
            continue
        option, equals, text = word.partition("=")
        if option not in options:
            meant = text if equals else next(rest, "")
            hint = _as_parameter(option, meant) if begins else ""
            hint = hint or near(option, options) or f"; see 'help {command}'"
            raise UsageError(f"{command} has no option '{option}'{hint}")
        if not equals:
            value = next(rest, None)
            if value is None or value in options:
                raise UsageError(f"{option} needs a value: {option} {options[option]}")
            text = value
        found.append((option, text))
    return arguments, found


def _as_parameter(option: str, text: str) -> str:
    """What to do instead where that is an option of ``darc start`` which is for all analyses."""
    parameter = _FOR_ALL.get(option)
    if parameter is None:
        return ""
    set_it = f"'set darc {parameter.name} {text or parameter.metavar}'"
    return f": {set_it} holds for whatever begins next"


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
    to which the others mean nothing. What ``set darc`` alone has is no option."""
    unknown = set(fields) - {one.field for one in START_OPTIONS.values()}
    assert not unknown, f"no options of 'darc start' set {unknown}"
    return {option: one for option, one in START_OPTIONS.items() if one.field in fields}


_FOR_ALL = options_of("task", "max_time", "on_finish")
