"""Who woke the tasks of a kernel's ops, and who ran in their places (DepGraph III).

There every time off the processor is known with its reason, and so is who ends it: no lock has to
be known for that. A sleep's time is divided into that up to the wake-up, and that until the task
had a processor again. Of processes only the privileged are told who wakes; anybody, in which call
a thread was blocked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from darc.analyses.behind import Behind
from darc.analyses.holders import OffOf, with_life
from darc.analyses.waits import WOKEN, Wait, WaitPart, waits_of
from darc.model.ftree import Fnode
from darc.model.ops import NOWHERE, Event, ObjectKind, Off, OffReason, Op, Ran, deed
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


def waits_and_sleeps_of(op: Op, off_of: OffOf | None = None) -> list[Wait]:
    """The waits of an op of a process, and the other times in which its thread had no processor. Of
    who had what was waited for, ``off_of`` tells what that one did meanwhile."""
    known = [
        replace(wait, parts=tuple(with_life(op, _with_ran(op, p), off_of) for p in wait.parts))
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


def _other_wait(
    op: Op, off: Off, off_of: OffOf | None
) -> tuple[ObjectKind, tuple[WaitPart, ...]] | None:
    """What is known of a time off the processor in which nothing was waited for that is watched.
    Where there was no room for some events it may have been that after all."""
    if off.reason is OffReason.READY:
        return ObjectKind.PROCESSOR, tuple(map(_ran, off.ran))
    if off.reason is not OffReason.BLOCKED:
        return None
    if op.wakers is not None:
        woken = [_with_ran(op, part) for part in _woken(off, op.wakers)]
        return ObjectKind.WAKE_UP, tuple(with_life(op, part, off_of) for part in woken)
    return None if op.lost_events else (ObjectKind.CALL, ())


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
        stack=NOWHERE,
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
