"""Which library a file or a function is of, by its name: C's, and the dynamic linker.

musl's dynamic linker is its C library, too. Files are called by their base names.
"""

from __future__ import annotations

import re

_C = re.compile(r"lib(?:c|pthread)(?:-\d[\d.]*)?\.so(?:\.|$)|libc\.musl-|ld-musl-")
_LOADER = re.compile(r"ld-(?:linux|musl)|ld(?:64)?(?:-\d[\d.]*)?\.so(?:\.|$)")
_GLIBC = ("libc.so.6", "libpthread.so.0")

_MAIN_STARTS = frozenset(("libc_start_call_main", "libc_start_main"))
_LATER_STARTS = frozenset(("start_thread", "clone", "clone3"))
"""Without underscores before them."""

FIRST_CODE = "_start"
"""The symbol of a program's first code, which is its own file's."""


def is_c_library(file: str) -> bool:
    """Whether it is C's, which calls the kernel for a program, or the part of that which has its
    threads (glibc's before 2.34)."""
    return _C.match(file) is not None


def is_loader(file: str) -> bool:
    """Whether it is the dynamic linker."""
    return _LOADER.match(file) is not None


def is_glibc(file: str) -> bool:
    """Whether it is the C library of GNU, as that calls itself."""
    return file in _GLIBC


def plain_name(symbol: str) -> str:
    """``poll`` of ``__poll`` and ``poll@@GLIBC_2.2.5``."""
    return symbol.split("@", 1)[0].lstrip("_")


def is_thread_start(symbol: str) -> bool:
    """Whether the C library's function of that name calls what a thread begins with, ``main``
    too."""
    return is_later_start(symbol) or plain_name(symbol) in _MAIN_STARTS


def is_later_start(symbol: str) -> bool:
    """The same of all threads but the first."""
    return plain_name(symbol) in _LATER_STARTS
