"""What is behind a wait in a kernel: what whoever ended it had done meanwhile, and for whom that
one had waited (DepGraph III, Algorithm 1).

While the task of a kept op has no processor, the agent writes down what all tasks do
(:class:`~darc.model.ops.History`). So of the task that wakes it, it is known when it ran, when it
slept and who woke it then, and who had the processor while it could have run. The same is asked
again of whoever woke *that* one, within the time of that sleep alone, and so on: until nobody is
asked for who is in the chain already, or the chain is :data:`DEEPEST` long.

A disk serves one request after the other, so a wait for one is divided as that for a lock is: the
time up to the end of a request is that of the task that had submitted it.

Everything here is pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from darc.analyses.waits import WOKEN, WaitPart
from darc.model.ops import By, Event, KeptOps, Moment, MomentKind, deed
from darc.model.waits import Role

DEEPEST = 16
"""Tasks in one chain."""


class Behind:
    """What is behind the waits of some ops."""

    def __init__(self, kept: KeptOps) -> None:
        history = kept.history
        self._since = history.since
        self._least = max(kept.hz // 1_000_000, 1)
        """Cycles: what is shorter than a microsecond is nobody's."""
        self._of: dict[int, list[Moment]] = defaultdict(list)
        """What each task did: how it came to processors and lost them, its wake-ups, its work."""
        self._on: dict[int, list[Moment]] = defaultdict(list)
        """The switches of each processor."""
        self._disk: list[Moment] = []
        self._latest: dict[int, Moment] = {}
        """Of wake-ups by interrupts, by their times: what their processor was seen at before."""
        latest: dict[int, Moment] = {}
        for one in history.moments:
            if one.kind is MomentKind.DISK:
                self._disk.append(one)
            elif one.kind is MomentKind.SWITCH:
                self._on[one.cpu].append(one)
                self._of[one.task].append(one)
                self._of[one.other].append(one)
            else:
                self._of[one.task].append(one)
            if one.kind is not MomentKind.WAKE:
                latest[one.cpu] = one
            elif one.by is not By.TASK and one.cpu in latest:
                self._latest[one.time] = latest[one.cpu]

    def waker(self, by: Event, task: int, start: int, end: int) -> tuple[WaitPart, ...]:
        """Of a sleep of ``task`` that ``by`` has ended."""
        if start < self._since:
            return ()
        if by.by is By.TASK and not by.thread:
            return ()  # the task of a processor that has nothing to do: each has one
        if by.by is By.TASK:
            return tuple(self._life(by.thread, start, end, (task, by.thread)))
        woken = [
            one
            for one in self._of[task]
            if one.kind is MomentKind.WAKE and start <= one.time <= end + self._least
        ]
        return self._disk_of(woken[0], start, end) if woken else ()

    def others(self, task: int, start: int, end: int) -> tuple[WaitPart, ...]:
        """Who had the processor that ``task`` came to at ``end``, since it could have run."""
        came = [
            one
            for one in self._of[task]
            if one.kind is MomentKind.SWITCH
            and one.task == task
            and abs(one.time - end) <= self._least
        ]
        if not came or start < self._since:
            return ()
        return tuple(self._ran(came[0].cpu, task, start, end))

    # ------------------------------------------------------------------- a task's life

    def _life(self, task: int, start: int, end: int, chain: tuple[int, ...]) -> Iterator[WaitPart]:
        """From ``start`` to ``end``, when it runs."""
        switches = [
            one
            for one in self._of[task]
            if one.kind is MomentKind.SWITCH and start <= one.time <= end
        ]
        now = start
        is_on = not switches or switches[0].other == task
        left: Moment | None = None
        for one in switches:
            if one.other == task and is_on:
                yield from self._running(task, now, one.time)
                now, is_on, left = one.time, False, one
            elif one.task == task and not is_on:
                yield from self._off(left, one, now, chain)
                now, is_on = one.time, True
        if is_on:
            yield from self._running(task, now, end)

    def _running(self, task: int, start: int, end: int) -> Iterator[WaitPart]:
        """By the work that it did for others."""
        works = [
            one for one in self._of[task] if one.kind is MomentKind.WORK and start < one.time < end
        ]
        now, function = start, works[0].before if works else self._work_at(task, start)
        for one in works:
            yield from self._did(now, one.time, function)
            now, function = one.time, one.work
        yield from self._did(now, end, function)

    def _work_at(self, task: int, time: int) -> int:
        """The function of the work that it is in then, 0: none, or that is not known."""
        before = [one for one in self._of[task] if one.kind is MomentKind.WORK and one.time <= time]
        after = [one for one in self._of[task] if one.kind is MomentKind.WORK and one.time > time]
        if before:
            return before[-1].work
        return after[0].before if after else 0

    def _did(self, start: int, end: int, function: int) -> Iterator[WaitPart]:
        if end - start >= self._least:
            yield WaitPart(start, end, Role.DID, deed(start, function) if function else None)

    def _off(
        self, left: Moment | None, came: Moment, start: int, chain: tuple[int, ...]
    ) -> Iterator[WaitPart]:
        """From ``start`` on, when it ``left`` its processor, or before, until it ``came`` back."""
        task, end = came.task, came.time
        if end - start < self._least:
            return
        woken = [
            one
            for one in self._of[task]
            if one.kind is MomentKind.WAKE and start <= one.time <= end
        ]
        if (left is not None and left.is_ready) or (left is None and not woken):
            others = tuple(self._ran(came.cpu, task, start, end))
            yield WaitPart(start=start, end=end, role=Role.READY, by=None, behind=others)
            return
        where = deed(start, 0, stack=came.stack)
        if not woken:
            yield WaitPart(start, end, Role.SLEPT, where)
            return
        first = woken[0]
        yield from slept_parts(
            *(start, first.time, end),
            where=where,
            least=self._least,
            by=lambda: self._by(first, task, start, chain),
            others=lambda: tuple(self._ran(came.cpu, task, first.time, end)),
        )

    def _by(
        self, wake: Moment, task: int, start: int, chain: tuple[int, ...]
    ) -> tuple[WaitPart, ...]:
        """Who woke it, and what is behind that."""
        event = deed(wake.time, 0, thread=wake.other, stack=wake.stack, name=wake.name, by=wake.by)
        if wake.by is not By.TASK:
            behind = self._disk_of(wake, start, wake.time)
        elif wake.other in (0, *chain) or len(chain) >= DEEPEST:
            behind = ()
        else:
            behind = tuple(self._life(wake.other, start, wake.time, (*chain, wake.other)))
        return (WaitPart(start=start, end=wake.time, role=WOKEN[wake.by], by=event, behind=behind),)

    # ------------------------------------------------------------ processors and disks

    def _ran(self, cpu: int, task: int, start: int, end: int) -> Iterator[WaitPart]:
        """Who had that processor, but for the ``task`` itself."""
        switches = [one for one in self._on[cpu] if start < one.time <= end]
        running = [one for one in self._on[cpu] if one.time <= start][-1:]
        now, name = start, running[0].name if running else ""
        number = running[0].task if running else switches[0].other if switches else 0
        for one in switches:
            if number not in (0, task) and one.time - now >= self._least:
                event = deed(now, 0, thread=number, name=name or self._name(number))
                yield WaitPart(now, one.time, Role.RAN, event)
            now, number, name = one.time, one.task, one.name

    def _name(self, task: int) -> str:
        named = (one.name for one in self._of[task] if one.task == task and one.name)
        return next(named, "")

    def _disk_of(self, wake: Moment, start: int, end: int) -> tuple[WaitPart, ...]:
        """Whose requests a disk served meanwhile; nothing, where no end of one has woken it."""
        before = self._latest.get(wake.time)
        if before is None or before.kind is not MomentKind.DISK or before.time < start:
            return ()
        ended = [one for one in self._disk if start < one.time <= end]
        now, found = start, []
        for one in ended:
            to = end if one is ended[-1] else one.time
            event = deed(now, 0, thread=one.task, name=one.name)
            found.append(WaitPart(now, to, Role.DISK, event))
            now = to
        return tuple(found)


def slept_parts(
    start: int,
    woken: int,
    end: int,
    *,
    where: Event,
    least: int,
    by: Callable[[], tuple[WaitPart, ...]],
    others: Callable[[], tuple[WaitPart, ...]] = tuple,
) -> Iterator[WaitPart]:
    """Of a sleep that ``by`` has ended, ``where`` the thread was: the time up to that, and that in
    which ``others`` had its processor. What is shorter than ``least`` is nobody's."""
    if woken - start >= least:
        yield WaitPart(start=start, end=woken, role=Role.SLEPT, by=where, behind=by())
    if end - woken >= least:
        yield WaitPart(start=woken, end=end, role=Role.READY, by=None, behind=others())
