"""Who kept ops waiting: from the events of single ops to shares of the whole (DepGraph III, IV).

Who owns a lock when a wait begins is mostly not who releases it in the end. Between two releases
the lock was held by whoever made the second one, so a wait is divided among the successive
holders; a wait for a semaphore likewise, at each post. What is signalled (a condition, a barrier, a
thread's end) was waited for until the last signal before the wait's end.

Everything here is pure: names come from a :class:`Namer`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from darc.code.landmarks import WAIT_AT
from darc.model.libraries import is_c_library
from darc.model.ops import By, Event, ObjectKind, OffReason, Op, Stack
from darc.model.waits import Holder, Role, WaitedFor, Waits

WOKEN = {
    By.TASK: Role.WOKE,
    By.INTERRUPT: Role.INTERRUPT,
    By.SOFT_INTERRUPT: Role.SOFT_INTERRUPT,
}
"""What part whoever woke a thread has in its wait."""


class Namer(Protocol):
    """Names of what the program has, as a user knows it."""

    def path(self, stack: Stack, within: str | None) -> tuple[str, ...]:
        """The functions of a thread, innermost first, up to the one that is called ``within``."""

    def place(self, stack: Stack) -> tuple[str, ...]:
        """All functions in which a thread sleeps, innermost first: the C library's as well."""

    def object(self, kind: ObjectKind, address: int) -> str:
        """What a lock or a thread is called."""

    def thread(self, number: int) -> str:
        """What a thread is called."""

    def function(self, address: int) -> str:
        """The function that is there."""

    def is_shared(self, address: int) -> bool:
        """Whether other processes may have the memory that is there, too."""

    def outsider(self, number: int) -> str | None:
        """What the process is called whose thread has that id; ``None``: none but the program's
        own is known."""


@dataclass(frozen=True)
class WaitPart:
    """A part of a wait's time, in cycles of the TSC, and by whom."""

    start: int
    end: int
    role: Role
    by: Event | None = None
    behind: tuple[WaitPart, ...] = ()
    """What whoever it is did in that time itself."""


@dataclass(frozen=True)
class Wait:
    """One wait of an op."""

    begin: Event
    end: int
    parts: tuple[WaitPart, ...]

    @property
    def cycles(self) -> int:
        """How long it was."""
        return self.end - self.begin.time


def waits_of(op: Op) -> list[Wait]:
    """The waits of an op of which something is known, by time. Of those that are shorter than
    the shortest call that has a span, nothing is said."""
    begins = _begins(op)
    found = []
    for number, begin in enumerate(begins):
        limit = begins[number + 1].time if number + 1 < len(begins) else op.end
        if _is_its_own(op, begin):
            continue
        later = [e for e in op.events if e.is_release and begin.time < e.time <= limit]
        limit = min([limit, *(e.time for e in later if op.thread and e.thread == op.thread)])
        releases = [e for e in later if _first(e) < limit and _is_of(e, begin)]
        end = _end(op, begin, releases, limit)
        if end - begin.time < max(op.least, 1):
            continue
        parts = tuple(_parts(op, begin, [e for e in releases if _first(e) <= end], end))
        if parts[0].role in (Role.NOT_SEEN, Role.HELD_FIRST, Role.NOT_FOLLOWED):
            parts = tuple(_parts(op, begin, _wakers(op, begin, end), end))
        found.append(Wait(begin, end, parts))
    return sorted([*found, *_more_waits(op, found)], key=lambda wait: wait.begin.time)


def _more_waits(op: Op, known: Sequence[Wait]) -> Iterator[Wait]:
    """Those for which there was no room, but that were like ones that are written down: each call
    of the function that waits in which the thread was blocked. Where others may have been there as
    well, it is not known which one it was."""
    for begin in op.events:
        node = begin.node
        if not begin.more or node is None or op.lost_waits or node.function.name not in _WAITING:
            continue
        if _is_its_own(op, begin):
            continue
        if any(e.node is node and e.object != begin.object for e in _begins(op)):
            continue
        for span in op.spans:
            is_known = any(w.begin.time < span.end and span.start < w.end for w in known)
            if span.node is node and not is_known and _is_blocked(op, span.start, span.end):
                like = replace(begin, time=span.start, thread=0, is_followed=False)
                parts = _parts(op, like, _wakers(op, like, span.end), span.end)
                yield Wait(like, span.end, tuple(parts))


def _is_blocked(op: Op, start: int, end: int) -> bool:
    return any(o.reason is OffReason.BLOCKED and o.within(start, end) for o in op.off or ())


