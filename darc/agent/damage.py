"""The agent's tables lie in the program's memory, which it may write to, by mistake or not.

Numbers read there may therefore be any: counts without end, pointers to nowhere. Whoever reads them
meets exceptions of all kinds; :func:`guarded` makes one error of them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from darc.model.errors import DarcError, WrittenOverError

_C = TypeVar("_C", bound=type)

DAMAGED = "darc's tables in the program are damaged: something in it has written over them"

_MET = (
    struct.error, ArithmeticError, LookupError, ValueError, MemoryError, RecursionError,
    AssertionError,
)  # fmt: skip
"""What absurd numbers lead to."""


class DamagedError(WrittenOverError):
    """See the module."""

    def __init__(self) -> None:
        super().__init__(DAMAGED)


def guarded(cls: _C) -> _C:
    """A class that reads the tables: what its methods meet there is a :class:`DamagedError`."""
    for name, value in list(vars(cls).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, property):
            get, put = value.fget, value.fset
            made = property(get and _guard(get), put and _guard(put), doc=value.__doc__)
            setattr(cls, name, made)
        elif callable(value) and not isinstance(value, type):
            setattr(cls, name, _guard(value))
    return cls


def _guard(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except DarcError:
            raise
        except _MET as error:
            raise DamagedError from error

    return wrapper
