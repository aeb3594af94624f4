"""Parsed JSON, looked at piece by piece: each function gives what it is asked for, or raises
:class:`DamagedFileError`, which tells where the file is not right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn, TypeVar

from darc.model.errors import FormatError

LARGEST = 1 << 96
"""Above every count and every sum of cycles."""

_Choice = TypeVar("_Choice", bound=Enum)


class DamagedFileError(FormatError):
    """What is wrong, to be told behind the file's name."""


def damaged(where: str, wanted: str) -> NoReturn:
    """Refuses the file: what is at ``where`` is not as ``wanted``. Raises that, as a
    :class:`DamagedFileError`."""
    raise DamagedFileError(
        f"is damaged: {where} is not {wanted}; save the session again with 'darc save'"
    )


def read_object(value: object, where: str, keys: str) -> dict[str, Any]:
    """``value`` as an object of exactly these keys."""
    found = read_mapping(value, where)
    wanted = keys.split()
    for key in wanted:
        if key not in found:
            damaged(where, f"complete, it has no '{key}'")
    for key in found:
        if key not in wanted:
            damaged(where, f"as it must be, '{short_key(key)}' does not belong there")
    return found


def read_mapping(value: object, where: str) -> dict[str, Any]:
    """``value`` as an object of any keys."""
    if not isinstance(value, dict):
        damaged(where, "an object")
    return value


def read_list(value: object, where: str) -> list[Any]:
    """``value`` as a list."""
    if not isinstance(value, list):
        damaged(where, "a list")
    return value


def read_text(value: object, where: str) -> str:
    """``value`` as a text."""
    if not isinstance(value, str):
        damaged(where, "a text")
    if "\0" in value:  # no name of a program, file or symbol has one
        damaged(where, "a text without NUL")
    return value


def read_flag(value: object, where: str) -> bool:
    """``value`` as true or false."""
    if not isinstance(value, bool):
        damaged(where, "true or false")
    return value


def read_count(value: object, where: str, least: int = 0, most: int = LARGEST) -> int:
    """``value`` as a whole number from ``least`` to ``most``."""
    if type(value) is not int or not least <= value <= most:
        damaged(where, f"a whole number from {least}" + f" to {most}" * (most < LARGEST))
    return value


def read_number(value: object, where: str, most: float = math.inf) -> float:
    """``value`` as a number from 0 to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        damaged(where, "a number")
    if isinstance(value, int) and value > LARGEST:
        damaged(where, "a number that can be")
    if not 0 <= value <= most or math.isinf(value):
        damaged(where, "a number that can be")
    return float(value)


def read_pair(value: object, where: str) -> tuple[int, int]:
    """``value`` as a number and how many there are."""
    numbers = read_list(value, where)
    if len(numbers) != 2:
        damaged(where, "a list of 2 numbers")
    many = read_count(numbers[1], where, least=1)
    return read_count(numbers[0], where, most=many - 1), many


def read_choice(kind: type[_Choice], value: object, where: str) -> _Choice:
    """``value`` as one of an enumeration's."""
    for choice in kind:
        if choice.value == value:
            return choice
    damaged(where, f"one of {', '.join(str(choice.value) for choice in kind)}")


def written_bins(bins: Mapping[int, int]) -> dict[str, int]:
    """The calls of each bin as a file has them: keys of JSON are texts."""
    return {str(number): calls for number, calls in bins.items()}


def short_key(key: str) -> str:
    """A key of the file, fit to stand in a message of one line."""
    text = ascii(key)[1:-1]
    return text if len(text) <= 40 else text[:40] + "…"
