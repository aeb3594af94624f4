"""What has kept the threads of a process from running, as far as anything but switches tells:
stops of the debugger's, the CPU quota, and others that wait for the same processor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from darc.debuggee import clock, procfs
from darc.debuggee.quota import Quota
from darc.debuggee.switch_history import Growth, Interval, Queued

_MOST_STOPS = 4096

_MOST_READ = 4096
"""How often a thread's wait for a processor is kept as it was read."""

_MOST_QUEUED = 32
"""Threads of which is noted how long they have waited for a processor: a file is read for each,
again and again."""

TRACER = 0
"""Stands for the debugger's own thread."""


class Hindrances:
    """Since the process stood still at a time."""

    def __init__(self, pid: int, quota: Quota, began: int) -> None:
        self._pid = pid
        self._queued: dict[int, deque[Queued]] = {}
        """By thread."""
        self._stops: deque[Interval] = deque(maxlen=_MOST_STOPS)
        self._stopped_at: int | None = began
        self._quota = quota
        self._used_up: deque[Growth] = deque(maxlen=_MOST_STOPS)
        self._throttled = self._looked = 0

    def look(self, tracer: int) -> None:
        """Takes down what the system tells now; ``tracer`` is the debugger's own thread, 0 where
        nobody watches that."""
        self._look_at_quota()
        if tracer:
            self._look_at_queues(tracer)

    def _look_at_quota(self) -> None:
        total, now = self._quota.used_up_ns, clock.raw_now()
        if total > self._throttled and self._looked:
            self._used_up.append(Growth(self._looked, now, total - self._throttled))
        self._throttled, self._looked = total, now

    def _look_at_queues(self, tracer: int) -> None:
        threads = procfs.threads(self._pid)
        if len(self._queued) > 2 * _MOST_QUEUED:  # those that have ended may still be asked for
            for thread in [t for t in self._queued if t and t not in threads]:
                del self._queued[thread]
        watched = threads if len(threads) <= _MOST_QUEUED else []
        for key, thread in [(TRACER, tracer), *((t, t) for t in watched)]:
            if total := procfs.waited_ns(thread):
                known = self._queued.setdefault(key, deque(maxlen=_MOST_READ))
                known.append(Queued(clock.raw_now(), total))

    def stands(self) -> None:
        """The debugger has stopped every thread."""
        if self._stopped_at is None:
            self._stopped_at = clock.raw_now()

    def goes_on(self) -> None:
        """It is about to let them go on."""
        if self._stopped_at is not None:
            self._stops.append(Interval(self._stopped_at, clock.raw_now()))
            self._stopped_at = None

    def stops_between(self, begin: int, end: int) -> list[Interval]:
        """Those that were over by ``end``, or begun, and had not ended before ``begin``."""
        return [one for one in self._stops if one.end >= begin and one.begin <= end]

    def queued(self, thread: int) -> tuple[Queued, ...]:
        """For how long a thread, or the :data:`TRACER`, had waited for a processor at times."""
        return tuple(self._queued.get(thread, ()))

    @property
    def used_up(self) -> Sequence[Growth]:
        """When the quota was used up, and for how long threads had to wait by that."""
        return list(self._used_up)