def _first(release: Event) -> int:
    """When it was, or the first one of those that were added up."""
    return release.time if release.first is None else release.first


def _begins(op: Op) -> list[Event]:
    """Where its thread may have begun to wait. A thread is joined once, by a function that goes on
    in another one, which is watched as well."""
    found: list[Event] = []
    for event in op.events:
        is_join = event.kind is ObjectKind.THREAD and found and event.object == found[-1].object
        if not event.is_release and not is_join:
            found.append(event)
    return found


def _is_its_own(op: Op, begin: Event) -> bool:
    """Whether the op's thread has the lock already, and takes a recursive one once more, or is
    refused."""
    return begin.kind in _LOCKS and 0 < begin.thread == op.thread


def _is_of(release: Event, begin: Event) -> bool:
    """Whether it is a release of what is waited for: of a condition's mutex, too."""
    return release.object == begin.object or begin.kind is ObjectKind.CONDITION


_SPINNING = 1 << 17
"""Cycles for which a thread runs at most in the C library before it sleeps, or between two sleeps
in one wait, and for which it may be that it only then comes to call the kernel."""

_LOCKS = (ObjectKind.LOCK, ObjectKind.RWLOCK)
_DIVIDED = (*_LOCKS, ObjectKind.SEMAPHORE)
"""What one after the other has, and passes on."""

_WAITING = frozenset(name for names in WAIT_AT.values() for name in names)


def _end(op: Op, begin: Event, releases: Sequence[Event], limit: int) -> int:
    """When the thread went on: when the function returned in which it waited, where that was timed.
    Else when it slept no more; else, at the last release that was seen."""
    inside = [span for span in op.spans if span.start <= begin.time < span.end]
    innermost = max(inside, key=lambda span: span.start, default=None)
    if innermost is not None and innermost.node is begin.node:
        limit = min(limit, innermost.end)
        if innermost.node.function.name in _WAITING:
            return limit
    last = max((min(release.time, limit) for release in releases), default=begin.time)
    if op.off is None:
        return last
    releases = releases or (_wakers(op, begin, limit) if begin.kind in _LOCKS else [])
    end = begin.time
    for off in op.off:
        if off.start < begin.time or off.start >= limit:
            continue
        is_next = off.start - end <= _SPINNING
        is_woken = any(_first(e) <= off.end and off.start <= e.time for e in releases)
        if not is_next or (end > begin.time and not is_woken and off.reason is OffReason.BLOCKED):
            break
        end = off.end
    return min(max(end, last), limit)


def _wakers(op: Op, begin: Event, end: int) -> list[Event]:
    """Those who woke it meanwhile, as releases, where none was seen; not its own timer. Of a
    condition the first one has signalled it; the thread may have waited for the mutex after
    that."""
    woken = [e for e in op.wakers or () if e.by is By.TASK and begin.time < e.time <= end]
    is_condition = begin.kind is ObjectKind.CONDITION
    return [
        replace(e, kind=begin.kind, object=0 if number and is_condition else begin.object)
        for number, e in enumerate(woken)
    ]


def _is_lock(op: Op, begin: Event) -> bool:
    """Whether a futex is a lock's: the thread itself releases what it has waited for. So do those
    who released it meanwhile, one after the other; each wakes the next."""
    return begin.kind is ObjectKind.FUTEX and any(
        event.is_release
        and event.object == begin.object
        and event.thread == op.thread
        and event.time > begin.time
        for event in op.events
    )


def _parts(op: Op, begin: Event, releases: Sequence[Event], end: int) -> Iterator[WaitPart]:
    now = begin.time
    if begin.kind in _DIVIDED or _is_lock(op, begin):
        role = Role.WOKE if begin.kind is ObjectKind.SEMAPHORE else Role.HELD
        for part in _divided(begin, releases, end, role):
            yield part
            now = part.end
    else:
        signals = [release for release in releases if release.object == begin.object]
        if signals:
            yield WaitPart(now, min(signals[-1].time, end), Role.WOKE, signals[-1])
            now = min(signals[-1].time, end)
        for release in releases:  # of the mutex that a condition's wait takes again
            if release.object != begin.object and release.time > now and signals:
                yield WaitPart(now, min(release.time, end), Role.HELD, release)
                now = min(release.time, end)
    if now > begin.time:
        if end > now:
            yield WaitPart(now, end, Role.HANDED_OVER)
    elif op.lost_events or not begin.is_followed:
        yield WaitPart(now, end, Role.NOT_FOLLOWED)
    elif begin.thread:
        yield WaitPart(now, end, Role.HELD_FIRST, begin)
    else:
        yield WaitPart(now, end, Role.NOT_SEEN)


