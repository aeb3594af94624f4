"""Where the kernel writes down that threads leave their processors: events and rings of a process,
and what was taken out of them.

Two ways to watch, by how many descriptors they need. An event for each thread *and processor* is
inherited by all threads that are made later, at once, so that also the shortest-lived are watched,
and their records come to one ring for each processor: memory and descriptors stay the same however
many threads come and go. Where that would be thousands of events, each thread has one, with a small
ring of its own; threads made later are found when the rings are emptied, and those that have ended
by then are counted.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import os
import resource
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from darc.debuggee import perf, procfs
from darc.debuggee.eventends import end, wait_for_ends
from darc.debuggee.perf import Ring, Switch
from darc.debuggee.switch_history import Interval
from darc.target.memory import PAGE

_MOST_EVENTS = 1024
"""Of a process. With more, threads that are watched wherever they run need fewer."""

_RING_PAGES = 128
"""Of a processor's ring: with its first page just what each user may lock for each processor
(``kernel.perf_event_mlock_kb``). 16384 switches."""

_THREAD_PAGES = 8
"""Of a thread's own ring: 1024 switches."""

_RING_BYTES = 16 << 20
"""Of all rings together, at most."""

_KEPT_BYTES = 32 << 20
"""Of records that were taken out of the rings, at most: a million switches."""

_TRY_OTHERWISE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINVAL)
"""Errors that another way to watch may not meet."""


@dataclass
class _Chunk:
    """Records that were taken out of a ring at once."""

    begin: int
    """No record is of before that."""
    end: int
    """Taken out then: none is of later."""
    data: bytes
    was_full: bool
    previous: int
    """When the ring was emptied before."""


