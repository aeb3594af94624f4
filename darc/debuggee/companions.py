"""Processes that share the program's memory and are no threads of it (``clone`` with CLONE_VM and
without CLONE_THREAD, ``vfork``): no debugger stops them where it stops the program.

They run through its code and have their stacks in its memory. Were they to run while darc writes,
one would stand in the middle of instructions that are written over; or a call would come back, and
the word that was its return address be another call's, between the look at that word and the moment
when the program's own return address is put there. So they are held as long as darc is at work,
some milliseconds: the kernel stops them for who traces them, which nobody but that one sees, and
lets them go on by itself, should the debugger be killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from darc.code.system_calls import COUNTER_IN_USER, MAKING_CHILDREN, SystemCall
from darc.debuggee import procfs
from darc.debuggee.tracing import WAIT_FOR_ALL, TraceRequest, trace
from darc.model.errors import TargetError, UnsupportedError
from darc.target import companions, living
from darc.target.target import Target

_KCMP = int(SystemCall.KCMP)
_KCMP_VM = 1
_FEW = 1000
"""So many tasks that were made are asked one by one; behind more, all that there are."""
_MADE_PER_SECOND = 100_000
"""No system makes more tasks: none of them has been given a number anew by then."""
_EVENT_STOP = 128
_STANDSTILL_SECONDS = 2.0
"""How long a thread may take to stand still: it may be in the middle of a read from a disk."""
_LOOK_SECONDS = 0.0002
_MOST_LOOKS = 8
"""Each of them may have made another one until it stood still."""


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _share(task: int, other: int) -> bool:
    """Whether they share their memory; both must have one, as the kernel's own and those that have
    ended have none."""
    return int(_libc().syscall(_KCMP, task, other, _KCMP_VM, 0, 0)) == 0


class Sharers:
    """The processes that share the memory of ``pid``, as far as the kernel tells (``kcmp``).

    A task shares another one's memory from when it is made, or never. So all are asked once; later
    those that shared it, and those that were made since, whose numbers the kernel gives one after
    the other: to ask thousands takes milliseconds, and it is done at each stop.
    """

    def __init__(self, pid: int, kernel: Path = Path("/proc/sys/kernel")) -> None:
        """``kernel`` is where the system tells which number it has given last."""
        self._pid = pid
        self._kernel = kernel
        self._found: frozenset[int] = frozenset()
        self._seen: tuple[float, int | None] = (-math.inf, None)
        """When a look began behind which nobody was missing, and which number was the last."""
        self._begun: tuple[float, int | None] = self._seen
        self._most = self._number("pid_max")

    def look(self) -> frozenset[int]:
        """Those that do now."""
        self._begun = time.monotonic(), self._number("ns_last_pid")
        candidates = self._made_since(*self._begun)
        if candidates is None:
            candidates = map(int, filter(str.isdecimal, os.listdir("/proc")))  # noqa: PTH208
        speaker = living.speaker(self._pid)  # a first thread that has ended has no memory any more
        if living.state(self._pid, speaker) in living.ENDED:
            return frozenset()
        tasks = [one for one in {*self._found, *candidates} if _share(speaker, one)]
        processes = (procfs.status(task).get("Tgid") for task in tasks)
        found = {int(one) for one in processes if one is not None}
        self._found = frozenset(found - {self._pid})
        return self._found

    def is_complete(self) -> None:
        """Whoever could have made another one stood still at the last look: a task has its number
        before others find it by that."""
        self._seen = self._begun

    def _made_since(self, now: float, last: int | None) -> Iterable[int] | None:
        """The numbers of tasks that were made since; ``None``: they are too many, or not told."""
        then, before = self._seen
        if before is None or last is None or self._most is None:
            return None
        may_be_given_twice = now - then > self._most / _MADE_PER_SECOND
        is_far = not 0 <= last - before <= _FEW
        return None if may_be_given_twice or is_far else range(before + 1, last + 1)

    def _number(self, name: str) -> int | None:
        try:
            return int((self._kernel / name).read_bytes())
        except (OSError, ValueError):
            return None  # a kernel without it, or a container that hides it


class StillCompanions(companions.Companions):
    """Those of one process. For one thread of the debugger at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._sharers = Sharers(pid)
        self._depth = 0
        self._held: dict[int, int] = {}
        """Threads that stand still, each with the signal that it was about to take, and takes when
        it goes on; 0: none."""
        self._standing: set[int] = set()
        """Those who stand still for others."""

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            try:
                self._hold()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            held, self._held = self._held, {}
            self._standing.clear()
            for thread, signal in held.items():
                with contextlib.suppress(OSError):  # it was killed
                    trace(TraceRequest.DETACH, thread, 0, signal)

    def program_counters(self) -> Mapping[int, int]:
        return self._told(procfs.program_counter)

    def stack_pointers(self) -> Mapping[int, int]:
        return self._told(procfs.stack_pointer)

    def _told(self, ask: Callable[[int], int | None]) -> dict[int, int]:
        told = {task: ask(task) for task in self._tasks}
        return {task: found for task, found in told.items() if found is not None}

    @property
    def _tasks(self) -> list[int]:
        return [*self._held, *self._standing]

    def lead(self, thread: int, place: int) -> None:
        try:
            if thread not in self._held:
                raise OSError(errno.EPERM, os.strerror(errno.EPERM))
            trace(TraceRequest.POKE_USER, thread, COUNTER_IN_USER, place)
        except OSError as error:
            raise TargetError(
                f"cannot lead thread {thread}, of a process that shares the program's memory: "
                f"{error.strerror}"
            ) from None

    def refuse_free(self) -> None:
        """Raises UnsupportedError: one cannot be held."""
        with self:
            for process in self._sharers.look():
                free = [task for task in living.tasks(process) if self._is_free(process, task)]
                if free:
                    raise UnsupportedError(
                        f"process {process} shares the program's memory and cannot be stopped "
                        "while darc writes there: run the debugger as its user or as root "
                        "(kernel.yama.ptrace_scope), and let nobody else trace it"
                    )

    def _is_free(self, process: int, task: int) -> bool:
        return task not in self._tasks and living.state(process, task) not in living.ENDED

    def _hold(self) -> None:
        for _ in range(_MOST_LOOKS):
            new = [
                (process, task)
                for process in self._sharers.look()
                for task in living.tasks(process)
                if self._is_free(process, task)
            ]
            seized = [task for process, task in new if self._is_seized(process, task)]
            for task in seized:
                self._await(task)
            if not seized:
                self._sharers.is_complete()
                return

    def _is_seized(self, process: int, task: int) -> bool:
        """Whether it is about to stand still for this debugger."""
        if living.state(process, task) == "D" and procfs.is_in(process, task, *MAKING_CHILDREN):
            self._standing.add(task)  # until its child of vfork goes on, which is held
            return False
        if self._waits_deeply(process, task):
            self._standing.add(task)  # asked to stop, it would do so when nobody looks any more
            return False
        try:
            trace(TraceRequest.SEIZE, task)
        except OSError:
            if living.state(process, task) == "t":  # another debugger has stopped it
                self._standing.add(task)
            return False
        with contextlib.suppress(OSError):
            trace(TraceRequest.INTERRUPT, task)
        return True

    def _waits_deeply(self, process: int, task: int) -> bool:
        """Whether it is in a wait that nothing ends, and stays there for long: it reads from a
        device."""
        end = time.monotonic() + _STANDSTILL_SECONDS
        while living.state(process, task) == "D":
            if time.monotonic() >= end:
                return True
            time.sleep(_LOOK_SECONDS)
        return False

    def _await(self, task: int) -> None:
        """Until it stands still, or is no more."""
        end = time.monotonic() + _STANDSTILL_SECONDS
        while time.monotonic() < end:
            try:
                found, status = os.waitpid(task, os.WNOHANG | WAIT_FOR_ALL)
            except ChildProcessError:
                return
            if found and not os.WIFSTOPPED(status):
                return
            if found:
                is_own = status >> 16 == _EVENT_STOP
                self._held[task] = 0 if is_own else os.WSTOPSIG(status)
                return
            time.sleep(_LOOK_SECONDS)
        self._held[task] = 0  # it stops before it runs any code of the program's


def companions_of(target: Target, pid: int) -> StillCompanions:
    """Those of a process that the target has, or had."""
    known = target.known_companions.get(pid)
    if not isinstance(known, StillCompanions):
        known = target.known_companions[pid] = StillCompanions(pid)
    return known
