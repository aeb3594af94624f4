"""Signals that mean the same wherever a thread runs in lldb."""

from __future__ import annotations

from signal import SIGBUS, SIGFPE, SIGILL, SIGINT, SIGSEGV, SIGSTOP, SIGSYS, SIGTRAP

INTERRUPTS = (SIGINT, SIGSTOP)
"""By which lldb lets the user interrupt the program."""

CRASHES = (SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS)
"""Of a thread's own making."""