class RingRecords:
    """What was taken out of rings, up to a bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: deque[_Chunk] = deque()
        self._size = 0
        self.forgotten = 0
        """Records up to that time may have been dropped."""

    def add(self, ring: Ring, now: int, previous: int) -> bytes:
        """What is in a ring ``now``, which was emptied at a time before: that is returned, too."""
        taken = ring.take()
        begin = perf.time_of_first(taken.data)
        if begin is not None:
            self._chunks.append(
                _Chunk(
                    begin=begin,
                    end=now,
                    data=taken.data,
                    was_full=taken.was_full,
                    previous=previous,
                )
            )
            self._size += len(taken.data)
        while self._size > self._most:
            oldest = self._chunks.popleft()
            self._size -= len(oldest.data)
            self.forgotten = max(self.forgotten, oldest.end)
        return taken.data

    def between(self, begin: int, end: int, cache: Cache) -> tuple[list[Switch], list[Interval]]:
        """Switches by time, and where others may be missing."""
        switches: list[Switch] = []
        losses: list[Interval] = []
        for chunk in self._chunks:
            if chunk.begin <= end and chunk.end >= begin:
                if not chunk.was_full:
                    few = perf.switches_between(chunk.data, begin, end)
                    if few is not None:
                        switches += few
                        continue
                if (read := cache.get(id(chunk))) is None:
                    read = cache[id(chunk)] = _read(chunk)
                times, found, lost = read
                first, last = bisect.bisect_left(times, begin), bisect.bisect_right(times, end)
                switches += found[first:last]
                losses += lost
        switches.sort(key=_time)
        return switches, losses


Cache = dict[int, tuple[list[int], list[Switch], list[Interval]]]
"""Of each chunk that was read: the times of its switches, these, and what is missing."""


@dataclass(frozen=True)
class Readings:
    """What was read for one question: of the program's threads, and of the debugger's."""

    records: Cache = field(default_factory=dict)
    tracers: Cache = field(default_factory=dict)


def _time(switch: Switch) -> int:
    return switch.time


def _read(chunk: _Chunk) -> tuple[list[int], list[Switch], list[Interval]]:
    switches: list[Switch] = []
    losses: list[Interval] = []
    last = chunk.previous
    for record in perf.records(chunk.data):
        if isinstance(record, Switch):
            switches.append(record)
        elif isinstance(record, perf.Loss):
            losses.append(Interval(last, min(record.time, chunk.end)))
        last = record.time
    if chunk.was_full:
        losses.append(Interval(min(last, chunk.end), chunk.end))
    switches.sort(key=_time)
    return [switch.time for switch in switches], switches, losses


class ThreadRings:
    """The switches of one process, as the kernel keeps them in a ring for each thread."""

    def __init__(self, pid: int) -> None:
        """The process stands still. Raises OSError: the kernel does not let this process watch
        it."""
        self._pid = pid
        self._rings: dict[object, Ring] = {}
        """By processor, or by thread."""
        self._events: list[int] = []
        """Whose records come to one of these rings."""
        self._watched: set[int] = set()
        self._missed: set[int] = set()
        self.follows = False
        """Whether threads that are made are watched from their beginning."""
        self.records = RingRecords(_KEPT_BYTES)
        try:
            self._watch_all()
        except BaseException:
            self.close()
            raise

    def _watch_all(self) -> None:
        threads = procfs.threads(self._pid)
        processors = perf.processors()
        if len(threads) * len(processors) <= _MOST_EVENTS:
            try:
                for processor in processors:
                    self._watch_on(processor, threads, len(processors))
            except OSError as error:
                self.close()
                if error.errno not in _TRY_OTHERWISE:
                    raise
                wait_for_ends()
            else:
                self._watched.update(threads)
                self.follows = True
                return
        if not threads:
            raise OSError(errno.ESRCH, "")
        for thread in threads:
            self._watch(thread)
        if not self._watched:
            raise OSError(errno.EMFILE, "")

    def _watch_on(self, processor: int, threads: Iterable[int], processors: int) -> None:
        pages = min(_RING_PAGES, _RING_BYTES // processors // PAGE)
        for thread in threads:
            try:
                fd = perf.open_event(thread, processor, inherit=True)
            except OSError as error:
                if error.errno in (errno.ENODEV, errno.ESRCH):  # it is off by now, or has ended
                    continue
                raise
            ring = self._rings.get(processor)
            if ring is None:
                self._rings[processor] = perf.map_ring(fd, max(pages, 1))
            else:
                self._events.append(fd)
                ring.lead_here(fd)

    def _watch(self, thread: int) -> None:
        """A thread by itself. The first one that the kernel refuses is told."""
        if thread in self._missed:
            return
        used = sum(ring.size for ring in self._rings.values())
        if len(self._rings) >= _MOST_EVENTS or used >= _RING_BYTES:
            self._missed.add(thread)
            return
        try:
            self._rings[thread] = perf.map_ring(perf.open_event(thread), _THREAD_PAGES)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return
            if not self._watched and error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._missed.add(thread)
        else:
            self._watched.add(thread)

    def close(self) -> None:
        """None is watched any more."""
        for fd in self._events:
            end(fd)
        self._events.clear()
        for ring in self._rings.values():
            ring.close()
        self._rings.clear()

    def drain(self, now: int, previous: int) -> None:
        """Takes out what was written since ``previous``, up to ``now``."""
        for ring in self._rings.values():
            data = self.records.add(ring, now, previous)
            if not self.follows:
                self._hear_of_births(data)

    def _hear_of_births(self, data: bytes) -> None:
        for record in perf.records(data):
            if isinstance(record, perf.Born) and record.process == self._pid:
                self._missed.add(record.thread)

    def look_for_threads(self) -> None:
        """Those that were made since, where nobody follows them, are watched from now on."""
        if self.follows:
            return
        living = set(procfs.threads(self._pid))
        for thread in [t for t in self._rings if t not in living]:
            self._rings.pop(thread).close()
        if new := living - self._rings.keys():
            with room_for_descriptors():
                for thread in new:
                    self._missed.discard(thread)
                    with contextlib.suppress(OSError):
                        self._watch(thread)

    def watches(self, thread: int) -> bool:
        """Whether it is known of all that a thread did."""
        is_watched = self.follows or thread in self._watched
        return bool(thread) and is_watched and thread not in self._missed

    @property
    def only(self) -> int:
        """The one thread, where that was the process's first one, and alone, from the beginning on;
        else 0."""
        return self._pid if self._watched == {self._pid} else 0

    @property
    def missed(self) -> int:
        """How many there were too many of, or had ended before they were seen."""
        return len(self._missed - self._watched)


class TracerRing:
    """Of the debugger's own thread that traces a process: in another process with some
    debuggers. It may have none."""

    def __init__(self, pid: int) -> None:
        self.records = RingRecords(_KEPT_BYTES // 8)
        self.process = 0
        self._ring: Ring | None = None
        self.tracer = procfs.tracer(pid)
        """Its id; 0: it has none."""
        with contextlib.suppress(OSError):
            if self.tracer:
                self.process = int(procfs.status(self.tracer).get("Tgid", self.tracer))
                self._ring = perf.map_ring(perf.open_event(self.tracer), _RING_PAGES // 4)

    @property
    def thread(self) -> int:
        """Its id; 0: it is not watched."""
        return 0 if self._ring is None else self.tracer

    @property
    def is_server(self) -> bool:
        """Whether it is another process's than that of the debugger that darc is in."""
        return self.process not in (0, os.getpid())

    def drain(self, now: int, previous: int) -> None:
        """As :meth:`ThreadRings.drain`."""
        if self._ring is not None:
            self.records.add(self._ring, now, previous)

    def close(self) -> None:
        """It is watched no more."""
        if self._ring is not None:
            self._ring.close()
            self._ring = None


_limit = threading.RLock()
"""Held while the limit of this process is another one: who read it meanwhile would keep that."""


@contextlib.contextmanager
def room_for_descriptors() -> Iterator[None]:
    """Meanwhile this process may have more descriptors, which keep existing afterwards. One thread
    at a time."""
    with _limit:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 4 * _MOST_EVENTS
        enough = soft == resource.RLIM_INFINITY or soft >= wanted
        if not enough:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        try:
            yield
        finally:
            if not enough:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
