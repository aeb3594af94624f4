"""Ops that are kept whole: single calls of f0 with all that happened in them.

An *op* is one outermost call of f0. Profiles and votes add ops up; of a few ops everything is kept,
so that it can be seen when each call began and ended, where the thread was off the processor, and
in what slow ops differ from fast ones of the same run.

All times are of the processor's time-stamp counter, in cycles, unless a name says otherwise. What
the probes took themselves is known for each call as its ``cost``: a *latency* is without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from darc.model.ftree import Fnode

MOST_KEPT = 32
"""Ops of each class that are kept, besides the slowest one: for so many the agent has room."""

LEAST_FOR_ESTIMATES = 8
"""On fewer kept ops nothing is estimated."""


class OpClass(str, Enum):
    """Why an op is kept. The values are those of the report."""

    IN_PEAK = "in peak"
    """It is of the peak that was chosen."""
    FASTEST = "fastest"
    """It is of the fastest peak, which the chosen one is held against."""


class OffReason(str, Enum):
    """Why a thread was off the processor. The values are those of the report."""

    BLOCKED = "blocked"
    """It waited: for a lock, a device, a time, another process."""
    READY = "ready"
    """It could have run: another thread was preferred (preemption; paper section 3.6), or it had
    given the processor away, or its group's quota was used up."""
    STOPPED = "stopped"
    """The debugger held it, or a signal that the debugger saw first. Never the program's time."""
    UNKNOWN = "unknown"
    """The record was lost. Never taken for computing."""


@dataclass(frozen=True)
class Span:
    """One call of an fnode within an op."""

    node: Fnode
    start: int
    end: int
    cost: int = 0
    """Cycles of probes between the two."""

    @property
    def latency(self) -> int:
        """Cycles that the call itself took."""
        return max(self.end - self.start - self.cost, 1)


@dataclass(frozen=True)
class Sum:
    """All calls of one fnode in one op, also those too short for a :class:`Span`."""

    node: Fnode
    calls: int
    sum: int
    """Σ of their latencies, in cycles."""
    max: int
    """The longest one's, in cycles."""


@dataclass(frozen=True)
class Stack:
    """A few words of a thread's stack, where it entered a function of the C library."""

    pointer: int
    """Where the first of ``words`` is: the return address of that function."""
    frame: int
    """What the thread had in its frame pointer."""
    words: tuple[int, ...]
    pc: int = 0
    """Where it stands, if that is in the middle of a function; 0: at the entry of one."""


NOWHERE = Stack(0, 0, ())
"""What is not known."""


@dataclass(frozen=True)
class Ran:
    """A thread had the processor from ``start`` to ``end`` for which another one waited."""

    start: int
    end: int
    number: int
    """The thread's id; of another program than the one that is watched, that of its process."""
    name: str
    """Empty where that is not known, or it is the program's own."""
    is_outside: bool
    """Whether it is not of the program."""


@dataclass(frozen=True)
class Off:
    """The thread was off the processor from ``start`` to ``end``."""

    start: int
    end: int
    reason: OffReason
    ran: tuple[Ran, ...] = ()
    """Of a process: who had the processor to which it came, since it could have run, by time; none
    where that was not watched."""
    stack: Stack | None = None
    """Of a process's thread that is asked for as others waited for it: where it left its processor,
    as far as the kernel tells."""

    def within(self, start: int, end: int) -> int:
        """For how many cycles of ``start`` to ``end`` it was."""
        return max(0, min(self.end, end) - max(self.start, start))


class ObjectKind(str, Enum):
    """What a thread waits for. The values are those of the report."""

    LOCK = "lock"
    """A mutex: whoever releases it has held it."""
    RWLOCK = "read-write lock"
    """The same; readers hold it together."""
    CONDITION = "condition"
    SEMAPHORE = "semaphore"
    BARRIER = "barrier"
    THREAD = "thread"
    """It is joined."""
    FUTEX = "futex"
    """A word that the program itself makes a lock of, or something else."""
    WAKE_UP = "wake-up"
    """Whatever it is: who wakes the thread, or the kernel's task, is known."""
    CALL = "call"
    """Whatever the call waits for in which the thread is: who wakes it is not told here."""
    PROCESSOR = "processor"
    """By a thread or a task that could run: another one ran."""


class By(str, Enum):
    """In what context something is done in a kernel."""

    TASK = "task"
    INTERRUPT = "interrupt"
    SOFT_INTERRUPT = "soft interrupt"


