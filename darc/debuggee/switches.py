"""When the threads of a process were off their processors, as the kernel tells it.

The debugger's own process watches them from outside: nothing is mapped or opened in the program,
and all ends with the debugger. While it lasts, each switch of a watched thread costs about 1 µs
more.

What is written down where (:mod:`darc.debuggee.switch_rings`) is joined here with what else has
kept threads from running (:mod:`darc.debuggee.hindrances`), with who woke them and who ran instead,
and, where that is asked for, with where they were (:mod:`darc.debuggee.leavings`).
"""

from __future__ import annotations

import bisect
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from darc.debuggee import clock, leavings, perf, procfs
from darc.debuggee import switch_history as history
from darc.debuggee.eventends import wait_for_ends
from darc.debuggee.firstevents import FirstEvents
from darc.debuggee.hindrances import TRACER, Hindrances
from darc.debuggee.leavings import Leavings
from darc.debuggee.perf_stacks import Waking
from darc.debuggee.quota import Quota
from darc.debuggee.switch_history import Interval
from darc.debuggee.switch_rings import Readings, ThreadRings, TracerRing, room_for_descriptors
from darc.debuggee.switchwatch import Forerunner, OffWatch, Watching
from darc.debuggee.wakers import OTHER_IDS, Wakers, told, why_refused
from darc.debuggee.whoran import WhoRan
from darc.model.errors import UnsupportedError
from darc.model.offtimes import OffTimes
from darc.model.ops import Event, Off, OffReason, Ran, Stack

_MOST_PAIRS = 4096
"""Of clock readings."""

_BEFORE = (4, 32, 256)
"""How many times as long as what is asked for is looked at before it, as far as it must be."""

_MARGIN_NS = 2_000_000
"""What happened so shortly before or after an op is looked at as well."""


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


