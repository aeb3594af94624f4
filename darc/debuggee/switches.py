"""When the threads of a process were off their processors, as the kernel tells it.

The debugger's own process watches them from outside: nothing is mapped or opened in the program,
and all ends with the debugger. While it lasts, each switch of a watched thread costs about 1 µs
more.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

from darc.debuggee import clock, perf, procfs
from darc.debuggee import switch_history as history
from darc.debuggee.perf import Ring, Switch, Waking
from darc.debuggee.quota import Quota
from darc.debuggee.switch_history import Growth, Interval, Queued
from darc.debuggee.switchwatch import OffWatch
from darc.debuggee.wakers import OTHER_IDS, Wakers, told, why_refused
from darc.debuggee.whoran import WhoRan
from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes
from darc.model.ops import Event, Off, OffReason, Ran
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

_MOST_PAIRS = 4096
"""Of clock readings."""

_MOST_STOPS = 4096

_MOST_QUEUED = 32
"""Threads of which is noted how long they have waited for a processor: a file is read for each,
again and again."""

_BEFORE = (4, 32, 256)
"""How many times as long as what is asked for is looked at before it, as far as it must be."""

_MARGIN_NS = 2_000_000
"""What happened so shortly before or after an op is looked at as well."""


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


class _Records:
    """What was taken out of rings, up to a bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: deque[_Chunk] = deque()
        self._size = 0
        self.forgotten = 0
        """Records up to that time may have been dropped."""

    def add(self, ring: Ring, now: int, previous: int) -> bytes:
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

    def between(self, begin: int, end: int, cache: _Cache) -> tuple[list[Switch], list[Interval]]:
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


_Cache = dict[int, tuple[list[int], list[Switch], list[Interval]]]
"""Of each chunk that was read: the times of its switches, these, and what is missing."""


@dataclass(frozen=True)
class _Read:
    """What was read for one question: of the program's threads, and of the debugger's."""

    records: _Cache = field(default_factory=dict)
    tracers: _Cache = field(default_factory=dict)


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


class ClockPairs:
    """The time-stamp counter and CLOCK_MONOTONIC_RAW, read at the same moments again and again."""

    def __init__(self, hz: int) -> None:
        self._hz = hz
        self._cycles: list[int] = []
        self._ns: list[int] = []

    def read(self) -> None:
        """Once more."""
        for times, now in zip((self._cycles, self._ns), clock.raw_pair(), strict=True):
            times.append(now)
            if len(times) > _MOST_PAIRS:
                times[1:-1] = times[2:-1:2]

    def to_ns(self, cycles: int) -> int:
        """The clock when the counter was there."""
        return _mapped(cycles, self._cycles, self._ns, 1e9 / self._hz)

    def to_cycles(self, ns: int) -> int:
        """The counter when the clock was there."""
        return _mapped(ns, self._ns, self._cycles, self._hz / 1e9)


def _mapped(value: int, known: Sequence[int], others: Sequence[int], otherwise: float) -> int:
    """What ``others`` have where ``known``, which rise likewise, have the value. Beyond all that is
    known at the mean rate; where there is one pair alone, by ``otherwise``."""
    at = bisect.bisect_right(known, value)
    near, first, last = at - 1, at - 1, at
    if at in (0, len(known)):
        near, first, last = (at and at - 1), 0, len(known) - 1
    across = known[last] - known[first]
    rate = (others[last] - others[first]) / across if across > 0 else 0.0
    return others[near] + round((value - known[near]) * (rate or otherwise))