def _divided(begin: Event, releases: Sequence[Event], end: int, role: Role) -> Iterator[WaitPart]:
    """The time up to the last release, by who released: by what each has held, where it is known;
    else, each since the one before. What is left is that of those for which there was no room."""
    now = begin.time
    for release in releases:
        until = release.time if release.held is None else now + release.held
        until = max(min(until, release.time, end), now)
        yield WaitPart(now, until, role, release)
        now = until
    last = max((min(release.time, end) for release in releases), default=now)
    if last > now:
        yield WaitPart(now, last, Role.NOT_FOLLOWED)


_Holders: TypeAlias = "dict[tuple[Role, str, tuple[str, ...], bool], _Sum]"
"""By what they have to do with it, their names, their functions, and whether they are outside."""


@dataclass
class _Sum:
    cycles: int = 0
    ops: set[int] = field(default_factory=set)
    threads: set[int] = field(default_factory=set)
    behind: _Holders = field(default_factory=lambda: defaultdict(_Sum))

    def add(self, cycles: int, op: int, by: Event | None = None) -> None:
        self.cycles += cycles
        self.ops.add(op)
        if by is not None and by.thread:
            self.threads.add(by.thread)


@dataclass
class _Object:
    own: _Sum = field(default_factory=_Sum)
    waits: int = 0
    holders: _Holders = field(default_factory=lambda: defaultdict(_Sum))


def merge(
    ops: Iterable[Op], f0: str, name: Namer, divide: Callable[[Op], Sequence[Wait]] = waits_of
) -> Waits:
    """The waits of ``ops``, which are calls of the function ``f0``, added up; ``divide`` tells
    those of one."""
    found: dict[tuple[ObjectKind, str, tuple[str, ...]], _Object] = defaultdict(_Object)
    count = cycles = lost = not_followed = 0
    ops = tuple(ops)
    for op in ops:
        count, cycles, lost = count + 1, cycles + op.latency, lost + op.lost_events
        waits = divide(op)
        not_followed += _not_followed(op, waits)
        for wait in waits:
            begin = wait.begin
            one = found[begin.kind, *_what(begin, f0, name)]
            one.own.add(wait.cycles, op.number)
            one.waits += 1
            is_shared = begin.object != 0 and name.is_shared(begin.object)
            for part in _passed_on(wait, f0, name):
                _add(
                    one.holders, part, op=op.number, kind=begin.kind, name=name, is_shared=is_shared
                )
    objects = [_waited_for(key, one) for key, one in found.items()]
    objects.sort(key=lambda o: -o.cycles)
    return Waits(
        ops=count,
        cycles=cycles,
        objects=tuple(objects),
        lost=lost,
        not_followed=not_followed,
        moments=moments_of(ops),
    )


def stacks_of(ops: Iterable[Op]) -> dict[int, int]:
    """Where the stacks of the program's threads ended at their events, each as far down as any of
    them tells."""
    found: dict[int, int] = {}
    for op in ops:
        for event in op.events:
            thread, pointer = event.thread if event.is_release else op.thread, event.stack.pointer
            if thread and pointer and not event.is_outside:
                found[thread] = min(found.get(thread, pointer), pointer)
    return found


def moments_of(ops: Iterable[Op]) -> int:
    """Into how many groups ops fall whose calls overlap in time."""
    moments, until = 0, -1
    for op in sorted(ops, key=lambda op: op.start):
        moments += op.start > until
        until = max(until, op.end)
    return moments


def _passed_on(wait: Wait, f0: str, name: Namer) -> Iterator[WaitPart]:
    """The parts of a wait. Who was in the same call when it woke this thread has passed on that it
    had been woken itself: so writers of a full pipe do, each to the next one, when somebody has
    read (``pipe_write``, fs/pipe.c). Until then the wait was for whoever woke that one."""
    route = wait.begin.node.route()[1:] if wait.begin.node is not None else ()
    own = itertools.dropwhile(lambda node: is_c_library(node.function.module), reversed(route))
    call = (*(node.function.name for node in own), f0)
    for part in wait.parts:
        left = part
        while left.role is Role.WOKE and (by := left.by) is not None and by.before is not None:
            before = by.before
            path = name.path(by.stack, f0)
            if before.time <= left.start or before.thread == by.thread or path != call:
                break
            yield replace(left, start=before.time, behind=())  # that was of the whole
            left = WaitPart(left.start, before.time, WOKEN[before.by], before)
        yield left


