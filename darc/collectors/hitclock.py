"""The program's own time, told by a debugger that stops it again and again.

A *hit* stops the program: the time that the debugger takes for it is no latency.

Where a thread has executed from one hit to the next without a pause (Linux counts both), its time
is that for which it had a processor, exactly, however busy the machine is. What a hit makes the
thread itself execute in the kernel is measured and taken out.

Where it paused to sleep, how long is told by a clock. What passes while the debugger's handler runs
is measured each time; what the debugger takes around it (to notice the hit, to step over it, to let
the program go on) is about the same for all hits and is measured in the program itself, between
hits on two instructions that follow each other. On a busy machine every stop has both sides wait
for a processor, often for longer than the program takes: where the system tells how long, that is
taken out as well. A kernel that nothing tells more of is timed by the clock alone.

An :class:`Instant` keeps all of it apart, so that it can be used before the cost is known.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from darc.debuggee.clock import Use

_ENOUGH = 16
"""Samples that tell the cost of a hit."""

_BOUNDS = 100
"""Calls of f0 that serve where there are no such samples."""

_STOPS_OF_A_HIT = 2
"""How often a thread pauses from one hit to its next: as it is stepped over the breakpoint, and
when it comes to the other one."""


@dataclass(frozen=True)
class Instant:
    """A point in a thread's time: in ns, and after how many hits that a clock has timed. ``exact``
    are those that nothing but the thread's own use of processors counts for."""

    ns: int
    hits: int
    exact: int = 0


@dataclass(frozen=True)
class _Seen:
    """A thread at a hit: what the clock says, less all that was lost to handlers and waiting, after
    how many hits, and what the thread has used."""

    ns: int
    hits: int
    use: Use | None


@dataclass
class _Lost:
    """What a thread, or all of them, lost to hits."""

    ns: int = 0
    hits: int = 0


