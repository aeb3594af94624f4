"""Who had a processor while a thread could have run: the kernel tells the privileged.

Who gets each processor is recorded, of whatever process, and read where somebody asks.
Nothing of it is in any program, and all ends with the debugger.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from darc.debuggee import perf, procfs
from darc.debuggee.perf import Naming, Ring, Takeover
from darc.target.memory import PAGE

_RING_PAGES = 256
"""Of a processor's ring: 26,000 records, two of each switch."""

_RING_BYTES = 16 << 20
_KEPT_BYTES = 16 << 20
"""Of records, at most: 200,000 switches;"""

_MOST_ROUNDS = 1 << 12
"""and so many times that the rings were emptied: some minutes."""

_NEAR_NS = 20_000
"""By how much this record and the thread's own may differ: what the kernel does
between the two."""

_NAMING_PAGES = 16
"""Of a processor's other ring, for who is made there: some 1000."""

_MOST_NAMED = 4096
"""Threads whose names are known: those that were made latest, or asked for."""

_NAMED_AT_ONCE = 64
"""Threads that are looked up each time a ring is emptied, while they are there."""


@dataclass(frozen=True)
class Occupant:
    """A thread of whatever process had the processor, in ns of CLOCK_MONOTONIC_RAW."""

    begin: int
    end: int
    process: int
    thread: int
    name: str
    """Empty where that is not known."""


@dataclass(frozen=True)
class _Round:
    """What was taken out of the rings at one time: it is of the time from ``begin`` to ``end``."""

    begin: int
    end: int
    takeovers: dict[int, bytes]
    """By processor, of those for which there was room for all."""
    size: int


class WhoRan:
    """Watches the processors, until :meth:`close`. Not by two threads at one time."""

    def __init__(self, now: int) -> None:
        """Raises:
        OSError: this process may not ask for that.
        """
        self._rings: dict[int, Ring] = {}
        self._namings: list[Ring] = []
        self._rounds: list[_Round] = []
        self._size = 0
        self._emptied = now
        self._names: dict[tuple[int, int], str] = {}
        processors = perf.processors()
        pages = max(1, min(_RING_PAGES, _RING_BYTES // len(processors) // PAGE))
        try:
            for processor in processors:
                self._rings[processor] = perf.map_ring(perf.open_takeovers(processor), pages)
                naming = perf.open_namings(processor)
                self._namings.append(perf.map_ring(naming, min(_NAMING_PAGES, pages)))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Watches no more. What was seen can still be asked for."""
        for ring in (*self._rings.values(), *self._namings):
            ring.close()
        self._rings.clear()
        self._namings.clear()

    def drain(self, now: int) -> None:
        """Takes down what has happened until ``now``, and the names of some that got one, as
        long as they are there."""
        for ring in self._namings:
            for one in perf.namings(ring.take().data):
                self._learn(one)
        found, size = {}, 0
        for processor, ring in self._rings.items():
            taken = ring.take()
            size += len(taken.data)
            if not taken.was_full and perf.are_takeovers(taken.data):
                found[processor] = taken.data
                for seen in perf.some_of(taken.data, _NAMED_AT_ONCE):
                    self._name(*seen)
        self._rounds.append(_Round(self._emptied, now, found, size))
        self._size += size
        while self._size > _KEPT_BYTES or len(self._rounds) > _MOST_ROUNDS:
            self._size -= self._rounds.pop(0).size
        self._emptied = now

    def _learn(self, naming: Naming) -> None:
        name = naming.name if naming.made_by is None else self._name(*naming.made_by)
        self._keep((naming.process, naming.thread), name)

    def _name(self, process: int, thread: int) -> str:
        if (known := self._names.get((process, thread))) is None:
            known = procfs.status(process, thread).get("Name", "") if process else ""
            self._keep((process, thread), known)
        return known

    def _keep(self, thread: tuple[int, int], name: str) -> None:
        self._names[thread] = name
        if len(self._names) > _MOST_NAMED:
            del self._names[next(iter(self._names))]

    def before(self, thread: int, begin: int, end: int) -> tuple[Occupant, ...]:
        """Who had the processor from ``begin`` on that the thread came to at ``end``; nobody where
        there was no room to write down all of that."""
        latest = end + _NEAR_NS
        first = bisect_left(self._rounds, begin, key=_end)
        rounds = self._rounds[first : bisect_left(self._rounds, latest, key=_end) + 1]
        if not rounds or rounds[0].begin > begin:
            return ()
        for processor in rounds[-1].takeovers:
            own = [
                one
                for one in _takeovers(rounds, processor, end - _NEAR_NS, latest)
                if one.thread == thread
            ]
            if own and all(processor in one.takeovers for one in rounds):
                takeovers = _takeovers(rounds, processor, begin, own[0].time)
                return tuple(self._occupants(takeovers, thread, begin))
        return ()

    def _occupants(
        self, takeovers: Iterable[Takeover], thread: int, begin: int
    ) -> Iterator[Occupant]:
        now = begin
        for one in takeovers:
            if one.process_before and one.thread_before != thread:
                name = self._name(one.process_before, one.thread_before)
                yield Occupant(
                    begin=now,
                    end=one.time,
                    process=one.process_before,
                    thread=one.thread_before,
                    name=name,
                )
            now = one.time


def _takeovers(
    rounds: Iterable[_Round], processor: int, begin: int, end: int
) -> Iterator[Takeover]:
    for one in rounds:
        yield from perf.takeovers_between(one.takeovers.get(processor, b""), begin, end)


def _end(one: _Round) -> int:
    return one.end
