"""What is said where an ELF file is damaged, by accident or on purpose.

pyelftools and what unpacks tables here then raise what they happen to meet: dozens of kinds of
exceptions. None of them gets out of the readers of files (:mod:`darc.code.elf`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from darc.model.errors import DarcError

_F = TypeVar("_F", bound=Callable[..., Any])


def where_damaged(default: object) -> Callable[[_F], _F]:
    """Where the file is damaged, a function says ``default``."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except DarcError:
                raise
            except Exception:  # see the module: the parsers' kinds cannot be listed
                return default() if isinstance(default, type) else default

        return cast("_F", wrapper)

    return decorate
