"""Places in runtime libraries where unwinders look, frames are left, and threads end or wait."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from darc.code.processor import LIBUNWIND, epilogues
from darc.code.program import Program
from darc.model.errors import UnsupportedError
from darc.model.libraries import is_glibc


class Landmark(Enum):
    """What comes at such a place. The values are the agent's names of the kinds (``abi.h``), of
    what it does there."""

    HIDE = "DARC_HIDE"
    """An unwinder is about to look at return addresses."""
    SHOW = "DARC_SHOW"
    """It is over: the frames above go on, those below have ended."""
    EXIT = "DARC_EXIT"
    END = "DARC_END"
    JUMP = "DARC_JUMP"
    SANDBOX = "DARC_SANDBOX"
    HANDLER = "DARC_HANDLER"
    ACTION = "DARC_ACTION"
    """As HANDLER, where the second argument leads to what is said of it."""
    LOCK = "DARC_LOCK"
    """A thread waits while the object's first word is not 0."""
    UNLOCK = "DARC_UNLOCK"
    """Releases the object, or signals it."""
    COND_WAIT = "DARC_COND_WAIT"
    """Releases a mutex, waits, and takes it again."""
    SEM_WAIT = "DARC_SEM_WAIT"
    BARRIER = "DARC_BARRIER"
    JOIN = "DARC_JOIN"
    RWLOCK = "DARC_RWLOCK"
    """As LOCK; who has it for writing is told at another place in it."""
    LOCK_BY_CLOCK = "DARC_LOCK_BY_CLOCK"
    """This and those below: as LOCK and so on, of functions that refuse a clock that there is not,
    or a time that is none, before they look at the object, which need not be there then."""
    RWLOCK_UNTIL = "DARC_RWLOCK_UNTIL"
    RWLOCK_BY_CLOCK = "DARC_RWLOCK_BY_CLOCK"
    SEM_WAIT_UNTIL = "DARC_SEM_WAIT_UNTIL"
    SEM_WAIT_BY_CLOCK = "DARC_SEM_WAIT_BY_CLOCK"
    RDLOCK = "DARC_RDLOCK"
    """This and those below: as RWLOCK and so on, of those who wait to read."""
    RDLOCK_UNTIL = "DARC_RDLOCK_UNTIL"
    RDLOCK_BY_CLOCK = "DARC_RDLOCK_BY_CLOCK"
    SWITCH = "DARC_SWITCH"
    """Of a kernel: a task has left the processor, and another one has it."""
    WAKE = "DARC_WAKE"
    """Of a kernel: a task is about to be woken."""
    WORK = "DARC_WORK"
    """Of a kernel: a worker is about to do what others have queued,"""
    DISK = "DARC_DISK"
    """a task has a request for a disk,"""
    DISK_END = "DARC_DISK_END"
    """and one has ended."""

    @property
    def is_of_waits(self) -> bool:
        """Whether it only tells who waits, and for whom: without it nothing else is wrong."""
        return self in WAIT_AT or self in OF_KERNELS


OF_KERNELS = (Landmark.SWITCH, Landmark.WAKE, Landmark.WORK, Landmark.DISK, Landmark.DISK_END)
"""What tells of a kernel's tasks who waits for whom."""

HIDE_AT = (
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",
    "_Unwind_Resume",
    "_Unwind_Backtrace",
    *(f"_U{local}{LIBUNWIND}_init_local{kind}" for local in ("L", "") for kind in ("", "2")),
    *("unw_backtrace", "unw_init_local", "__unw_init_local"),
)
"""Unwinders, of libgcc, libunwind and LLVM: before they look, every return address on the stack is
the program's own again."""

EXIT_AT = ("_exit",)
"""Where a program ends: the last moment to read what the agent knows."""

