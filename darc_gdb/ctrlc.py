"""Ctrl-C while gdb asks darc something: it has to wait, and must not be lost.

Where Python runs at that moment, a SIGINT becomes a KeyboardInterrupt in it, of which gdb prints a
line and which it then forgets: the program would run on, and what darc was about to do would be
half done. So SIGINT is blocked while darc is at work, and is asked for behind that. If the program
then runs, it is interrupted as the user wanted; if it stands still, there is a prompt anyway.

Where darc's own command lets the program run, gdb comes to what is posted when that command is
over, which would be too late: there it is :func:`noted`.
"""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gdb

from darc_gdb import later


@contextlib.contextmanager
def waits() -> Iterator[None]:
    """Ctrl-C waits until this is over."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if signal.SIGINT not in before:
            if _takes_pending():
                if _Noted.now is None:
                    later.post(_interrupt)
                else:
                    _Noted.now.came()
            # Not the mask as it was: what else is blocked may have changed meanwhile.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@dataclass
class Noted:
    """What :func:`noted` has noted."""

    times: int = 0
    """How often it has come. Any thread."""

    def came(self) -> None:
        """It has come once more."""
        self.times += 1

    @contextlib.contextmanager
    def let_through(self) -> Iterator[None]:
        """gdb hears of it meanwhile, in a command that lets the program run and is interrupted so.
        It does not become a KeyboardInterrupt: that is noted, too."""
        self.look()
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            yield
        except KeyboardInterrupt:
            self.came()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def look(self) -> None:
        """Notes one that waits. gdb's own thread."""
        self.times += _takes_pending()


class _Noted:
    now: Noted | None = None


@contextlib.contextmanager
def noted() -> Iterator[Noted]:
    """Ctrl-C is only noted until this is over, for who asks. Within another one it is that one."""
    if _Noted.now is not None:
        yield _Noted.now
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _Noted.now = found = Noted()
    try:
        yield found
    finally:
        found.look()
        _Noted.now = None
        if signal.SIGINT not in before:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _takes_pending() -> bool:
    """Whether one waits, that is blocked: it waits no more."""
    if signal.SIGINT not in signal.sigpending():
        return False
    signal.sigtimedwait({signal.SIGINT}, 0)
    return True


def patient(handler: Callable[..., None]) -> Callable[..., None]:
    """A handler of gdb's events in which Ctrl-C waits."""

    @functools.wraps(handler)
    def wrapper(*event: Any) -> None:
        with waits():
            handler(*event)

    return wrapper


def _interrupt() -> None:
    """On gdb's own thread, when it has nothing else to do."""
    if any(thread.is_running() for thread in gdb.selected_inferior().threads()):
        gdb.execute("interrupt", to_string=True)
