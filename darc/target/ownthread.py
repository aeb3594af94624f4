"""Threads of darc's in a debugger. Only its own thread may call it: whoever else does is stopped.

A debugger's API is not made for several threads: a call from another one may see half of what its
own thread is changing, and end the debugger. So each public method of a target asserts who calls
it, but for those that are marked, which never ask the debugger (gdb's own DAP server does the same
with its ``@in_gdb_thread``).
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class _Owned(Protocol):
    def is_own_thread(self) -> bool:
        """Whether this thread may ask the debugger now."""


_C = TypeVar("_C", bound=_Owned)


def any_thread(function: _F) -> _F:
    """Marks a method that any thread may call at any time: it never asks the debugger."""
    function.any_thread = True  # type: ignore[attr-defined]
    return function


def own_thread(cls: type[_C]) -> type[_C]:
    """All public methods and properties that the class itself defines assert that
    ``is_own_thread`` holds, but for those of :func:`any_thread`."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") or name == "is_own_thread":
            continue
        if isinstance(member, property):
            getter = member.fget
            if getter is not None and not is_for_any_thread(getter):
                setattr(cls, name, property(_asserting(getter), member.fset, member.fdel))
        elif callable(member) and not isinstance(member, type) and not is_for_any_thread(member):
            setattr(cls, name, _asserting(member))
    return cls


def is_for_any_thread(function: object) -> bool:
    """Whether a function bears the mark of :func:`any_thread`."""
    return bool(getattr(function, "any_thread", False))


def begin_thread(function: Callable[[], None], name: str) -> threading.Thread:
    """Starts a thread that no signal comes to: a SIGCHLD or SIGINT that landed there would never
    wake the debugger's own thread, which blocks them until it waits for one (gdb's linux-nat).
    All of darc's are made here."""
    thread = threading.Thread(target=function, name=name, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread


def _asserting(function: _F) -> _F:
    @functools.wraps(function)
    def wrapper(self: _Owned, *args: Any, **kwargs: Any) -> Any:
        assert self.is_own_thread(), f"{function.__name__} was called on another thread"
        return function(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]
