"""What whoever had what an op of a process waited for did meanwhile, and for whom that one waited
(DepGraph III, Algorithm 1; of kernels :mod:`darc.analyses.behind` tells it).

Of each thread of the program it is known when it had no processor. So of whoever holds a lock it is
told for how long it ran, for how long it slept, and in which call as far as the kernel tells; of
whoever has woken it the same is asked, within the time of that sleep alone, and so on: until
nobody is asked for who is in the chain already, or the chain is :data:`~.behind.DEEPEST` long.

Everything here is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from darc.analyses.behind import DEEPEST, slept_parts
from darc.analyses.waits import WOKEN, WaitPart
from darc.model.offtimes import OffTimes
from darc.model.ops import NOWHERE, By, Event, Off, OffReason, Op, deed
from darc.model.waits import Role

OffOf: TypeAlias = Callable[[int, int, int], OffTimes | None]
"""Of a thread of the program when it was off its processor between two times, in cycles, if it ran
at the second; ``None`` where it was not watched."""

_HOLDERS = (Role.HELD, Role.HELD_FIRST, Role.WOKE)
"""What somebody was who is asked what he did meanwhile."""

_MUCH = 0.125
"""Of an op: for what is shorter nobody is asked."""


def with_life(op: Op, part: WaitPart, off_of: OffOf | None) -> WaitPart:
    """A part of a wait, with what whoever it is due to did meanwhile, where it is much."""
    if off_of is None or op.off is None or part.role not in _HOLDERS:
        return part
    if part.end - part.start < _MUCH * op.latency:
        return part
    chain = frozenset((op.thread,))
    behind = tuple(_Lives(off_of, max(op.least, 1)).of(part.by, part.start, part.end, chain))
    return replace(part, behind=(*part.behind, *behind)) if behind else part


@dataclass(frozen=True)
class _Lives:
    off_of: OffOf
    least: int
    """Cycles: what is shorter is nobody's."""

    def of(
        self, by: Event | None, start: int, end: int, chain: frozenset[int]
    ) -> Iterator[WaitPart]:
        """From ``start`` to ``end``, when it runs; nothing of another process, nor of one that is
        in the ``chain``."""
        if by is None or by.is_outside or not by.thread or by.thread in chain:
            return
        if len(chain) > DEEPEST:
            return
        known = self.off_of(by.thread, start, end)
        if known is None:
            yield WaitPart(start, end, Role.UNKNOWN)
            return
        now = start
        for off in known.off:
            yield from self._part(now, off.start, Role.DID)
            yield from self._off(off, known, {*chain, by.thread})
            now = off.end
        yield from self._part(now, end, Role.DID)

    def _part(self, start: int, end: int, role: Role) -> Iterator[WaitPart]:
        if end - start >= self.least:
            yield WaitPart(start, end, role)

    def _off(self, off: Off, known: OffTimes, chain: set[int]) -> Iterator[WaitPart]:
        if off.reason is OffReason.READY:
            yield from self._part(off.start, off.end, Role.READY)
        elif off.reason is OffReason.UNKNOWN:
            yield from self._part(off.start, off.end, Role.UNKNOWN)
        elif off.reason is OffReason.BLOCKED:
            yield from self._slept(off, known, frozenset(chain))

    def _slept(self, off: Off, known: OffTimes, chain: frozenset[int]) -> Iterator[WaitPart]:
        where = deed(off.start, 0, stack=off.stack or NOWHERE)
        woken = [one for one in known.wakers or () if off.start <= one.time <= off.end]
        if woken:
            first = woken[0]  # who comes later finds the thread woken
            yield from slept_parts(
                *(off.start, first.time, off.end),
                where=where,
                least=self.least,
                by=lambda: self._by(first, off.start, chain),
            )
        elif off.end - off.start >= self.least:
            yield WaitPart(off.start, off.end, Role.SLEPT, where)

    def _by(self, first: Event, start: int, chain: frozenset[int]) -> tuple[WaitPart, ...]:
        is_task = first.by is By.TASK
        if is_task and not first.is_outside and first.thread in chain:
            return ()
        behind = self.of(first, start, first.time, chain) if is_task else ()
        role = WOKEN[first.by]
        return (WaitPart(start, first.time, role, by=first, behind=tuple(behind)),)
