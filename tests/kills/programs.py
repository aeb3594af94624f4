"""One of the hazards, running by itself: what it says of itself, and what the kernel says of it."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from darc.debuggee import procfs
from fixtures.build import Strip, build_hazard
from tests.code import compare_code
from tests.debugger import end_session, last_words, session_members, tracer

_OPS, _WRONG, _STOP, _READY, _SEEN, _LINE, _STATUS = range(7)
_LOOKS = 200
_PAUSE_SECONDS = 0.05
"""How often, and how far apart, a program is looked at before it counts as hanging."""
_APART = ("unshare", "--pid", "--fork", "--kill-child")
_STILL = 20
"""As many looks in a row at a stopped thread that nobody traces: it stays so."""


class HurtError(AssertionError):
    """The program is not as it should be."""


class LeftStoppedError(HurtError):
    """A thread is stopped, and nobody traces it."""


class Program:
    """A running hazard; ``apart``: in a PID namespace of its own, as in a container."""

    def __init__(
        self, name: str, folder: Path, *, apart: bool = False, strip: Strip = None
    ) -> None:
        self.name = name
        self.path = build_hazard(name, strip=strip)
        file = folder / f"{name}.{time.monotonic_ns()}.counters"
        file.write_bytes(bytes(mmap.PAGESIZE))
        with file.open("r+b") as opened:
            self._counters = mmap.mmap(opened.fileno(), mmap.PAGESIZE)
        self._process = subprocess.Popen(
            [*(_APART if apart else ()), self.path, file],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._wait_for(lambda: self._counter(_READY) != 0)
        if apart:
            (self.pid,) = procfs.children(self._process.pid)

    def _counter(self, number: int) -> int:
        value: int = struct.unpack_from("<Q", self._counters, 8 * number)[0]
        return value

    def _wait_for(self, condition: object) -> None:
        assert callable(condition)
        for _ in range(_LOOKS):
            if condition():
                return
            if self._process.poll() is not None:
                raise HurtError(_end_of(self._process.returncode))
            time.sleep(_PAUSE_SECONDS)
        raise HurtError(f"hangs: {self._threads()}")

    def check(self) -> None:
        """It goes on and is right.

        Raises:
            HurtError: it does not, or is not.
        """
        still = 0
        before = self._counter(_OPS)
        for _ in range(_LOOKS):
            if self._process.poll() is not None:
                raise HurtError(_end_of(self._process.returncode))
            if self._counter(_WRONG):
                raise HurtError(self._what_is_wrong())
            stopped = self.stopped()
            if not stopped and self._counter(_OPS) > before + 200:
                return
            still = still + 1 if stopped and tracer(self.pid) == 0 else 0
            if still > _STILL:
                count = sum(len(_tasks(one)) for one in session_members(self._process.pid))
                raise LeftStoppedError(
                    f"left stopped: {len(stopped)} of {count} threads"
                    f"{self._children_among(stopped)}"
                )
            time.sleep(_PAUSE_SECONDS)
        raise HurtError(f"does not answer: {self._threads()}")

    def _what_is_wrong(self) -> str:
        """In words: how much, where it was seen first, and how a child of it had ended then."""
        status = self._counter(_STATUS)
        told = f", a child's status {status:#x}" if status else ""
        return f"{self._counter(_WRONG)} wrong results, first in line {self._counter(_LINE)}{told}"

    def stopped(self) -> list[int]:
        """Threads of it and of its children that are stopped or traced."""
        return [
            task
            for process in session_members(self._process.pid)
            for task in _tasks(process)
            if _state(process, task) in "Tt"
        ]

    def _children_among(self, stopped: list[int]) -> str:
        """In words: how many of these threads are children's, and in which system call each is."""
        own = _tasks(self.pid)
        children = [task for task in stopped if task not in own]
        if not children:
            return ""
        calls = [_system_call(task) for task in children]
        return f", {len(children)} of them children's (in system call {' '.join(calls)})"

    def go_on(self) -> None:
        """As a person would who finds it stopped."""
        for process in session_members(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def altered(self) -> list[str]:
        """Places in its code that differ from the file, but for those that it changes itself and a
        debugger's own breakpoint in the loader."""
        _, found = compare_code(self.pid)
        own = _own_changes(self.path)
        return [
            one.place
            for one in found
            if not one.place.startswith("ld-linux") and one.place not in own
        ]

    def finish(self) -> None:
        """It ends when it is asked to, and has the last word: that nothing was wrong.

        Raises:
            HurtError: it does not, or something was.
        """
        self._counters[8 * _STOP : 8 * _STOP + 8] = struct.pack("<Q", 1)
        try:
            said, _ = self._process.communicate(timeout=_LOOKS * _PAUSE_SECONDS)
        except subprocess.TimeoutExpired:
            raise HurtError(f"does not end: {self._threads()}") from None
        if (said, self._process.returncode) != (b"end 0\n", 0):
            raise HurtError(f"ends with {said!r}, {_end_of(self._process.returncode)}")

    def end(self) -> None:
        """Whatever happened: afterwards it is gone."""
        end_session(self._process)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._counters.close()

    def _threads(self) -> str:
        return " ".join(last_words(self.pid).split())[:2000]


@contextlib.contextmanager
def running(
    name: str, folder: Path, *, apart: bool = False, strip: Strip = None
) -> Iterator[Program]:
    """A :class:`Program`, gone at the end."""
    made = Program(name, folder, apart=apart, strip=strip)
    try:
        yield made
    finally:
        made.end()


@functools.cache
def _own_changes(path: Path) -> frozenset[str]:
    """The places of the constant that a program changes in its code."""
    done = subprocess.run(["nm", path], capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines())
    found = [int(row[0], 16) for row in rows if row[-1] == "constant_at"]
    return frozenset(f"{path.name}+{at + i:#x}" for at in found for i in range(4))


def _tasks(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
    return []


def _state(pid: int, task: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0]
    return "X"


def _system_call(task: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{task}/syscall").read_text().split()[0]
    return "?"


def _end_of(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"ended with {status}"


def wait_until_let_go(pid: int) -> None:
    """Waits until nobody traces the process: lldb's server outlives lldb by some moments.

    Raises:
        HurtError: somebody still does.
    """
    for _ in range(_LOOKS):
        with contextlib.suppress(KeyError):  # the process is gone
            if tracer(pid) != 0:
                time.sleep(_PAUSE_SECONDS)
                continue
        return
    raise HurtError("is still traced")
