"""What of a program is no code of its own but its language's library: C++'s, above all.

A thread of ``std::thread`` begins in that, and waits in that, and much of it is made of templates,
which stand in the program's own file.
"""

from __future__ import annotations

import re

from darc.model.ftree import Function

_FILES = ("libstdc++.", "libstdc++-", "libc++.", "libc++-", "libc++abi.")

_SYMBOL = re.compile(r"_ZN?[rVKRO]*(?:S[tabsiod]|9__gnu_cxx)")
"""What namespace ``std`` has, as the Itanium ABI's substitutions begin with it; also libc++'s."""

_NAME = re.compile(r"<*(?:std|core|alloc|__gnu_cxx)::")
"""As that is shown, and Rust's library."""

_TRAMPOLINE = re.compile(
    r"execute_native_thread_routine(?:_compat)?|g_thread_proxy|std::.*\bthread_start"
)


def is_of_cxx(function: Function) -> bool:
    """Whether it is C++'s library that has it, in whichever file."""
    return function.module.startswith(_FILES) or _SYMBOL.match(function.symbol) is not None


def begins_threads(function: Function) -> bool:
    """Whether all threads of a library begin in it, whatever function they are to call: it may
    have no name. Asked of what a thread's first function of the C library calls."""
    is_there = function.module.startswith((*_FILES, "libglib-2."))
    return is_there or _TRAMPOLINE.fullmatch(function.name) is not None


def is_named_of_library(function: Function) -> bool:
    """Whether its name says that it is one of C++'s or Rust's library."""
    return is_library_name(function.name)


def is_library_name(name: str) -> bool:
    """The same of a display name alone."""
    return _NAME.match(name) is not None
