"""Ctrl-C while gdb asks darc something: it has to wait, and must not be lost.

Where Python runs at that moment, a SIGINT becomes a KeyboardInterrupt in it, of which gdb prints a
line and which it then forgets: the program would run on, and what darc was about to do would be
half done. So SIGINT is blocked while darc is at work, and is asked for behind that. If the program
then runs, it is interrupted as the user wanted; if it stands still, there is a prompt anyway.
"""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import Callable, Iterator
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
            if signal.SIGINT in signal.sigpending():
                signal.sigtimedwait({signal.SIGINT}, 0)
                later.post(_interrupt)
            # Not the mask as it was: what else is blocked may have changed meanwhile.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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