class HitClock:
    """Tells instants within hits. With ``stops_all`` a hit of one thread stops the others too."""

    def __init__(
        self,
        stops_all: bool,
        *,
        waited: Callable[[int], int] = lambda thread: 0,
        own_waits: Callable[[], Mapping[int, int]] = dict,
        read: Callable[[], int] = time.monotonic_ns,
        stands_still: bool = False,
        use: Callable[[int], Use | None] = lambda thread: None,
    ) -> None:
        """``waited`` tells the ns for which a thread of the program has waited for a processor so
        far, ``own_waits`` the same of each of the debugger's threads, ``use`` what a thread has
        had. ``read`` is the clock; it ``stands_still`` where it does so while the program is
        stopped."""
        self._stops_all = stops_all
        self._waited = waited
        self._own_waits = own_waits
        self._read = read
        self._stands_still = stands_still
        self._use = use
        self._handled = 0
        self._own = own_waits()
        self._last_thread: int | None = None
        self._lost: dict[int, _Lost] = {}
        self._samples: list[int] = []
        self._exact_samples: list[int] = []
        self._bounds: list[int] = []
        self._lines: dict[int, tuple[_Seen, Instant]] = {}
        self._last: tuple[int, int, _Seen] | None = None

    def _of(self, thread: int) -> _Lost:
        return self._lost.setdefault(0 if self._stops_all else thread, _Lost())

    @contextmanager
    def hit(self, thread: int) -> Iterator[Instant]:
        """Around the handler of a hit: the instant at which the thread came there."""
        begin = self._read()
        lost = self._of(thread)
        lost.ns += self._own_since(thread)
        seen = _Seen(begin - lost.ns - self._waited(thread), lost.hits, self._use(thread))
        instant = self._instant(self._lines.get(thread), seen)
        self._lines[thread] = seen, instant
        try:
            with self._losing(lost, begin):
                yield instant
        finally:
            lost.hits += 1

    def _instant(self, before: tuple[_Seen, Instant] | None, seen: _Seen) -> Instant:
        """Where a thread is in its own time, by where it was at its hit before this one."""
        if before is None:
            return Instant(seen.ns, seen.hits)
        last, at = before
        passed, hits = seen.ns - last.ns, seen.hits - last.hits
        if last.use is None or seen.use is None:
            return Instant(at.ns + passed, at.hits + hits, at.exact)
        used = seen.use.ns - last.use.ns
        if seen.use.pauses - last.use.pauses <= _STOPS_OF_A_HIT:
            return Instant(at.ns + used, at.hits, at.exact + 1)
        if not self.is_calibrated:
            return Instant(at.ns + max(used, passed), at.hits + hits, at.exact)
        slept = max(0, passed - used - hits * self.cost)
        return Instant(at.ns + used + slept, at.hits, at.exact + 1)

    @contextmanager
    def _losing(self, lost: _Lost, begin: int) -> Iterator[None]:
        """What passes meanwhile is no time of the program's, however it is spent."""
        started = time.monotonic_ns()
        try:
            yield
        finally:
            lost.ns += self._read() - begin
            self._own = self._own_waits()
            self._handled += time.monotonic_ns() - started

    def _own_since(self, thread: int) -> int:
        """For how long the debugger waited since the hit before, and the thread with it. Several of
        its threads may wait at a time: that which waited longest counts."""
        if self._stands_still:
            return 0
        before, self._own = self._own, self._own_waits()
        last, self._last_thread = self._last_thread, thread
        if not self._stops_all and last != thread:
            return 0
        return max((ns - before.get(one, ns) for one, ns in self._own.items()), default=0)

    @contextmanager
    def away(self, thread: int) -> Iterator[None]:
        """Around what is done in consequence of a hit."""
        with self._losing(self._of(thread), self._read()):
            yield

    # ------------------------------------------------------------------ what a hit costs

    @property
    def is_calibrated(self) -> bool:
        """Whether enough was seen to tell the cost."""
        return len(self._samples) >= _ENOUGH

    def calibrate(self, thread: int, address: int, follows: int | None) -> None:
        """Every hit is told, within :meth:`hit`, as long as :attr:`is_calibrated` does not hold:
        ``follows`` is the instruction that is executed right before that at ``address``."""
        seen, _ = self._lines[thread]
        last, self._last = self._last, (thread, address, seen)
        if last is None or follows is None or last[:2] != (thread, follows):
            return
        before = last[2]
        if seen.hits != before.hits + 1:
            return
        self._samples.append(seen.ns - before.ns)
        if seen.use is not None and before.use is not None:
            self._exact_samples.append(seen.use.ns - before.use.ns)

    @property
    def cost(self) -> int:
        """What a hit takes besides its handler, in ns, as far as is known; 0 where nothing is."""
        if self._samples:
            return max(0, int(statistics.median(self._samples)))
        if self._bounds:  # no call is faster than nothing
            return max(0, sorted(self._bounds)[len(self._bounds) // 4])
        return 0

    @property
    def exact_cost(self) -> int:
        """What a hit makes the thread itself execute, in ns, as far as is known."""
        return int(statistics.median(self._exact_samples)) if self._exact_samples else 0

    @property
    def hits(self) -> int:
        """All hits so far."""
        return sum(lost.hits for lost in list(self._lost.values()))

    @property
    def lost_seconds(self) -> float:
        """How long they have stopped the program in all, as far as is known."""
        if self._stands_still:
            return self._handled / 1e9
        handled = sum(lost.ns for lost in list(self._lost.values()))
        return max(0, handled + self.hits * self.cost) / 1e9

    @property
    def mean_stop(self) -> float:
        """For how long a hit has stopped the program on the average, in ns."""
        return self.lost_seconds * 1e9 / max(1, self.hits)

    def observe(self, begin: Instant, end: Instant) -> None:
        """A call took from ``begin`` to ``end``: no hit within it can have cost more."""
        if end.hits > begin.hits and len(self._bounds) < _BOUNDS:
            self._bounds.append((end.ns - begin.ns) // (end.hits - begin.hits))

    def between(self, begin: Instant, end: Instant) -> int:
        """The program's own time between two instants of a thread, in ns; at least 1."""
        lost = (end.hits - begin.hits) * self.cost + (end.exact - begin.exact) * self.exact_cost
        return max(1, end.ns - begin.ns - lost)
