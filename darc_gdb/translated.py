"""gdb's exceptions become darc's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import gdb

from darc.model.errors import TargetError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def translated(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Whatever gdb raises in it is a TargetError."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except (gdb.error, gdb.MemoryError, ValueError, OverflowError, RuntimeError) as error:
            raise TargetError(f"gdb: {_first_line(error)}") from None
        except SystemError:  # gdb has failed without a word, as when the program is gone
            raise TargetError("gdb: it cannot say why; is the program gone?") from None

    return wrapper


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
