"""Signals at which programs' own handlers may know the instruction by its address.

Runtimes let an instruction fault on purpose and find what to do by where it stands: a JVM's
implicit null checks, QEMU's accesses to a guest's memory, safe reads. Such an instruction has to be
executed in its place: a pad's address says nothing to the handler. Which instructions may is the
processor's to say (:meth:`~darc.code.architecture.CodeReader.may_raise`).

Other signals come between any two instructions. A handler of one may begin a sequence anew that it
has interrupted: it looks whether the thread stands in one, and sets it back to the first
instruction, as handlers of a scheduler's timer do. (NetBSD has had them as ``rasctl(2)``.) It
cannot know that a thread is in the middle of a sequence whose instructions are executed in a pad.
"""

from __future__ import annotations

SIGILL, SIGBUS, SIGFPE, SIGSEGV = 4, 7, 8, 11

FAULTS = {SIGILL: "SIGILL", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGSEGV: "SIGSEGV"}
"""The signals that an instruction may raise, but for those of debuggers."""

_ANYWHERE = {
    **{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 10: "SIGUSR1", 12: "SIGUSR2", 14: "SIGALRM"},
    **{15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 20: "SIGTSTP", 21: "SIGTTIN"},
    **{22: "SIGTTOU", 23: "SIGURG", 24: "SIGXCPU", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH"},
    **{29: "SIGIO", 30: "SIGPWR"},
}
_FIRST_REAL_TIME = 34
"""Of programs: C libraries keep those below for themselves."""

ELSEWHERE = _ANYWHERE | {n: f"SIGRTMIN+{n - _FIRST_REAL_TIME}" for n in range(_FIRST_REAL_TIME, 65)}
"""The signals that may come anywhere, with their names: no instruction raises them, and no system
call of the thread."""
