"""Who wakes the threads of a process, in whatever process: the kernel tells the privileged.

The tracepoint ``sched_waking`` is passed by whoever wakes a thread, before that runs: a record has
the waker's registers and the beginning of its stack as its process had them when it called the
kernel. Only records of the watched threads are written. Nothing of it is in any program, and all
ends with the debugger.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darc.debuggee import perf, perf_stacks, procfs
from darc.debuggee.perf import Ring
from darc.debuggee.perf_stacks import Waking
from darc.debuggee.switch_history import Woken
from darc.model.errors import TargetError
from darc.model.ops import NOWHERE, By, Event, Stack, deed
from darc.target.target import Region

_TRACEPOINT = "events/sched/sched_waking"
_FOLDERS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_FIELDS = (
    *("unsigned char common_flags;\toffset:2;", "char comm[16];\toffset:8;"),
    "pid_t pid;\toffset:24;",
)
"""Of its format, as records are read here."""

_FIRST_NAMESPACE = 0xEFFFFFFC
"""The inode of the first PID namespace (PROC_PID_INIT_INO), whose ids the tracepoint tells."""

_STACK_BYTES = 2048
_RING_PAGES = 1024
"""Of a processor's ring: some 1800 wake-ups. With a crowd of workers there are thousands a second,
and a ring is emptied ten times a second."""

_RING_BYTES = 16 << 20
_KEPT_BYTES = 48 << 20
"""Of records, at most: some 20,000 wake-ups."""

_MOST_LISTED = 64
"""Threads that are asked for one by one: with more, by the lowest and the highest id."""

_MOST_IN_CHAIN = 64
"""Wakings of which each is of who did the one before."""

_MOST_PROCESSES = 256
"""Of which is known what they are."""


OTHER_IDS = "ids of processes are others here than the kernel's own (a container)"
_NO_TRACEFS = "no tracefs is mounted ('mount -t tracefs tracefs /sys/kernel/tracing')"


@dataclass(frozen=True)
class _Process:
    """One that has woken a thread."""

    name: str
    code: frozenset[Region]
    """Its mappings that are executed, of files."""


@dataclass(frozen=True)
class _TakenWakings:
    """What was taken out of a ring at one time."""

    size: int
    """Bytes of the records."""
    first: int
    last: int
    """When the first and the last waking was, in ns; where there was none, the last is before."""
    of_woken: Mapping[int, Sequence[Waking]]
    """By who was woken, by time."""

    @classmethod
    def of(cls, size: int, wakings: Sequence[Waking]) -> _TakenWakings:
        """``wakings`` are in the order of time."""
        of_woken: dict[int, list[Waking]] = {}
        for one in wakings:
            of_woken.setdefault(one.woken, []).append(one)
        first, last = (wakings[0].time, wakings[-1].time) if wakings else (0, -1)
        return cls(size, first, last, of_woken)


class Wakers:
    """Watches who wakes the threads of one process, until :meth:`close`. Not by two threads at one
    time."""

    def __init__(self, pid: int) -> None:
        """Raises:
        OSError: this process may not ask for that, or the kernel does not tell.
        """
        self._pid = pid
        self._rings: list[Ring] = []
        self._chunks: deque[_TakenWakings] = deque()
        """They are read while the program runs, not at the stop at which somebody asks."""
        self._size = 0
        self._code: frozenset[Region] | None = None
        """The program's own, as it was when somebody asked first since the last chunk."""
        self._filter = ""
        self._processes: dict[int, _Process] = {}
        number = _number()
        processors = perf.processors()
        pages = max(1, min(_RING_PAGES, _RING_BYTES // len(processors) // 4096))
        try:
            wanted = self._wanted()
            for processor in processors:
                fd = perf_stacks.open_wakings(number, processor, _STACK_BYTES)
                try:
                    perf.set_filter(fd, wanted)
                except OSError:
                    os.close(fd)
                    raise
                self._rings.append(perf.map_ring(fd, pages))
        except BaseException:
            self.close()
            raise
        self._filter = wanted

    def close(self) -> None:
        """Watches no more. What was seen can still be asked for."""
        for ring in self._rings:
            ring.close()
        self._rings.clear()

    def drain(self) -> None:
        """Takes down what has happened, and who that was, as long as they are there."""
        for ring in self._rings:
            if data := ring.take().data:
                found = sorted(perf_stacks.wakings(data), key=_time)
                self._chunks.append(_TakenWakings.of(len(data), found))
                self._size += len(data)
                self._code = None
                for waking in found:
                    self._meet(waking)
        while self._size > _KEPT_BYTES:
            self._size -= self._chunks.popleft().size
        wanted = self._wanted()
        if wanted != self._filter and self._rings:
            self._filter = wanted
            for ring in self._rings:
                with contextlib.suppress(OSError):
                    perf.set_filter(ring.fd, wanted)

    def _wanted(self) -> str:
        threads = sorted(procfs.threads(self._pid)) or [self._pid]
        if len(threads) > _MOST_LISTED:
            return f"pid >= {threads[0]} && pid <= {threads[-1]}"
        return " || ".join(f"pid == {thread}" for thread in threads)

    def _meet(self, waking: Waking) -> None:
        if waking.in_interrupt or waking.in_soft_interrupt:
            return
        known = self._processes
        if waking.process in known or len(known) >= _MOST_PROCESSES:
            return
        name = procfs.status(waking.process, waking.process).get("Name", "")
        known[waking.process] = _Process(
            name, _code(waking.process) if waking.stack.pc else frozenset()
        )

    def events(
        self, wakings: Iterable[Waking], begin: int, cycles: Callable[[int], int]
    ) -> tuple[Event, ...]:
        """Who it was, each time, and who had woken these since ``begin``, in ns of
        CLOCK_MONOTONIC_RAW; ``cycles`` maps that to the time-stamp counter."""
        if self._code is None:
            own = self._processes.get(self._pid)
            self._code = own.code if own is not None else _code(self._pid)
        return tuple(self._chain(one, begin, self._code, cycles) for one in wakings)

    def wakings(self, thread: int, begin: int, end: int) -> list[Waking]:
        """Of the thread from ``begin`` to ``end``, in ns of CLOCK_MONOTONIC_RAW, by time."""
        found: list[Waking] = []
        for chunk in self._chunks:
            if chunk.first <= end and chunk.last >= begin and (known := chunk.of_woken.get(thread)):
                first = bisect.bisect_left(known, begin, key=_time)
                found += known[first : bisect.bisect_right(known, end, key=_time)]
        found.sort(key=_time)
        return found

    def _chain(
        self, last: Waking, begin: int, code: frozenset[Region], cycles: Callable[[int], int]
    ) -> Event:
        """A waking, with those before it that it may have come from."""
        wakings = [last]
        while len(wakings) < _MOST_IN_CHAIN and _is_by(one := wakings[-1], self._pid):
            if not (before := self.wakings(one.thread, begin, one.time - 1)):
                break
            wakings.append(before[-1])
        event: Event | None = None
        for one in reversed(wakings):
            event = replace(self._event(one, code, cycles(one.time)), before=event)
        assert event is not None
        return event

    def _event(self, one: Waking, code: frozenset[Region], time: int) -> Event:
        by = By.TASK
        if one.in_interrupt or one.in_soft_interrupt:
            by = By.INTERRUPT if one.in_interrupt else By.SOFT_INTERRUPT
        process = self._processes.get(one.process)
        is_outside = one.process != self._pid
        name, stack = "", NOWHERE
        if by is By.TASK and process is not None:
            name = process.name if is_outside else ""
            stack = _stack(one, code, code & process.code)
        number = 0 if by is not By.TASK else one.process if is_outside else one.thread
        return deed(time, 0, thread=number, stack=stack, name=name, by=by, is_outside=is_outside)


def open_first(thread: int) -> int:
    """A descriptor of the same event for whom a thread wakes: while there is any, others begin and
    end without delay.

    Raises:
        OSError: as :class:`Wakers`.
    """
    return perf_stacks.open_own_wakings(_number(), thread)


def told(wakings: Iterable[Waking], debugger: int) -> tuple[Woken, ...]:
    """When that was, and whether the thread ``debugger`` has done it. That one alone can let a
    thread go on that it traces; what others of its process do, as darc's that sends the bell, ends
    no stop."""
    return tuple(Woken(one.time, _is_of(one, debugger)) for one in wakings)


def _is_of(one: Waking, thread: int) -> bool:
    return one.thread == thread and not _is_by_interrupt(one)


def _is_by(one: Waking, process: int) -> bool:
    """Whether a thread of that process has done it, and no interrupt that came upon it."""
    return one.process == process and not _is_by_interrupt(one)


def _is_by_interrupt(one: Waking) -> bool:
    return one.in_interrupt or one.in_soft_interrupt


def _number() -> int:
    """Of the tracepoint.

    Raises:
        OSError: there is none, or none that this process may ask for.
    """
    if Path("/proc/self/ns/pid").stat().st_ino != _FIRST_NAMESPACE:
        raise FileNotFoundError(OTHER_IDS)
    for folder in _FOLDERS:
        with contextlib.suppress(FileNotFoundError):
            told = (folder / _TRACEPOINT / "format").read_text()
            if not all(field in told for field in _FIELDS):
                raise FileNotFoundError("the tracepoint tells something else here")
            return int((folder / _TRACEPOINT / "id").read_text())
    raise FileNotFoundError(_NO_TRACEFS)


def why_refused(error: OSError) -> str:
    """Why there are no :class:`Wakers`, and what to do about it: a part of a sentence."""
    if isinstance(error, PermissionError):
        return "the kernel tells it root, or whoever has CAP_PERFMON and may read tracefs"
    return str(error)


def _code(pid: int) -> frozenset[Region]:
    try:
        regions = procfs.regions(pid)
    except TargetError:
        return frozenset()
    return frozenset(r for r in regions if "x" in r.permissions and r.inode)


def _stack(one: Waking, own: frozenset[Region], same: frozenset[Region]) -> Stack:
    """The waker's, as far as it has the same code at the same places as the program: what a fork
    has made. Words that lead to other code tell nothing."""
    if not _is_in(one.stack.pc, same):
        return NOWHERE
    other = own - same
    count = len(one.stack.data) // 8
    words = struct.unpack_from(f"<{count}Q", one.stack.data)
    if other:
        words = tuple(0 if _is_in(word, other) else word for word in words)
    return Stack(one.stack.pointer, one.stack.frame, words, one.stack.pc)


def _time(one: Waking) -> int:
    return one.time


def _is_in(address: int, regions: frozenset[Region]) -> bool:
    return any(region.start <= address < region.end for region in regions)
