"""What a signal does in this process, as the C library tells it: Python knows of its own handlers
alone, and a debugger has some that are none of those.

So that ``load.py`` can have it, this file is for any Python 3, has ASCII characters alone, and
imports nothing of darc's.
"""

import ctypes

_SIZE = 256
"""Bytes in which a ``struct sigaction`` has room, whichever C library it is (glibc's has 152)."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def action_of(number: int) -> bytes:
    """What the signal does now, for :func:`set_action`. Raises OSError: there is no such signal."""
    action = ctypes.create_string_buffer(_SIZE)
    if _LIBC.sigaction(int(number), None, action):
        raise OSError(ctypes.get_errno(), "sigaction")
    return action.raw


def set_action(number: int, action: bytes) -> None:
    """It does from now on what :func:`action_of` has told. Any thread. Raises OSError: the same."""
    if _LIBC.sigaction(int(number), action, None):
        raise OSError(ctypes.get_errno(), "sigaction")
