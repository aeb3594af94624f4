"""The monitor's looks at the process before it stops it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.app import monitor
from darc.app.monitor import Monitor
from darc.debuggee import bell, procfs
from darc.debuggee.process import ProcessDebuggee
from darc.views.style import Style
from tests.fake_target import FakeTarget

VFORK = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
print("ready", flush=True)
CLONE_VFORK, CLONE_UNTRACED = 0x4000, 0x800000
pid = libc.syscall(56, CLONE_VFORK | CLONE_UNTRACED | signal.SIGCHLD, 0, 0, 0, 0)
if pid == 0:
    os.read(0, 1)
    os._exit(0)
"""
"""Waits for the child of its vfork, of which no debugger is told, until that is let go."""


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    made = subprocess.Popen(
        [sys.executable, "-c", VFORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert made.stdout is not None
    assert made.stdin is not None
    assert made.stdout.readline() == b"ready\n"
    while not children(made.pid):
        threading.Event().wait(0.001)
    yield made
    made.stdin.close()
    made.stdout.close()
    made.wait()


def children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


class Quiet:
    """What the monitor needs of a session and of a target here."""

    alive = False
    interrupts_by_signal = False

    def __init__(self, pid: int) -> None:
        target = FakeTarget()
        target.process = pid
        self.debuggee, self.screen = ProcessDebuggee(target), target.screen
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def made_for(pid: int) -> tuple[Monitor, Quiet]:
    quiet = Quiet(pid)
    made = Monitor(quiet, quiet, Style())  # type: ignore[arg-type]
    made._done.set()
    return made, quiet


def test_a_thread_in_vforks_wait_is_given_a_second(waiting: subprocess.Popen[bytes]) -> None:
    assert procfs.waits_deeply(waiting.pid)
    made, quiet = made_for(waiting.pid)
    assert made._is_awaited(10.0)
    assert made._is_awaited(10.0 + monitor._DEEP_SECONDS / 2)
    assert quiet.notes == []
    assert not made._is_awaited(10.0 + monitor._DEEP_SECONDS)
    assert "vfork" in quiet.notes[0]


def test_nobody_waits() -> None:
    made, quiet = made_for(os.getpid())
    assert not procfs.waits_deeply(os.getpid())
    assert not made._is_awaited(10.0)
    assert quiet.notes == []


def test_a_signal_bears_the_mark() -> None:
    """As the kernel hands it to whoever takes it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})
    try:
        bell.send(os.getpid(), threading.get_native_id(), signal.SIGURG)
        raw = ctypes.create_string_buffer(bell.INFO_SIZE)
        mask = ctypes.c_uint64(1 << (signal.SIGURG - 1))
        libc = ctypes.CDLL(None)
        rt_sigtimedwait = 128
        taken = libc.syscall(rt_sigtimedwait, ctypes.byref(mask), raw, None, 8)
        assert taken == signal.SIGURG
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGURG})
    code = int.from_bytes(raw.raw[8:12], "little", signed=True)
    value = int.from_bytes(raw.raw[24:32], "little")
    assert bell.is_marked(code, value)
    assert not bell.is_marked(-6, value)
    assert not bell.is_marked(code, 0)


def test_a_process_of_the_same_namespace_sees_this_one() -> None:
    assert bell.own_pid_for(os.getppid()) == os.getpid()
    assert bell.own_pid_for(1 << 30) == 0


def test_the_bell_is_what_the_program_does_not_listen_to() -> None:
    numbers = (signal.SIGURG, signal.SIGWINCH)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        assert bell.choose(os.getpid()) == signal.SIGURG
        signal.signal(signal.SIGURG, lambda *_: None)
        assert bell.choose(os.getpid()) == signal.SIGWINCH
        signal.signal(signal.SIGWINCH, lambda *_: None)
        assert bell.choose(os.getpid()) == signal.SIGURG
    finally:
        for number, action in zip(numbers, before, strict=True):
            signal.signal(number, action)
