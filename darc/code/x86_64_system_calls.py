"""The system calls of Linux that darc makes, or looks for, by their numbers on x86-64."""

from __future__ import annotations

from enum import IntEnum


class SystemCall(IntEnum):
    """A system call, by the kernel's name for it (``syscall_64.tbl``). On another processor it has
    another number; ``ARCH_PRCTL`` is x86's alone."""

    MMAP = 9
    MPROTECT = 10
    MUNMAP = 11
    RT_SIGACTION = 13
    RT_SIGPROCMASK = 14
    RT_SIGRETURN = 15
    MADVISE = 28
    CLONE = 56
    FORK = 57
    VFORK = 58
    EXECVE = 59
    RT_SIGTIMEDWAIT = 128
    MUNLOCK = 150
    PRCTL = 157
    ARCH_PRCTL = 158
    RESTART_SYSCALL = 219
    TGKILL = 234
    PPOLL = 271
    RT_TGSIGQUEUEINFO = 297
    PERF_EVENT_OPEN = 298
    KCMP = 312
    SECCOMP = 317
    EXECVEAT = 322
    CLONE3 = 435


AUDIT_ARCHITECTURE = 0xC000003E
"""What the kernel tells a seccomp filter of where a call comes from: ``AUDIT_ARCH_X86_64``."""

COUNTER_IN_USER = 16 * 8
"""Where a traced thread has its program counter (``struct user``, sys/user.h), in bytes."""

MAKING_CHILDREN = (SystemCall.CLONE, SystemCall.FORK, SystemCall.VFORK, SystemCall.CLONE3)
"""From which a child comes as its parent does."""
