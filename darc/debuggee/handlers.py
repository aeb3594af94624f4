"""Whose handlers a program has that may know its instructions.

One of its own may know instructions by their addresses, as a JVM's does (:mod:`darc.code.faults`).
The C library's and the Rust runtime's do not: they look at the address that was accessed. Nor does
one that the kernel takes back as it calls it (``SA_RESETHAND``, sigaction(2)): who goes on behind
faults has many of them to expect; it tells of a crash, as those of LLVM and Redis. Nor does one
whose code never looks at what the kernel tells it of the place: it ends the program, or jumps out
(``siglongjmp``). An exception that is thrown there is caught by where the instruction stands.

Handlers of signals that come anywhere look at the place as well, most of them for a backtrace or a
profile: nothing is left alone for these. One that *sets* the place may take a thread back to the
beginning of a sequence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from darc.code.architecture import FunctionCode
from darc.code.faults import FAULTS
from darc.code.processor import may_learn_place, sets_place
from darc.code.program import Program
from darc.model.libraries import is_c_library, is_loader

_RUST = re.compile(r"3std.*14stack_overflow.*14signal_handler")
"""``std::sys::…::stack_overflow::…::signal_handler``, mangled in either way."""


_THROWING = frozenset(
    ("__cxa_throw", "__cxa_rethrow", "_Unwind_RaiseException", "_Unwind_ForcedUnwind")
)

_SA_SIGINFO, _SA_RESETHAND = 0x4, 0x80000000


@dataclass(frozen=True)
class Handler:
    """What the kernel calls at a signal, and the flags that it was given (``SA_…``)."""

    address: int
    flags: int = 0

    @property
    def is_for_one(self) -> bool:
        """Whether a second signal does not get there any more."""
        return bool(self.flags & _SA_RESETHAND)

    @property
    def is_told(self) -> bool:
        """Whether it takes what the kernel knows of the signal, and where the thread was."""
        return bool(self.flags & _SA_SIGINFO)


def own_handlers(
    program: Program, signals: Iterable[int], ask: Callable[[int], Handler]
) -> dict[int, int]:
    """Of the handlers of ``signals`` those that are the program's own and may know instructions, by
    signal, their addresses; ``ask`` tells each. What is in doubt may."""
    found = {signal: ask(signal) for signal in signals}
    return {
        signal: handler.address
        for signal, handler in found.items()
        if not handler.is_for_one
        and (
            _is_own_of_faults(program, signal, handler)
            if signal in FAULTS
            else sets_back(program, handler.address)
        )
    }


def sets_back(program: Program, address: int) -> bool:
    """Whether a signal's handler may set a thread back to where a sequence begins. One whose code
    cannot be read does not, nor does what is done in code that it is not seen to call."""
    if not program.is_code(address) or _is_runtimes(program, address):
        return False

    def called(target: int) -> FunctionCode | None:
        return program.function(target) if program.is_code(target) else None

    return sets_place(program.function(address), called)


def _is_own_of_faults(program: Program, signal: int, handler: Handler) -> bool:
    if _is_runtimes(program, handler.address):
        return False
    return _may_learn_place(program, signal, handler)


def _may_learn_place(program: Program, signal: int, handler: Handler) -> bool:
    if program.module_at(handler.address) is None:  # made at run time, and again at any time
        return True
    code = program.function(handler.address)
    if may_learn_place(code, signal, is_told=handler.is_told):
        return True
    further = [program.function(target) for target in _called(code) if program.is_code(target)]
    return any(_throws(program, one) for one in (code, *further))


def _throws(program: Program, code: FunctionCode) -> bool:
    return any(not _THROWING.isdisjoint(program.linkage.names_of(at)) for at in _called(code))


def _called(code: FunctionCode) -> Iterator[int]:
    return (site.target for site in code.sites if site.target is not None)


def _is_runtimes(program: Program, address: int) -> bool:
    module = program.module_at(address)
    if module is None:
        return False
    if is_c_library(module.name) or is_loader(module.name):
        return True
    return any(_RUST.search(name) for name in module.image.symbols.names_at(address - module.bias))
