"""A call in a stopped thread that comes back by itself when the debugger is gone.

A debugger's own way of calling lets the function return to a breakpoint; were the debugger killed
meanwhile, the program would end there. Here the thread is sent through some instructions in padding
of the program's code: they go below what the program may have on its stack, block every signal but
those that they may raise themselves (:data:`OWN`), call the function, ring (a signal that is
ignored by default, which stops the thread for a debugger), and give the thread back its mask of
signals, all of its registers and its place (:class:`~darc.code.architecture.DetourWriter`).

To end, the debugger may set the registers itself, and may be gone between any two of its steps:
until the last one the thread goes the rest of its way alone.

For functions that use no vector registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from signal import SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, Signals

from darc.code.architecture import Call, Detour, Ringer
from darc.code.frame_rule import WORD
from darc.code.processor import DETOURS
from darc.code.system_calls import SystemCall
from darc.debuggee.mapflags import mmap_arguments
from darc.model.errors import TargetError
from darc.target.memory import Read
from darc.target.target import Region

_STACK_SIZE = 16384

OWN = (SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS)
"""What an instruction or a system call can raise, which a detour blocks from nobody: where a thread
blocks one that it raises itself, the kernel takes the program's handler away before it delivers it
(``force_sig_info_to_task`` in its ``signal.c``), and nobody could put it back."""

OWN_UNHELD = (SIGSYS,)
"""Of these, where the debugger cannot hold back those that somebody sends meanwhile: what comes of
a system call. The way itself makes no fault."""

ATTEMPTS = 20
"""How often a call is tried where threads take signals first, before it is said that it cannot be
made now."""

IN_32_BITS = (
    "the program is in 32-bit code at this moment, where darc can call nothing: let it go on for "
    "a moment, and try again"
)


HANDLER_AT_STAKE = (
    "every thread of the program blocks SIGSYS at this moment, and the program has a handler for "
    "that, which it would lose if darc's calls should come to itself: let it go on for a moment, "
    "and try again"
)
"""Where the debugger cannot set a thread's mask of signals before its first system call."""


class EndedError(TargetError):
    """The thread is gone."""

    def __init__(self, text: str = "the program ended in a call of darc's") -> None:
        super().__init__(text)


class WaitsError(TargetError):
    """The thread waits for another one, which stands still."""


class GoneOnError(TargetError):
    """The thread has not rung, and may have gone by where it was to stop."""

    def __init__(self, thread: int) -> None:
        super().__init__(
            f"the program's thread {thread} does not stop where a call of darc's ends, as a "
            "seccomp filter may forbid it"
        )


class AwayError(TargetError):
    """The thread cannot be stopped."""

    def __init__(self, thread: int) -> None:
        super().__init__(
            f"the program's thread {thread} neither makes a call of darc's nor stops, as where it "
            "is frozen: when it runs again, let the program go on for a moment, then type "
            "'darc stop'"
        )


class DispatchedError(TargetError):
    """The program has its own way with system calls: none of darc's is carried out."""


def failed(number: int) -> TargetError:
    """What a call has come to that ended in a signal of its own, or in none (0)."""
    if number == SIGSYS:
        return DispatchedError(
            "the program has system calls that it does not know come to itself "
            "(PR_SET_SYSCALL_USER_DISPATCH, as Wine does, or seccomp)"
        )
    what = Signals(number).name if number else "nothing"
    return TargetError(f"a call of darc's in the program ended in {what}")


def find_place(regions: Iterable[Region], read: Read) -> int | None:
    """Where code may stand for a moment: the zeros behind a file's code, up to the page's end.
    Never in a mapping that is shared, as that would be the file's own bytes."""
    for region in regions:
        permissions, path = region.permissions, region.path
        if "x" in permissions and "p" in permissions and path.startswith(("/", "[vdso]")):
            place = region.end - DETOURS.LENGTH
            try:
                if place >= region.start and not any(read(place, DETOURS.LENGTH)):
                    return place
            except TargetError:
                continue
    return None


def plan(
    registers: Mapping[str, int], place: int, ringer: Ringer, *, call: Call, mask: int | None = None
) -> Detour:
    """The way of a thread with these ``registers`` by ``place`` through a call. ``mask`` is what
    signals it blocks; ``None``: those that it finds blocked when it begins."""
    raised = OWN_UNHELD if mask is None else OWN
    blocked = all_but(ringer.signal, *raised)
    return DETOURS.plan(registers, place, ringer, call, blocked=blocked, mask=mask)


def call_function(run: Callable[[Call], int], address: int, arguments: Sequence[int]) -> int:
    """Calls a function by ``run``, on a stack of its own.

    Raises:
        TargetError: there is no memory for that, or it does not come back.
    """
    base = run(Call(SystemCall.MMAP, mmap_arguments(_STACK_SIZE)))
    if base >> 63:
        raise TargetError(f"the program may not map memory (error {WORD + 1 - base})")
    try:
        result = run(Call(address, arguments, base + _STACK_SIZE))
    except EndedError:
        raise
    except BaseException:
        run(Call(SystemCall.MUNMAP, (base, _STACK_SIZE)))
        raise
    run(Call(SystemCall.MUNMAP, (base, _STACK_SIZE)))
    return result


def stack_of(call: Call) -> range:
    """The addresses that the stack pointer has in a function with a stack of its own."""
    return range(call.stack - _STACK_SIZE, call.stack + 1) if call.stack else range(0)


def all_but(*signals: int) -> int:
    """The mask of signals that lets these through alone."""
    return WORD & ~sum(1 << (signal - 1) for signal in set(signals))