@dataclass(frozen=True, kw_only=True)
class Event:
    """The op's thread may have begun to wait for an object, or another one was about to release
    it, while it waited."""

    time: int
    object: int
    """Its address; of a thread, that of its control block."""
    kind: ObjectKind
    is_release: bool
    thread: int
    """Who releases; at the begin of a wait, who the object said held it. 0: not known."""
    node: Fnode | None
    """The innermost open call below f0 of the thread, where it is in an op."""
    stack: Stack
    name: str = ""
    """What the task is called that wakes, or runs, where a kernel tells."""
    by: By = By.TASK
    """In what context it is woken, where the kernel tells."""
    is_outside: bool = False
    """Whether who did it is not of the program: then ``thread`` is the id of a process."""
    is_followed: bool = True
    """Of a wait: whether those who release the object could be told that somebody waits."""
    first: int | None = None
    """Of a release: when the first one was, where several from one place were added up, as there
    was no room for each; and for how many cycles together the object was held until each of them
    since the one before, whoever's that was. ``None``: not known."""
    held: int | None = None
    more: int = 0
    """Of a wait: so many more for the same object and from the same place had no room."""
    before: Event | None = None
    """Of a wake-up by a thread of the program: the last one of that thread itself, where that was
    watched."""


def deed(
    time: int,
    what: int,
    *,
    thread: int = 0,
    stack: Stack = NOWHERE,
    name: str = "",
    by: By = By.TASK,
    is_outside: bool = False,
) -> Event:
    """What somebody did at this ``time``, in cycles, while another one waited: for the object at
    the address ``what``; 0: for none that is known."""
    return Event(
        time=time,
        object=what,
        kind=ObjectKind.WAKE_UP,
        is_release=True,
        thread=thread,
        node=None,
        stack=stack,
        name=name,
        by=by,
        is_outside=is_outside,
    )


class MomentKind(Enum):
    """What a kernel's task does. The values are the agent's names (``abi.h``)."""

    SWITCH = "DARC_MOMENT_SWITCH"
    """It has the processor that another one had."""
    WAKE = "DARC_MOMENT_WAKE"
    """It is woken by another one, or by an interrupt."""
    WORK = "DARC_MOMENT_WORK"
    """It begins to do what others have queued."""
    DISK = "DARC_MOMENT_DISK"
    """A request that it had for a disk has ended."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a kernel's task did, while that of an op had no processor."""

    time: int
    kind: MomentKind
    cpu: int
    task: int
    """Its id; 0: the task that runs where nothing is to be done, or nobody."""
    other: int = 0
    """Who had the processor before; who wakes: 0 is an interrupt."""
    is_ready: bool = False
    """Of a switch: whether the other one could have gone on."""
    by: By = By.TASK
    """Of a wake-up: in what context it is."""
    work: int = 0
    """The address of the function that is about to work, and of that which did before."""
    before: int = 0
    name: str = ""
    """The task's; of a wake-up that of who wakes."""
    stack: Stack = NOWHERE
    """The task's, as it comes back to; of a wake-up that of who wakes."""


@dataclass(frozen=True)
class History:
    """What all tasks did while those of kept ops had no processor."""

    moments: tuple[Moment, ...] = ()
    """By time."""
    since: int = 0
    """From then on none is missing, in the times that are asked for."""


@dataclass(frozen=True)
class Op:
    """One call of f0."""

    number: int
    """Among those that are kept, from 1 on, what users call it by: those of the chosen peak first,
    each class by when they began."""
    kept_as: OpClass
    thread: int
    """Its id: of the thread in a process, of the task in a kernel; 0 where that is not known."""
    start: int
    end: int
    cost: int
    """Cycles of probes between the two."""
    latency: int
    """Cycles that f0 itself took, as its profile has it."""
    is_slowest: bool = False
    """The slowest of its class that was seen: kept on purpose, and left out of estimates."""
    spans: tuple[Span, ...] = ()
    """By their starts, a caller before its callees; f0 itself is not among them."""
    sums: tuple[Sum, ...] = ()
    """Of every fnode that was timed and called; f0 itself is not among them."""
    least: int = 0
    """Calls shorter than so many cycles have no span, but are in the sums."""
    lost: int = 0
    """So many spans there was no room for."""
    events: tuple[Event, ...] = ()
    """By time: what it waited for, and who released that."""
    lost_events: int = 0
    """So many events there was no room for."""
    lost_waits: int = 0
    """So many of these are waits, and of nothing that is known."""
    off: tuple[Off, ...] | None = None
    """Where the thread was off the processor, by time; ``None`` where that was not watched."""
    wakers: tuple[Event, ...] | None = None
    """Of a process: who woke it, by time, in whatever process; ``None`` where that was not
    watched."""

    def with_nodes(self, copies: Mapping[Fnode, Fnode]) -> Op:
        """The same op of copies of nodes, where there are some."""

        def moved(events: Iterable[Event]) -> tuple[Event, ...]:
            return tuple(
                one if one.node is None else replace(one, node=copies.get(one.node, one.node))
                for one in events
            )

        return replace(
            self,
            spans=tuple(
                Span(copies.get(one.node, one.node), one.start, one.end, one.cost)
                for one in self.spans
            ),
            sums=tuple(
                Sum(copies.get(one.node, one.node), one.calls, one.sum, one.max)
                for one in self.sums
            ),
            events=moved(self.events),
            wakers=None if self.wakers is None else moved(self.wakers),
        )

    def time_of(self, nodes: Iterable[Fnode]) -> int:
        """Cycles in all calls of ``nodes``, none of which calls another of them."""
        wanted = frozenset(nodes)
        return sum(total.sum for total in self.sums if total.node in wanted)

    def own_time_of(self, node: Fnode) -> int:
        """Cycles of ``node`` itself: in all its calls, but not in those below it that were timed,
        be they its callees' or, where a callee was not timed in this round, the callee's. A node
        without a parent is f0."""
        whole = self.latency if node.parent is None else self.time_of([node])
        timed = {total.node for total in self.sums}
        below, left = list[Fnode](), list(node.children)
        while left:
            child = left.pop()
            if child in timed:
                below.append(child)
            else:
                left += child.children
        return max(0, whole - self.time_of(below))

    def off_time(self, reason: OffReason) -> int:
        """For how many cycles it was off the processor for that reason."""
        return sum(
            off.within(self.start, self.end) for off in self.off or () if off.reason is reason
        )