class Switches(OffWatch):
    """Watches the threads of one process. Also a context manager, which closes it."""

    def __init__(self, pid: int) -> None:
        """The process stands still.

        Raises:
            UnsupportedError: the kernel does not let this process watch it; what to do about it.
        """
        self._pid = pid
        self._lock = threading.RLock()
        self._open = False
        self._rings: dict[object, Ring] = {}
        """By processor, or by thread."""
        self._events: list[int] = []
        """Whose records come to one of these rings."""
        self._tracer: Ring | None = None
        self._tracer_id = self._tracer_process = 0
        self._watched: set[int] = set()
        self._missed: set[int] = set()
        self._follows = False
        """Whether threads that are made are watched from their beginning."""
        self._records = _Records(_KEPT_BYTES)
        self._tracers = _Records(_KEPT_BYTES // 8)
        self._queued: dict[int, deque[Queued]] = {}
        """By thread; the debugger's own has 0."""
        self._stops: deque[Interval] = deque(maxlen=_MOST_STOPS)
        self._stopped_at: int | None
        self._pairs = ClockPairs(clock.tsc_hz())
        self._pairs.read()
        self._began = self._emptied = clock.raw_now()
        self._stopped_at = self._began
        self._quota = Quota(pid)
        self._used_up: deque[Growth] = deque(maxlen=_MOST_STOPS)
        self._throttled = self._looked = 0
        self._has_own_ids = procfs.own_id(pid, pid) != pid
        """Whether the process calls its threads otherwise than the debugger does (a container)."""
        self._own_ids: dict[int, int] = {}
        """By the debugger's ids, as they were when somebody asked."""
        self._wakers: Wakers | None = None
        self._why_no_wakers: str | None = None
        self._who_ran: WhoRan | None = None
        try:
            with _room_for_descriptors():
                self._watch_all()
                self._watch_tracer()
                self._watch_wakers()
                self._watch_processors()
        except OSError as error:
            self.close()
            raise UnsupportedError(
                "cannot tell running from waiting: " + perf.why_refused(error.errno or 0)
            ) from None
        except BaseException:
            self.close()
            raise
        self._open = True
        self._look_at_quota()
        self._look_at_queues()

    def __enter__(self) -> Switches:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------ begin and end

    def _watch_all(self) -> None:
        threads = procfs.threads(self._pid)
        processors = perf.processors()
        if len(threads) * len(processors) <= _MOST_EVENTS:
            try:
                for processor in processors:
                    self._watch_on(processor, threads, len(processors))
            except OSError as error:
                self._close_all()
                if error.errno not in _TRY_OTHERWISE:
                    raise
            else:
                self._watched.update(threads)
                self._follows = True
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

    def _watch_tracer(self) -> None:
        """The debugger's own thread: in another process with some debuggers."""
        tracer = procfs.tracer(self._pid)
        with contextlib.suppress(OSError):
            if tracer:
                self._tracer_id = tracer
                self._tracer_process = int(procfs.status(tracer).get("Tgid", tracer))
                self._tracer = perf.map_ring(perf.open_event(tracer), _RING_PAGES // 4)

    def _watch_wakers(self) -> None:
        """For the privileged alone: what others may not see of other processes is not missed."""
        if procfs.own_id(self._pid, self._pid) != self._pid:
            self._why_no_wakers = OTHER_IDS
            return
        try:
            self._wakers = Wakers(self._pid)
        except OSError as error:
            self._why_no_wakers = why_refused(error)

    def _watch_processors(self) -> None:
        """For the privileged alone, too."""
        with contextlib.suppress(OSError):
            self._who_ran = WhoRan(self._began)

    def close(self) -> None:
        with self._lock:
            self.drain()
            if self._wakers is not None:
                self._wakers.close()
            if self._who_ran is not None:
                self._who_ran.close()
            self._open = False
            self._close_all()
            if self._tracer is not None:
                self._tracer.close()
                self._tracer = None

    def _close_all(self) -> None:
        for fd in self._events:
            os.close(fd)
        self._events.clear()
        for ring in self._rings.values():
            ring.close()
        self._rings.clear()

    # ---------------------------------------------------------------- collecting

    def drain(self) -> None:
        with self._lock:
            if not self._open:
                return
            now = clock.raw_now()
            self._pairs.read()
            for ring in self._rings.values():
                data = self._records.add(ring, now, self._emptied)
                if not self._follows:
                    self._hear_of_births(data)
            if self._tracer is not None:
                self._tracers.add(self._tracer, now, self._emptied)
            if self._wakers is not None:
                self._wakers.drain()
            if self._who_ran is not None:
                self._who_ran.drain(now)
            self._emptied = now
            self._look_at_quota()
            self._look_at_queues()
            if not self._follows:
                self._look_for_threads()

    def _hear_of_births(self, data: bytes) -> None:
        for record in perf.records(data):
            if isinstance(record, perf.Born) and record.process == self._pid:
                self._missed.add(record.thread)

    def _look_for_threads(self) -> None:
        living = set(procfs.threads(self._pid))
        for thread in [t for t in self._rings if t not in living]:
            self._rings.pop(thread).close()
        if new := living - self._rings.keys():
            with _room_for_descriptors():
                for thread in new:
                    self._missed.discard(thread)
                    with contextlib.suppress(OSError):
                        self._watch(thread)

    def _look_at_quota(self) -> None:
        total, now = self._quota.used_up_ns, clock.raw_now()
        if total > self._throttled and self._looked:
            self._used_up.append(Growth(self._looked, now, total - self._throttled))
        self._throttled, self._looked = total, now

    def _look_at_queues(self) -> None:
        if self._tracer is None:
            return
        threads = procfs.threads(self._pid)
        if len(self._queued) > 2 * _MOST_QUEUED:  # those that have ended may still be asked for
            for thread in [t for t in self._queued if t and t not in threads]:
                del self._queued[thread]
        watched = threads if len(threads) <= _MOST_QUEUED else []
        for key, thread in [(0, self._tracer_id), *((t, t) for t in watched)]:
            if total := procfs.waited_ns(thread):
                known = self._queued.setdefault(key, deque(maxlen=_MOST_PAIRS))
                known.append(Queued(clock.raw_now(), total))

    def stands(self) -> None:
        with self._lock:
            if self._stopped_at is None:
                self._stopped_at = clock.raw_now()

    def goes_on(self) -> None:
        with self._lock:
            if self._stopped_at is not None:
                self._stops.append(Interval(self._stopped_at, clock.raw_now()))
                self._stopped_at = None

    # ------------------------------------------------------------------- asking

    @property
    def why_no_wakers(self) -> str | None:
        return self._why_no_wakers

    @property
    def missed(self) -> int:
        # There were too many, or they had ended before they were seen.
        with self._lock:
            return len(self._missed - self._watched)

    def off(self, calls: Sequence[tuple[int, int, int]]) -> list[OffTimes | None]:
        with self._lock:
            self.drain()
            ids, read = self._ids(), _Read()
            return [self._off(ids(call[0]), *call[1:], read) for call in calls]

    def slept(self, thread: int, since: int, end: int) -> OffTimes | None:
        with self._lock:
            thread, read, known = self._ids()(thread), _Read(), None
            for times in _BEFORE:  # it is known from where it ran
                known = self._slept(
                    thread, since - times * (end - since), since=since, end=end, read=read
                )
                if known is None or not any(
                    off.reason is OffReason.UNKNOWN and off.start <= since for off in known.off
                ):
                    break
            return known

    def names(self, threads: Iterable[int]) -> Mapping[int, str]:
        here = {own: procfs.thread_called(self._pid, own) for own in threads}
        found = {
            own: procfs.status(self._pid, thread).get("Name")
            for own, thread in here.items()
            if thread is not None
        }
        return {own: name for own, name in found.items() if name is not None}

    def _ids(self) -> Callable[[int], int]:
        """From a thread's id as the process itself sees it, which may be in a container, to that
        which it has here; 0, one that is not known, is the only thread's."""
        if self._has_own_ids:
            here = {
                procfs.own_id(self._pid, thread): thread for thread in procfs.threads(self._pid)
            }
            return lambda thread: here.get(thread, 0)
        only = self._pid if self._watched == {self._pid} else 0
        return lambda thread: thread or only

    def _off(self, thread: int, start: int, end: int, read: _Read) -> OffTimes | None:
        wakings = self._wakings(thread, start, end)
        seen = self._seen(thread, start, end=end, wakings=wakings, read=read)
        if seen is None:
            return None
        ready = [Interval(o.begin, o.end) for o in seen if o.reason is OffReason.READY]
        wakers = self._wakers_of(wakings, start)
        off = tuple(self._in_cycles(seen, start, end))
        return OffTimes(
            tuple(replace(one, ran=tuple(self._ran(thread, one, wakers or ()))) for one in off),
            self._cycles(sum(o.end - o.begin for o in seen if o.is_doubtful)),
            self._cycles(history.by_quota(ready, list(self._used_up))),
            wakers,
        )

    def _slept(self, thread: int, begin: int, since: int, end: int, read: _Read) -> OffTimes | None:
        """From ``since`` on, by what is known from ``begin`` on."""
        wakings = self._wakings(thread, begin, end)
        seen = self._seen(thread, begin, end=end, wakings=wakings, read=read)
        if seen is None:
            return None
        wakers = self._wakers_of(wakings, since)
        return OffTimes(tuple(self._in_cycles(seen, since, end)), wakers=wakers)

    def _seen(
        self, thread: int, start: int, end: int, wakings: Sequence[Waking], read: _Read
    ) -> tuple[history.OffTime, ...] | None:
        is_watched = self._follows or thread in self._watched
        if not thread or not is_watched or thread in self._missed:
            return None
        begin_ns, end_ns = self._pairs.to_ns(start), self._pairs.to_ns(end)
        around = Interval(begin_ns - _MARGIN_NS, end_ns + _MARGIN_NS)
        long_around = Interval(begin_ns - history.SOON_NS, end_ns + history.SOON_NS)
        switches, losses = self._records.between(*around, read.records)
        forgotten = max(self._records.forgotten, self._tracers.forgotten, self._began)
        return history.off_times(
            history.Seen(
                thread=thread,
                switches=switches,
                tracer=self._tracers.between(*long_around, read.tracers)[0],
                stops=[s for s in self._stops if s.end >= long_around.begin and s.begin <= end_ns],
                queued=tuple(self._queued.get(thread, ())),
                tracer_queued=tuple(self._queued.get(0, ())),
                wakings=told(wakings, self._tracer_process),
                losses=[*losses, Interval(0, forgotten)],
            ),
            begin_ns - history.TOLERANCE_NS,
            end_ns + history.TOLERANCE_NS,
        )

    def _wakings(self, thread: int, start: int, end: int) -> Sequence[Waking]:
        """Those of a thread, as far as the kernel tells."""
        if self._wakers is None:
            return ()
        begin_ns, end_ns = self._pairs.to_ns(start), self._pairs.to_ns(end)
        return self._wakers.wakings(thread, begin_ns - _MARGIN_NS, end_ns + _MARGIN_NS)

    def _wakers_of(self, wakings: Sequence[Waking], start: int) -> tuple[Event, ...] | None:
        """Who it was, from ``start`` on; ``None``: the kernel does not tell."""
        if self._wakers is None:
            return None
        begin_ns = self._pairs.to_ns(start) - _MARGIN_NS
        later = (one for one in wakings if one.time >= begin_ns)
        return self._wakers.events(later, begin_ns, self._pairs.to_cycles)

    def _in_cycles(self, found: Iterable[history.OffTime], start: int, end: int) -> Iterator[Off]:
        for off in found:
            first = max(self._pairs.to_cycles(off.begin), start)
            last = min(self._pairs.to_cycles(off.end), end)
            if first < last:
                yield Off(first, last, off.reason)

    def _ran(self, thread: int, off: Off, wakers: Iterable[Event]) -> Iterator[Ran]:
        """Who had the processor, since the thread was ready or woken."""
        since = [off.start] if off.reason is OffReason.READY else []
        if off.reason is OffReason.BLOCKED:
            since = [waker.time for waker in wakers if off.start <= waker.time < off.end][:1]
        if self._who_ran is None or not since:
            return
        to_ns, to_cycles = self._pairs.to_ns, self._pairs.to_cycles
        for one in self._who_ran.before(thread, to_ns(since[0]), to_ns(off.end)):
            start, end = max(to_cycles(one.begin), since[0]), min(to_cycles(one.end), off.end)
            if start >= end:
                continue
            is_outside = one.process != self._pid
            number, name = (one.process, one.name) if is_outside else (self._own(one.thread), "")
            yield Ran(start=start, end=end, number=number, name=name, is_outside=is_outside)

    def _own(self, thread: int) -> int:
        """What the process itself calls one of its threads. To ask for it each time takes seconds
        where many threads have run, and the program stands still."""
        if not self._has_own_ids:
            return thread
        known = self._own_ids.get(thread)
        if known is None:
            known = self._own_ids[thread] = procfs.own_id(self._pid, thread) or thread
        return known

    @staticmethod
    def _cycles(ns: int) -> int:
        return round(ns * clock.tsc_hz() / 1e9)


# -------------------------------------------------------------------- descriptors


@contextlib.contextmanager
def _room_for_descriptors() -> Iterator[None]:
    """Meanwhile this process may have more descriptors, which keep existing afterwards."""
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