JUMP_AT = ("longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "__libc_siglongjmp")
"""Where frames are about to be abandoned: their calls end here."""

SANDBOX_AT = ("prctl", "syscall")
"""Where a program may enter a seccomp sandbox, which could kill it for the agent's system calls."""

ACTION_AT = ("sigaction", "__sigaction", "__libc_sigaction")
"""Where a program says who handles a signal, which is told first: one that is of a fault may know
instructions by their addresses, and another may set threads back."""

HANDLER_AT = (
    *("signal", "bsd_signal", "ssignal"),
    *("sysv_signal", "__sysv_signal", "sigset"),
)
"""The same. They come by one of :data:`ACTION_AT` in C libraries."""

BACK_AT = ("_Unwind_Backtrace", "unw_backtrace")
"""Unwinders that come back: then the frames above are taken up again."""

SHOW_AT = ("__cxa_begin_catch", "__rust_panic_cleanup")
"""Where a handler begins: the frames above it are taken up again, those below are closed."""

END_AT = ("__call_tls_dtors",)
"""Where a thread ends, in glibc: others may have its room in the agent's tables."""

WAIT_AT: dict[Landmark, tuple[str, ...]] = {
    Landmark.LOCK: ("pthread_mutex_lock", "pthread_mutex_timedlock"),
    Landmark.LOCK_BY_CLOCK: ("pthread_mutex_clocklock",),
    Landmark.RWLOCK: ("pthread_rwlock_wrlock",),
    Landmark.RWLOCK_UNTIL: ("pthread_rwlock_timedwrlock",),
    Landmark.RWLOCK_BY_CLOCK: ("pthread_rwlock_clockwrlock",),
    Landmark.RDLOCK: ("pthread_rwlock_rdlock",),
    Landmark.RDLOCK_UNTIL: ("pthread_rwlock_timedrdlock",),
    Landmark.RDLOCK_BY_CLOCK: ("pthread_rwlock_clockrdlock",),
    Landmark.UNLOCK: (
        *("pthread_mutex_unlock", "pthread_rwlock_unlock", "sem_post"),
        *("pthread_cond_signal", "pthread_cond_broadcast"),
    ),
    Landmark.COND_WAIT: ("pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"),
    Landmark.SEM_WAIT: ("sem_wait",),
    Landmark.SEM_WAIT_UNTIL: ("sem_timedwait",),
    Landmark.SEM_WAIT_BY_CLOCK: ("sem_clockwait",),
    Landmark.BARRIER: ("pthread_barrier_wait",),
    Landmark.JOIN: (
        *("pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np"),
        "__pthread_clockjoin_ex",
    ),
}
"""Where threads wait for each other, in glibc: elsewhere functions of these names may be others."""

_RUST_CATCH = "___rust_panic_cleanup"

_FOUND_AT: dict[Landmark, tuple[str, ...]] = {
    Landmark.HIDE: HIDE_AT,
    Landmark.SHOW: SHOW_AT,
    Landmark.EXIT: EXIT_AT,
    Landmark.END: END_AT,
    Landmark.JUMP: JUMP_AT,
    Landmark.SANDBOX: SANDBOX_AT,
    Landmark.HANDLER: HANDLER_AT,
    Landmark.ACTION: ACTION_AT,
}


def wait_landmarks_of(program: Program) -> Iterator[tuple[Landmark, int, str]]:
    """As :func:`landmarks_of`, of what tells who waits for whom."""
    kinds = {name: kind for kind, names in WAIT_AT.items() for name in names}
    for module in program.modules:
        if not is_glibc(module.name):
            continue
        for symbol in module.image.symbols.named(kinds):
            yield kinds[symbol.name], symbol.address + module.bias, f"{module.name}!{symbol.name}"


def landmarks_of(program: Program) -> Iterator[tuple[Landmark, int, str]]:
    """The kind, address and name of each of them in the program.

    Raises:
        UnsupportedError: a file has an unwinder of its own and nothing tells where.
    """
    kinds = {name: kind for kind, names in _FOUND_AT.items() for name in names}
    has_names = False
    for module in program.modules:
        has_unwinder = False
        for symbol in module.image.symbols.named(kinds, _RUST_CATCH):
            kind = kinds.get(symbol.name, Landmark.SHOW)  # else it is Rust's
            has_unwinder |= kind is Landmark.HIDE
            has_names |= kind is Landmark.SANDBOX
            place, name = symbol.address + module.bias, f"{module.name}!{symbol.name}"
            yield kind, place, name
            if symbol.name in BACK_AT:
                for last in epilogues(program.function(place)):
                    yield Landmark.SHOW, last, f"{name}'s return"
        if not has_unwinder and module.image.brings_its_unwinder:
            places = module.image.frames.exception_returns()
            if not places:
                raise UnsupportedError(
                    f"{module.name} handles exceptions with an unwinder that cannot be found: "
                    "darc needs its symbols"
                )
            for place in places:
                yield Landmark.HIDE, place + module.bias, f"{module.name}+{place:#x}"
    if not has_names:
        for module in program.modules:
            for place in module.image.frames.sandbox_entries():
                yield Landmark.SANDBOX, place + module.bias, f"{module.name}+{place:#x}"
