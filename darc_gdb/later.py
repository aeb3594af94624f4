"""What gdb's event loop is to do for darc when it comes to it, and gdb's end before that.

gdb keeps what is posted in a queue that it destroys behind the end of Python, whose objects are in
it (``gdbpy_event``, in gdb 13 to 16): it dies of a segmentation fault where the queue is not empty,
as in batch, where a command may be the last one while something is posted.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
from collections.abc import Callable

import gdb

from darc_gdb.asked import as_a_command

_waiting: set[object] = set()
"""One for each that the event loop has not come to."""


def post(what: Callable[[], object]) -> None:
    """``what`` is done on gdb's own thread, when it has nothing else to do. Any thread."""
    token = object()
    _waiting.add(token)

    def do() -> None:
        _waiting.discard(token)
        as_a_command(what)

    gdb.post_event(do)


def _end_early() -> None:
    """Where something still waits, gdb ends as it would have, with the same status, but before it
    comes to the queue."""
    if not _waiting:
        return
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # a C library without on_exit
        libc.on_exit(libc._exit, None)  # the last to be called,
        libc.on_exit(libc.fcloseall, None)  # the first: what was written is out


atexit.register(_end_early)
