"""Signals of instructions that fault, in programs whose own handlers may know these by address.

Runtimes let an instruction fault on purpose and find what to do by where it stands: a JVM's
implicit null checks, QEMU's accesses to a guest's memory, safe reads. Such an instruction has to be
executed in its place: a pad's address says nothing to the handler. Which instructions may is the
processor's to say (:meth:`~darc.code.architecture.CodeReader.may_raise`).
"""

from __future__ import annotations

SIGILL, SIGBUS, SIGFPE, SIGSEGV = 4, 7, 8, 11

FAULTS = {SIGILL: "SIGILL", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGSEGV: "SIGSEGV"}
"""The signals that an instruction may raise, but for those of debuggers."""
