"""Whose handlers of faults a program has.

One of its own may know instructions by their addresses, as a JVM's does (:mod:`darc.code.faults`).
The C library's and the Rust runtime's do not: they look at the address that was accessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from darc.code.program import Program

_C_LIBRARY = re.compile(r"(libc|libpthread|ld)([-.].*)?\.so|ld-(linux|musl)|libc\.musl")

_RUST = re.compile(r"3std.*14stack_overflow.*14signal_handler")
"""``std::sys::…::stack_overflow::…::signal_handler``, mangled in either way."""


def own_handlers(
    program: Program, signals: Iterable[int], ask: Callable[[int], int]
) -> dict[int, int]:
    """Of the handlers of ``signals`` those that are the program's own, by signal; ``ask`` tells the
    address of each. What is in doubt is its own."""
    found = {signal: ask(signal) for signal in signals}
    return {signal: at for signal, at in found.items() if not _is_runtimes(program, at)}


def _is_runtimes(program: Program, address: int) -> bool:
    module = program.module_at(address)
    if module is None:
        return False
    if _C_LIBRARY.match(module.name):
        return True
    return any(_RUST.search(name) for name in module.image.names_at(address - module.bias))
