"""The places in runtime libraries where a pad guards the analysis: unwinders, jumps and ends."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from darc.code.epilogues import epilogues
from darc.code.program import Program
from darc.model.errors import UnsupportedError


class Guard(Enum):
    """What a guard does. The values are the agent's names of the kinds (``abi.h``)."""

    HIDE = "DARC_HIDE"
    """Puts the program's return addresses back, for an unwinder that is about to look."""
    SHOW = "DARC_SHOW"
    """Takes frames up again, and closes those below."""
    EXIT = "DARC_EXIT"
    END = "DARC_END"
    JUMP = "DARC_JUMP"
    SANDBOX = "DARC_SANDBOX"
    HANDLER = "DARC_HANDLER"


HIDE_AT = (
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",
    "_Unwind_Resume",
    "_Unwind_Backtrace",
)
"""Unwinders: before they look, every return address on the stack is the program's own again."""

EXIT_AT = ("_exit",)
"""Where a program ends: the last moment to read what the agent knows."""

JUMP_AT = ("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "__libc_siglongjmp")
"""Where frames are about to be abandoned: their calls end here."""

SANDBOX_AT = ("prctl", "syscall")
"""Where a program may enter a seccomp sandbox, which could kill it for the agent's system calls."""

HANDLER_AT = (
    *("sigaction", "__sigaction", "__libc_sigaction", "signal", "bsd_signal", "ssignal"),
    *("sysv_signal", "__sysv_signal", "sigset"),
)
"""Where a program says who handles a signal, which is told first: one that is of a fault may know
instructions by their addresses."""

BACK_AT = ("_Unwind_Backtrace",)
"""Unwinders that come back: then the frames above are taken up again."""

SHOW_AT = ("__cxa_begin_catch", "__rust_panic_cleanup")
"""Where a handler begins: the frames above it are taken up again, those below are closed."""

END_AT = ("__call_tls_dtors",)
"""Where a thread ends, in glibc: others may have its room in the agent's tables."""

_RUST_CATCH = "___rust_panic_cleanup"

_GUARDED: dict[Guard, tuple[str, ...]] = {
    Guard.HIDE: HIDE_AT,
    Guard.SHOW: SHOW_AT,
    Guard.EXIT: EXIT_AT,
    Guard.END: END_AT,
    Guard.JUMP: JUMP_AT,
    Guard.SANDBOX: SANDBOX_AT,
    Guard.HANDLER: HANDLER_AT,
}


def guard_places(program: Program) -> Iterator[tuple[Guard, int, str]]:
    """The kind, address and name of every place of the program that is to have a pad.

    Raises:
        UnsupportedError: a file has an unwinder of its own and nothing tells where.
    """
    kinds = {name: kind for kind, names in _GUARDED.items() for name in names}
    for module in program.modules:
        has_unwinder = False
        for symbol in module.image.symbols_if_any(kinds, _RUST_CATCH):
            kind = kinds.get(symbol.name)
            if kind is None and symbol.name.endswith(_RUST_CATCH):
                kind = Guard.SHOW
            if kind is not None:
                has_unwinder |= kind is Guard.HIDE
                place, name = symbol.address + module.bias, f"{module.name}!{symbol.name}"
                yield kind, place, name
                if symbol.name in BACK_AT:
                    for last in epilogues(program.function(place)):
                        yield Guard.SHOW, last, f"{name}'s return"
        if not has_unwinder and module.image.brings_its_unwinder:
            places = module.image.exception_returns()
            if not places:
                raise UnsupportedError(
                    f"{module.name} handles exceptions with an unwinder that cannot be found: "
                    "darc needs its symbols"
                )
            for place in places:
                yield Guard.HIDE, place + module.bias, f"{module.name}+{place:#x}"
