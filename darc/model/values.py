"""Kinds of values that users type, behind options and parameters: which texts stand for one, and
how one that does not is refused.

Whatever is typed as a duration, a count, a share or a choice is of these kinds, so that it is read
and refused alike everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from darc.model.errors import UsageError
from darc.model.profile import parse_time

_Value = TypeVar("_Value")
_Value_co = TypeVar("_Value_co", covariant=True)
_Choice = TypeVar("_Choice", bound=Enum)

_USUAL = "10s"
"""A time that is an example where nobody has another one."""


@dataclass(frozen=True)
class Kind(Generic[_Value_co]):
    """The texts that stand for a value."""

    valid: str
    """Which these are, in words that may stand behind "is not"."""
    parse: Callable[[str], _Value_co]
    """The value that a text stands for. Raises :class:`ValueError` where it stands for none; or
    :class:`UsageError`, where there is more to say of it than what is valid."""
    example: str
    """One of the texts."""
    words: tuple[str, ...] = ()
    """Those that completion offers."""
    has_no_others: bool = False
    """Whether these words are all of its texts."""

    def read(self, text: str, label: str, before: str | None = None) -> _Value_co:
        """The value that ``text`` stands for, which was typed for ``label``, behind ``before`` (the
        same, where it is ``None``).

        Raises:
            UsageError: it stands for none: one line with the text, what is valid, what to type; or
                what there is more to say, behind the label.
        """
        try:
            return self.parse(text)
        except UsageError as error:
            raise UsageError(f"{label}: {error}") from None
        except ValueError:
            raise UsageError(
                f"{label}: '{text.strip()}' is not {self.valid}; "
                f"type for example '{before or label} {self.example}'"
            ) from None


def count(low: int = 1, high: int = 10**9) -> Kind[int]:
    """The whole numbers from ``low`` to ``high``."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(text)
        return int(text)

    return Kind(f"a whole number from {low} to {high}", parse, str(min(max(low, 20), high)))


def duration(
    least: float = 0.0, *, example: str | None = None, needs_unit: bool = False
) -> Kind[float]:
    """Times above 0, and of ``least`` seconds and more, as seconds. A plain number is seconds, but
    where one ``needs_unit``, since a wrong guess would go unnoticed. Where one is refused the
    ``example`` is told, which must be such a time; without it some that are usual."""
    limit = f"{least:g}s" if least >= 1 else f"{least * 1000:g}ms"
    low = f"of {limit} and more" if least else "above 0"
    unit = ", with its unit," if needs_unit else ""
    usual = _USUAL if least else f"{_USUAL}, 2min or 500ms"

    def parse(text: str) -> float:
        text = text.strip()
        is_plain = not needs_unit and re.fullmatch(r"[0-9.]+", text) is not None
        try:
            seconds = parse_time(f"{text}s" if is_plain else text)
        except UsageError:
            raise ValueError(text) from None
        if not (0 < seconds < math.inf and seconds >= least):
            raise ValueError(text)
        return seconds

    return Kind(f"a time {low}{unit} as {example or usual}", parse, example or _USUAL)


def fraction(
    least: float = 0.0, *, in_percent: bool = False, words: tuple[str, ...] = ()
) -> Kind[float]:
    """The shares above 0, and from ``least`` on, up to 1: ``25%`` is 0.25. A plain number is one as
    well, unless they are to be ``in_percent``, where 1 might be meant to be 1%."""
    low = f"from {least:.0%} to" if least else "above 0 and at most"
    most = "100%, in percent as 25%" if in_percent else "1 (or 100%)"

    def parse(text: str) -> float:
        if in_percent and not text.endswith("%"):
            raise ValueError(text)
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if not (0 < value <= 1 and value >= least):
            raise ValueError(text)
        return value

    return Kind(f"a share {low} {most}", parse, "25%", words)


def named(values: Mapping[str, _Value]) -> Kind[_Value]:
    """What has one of these names: an entry of a registry."""
    words = tuple(values)

    def parse(text: str) -> _Value:
        if text not in values:
            raise ValueError(text)
        return values[text]

    return Kind(f"one of {', '.join(words)}", parse, words[0], words, has_no_others=True)


def one_of_enum(of: type[_Choice]) -> Kind[_Choice]:
    """The member of an enum whose value is typed."""
    words = tuple(str(one.value) for one in of)
    return Kind(f"one of {', '.join(words)}", of, words[0], words, has_no_others=True)


def _on_off(text: str) -> bool:
    if text in ("on", "yes", "1", "true", "enable", ""):
        return True
    if text in ("off", "no", "0", "false", "disable"):
        return False
    raise ValueError(text)


ON_OFF = Kind("on or off", _on_off, "on", ("on", "off"))

TEXT = Kind("a text", str, "TEXT")
"""Any text: what it means is for others to say."""
