"""Ops as the agent has kept them, with the fnodes and the words of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from darc.agent.rows import KeptEvent, KeptMoment, KeptOp
from darc.code.landmarks import Landmark
from darc.collectors.instrumentation import Instrumentation
from darc.model.ops import (
    NOWHERE,
    By,
    Event,
    History,
    KeptOps,
    Moment,
    MomentKind,
    ObjectKind,
    Off,
    OffReason,
    Op,
    OpClass,
    Span,
    Stack,
    Sum,
)
from darc.pads.installer import PadInstaller

_OBJECTS = {
    Landmark.LOCK: ObjectKind.LOCK,
    Landmark.RWLOCK: ObjectKind.RWLOCK,
    Landmark.RDLOCK: ObjectKind.RWLOCK,
    Landmark.UNLOCK: ObjectKind.LOCK,
    Landmark.COND_WAIT: ObjectKind.CONDITION,
    Landmark.SEM_WAIT: ObjectKind.SEMAPHORE,
    Landmark.BARRIER: ObjectKind.BARRIER,
    Landmark.JOIN: ObjectKind.THREAD,
    Landmark.END: ObjectKind.THREAD,
    Landmark.SANDBOX: ObjectKind.FUTEX,
    Landmark.WAKE: ObjectKind.WAKE_UP,
}
"""What a guard at a function of the C library tells of."""


_SOFT = 0xFFFF
"""Bits of preempt_count up to those of soft interrupts; those of interrupts stand above."""


def _context(preempt_count: int) -> By:
    """By the bits of it that tell that no task runs."""
    if not preempt_count:
        return By.TASK
    return By.SOFT_INTERRUPT if preempt_count <= _SOFT else By.INTERRUPT


class KeptReader:
    """Reads those in the installer's tables, which have the numbers of ``instrumentation``."""

    def __init__(self, installer: PadInstaller, instrumentation: Instrumentation) -> None:
        self._installer = installer
        self._tables = installer.tables
        self._instrumentation = instrumentation
        kinds = installer.tables.blob.constants
        self._objects = {kinds.named(guard.value): kind for guard, kind in _OBJECTS.items()}

    def ops(self, hz: int, sees_switches: bool) -> KeptOps:
        """The ops that the agent has kept since the orders; it ``sees_switches`` itself, as a
        kernel's does, or not."""
        tables = self._tables
        kept = sorted(tables.kept.ops(), key=lambda op: (op.is_fast, op.start))
        seen = tables.kept.seen()
        least = tables.least_span
        found = tuple(
            self._kept_op(number, op, least, sees_switches)
            for number, op in enumerate(kept, start=1)
        )
        in_peak, fastest, not_kept, not_followed = seen
        return KeptOps(
            hz,
            found,
            in_peak,
            fastest,
            not_kept=not_kept,
            history=self._history(found) if sees_switches else History(),
            not_followed=not_followed,
            compared=self._instrumentation.compared,
        )

    def _history(self, ops: Sequence[Op]) -> History:
        """What tasks did while those of ``ops`` had no processor."""
        times = [(off.start, off.end) for op in ops for off in op.off or ()]
        kept, since = self._tables.moments.during(times, (op.thread for op in ops))
        constants = self._tables.blob.constants
        kinds = {constants.named(kind.value): kind for kind in MomentKind}
        moments = tuple(self._moment(one, kinds[one.kind]) for one in kept if one.kind in kinds)
        return History(moments, since)

    def _moment(self, kept: KeptMoment, kind: MomentKind) -> Moment:
        return Moment(
            time=kept.time,
            kind=kind,
            cpu=kept.cpu,
            task=kept.task,
            other=kept.other,
            is_ready=kind is MomentKind.SWITCH and bool(kept.how),
            by=_context(kept.how) if kind is MomentKind.WAKE else By.TASK,
            work=kept.what if kind is MomentKind.WORK else 0,
            before=kept.before,
            name=kept.name,
            stack=Stack(kept.stack, kept.frame, self._installer.own_words(kept.words)),
        )

    def _kept_op(self, number: int, kept: KeptOp, least: int, sees_switches: bool) -> Op:
        spans = [
            Span(node, span.start, span.end, span.cost)
            for span in kept.spans
            if (node := self._instrumentation.node_of(span.node)) is not None
        ]
        sums = [
            Sum(node, total.calls, total.sum, total.max)
            for total in kept.sums
            if (node := self._instrumentation.node_of(total.node)) is not None
        ]
        return Op(
            number=number,
            kept_as=OpClass.FASTEST if kept.is_fast else OpClass.IN_PEAK,
            thread=kept.life,
            start=kept.start,
            end=kept.end,
            cost=kept.cost,
            latency=kept.latency,
            is_slowest=kept.is_slowest,
            spans=tuple(sorted(spans, key=lambda span: (span.start, span.node.depth, -span.end))),
            sums=tuple(sums),
            least=least,
            lost=kept.lost,
            events=tuple(self._events(kept)),
            lost_events=kept.lost_events,
            lost_waits=kept.lost_waits,
            off=tuple(_off(kept)) if sees_switches else None,
        )

    def event(self, kept: KeptEvent) -> Event:
        """What the agent has written down, with the fnodes and words of the program."""
        node = None if kept.node is None else self._instrumentation.node_of(kept.node)
        own = self._installer.own_words(kept.words)
        stack = Stack(kept.stack, kept.frame, own)
        kind = self._objects.get(kept.what, ObjectKind.LOCK)
        by = _context(kept.object) if kind is ObjectKind.WAKE_UP else By.TASK
        is_held = kept.is_release and kind is not ObjectKind.WAKE_UP
        return Event(
            time=kept.time,
            object=kept.object,
            kind=kind,
            is_release=kept.is_release,
            thread=kept.life,
            node=node,
            stack=stack,
            name=kept.name,
            by=by,
            is_followed=kept.is_followed,
            first=kept.first if is_held else None,
            held=kept.held if is_held else None,
            more=0 if kept.is_release else kept.held,
        )

    def _events(self, kept: KeptOp) -> list[Event]:
        found = [self.event(event) for event in kept.events]
        for one in kept.switches:
            if one.is_ready:
                event = Event(
                    time=one.out,
                    object=0,
                    kind=ObjectKind.PROCESSOR,
                    is_release=True,
                    thread=one.next,
                    node=None,
                    stack=NOWHERE,
                    name=one.name,
                )
                found.append(event)
        return sorted(found, key=lambda event: event.time)


def _off(kept: KeptOp) -> Iterator[Off]:
    """When a kernel's task had no processor. Behind the last of more switches than there was room
    for nothing is known."""
    for one in kept.switches:
        yield Off(one.out, one.back, OffReason.READY if one.is_ready else OffReason.BLOCKED)
    if kept.lost_switches:
        last = kept.switches[-1].back if kept.switches else kept.start
        yield Off(last, kept.end, OffReason.UNKNOWN)
