"""Threads of darc's in a debugger. Only its own thread may call it: whoever else does is stopped.

A debugger's API is not made for several threads: a call from another one may see half of what its
own thread is changing, and end the debugger. So each public method of a target asserts who calls
it, but for those that are marked, which never ask the debugger (gdb's own DAP server does the same
with its ``@in_gdb_thread``).
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


class StandIn(Protocol):
    """What a helper may ask in place of a target: see :class:`Turn`. Methods as the target's."""

    def read(self, address: int, size: int) -> bytes:
        """Memory as it is, with breakpoints in it."""

    def write(self, address: int, data: bytes) -> None:
        """Writes memory."""

    def flush(self) -> None:
        """What was written is there."""

    def addresses(self) -> Sequence[int]:
        """Where the user's breakpoints stood when the program went on."""


class Turn:
    """Whose turn it is to use a target, and all that is built on it: the debugger's own thread, or,
    while the program runs, a helper that prepares something. A helper asks no debugger: it has
    a :class:`StandIn`. It steps back as soon as the debugger's thread wants its turn."""

    def __init__(self, is_own_thread: Callable[[], bool] | None = None) -> None:
        """``is_own_thread`` tells whether this thread may ask the debugger now; without it, the one
        that makes this may."""
        own = threading.get_ident()
        self.is_own_thread = is_own_thread or (lambda: threading.get_ident() == own)
        self._lock = threading.Lock()
        self._helper: int | None = None
        self._stand_in: StandIn | None = None
        self._is_wanted = False

    @contextlib.contextmanager
    def taken(self, stand_in: StandIn) -> Iterator[None]:
        """This thread helps meanwhile, in small steps, and looks at :attr:`is_wanted`."""
        with self._lock:
            self._helper, self._stand_in = threading.get_ident(), stand_in
            try:
                yield
            finally:
                self._helper = self._stand_in = None

    @property
    def is_wanted(self) -> bool:
        """Whether the helper is to step back."""
        return self._is_wanted

    @property
    def stand_in(self) -> StandIn | None:
        """Whom this thread is to ask: nobody, where it is not the helper."""
        return self._stand_in if self._helper == threading.get_ident() else None

    def claim(self) -> None:
        """On the debugger's own thread: no helper is at work from now on, as long as the program
        stands still."""
        if self._helper is None:
            return
        self._is_wanted = True
        with self._lock:
            self._is_wanted = False


class _Owned(Protocol):
    @property
    def turn(self) -> Turn:
        """Whose turn it is."""


_C = TypeVar("_C", bound=_Owned)


def any_thread(function: _F) -> _F:
    """Marks a method that any thread may call at any time: it never asks the debugger."""
    vars(function)["any_thread"] = True
    return function


def own_thread(cls: type[_C]) -> type[_C]:
    """All public methods and properties of the class, those that it inherits as well, assert that
    the debugger's own thread calls them, but for those of :func:`any_thread`."""
    for name, member in public_members(cls).items():
        if isinstance(member, property):
            getter = member.fget
            if getter is not None and not is_for_any_thread(getter):
                setattr(cls, name, property(_asserting(getter), member.fset, member.fdel))
        elif callable(member) and not isinstance(member, type) and not is_for_any_thread(member):
            setattr(cls, name, _asserting(member))
    return cls


def public_members(cls: type[object]) -> dict[str, Any]:
    """What has a public name in a class or in those that it is made from."""
    made_from = [one for one in reversed(cls.__mro__) if one is not object]
    members = {name: member for one in made_from for name, member in vars(one).items()}
    return {name: member for name, member in members.items() if not name.startswith("_")}


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
        turn = self.turn
        if (stand_in := turn.stand_in) is not None:
            return getattr(stand_in, function.__name__)(*args, **kwargs)
        turn.claim()
        assert turn.is_own_thread(), f"{function.__name__} was called on another thread"
        return function(self, *args, **kwargs)

    return cast("_F", wrapper)
