"""Text for outputs that cannot show every character: a bare container's, in the C locale.

Whatever a debugger's package shows passes :func:`fitting` there; files are always UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping

from darc.views.words import ASCII, to_ascii

_DRAWN = "".join(map(chr, ASCII))


def fitting(text: str, encoding: str) -> str:
    """``text`` with characters of ``encoding`` alone: darc's own drawings in ASCII, if any of them
    is not there, and "?" for other characters that are not."""
    try:
        text.encode(encoding)
        return text
    except LookupError:
        return to_ascii(text)
    except UnicodeEncodeError:
        pass
    try:
        _DRAWN.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(ASCII)
    return text.encode(encoding, "replace").decode(encoding)


def encoded(text: str, encoding: str) -> bytes:
    """:func:`fitting` text as bytes."""
    shown = fitting(text, encoding)
    try:
        return shown.encode(encoding)
    except LookupError:
        return shown.encode("ascii")


def locale_encoding(variables: Mapping[str, str]) -> str:
    """The encoding of output in an environment (locale(7)); without one that says so, ASCII."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    value = next((variables[name] for name in names if variables.get(name)), "C")
    language, _, encoding = value.partition("@")[0].partition(".")
    if language in ("C", "POSIX") and not encoding:
        return "ascii"
    return encoding or "utf-8"


def takes_escapes(variables: Mapping[str, str]) -> bool:
    """Whether a terminal in this environment moves its cursor when it is told to."""
    return variables.get("TERM", "") not in ("", "dumb")


def takes_colour(variables: Mapping[str, str]) -> bool:
    """Whether output is to be coloured in this environment (no-color.org)."""
    return takes_escapes(variables) and not variables.get("NO_COLOR")
