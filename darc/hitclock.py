"""The program's own time, told by a debugger that stops it again and again.

A *hit* stops the program: the time that the debugger takes for it is no latency. What passes while
its handler runs is measured each time; what the debugger takes around it (to notice the hit, to
step over it, to let the program go on) is the same for all hits and is measured in the program
itself, between hits on two instructions that follow each other.

On a busy machine every stop has both sides wait for a processor, often for longer than the program
takes. Where the system tells how long, that is taken out as well.

A :class:`Moment` keeps both apart, so that a moment can be used before the cost is known.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_ENOUGH = 16
"""Samples that tell the cost of a hit."""

_BOUNDS = 100
"""Calls of f0 that serve where there are no such samples."""


@dataclass(frozen=True)
class Moment:
    """A point in a thread's time: in ns, and after how many hits."""

    ns: int
    hits: int


@dataclass
class _Lost:
    """What a thread, or all of them, lost to hits."""

    ns: int = 0
    hits: int = 0


class HitClock:
    """Tells moments within hits. With ``stops_all`` a hit of one thread stops the others too."""

    def __init__(
        self,
        stops_all: bool,
        waited: Callable[[int], int] = lambda thread: 0,
        own_wait: Callable[[], int] = lambda: 0,
        read: Callable[[], int] = time.monotonic_ns,
        stands_still: bool = False,
    ) -> None:
        """``waited`` tells the ns for which a thread of the program has waited for a processor so
        far, ``own_wait`` the same of the debugger. ``read`` is the clock; it ``stands_still`` where
        it does so while the program is stopped."""
        self._stops_all = stops_all
        self._waited = waited
        self._own_wait = own_wait
        self._read = read
        self._stands_still = stands_still
        self._handled = 0
        self._own = own_wait()
        self._last_thread: int | None = None
        self._lost: dict[int, _Lost] = {}
        self._samples: list[int] = []
        self._bounds: list[int] = []
        self._last: tuple[int, int, Moment] | None = None

    def _of(self, thread: int) -> _Lost:
        return self._lost.setdefault(0 if self._stops_all else thread, _Lost())

    @contextmanager
    def hit(self, thread: int) -> Iterator[Moment]:
        """Around the handler of a hit: the moment at which the thread came there."""
        begin = self._read()
        lost = self._of(thread)
        lost.ns += self._own_since(thread)
        moment = Moment(begin - lost.ns - self._waited(thread), lost.hits)
        try:
            with self._losing(lost, begin):
                yield moment
        finally:
            lost.hits += 1

    @contextmanager
    def _losing(self, lost: _Lost, begin: int) -> Iterator[None]:
        """What passes meanwhile is no time of the program's, however it is spent."""
        started = time.monotonic_ns()
        try:
            yield
        finally:
            lost.ns += self._read() - begin
            self._own = self._own_wait()
            self._handled += time.monotonic_ns() - started

    def _own_since(self, thread: int) -> int:
        """For how long the debugger waited since the hit before, and the thread with it."""
        if self._stands_still:
            return 0
        before, self._own = self._own, self._own_wait()
        last, self._last_thread = self._last_thread, thread
        return max(0, self._own - before) if self._stops_all or last == thread else 0

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

    def calibrate(self, thread: int, address: int, follows: int | None, moment: Moment) -> None:
        """Every hit is told, as long as :attr:`is_calibrated` does not hold: ``follows`` is the
        instruction that is executed right before that at ``address``."""
        last, self._last = self._last, (thread, address, moment)
        if last is None or follows is None or last[:2] != (thread, follows):
            return
        if moment.hits == last[2].hits + 1:
            self._samples.append(moment.ns - last[2].ns)

    @property
    def cost(self) -> int:
        """What a hit takes besides its handler, in ns, as far as is known; 0 where nothing is."""
        if self._samples:
            return max(0, int(statistics.median(self._samples)))
        if self._bounds:  # no call is faster than nothing
            return max(0, sorted(self._bounds)[len(self._bounds) // 4])
        return 0

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

    def observe(self, begin: Moment, end: Moment) -> None:
        """A call took from ``begin`` to ``end``: no hit within it can have cost more."""
        if end.hits > begin.hits and len(self._bounds) < _BOUNDS:
            self._bounds.append((end.ns - begin.ns) // (end.hits - begin.hits))

    def between(self, begin: Moment, end: Moment) -> int:
        """The program's own time between two moments of a thread, in ns; at least 1."""
        return max(1, end.ns - begin.ns - (end.hits - begin.hits) * self.cost)
