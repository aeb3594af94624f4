"""Who woke the tasks of a kernel's ops, and who ran in their places (DepGraph III).

There every time off the processor is known with its reason, and so is who ends it: no lock has to
be known for that. A sleep's time is divided into that up to the wake-up, and that until the task
had a processor again. Of processes only the privileged are told who wakes; anybody, in which call
a thread was blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from darc.analyses.behind import DEEPEST, Behind, deed
from darc.analyses.waits import WOKEN, Wait, WaitPart, waits_of
from darc.model.ftree import Fnode
from darc.model.offtimes import OffTimes
from darc.model.ops import Event, ObjectKind, Off, OffReason, Op, Ran, Stack
from darc.model.waits import Role

_KINDS = {
    OffReason.BLOCKED: ObjectKind.WAKE_UP,
    OffReason.READY: ObjectKind.PROCESSOR,
}


def sleeps_of(op: Op, behind: Behind | None = None) -> list[Wait]:
    """The times in which the task of an op had no processor, by time; ``behind`` knows what others
    did meanwhile."""
    return [
        Wait(_begin(op, off, kind), off.end, tuple(_parts(op, off, kind, behind)))
        for off in op.off or ()
        if (kind := _KINDS.get(off.reason)) is not None
    ]


OffOf: TypeAlias = Callable[[int, int, int], OffTimes | None]
"""Of a thread of the program when it was off its processor between two times, in cycles, if it ran
at the second; ``None`` where it was not watched."""


def waits_and_sleeps_of(op: Op, off_of: OffOf = lambda thread, start, end: None) -> list[Wait]:
    """The waits of an op of a process, and the other times in which its thread had no processor. Of
    who had what was waited for, ``off_of`` tells whom that one had waited for meanwhile."""
    known = [
        replace(wait, parts=tuple(_with_chain(op, _with_ran(op, p), off_of) for p in wait.parts))
        for wait in waits_of(op)
    ]
    others = [
        Wait(_begin(op, off, kind), off.end, parts)
        for off in op.off or ()
        if off.end - off.start >= op.least
        if not any(wait.begin.time < off.end and off.start < wait.end for wait in known)
        if (told := _other_wait(op, off, off_of)) is not None
        for kind, parts in [told]
    ]
    return sorted([*known, *others], key=lambda wait: wait.begin.time)


def _other_wait(op: Op, off: Off, off_of: OffOf) -> tuple[ObjectKind, tuple[WaitPart, ...]] | None:
    """What is known of a time off the processor in which nothing was waited for that is watched.
    Where there was no room for some events it may have been that after all."""
    if off.reason is OffReason.READY:
        return ObjectKind.PROCESSOR, tuple(map(_ran, off.ran))
    if off.reason is not OffReason.BLOCKED:
        return None
    if op.wakers is not None:
        woken = [_with_ran(op, part) for part in _woken(off, op.wakers)]
        return ObjectKind.WAKE_UP, tuple(_with_chain(op, part, off_of) for part in woken)
    return None if op.lost_events else (ObjectKind.CALL, ())


def _with_chain(op: Op, part: WaitPart, off_of: OffOf) -> WaitPart:
    """With whom its holder waited for meanwhile, where that was for most of it, and it is much."""
    if part.role not in _HOLDERS or part.end - part.start < _MUCH * op.latency:
        return part
    behind = _slept(part, off_of, frozenset((op.thread,)))
    return replace(part, behind=(*part.behind, *behind)) if behind else part


def _slept(part: WaitPart, off_of: OffOf, chain: frozenset[int]) -> tuple[WaitPart, ...]:
    """The sleeps of whoever a part of a wait is due to that others of the program, or other
    processes, have ended; none where they are the smaller part of it."""
    by = part.by
    if by is None or by.is_outside or not by.thread or by.thread in chain or len(chain) > DEEPEST:
        return ()
    known = off_of(by.thread, part.start, part.end)
    if known is None or known.wakers is None:
        return ()
    chain |= {by.thread}
    found = []
    for off in known.off:
        if off.reason is not OffReason.BLOCKED:
            continue
        for woken in _woken(off, known.wakers):
            if woken.role is Role.WOKE and woken.by is not None and woken.by.thread not in chain:
                whom = replace(woken, behind=_slept(woken, off_of, chain))
                where = deed(woken.start, 0)
                found.append(
                    WaitPart(
                        start=woken.start, end=woken.end, role=Role.SLEPT, by=where, behind=(whom,)
                    )
                )
    slept = sum(one.end - one.start for one in found)
    return tuple(found) if 2 * slept > part.end - part.start else ()


_HOLDERS = (Role.HELD, Role.HELD_FIRST, Role.WOKE)
"""What somebody was who is asked for whom they waited themselves."""

_MUCH = 0.125
"""Of an op: for what is shorter nobody is asked."""


def _with_ran(op: Op, part: WaitPart) -> WaitPart:
    """Where the thread could have gone on: who had its processor."""
    if part.role is not Role.HANDED_OVER:
        return part
    during = (
        replace(one, start=max(one.start, part.start), end=min(one.end, part.end))
        for off in op.off or ()
        for one in off.ran
        if part.start < one.end and one.start < part.end
    )
    return replace(part, behind=tuple(map(_ran, during)))


def _ran(one: Ran) -> WaitPart:
    by = deed(one.start, 0, thread=one.number, name=one.name, is_outside=one.is_outside)
    return WaitPart(one.start, one.end, Role.RAN, by)


def _begin(op: Op, off: Off, kind: ObjectKind) -> Event:
    return Event(
        time=off.start,
        object=0,
        kind=kind,
        is_release=False,
        thread=0,
        node=_innermost(op, off.start),
        stack=Stack(0, 0, ()),
    )


def _innermost(op: Op, time: int) -> Fnode | None:
    """The call that was under way; ``None``: none that has a span."""
    inside = [span for span in op.spans if span.start <= time < span.end]
    found = max(inside, key=lambda span: span.node.depth, default=None)
    return None if found is None else found.node


def _parts(op: Op, off: Off, kind: ObjectKind, behind: Behind | None) -> Iterator[WaitPart]:
    during = [e for e in op.events if e.kind is kind and off.start <= e.time <= off.end]
    if kind is not ObjectKind.PROCESSOR:
        for part in _woken(off, during):
            yield _with_behind(op, part, behind)
        return
    others = behind.others(op.thread, off.start, off.end) if behind is not None else ()
    if others and sum(one.end - one.start for one in others) >= (off.end - off.start) // 2:
        yield from others
    elif during:
        yield WaitPart(off.start, off.end, Role.RAN, during[0])
    else:
        yield from _woken(off, during)


def _with_behind(op: Op, part: WaitPart, behind: Behind | None) -> WaitPart:
    if behind is None:
        return part
    if part.role is Role.HANDED_OVER:
        return replace(part, behind=behind.others(op.thread, part.start, part.end))
    if part.by is None:
        return part
    return replace(part, behind=behind.waker(part.by, op.thread, part.start, part.end))


def _woken(off: Off, wakers: Iterable[Event]) -> Iterator[WaitPart]:
    during = [event for event in wakers if off.start <= event.time <= off.end]
    if not during:
        yield WaitPart(off.start, off.end, Role.NOT_SEEN)
        return
    first = during[0]  # who comes later finds the task woken
    yield WaitPart(off.start, first.time, WOKEN[first.by], first)
    yield WaitPart(first.time, off.end, Role.HANDED_OVER)
