"""The system's calls for whoever traces a thread (ptrace(2))."""

from __future__ import annotations

import ctypes
import functools
import os
from enum import IntEnum

WAIT_FOR_ALL = 0x4000_0000
"""``__WALL`` of waitpid(2): also for threads, and what clone(2) has made."""


class TraceRequest(IntEnum):
    """What is asked of the kernel (``linux/ptrace.h``)."""

    POKE_USER = 6
    CONT = 7
    GETREGS = 12
    SETREGS = 13
    DETACH = 17
    GETSIGINFO = 0x4202
    SETSIGINFO = 0x4203
    SEIZE = 0x4206
    INTERRUPT = 0x4207
    GETSIGMASK = 0x420A
    SETSIGMASK = 0x420B
    SECCOMP_GET_FILTER = 0x420C
    GET_SYSCALL_USER_DISPATCH_CONFIG = 0x4211  # since Linux 6.4


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return libc


def trace(request: TraceRequest, thread: int, address: int = 0, data: object = 0) -> int:
    """What the kernel answers; ``data`` is a number, bytes or a buffer.

    Raises:
        OSError: it does not.
    """
    answer = int(_libc().ptrace(request, thread, address, data))
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
