"""Where the threads of a process leave their processors: the kernel tells those who may ask for it.

The software event of context switches has the thread's registers as they were when it called the
kernel, and the beginning of its stack. So of whoever holds a lock and sleeps, it is known in which
call. Nothing of it is in the program, and all ends with the debugger.

A record costs half as much as a switch. So where the threads leave their processors very often,
this is given up: so it is where there is no memory or no descriptor that nothing else may need.
"""

from __future__ import annotations

import bisect
import errno
import os
import resource
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from darc.debuggee import clock, perf, perf_stacks, procfs
from darc.debuggee.eventends import end
from darc.debuggee.perf import Ring
from darc.debuggee.perf_stacks import LeftProcessors
from darc.debuggee.switch_rings import room_for_descriptors
from darc.model.ops import Stack
from darc.target.memory import PAGE

_STACK_BYTES = 512

_TOO_OFTEN = 8000
"""Records a second of one processor: they take about a hundredth of its time. Half as many are too
many where there was no room for more, as nobody knows how many these were."""

_LEAST_NS = 50_000_000
"""In less time it is not told how often they come."""

_RING_PAGES = 128
"""Of a processor's ring: some 850 records, and it is emptied ten times a second. It is
smaller where the user may not lock so much beside darc's other rings."""

_LEAST_PART = 4
"""With less than this part of it most records would be lost."""

_RING_BYTES = 8 << 20
"""Of all rings together, at most."""

_KEPT_BYTES = 32 << 20
"""Of records, at most: some 55,000. Their index takes 16 bytes of each more."""

_MOST_EVENTS = 1024
"""Threads times processors. With more, nothing is watched."""

_SOON_NS = 1_000_000
"""So long before a thread is off its processor the record of that is, at most: it is written on the
way there."""

TOO_MANY = "it has more threads than are watched for that"
TOO_OFTEN = "its threads leave their processors so often that it would slow them down"
_NOT_ALLOWED = (
    "the kernel tells it root, whoever has CAP_PERFMON, or all where kernel.perf_event_paranoid is "
    "1 or less"
)


@dataclass
class _TakenLeavings:
    """What was taken out of a ring at one time."""

    first: int
    """When the first record was, in ns,"""
    last: int
    """and the last."""
    data: bytes
    _by_thread: dict[int, LeftProcessors] | None = field(default=None)

    def before(self, thread: int, time: int) -> tuple[int, int] | None:
        """When the thread left a processor last, up to ``time``, and where the record of that is.
        They are read when somebody asks: mostly nobody does."""
        if self._by_thread is None:
            self._by_thread = dict(perf_stacks.leavings(self.data))
        known = self._by_thread.get(thread)
        at = 0 if known is None else bisect.bisect_right(known.times, time)
        return None if known is None or not at else (known.times[at - 1], known.places[at - 1])


class Leavings:
    """Watches where the threads of one process leave their processors, also those that it makes
    meanwhile, until :meth:`close`, or until they do it too often. Not by two threads at one
    time."""

    def __init__(self, pid: int) -> None:
        """Raises:
        OSError: this process may not ask for that, or there is no room: see :func:`why_refused`.
        """
        self.given_up: str | None = None
        """Why it watches no more, where it does not: a part of a sentence."""
        self._rings: list[Ring] = []
        self._events: list[int] = []
        """Whose records come to one of these rings."""
        self._emptied = clock.raw_now()
        self._taken: deque[_TakenLeavings] = deque()
        self._size = 0
        threads, processors = procfs.threads(pid), perf.processors()
        pages = max(1, min(_RING_PAGES, _RING_BYTES // len(processors) // PAGE))
        try:
            with room_for_descriptors():
                _check_room(len(threads) * len(processors))
                for processor in processors:
                    self._watch_on(processor, threads, pages)
        except BaseException:
            self.close()
            raise

    def _watch_on(self, processor: int, threads: Iterable[int], pages: int) -> None:
        ring: Ring | None = None
        for thread in threads:
            try:
                fd = perf_stacks.open_leavings(thread, processor, _STACK_BYTES)
            except OSError as error:
                if error.errno in (errno.ENODEV, errno.ESRCH):  # it is off by now, or has ended
                    continue
                raise
            if ring is None:
                ring = perf.map_ring(fd, pages)
                self._rings.append(ring)
                if ring.size < pages * PAGE // _LEAST_PART:
                    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            else:
                self._events.append(fd)
                ring.lead_here(fd)

    def close(self) -> None:
        """Watches no more. What was seen can still be asked for."""
        for fd in self._events:
            end(fd)
        self._events.clear()
        for ring in self._rings:
            ring.close()
        self._rings.clear()

    def drain(self, now: int) -> None:
        """Takes down what has happened up to ``now``, in ns of CLOCK_MONOTONIC_RAW."""
        since, self._emptied = self._emptied, now
        for ring in self._rings:
            taken = ring.take()
            times = perf_stacks.times(taken.data)
            if not times:
                continue
            self._taken.append(_TakenLeavings(times[0], times[-1], taken.data))
            self._size += len(taken.data)
            was_full = len(taken.data) > ring.size - 2 * _STACK_BYTES
            most = _TOO_OFTEN // 2 if was_full else _TOO_OFTEN
            if len(times) * 1e9 > most * max(now - since, _LEAST_NS):
                self.given_up = TOO_OFTEN
        while self._size > _KEPT_BYTES:
            self._size -= len(self._taken.popleft().data)
        if self.given_up is not None:
            self.close()

    def at(self, thread: int, time: int) -> Stack | None:
        """Where the thread was in its program when it left its processor at ``time``, in ns of
        CLOCK_MONOTONIC_RAW; ``None``: that is not known."""
        last, data, place = time - _SOON_NS, b"", 0
        for chunk in self._taken:
            if chunk.first <= time and chunk.last >= last:
                found = chunk.before(thread, time)
                if found is not None and found[0] >= last:
                    last, place = found
                    data = chunk.data
        stack = perf_stacks.stack_at(data, place)
        if stack is None or not stack.pc:
            return None
        count = len(stack.data) // 8
        words = struct.unpack_from(f"<{count}Q", stack.data)
        return Stack(stack.pointer, stack.frame, words, stack.pc)


def _check_room(events: int) -> None:
    """Raises OSError: there are to be no more descriptors for that."""
    if events > _MOST_EVENTS:
        raise OSError(errno.E2BIG, TOO_MANY)
    if 2 * events > _descriptors_left():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _descriptors_left() -> int:
    """How many more this process may have."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return 2 * _MOST_EVENTS
    return most - len(list(Path("/proc/self/fd").iterdir()))


def why_refused(error: OSError) -> str:
    """Why there are no :class:`Leavings`, and what to do about it: a part of a sentence."""
    if error.errno == errno.E2BIG:
        return TOO_MANY
    if error.errno in (errno.EACCES, errno.EPERM):
        return _NOT_ALLOWED
    return perf.why_refused(error.errno or 0)
