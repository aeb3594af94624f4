"""Where calls and jumps stand in megabytes of code: ``libcallscan.so``, made with the agent."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path


@functools.cache
def scans() -> ctypes.CDLL:
    """The library, whose source is ``callscan.c``."""
    library = ctypes.CDLL(str(Path(__file__).with_name("libcallscan.so")))
    library.callscan.restype = None
    library.callscan.argtypes = (
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
    )
    library.jumpscan.restype = ctypes.c_size_t
    library.jumpscan.argtypes = (
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64),
        *(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t),
    )
    library.rank.restype = None
    library.rank.argtypes = (
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.c_void_p),
    )
    return library