@dataclass(frozen=True)
class KeptOps:
    """The ops that were kept of one round: a uniform choice among those of each class, and the
    slowest of each. Ops of different rounds are not compared, as other calls were timed in them."""

    hz: int
    """Cycles in a second."""
    ops: tuple[Op, ...] = ()
    """By number."""
    in_peak_seen: int = 0
    """From how many in-peak ops they were chosen,"""
    fastest_seen: int = 0
    """and from how many of the fastest peak."""
    not_kept: int = 0
    """Ops that could not be watched, as too many were under way at the same time."""
    threads: Mapping[int, str] = field(default_factory=dict)
    """Names of the threads that are told of, by their ids, where they are known,"""
    outsiders: Mapping[int, str] = field(default_factory=dict)
    """and of the other processes whose threads have those ids that are none of the program's."""
    of_saved_run: bool = False
    """Whether a session that is resumed has brought them: their threads may be no more, and what
    is to be told of them is that run's."""
    sees_waits: bool = False
    """Whether their events tell what they waited for."""
    why_no_waits: str | None = None
    """Why they do not, where that is known."""
    why_no_wakers: str | None = None
    """Why it is not told who wakes the threads of a process, where it is not."""
    why_no_places: str | None = None
    """Why it is not told in which calls others slept meanwhile, where it is not."""
    sees_wake_ups: bool = False
    """Whether the events are a kernel's: who wakes tasks, and who runs in their places."""
    history: History = History()
    """In a kernel."""
    by_quota: int = 0
    """Of the cycles in which their threads were ready, so many were a CPU quota's, at most."""
    not_followed: int = 0
    """Waits whose releases could not be watched, as there were too many at the same time."""
    compared: frozenset[Fnode] = frozenset()
    """The fnodes of which all callees were timed, as far as they can be: a callee of theirs that is
    not in an op's sums was not called in it. Of other fnodes' callees nothing can be said."""

    def off_time(self, reason: OffReason) -> int:
        """Σ of the cycles for which the ops' threads were off their processors for ``reason``."""
        return sum(op.off_time(reason) for op in self.ops)

    @property
    def quota_share(self) -> float:
        """What part of the time ready was that of a used up CPU quota, at most; from 0 to 1."""
        ready = self.off_time(OffReason.READY)
        return min(self.by_quota / ready, 1.0) if ready else 0.0

    def with_nodes(self, copies: Mapping[Fnode, Fnode]) -> KeptOps:
        """The same ops of copies of nodes, where there are some."""
        return replace(
            self,
            ops=tuple(op.with_nodes(copies) for op in self.ops),
            compared=frozenset(copies.get(node, node) for node in self.compared),
        )

    def is_copy_of(self, other: KeptOps) -> bool:
        """Whether both are the same ops, of the same run."""
        spans = [[(op.start, op.end) for op in one.ops] for one in (self, other)]
        return spans[0] == spans[1]

    def of(self, kept_as: OpClass) -> tuple[Op, ...]:
        """Those of one class."""
        return tuple(op for op in self.ops if op.kept_as is kept_as)

    def sample(self, kept_as: OpClass) -> tuple[Op, ...]:
        """Those of one class that estimates rest on: not the one kept for being the slowest."""
        return tuple(op for op in self.of(kept_as) if not op.is_slowest)