class ProcessWatching(Watching):
    """Of one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def expect(self) -> Forerunner:
        return FirstEvents()

    def begin(self) -> OffWatch:
        return Switches(self._pid)

    def stack_pointers(self) -> Mapping[int, int]:
        pid = self._pid
        found = ((thread, procfs.stack_pointer(thread)) for thread in procfs.threads(pid))
        return {procfs.own_id(pid, thread): end for thread, end in found if end is not None}


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
        self._closing = contextlib.ExitStack()
        self._pairs = ClockPairs(clock.tsc_hz())
        self._pairs.read()
        self._began = self._emptied = clock.raw_now()
        self._hindrances = Hindrances(pid, Quota(pid), self._began)
        self._has_own_ids = procfs.own_id(pid, pid) != pid
        """Whether the process calls its threads otherwise than the debugger does (a container)."""
        self._own_ids: dict[int, int] = {}
        """By the debugger's ids, as they were when somebody asked."""
        self._wakers: Wakers | None = None
        self._why_no_wakers: str | None = None
        self._who_ran: WhoRan | None = None
        self._leavings: Leavings | None = None
        self._why_no_places: str | None = None
        self._begin()
        self._open = True
        self._hindrances.look(self._tracer.thread)

    def _begin(self) -> None:
        wait_for_ends()  # an earlier watch's: there is room for so many events alone
        try:
            with room_for_descriptors():
                self._rings = ThreadRings(self._pid)
                self._closing.callback(self._rings.close)
                self._tracer = TracerRing(self._pid)
                self._closing.callback(self._tracer.close)
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

    def _watch_wakers(self) -> None:
        """For the privileged alone: what others may not see of other processes is not missed."""
        if procfs.own_id(self._pid, self._pid) != self._pid:
            self._why_no_wakers = OTHER_IDS
            return
        try:
            self._wakers = Wakers(self._pid)
            self._closing.callback(self._wakers.close)
        except OSError as error:
            self._why_no_wakers = why_refused(error)

    def _watch_processors(self) -> None:
        """For the privileged alone, too."""
        with contextlib.suppress(OSError):
            self._who_ran = WhoRan(self._began)
            self._closing.callback(self._who_ran.close)

    def watch_places(self) -> None:
        """For those who may ask for events of the kernel's own. Comes last: all else has what it
        needs of memory and descriptors by then, and needs no more later."""
        with self._lock:
            if not self._open or self._leavings is not None or self._why_no_places is not None:
                return
            if not self._rings.follows:
                self._why_no_places = leavings.TOO_MANY
                return
            try:
                self._leavings = Leavings(self._pid)
                self._closing.callback(self._leavings.close)
            except OSError as error:
                self._why_no_places = leavings.why_refused(error)

    def close(self) -> None:
        with self._lock:
            self.drain()
            self._open = False
            self._closing.close()

    # ---------------------------------------------------------------- collecting

    def drain(self) -> None:
        with self._lock:
            if not self._open:
                return
            now = clock.raw_now()
            self._pairs.read()
            self._rings.drain(now, self._emptied)
            self._tracer.drain(now, self._emptied)
            if self._wakers is not None:
                self._wakers.drain()
            if self._who_ran is not None:
                self._who_ran.drain(now)
            if self._leavings is not None:
                self._leavings.drain(now)
            self._emptied = now
            self._hindrances.look(self._tracer.thread)
            self._rings.look_for_threads()

    def stands(self) -> None:
        with self._lock:
            self._hindrances.stands()

    def goes_on(self) -> None:
        with self._lock:
            self._hindrances.goes_on()

    # ------------------------------------------------------------------- asking

    @property
    def why_no_wakers(self) -> str | None:
        return self._why_no_wakers

    @property
    def why_no_places(self) -> str | None:
        known = self._leavings
        return self._why_no_places if known is None else known.given_up

    @property
    def missed(self) -> int:
        with self._lock:
            return self._rings.missed

    def off(self, calls: Sequence[tuple[int, int, int]]) -> list[OffTimes | None]:
        with self._lock:
            self.drain()
            ids, read = self._ids(), Readings()
            return [self._off(ids(call[0]), *call[1:], read) for call in calls]

    def slept(self, thread: int, since: int, end: int) -> OffTimes | None:
        with self._lock:
            thread, read, known = self._ids()(thread), Readings(), None
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
        only = self._rings.only
        return lambda thread: thread or only

    def _off(self, thread: int, start: int, end: int, read: Readings) -> OffTimes | None:
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
            self._cycles(history.by_quota(ready, self._hindrances.used_up)),
            wakers,
        )

    def _slept(
        self, thread: int, begin: int, since: int, *, end: int, read: Readings
    ) -> OffTimes | None:
        """From ``since`` on, by what is known from ``begin`` on."""
        wakings = self._wakings(thread, begin, end)
        seen = self._seen(thread, begin, end=end, wakings=wakings, read=read)
        if seen is None or not (seen or self._is_own(thread)):
            return None
        wakers = self._wakers_of(wakings, since)
        off = tuple(self._in_cycles(seen, since, end, self._place(thread)))
        return OffTimes(off, wakers=wakers)

    def _is_own(self, thread: int) -> bool:
        """Whether it is one of the program's: of others nothing is seen, as of one that only
        runs."""
        return thread in procfs.threads(self._pid)

    def _place(self, thread: int) -> Callable[[int], Stack | None]:
        """From the time when it left its processor to where that was, as far as that is known."""
        known = self._leavings
        if known is None:
            return lambda time: None
        return lambda time: known.at(thread, time + history.TOLERANCE_NS)

    def _seen(
        self, thread: int, start: int, end: int, *, wakings: Sequence[Waking], read: Readings
    ) -> tuple[history.OffTime, ...] | None:
        if not self._rings.watches(thread):
            return None
        begin_ns, end_ns = self._pairs.to_ns(start), self._pairs.to_ns(end)
        around = Interval(begin_ns - _MARGIN_NS, end_ns + _MARGIN_NS)
        long_around = Interval(begin_ns - history.SOON_NS, end_ns + history.SOON_NS)
        switches, losses = self._rings.records.between(*around, read.records)
        forgotten = max(self._rings.records.forgotten, self._tracer.records.forgotten, self._began)
        return history.off_times(
            history.Seen(
                thread=thread,
                switches=switches,
                tracer=self._tracer.records.between(*long_around, read.tracers)[0],
                by_server=self._tracer.is_server,
                stops=self._hindrances.stops_between(long_around.begin, end_ns),
                queued=self._hindrances.queued(thread),
                tracer_queued=self._hindrances.queued(TRACER),
                wakings=told(wakings, self._tracer.tracer),
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

    def _in_cycles(
        self,
        found: Iterable[history.OffTime],
        start: int,
        end: int,
        place: Callable[[int], Stack | None] = lambda time: None,
    ) -> Iterator[Off]:
        for off in found:
            first = max(self._pairs.to_cycles(off.begin), start)
            last = min(self._pairs.to_cycles(off.end), end)
            if first < last:
                is_asleep = off.reason is OffReason.BLOCKED
                stack = place(off.begin) if is_asleep else None
                yield Off(first, last, off.reason, stack=stack)

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
