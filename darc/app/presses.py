"""Whether Ctrl-C was pressed while darc was at work in a debugger that tells nobody.

lldb hears of a Ctrl-C in its own handler of SIGINT, and forgets it where the program stands still,
as it does while a stop hook works (``Process::RunPrivateStateThread``: "the process actually stops
before we receive it. In that case, we can just ignore the request"). So the user's handler is kept,
and ``libpresses.so``, which is made of ``presses.c`` when the package is built, counts in front of
it meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIG_DFL, SIG_IGN, SIGINT

from darc.app.sigactions import action_of, set_action

_HANDLER = slice(ctypes.sizeof(ctypes.c_void_p))
"""Where the handler stands in a ``struct sigaction``, the C library's (sigaction(2))."""


@contextlib.contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """Gives what tells how often SIGINT has come since, where the process has a handler of its own
    for it, which is called as ever. Not twice at a time."""
    before = action_of(SIGINT)
    handler = int.from_bytes(before[_HANDLER], sys.byteorder)
    if handler in (SIG_DFL, SIG_IGN):
        yield lambda: 0
        return
    library = _library()
    number = ctypes.c_uint.in_dll(library, "presses")
    number.value = 0
    ctypes.c_void_p.in_dll(library, "before").value = handler
    own = bytes(ctypes.c_void_p(ctypes.cast(library.press, ctypes.c_void_p).value))
    set_action(SIGINT, own + before[_HANDLER.stop :])
    try:
        yield lambda: number.value
    finally:
        if action_of(SIGINT)[_HANDLER] == own:  # else somebody has one in its place
            set_action(SIGINT, before)


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(__file__).with_name("libpresses.so")))
