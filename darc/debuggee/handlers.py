"""Whose handlers of faults a program has.

One of its own may know instructions by their addresses, as a JVM's does (:mod:`darc.code.faults`).
The C library's and the Rust runtime's do not: they look at the address that was accessed. Nor does
one that the kernel takes back as it calls it (``SA_RESETHAND``, sigaction(2)): who goes on behind
faults has many of them to expect; it tells of a crash, as those of LLVM and Redis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from darc.code.program import Program

_C_LIBRARY = re.compile(r"(libc|libpthread|ld)([-.].*)?\.so|ld-(linux|musl)|libc\.musl")

_RUST = re.compile(r"3std.*14stack_overflow.*14signal_handler")
"""``std::sys::…::stack_overflow::…::signal_handler``, mangled in either way."""


_SA_RESETHAND = 0x80000000


@dataclass(frozen=True)
class Handler:
    """What the kernel calls at a signal, and the flags that it was given (``SA_…``)."""

    address: int
    flags: int = 0

    @property
    def is_for_one(self) -> bool:
        """Whether a second signal does not get there any more."""
        return bool(self.flags & _SA_RESETHAND)


def own_handlers(
    program: Program, signals: Iterable[int], ask: Callable[[int], Handler]
) -> dict[int, int]:
    """Of the handlers of ``signals`` those that are the program's own and may know instructions, by
    signal, their addresses; ``ask`` tells each. What is in doubt may."""
    found = {signal: ask(signal) for signal in signals}
    return {
        signal: handler.address
        for signal, handler in found.items()
        if not handler.is_for_one and not _is_runtimes(program, handler.address)
    }


def _is_runtimes(program: Program, address: int) -> bool:
    module = program.module_at(address)
    if module is None:
        return False
    if _C_LIBRARY.match(module.name):
        return True
    return any(_RUST.search(name) for name in module.image.symbols.names_at(address - module.bias))