def _add(
    holders: _Holders,
    part: WaitPart,
    op: int,
    *,
    kind: ObjectKind,
    name: Namer,
    is_shared: bool = False,
) -> None:
    """``is_shared``: another process may have released it, which is not seen from here."""
    who, path = _who(part, name)
    if kind is ObjectKind.THREAD:
        path = ()  # where the C library ends all threads
    is_outside = part.by is not None and part.by.is_outside
    if part.role is Role.NOT_SEEN:
        is_outside = is_shared
    if part.role is Role.HELD_FIRST and part.by is not None:
        process = name.outsider(part.by.thread)
        who, is_outside = who if process is None else process, process is not None
    if part.role in _INTERRUPTS:
        who, is_outside = "", False  # whom they came upon has nothing to do with it
    total = holders[part.role, who, path, is_outside]
    total.add(part.end - part.start, op, part.by)
    for one in part.behind:
        if one.role is not Role.DISK or _TIMERS.isdisjoint(path):
            _add(total.behind, one, op=op, kind=kind, name=name)


def _not_followed(op: Op, waits: Sequence[Wait]) -> int:
    """For how many cycles an op was blocked in none of its ``waits``, where for some of its events
    there was no room."""
    if not op.lost_events:
        return 0
    known = sum(
        off.within(wait.begin.time, wait.end)
        for off in op.off or ()
        if off.reason is OffReason.BLOCKED
        for wait in waits
    )
    return max(0, op.off_time(OffReason.BLOCKED) - known)


def _what(begin: Event, f0: str, name: Namer) -> tuple[str, tuple[str, ...]]:
    """The name of what is waited for, and in which functions."""
    if begin.kind is ObjectKind.PROCESSOR:
        return "", ()  # wherever that comes, it is one cause (DARC 3.6)
    if begin.kind in (ObjectKind.WAKE_UP, ObjectKind.CALL):
        above = begin.node.route()[1:] if begin.node is not None else ()
        return "", (*(node.function.name for node in reversed(above)), f0)
    return name.object(begin.kind, begin.object), name.path(begin.stack, f0)


_WAKES = frozenset(
    (
        *("try_to_wake_up", "wake_up_process", "wake_up_state", "wake_up_q", "__wake_up"),
        *("default_wake_function", "autoremove_wake_function", "woken_wake_function"),
        *("__wake_up_common", "__wake_up_common_lock", "__wake_up_sync_key"),
    )
)
"""A kernel's functions that only pass on that somebody is to be woken."""


_SLEEPS = frozenset(
    (
        *("finish_task_switch", "__schedule", "schedule", "schedule_preempt_disabled"),
        *("io_schedule", "schedule_timeout", "io_schedule_timeout"),
    )
)
"""Those that only pass on that somebody wants to sleep."""

_INTERRUPTS = (Role.INTERRUPT, Role.SOFT_INTERRUPT)

_TIMERS = frozenset(("hrtimer_wakeup", "process_timeout", "hrtimer_interrupt"))
"""Who is woken in one of these has not waited for a disk."""


def _who(part: WaitPart, name: Namer) -> tuple[str, tuple[str, ...]]:
    if part.by is None:
        return "", ()
    if part.role is Role.DID:
        return "", (name.function(part.by.object),) if part.by.object else ()
    if part.role is Role.SLEPT:
        path = name.place(part.by.stack)
        return "", tuple(itertools.dropwhile(lambda function: function in _SLEEPS, path)) or path
    who = part.by.name or name.thread(part.by.thread)
    if part.role in (Role.HELD_FIRST, Role.RAN, Role.DISK):
        return who, ()
    if part.by.kind is ObjectKind.WAKE_UP:
        path = name.path(part.by.stack, None)
        return who, tuple(itertools.dropwhile(lambda function: function in _WAKES, path)) or path
    return who, name.path(part.by.stack, None)


def _waited_for(key: tuple[ObjectKind, str, tuple[str, ...]], one: _Object) -> WaitedFor:
    kind, name, path = key
    holders = _holders(one.holders)
    return WaitedFor(
        kind=kind,
        name=name,
        path=path,
        cycles=one.own.cycles,
        ops=len(one.own.ops),
        waits=one.waits,
        holders=holders,
    )


def _holders(found: _Holders) -> tuple[Holder, ...]:
    holders = [
        Holder(
            *(role, who, path, total.cycles, len(total.ops), tuple(sorted(total.threads))),
            is_outside=outside,
            behind=_holders(total.behind),
        )
        for (role, who, path, outside), total in found.items()
    ]
    return tuple(sorted(holders, key=lambda holder: -holder.cycles))
