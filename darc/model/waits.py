"""What the ops of a peak waited for, and who kept them waiting (DepGraph III, IV): merged over ops.

A wait's time is divided: among those who held a lock one after the other, else between the time up
to the wake-up and the time until the thread ran again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from darc.model.ops import ObjectKind


class Role(str, Enum):
    """What somebody had to do with a wait. The values are those of the report."""

    HELD = "held"
    """It had the lock, and released it while the op waited."""
    HELD_FIRST = "held at the begin"
    """The lock said so when the wait began; no release was seen."""
    WOKE = "woke"
    """It signalled the condition, posted the semaphore, came last to the barrier, ended."""
    INTERRUPT = "interrupt"
    """A kernel's interrupt woke it,"""
    SOFT_INTERRUPT = "soft interrupt"
    """or what is done behind interrupts: timers, the network, disks."""
    RAN = "ran"
    """It had the processor meanwhile; in a kernel that does not tell more, at first."""
    DID = "did"
    """Of who is behind a wait: it ran itself,"""
    SLEPT = "slept"
    """it slept, until it was woken,"""
    READY = "ready"
    """or it could have run, but others had the processor."""
    UNKNOWN = "unknown"
    """or nothing is known of what it did then."""
    DISK = "disk"
    """A disk had requests of its to serve."""
    HANDED_OVER = "handed over"
    """Nobody: the object was free, and the thread had not come to run yet."""
    NOT_SEEN = "not seen"
    """Whoever it was released it in a way that darc does not watch."""
    NOT_FOLLOWED = "not followed"
    """There was no room to write down who released it."""


@dataclass(frozen=True)
class Holder:
    """Who kept ops waiting, in which call: threads that do the same are one."""

    role: Role
    thread: str
    """Its name; empty where nobody is meant."""
    path: tuple[str, ...]
    """The functions that it was in when it released, innermost first."""
    cycles: int
    """Σ over all ops."""
    ops: int
    """In so many of them."""
    threads: tuple[int, ...] = ()
    """The ids of those that did so,"""
    is_outside: bool = False
    """which are processes, not the program's own threads."""
    behind: tuple[Holder, ...] = ()
    """What it did in that time itself, and for whom it waited; and who had
    the processor for which the thread waited; most time first."""


@dataclass(frozen=True, kw_only=True)
class WaitedFor:
    """One object, waited for at one place, as a rule."""

    kind: ObjectKind
    name: str
    """Its symbol, else where it is."""
    path: tuple[str, ...]
    """The functions in which f0's thread waited, innermost first, up to f0; none where it waited in
    several: see :func:`over_paths`."""
    cycles: int
    """Σ over all ops."""
    ops: int
    waits: int
    holders: tuple[Holder, ...]
    """Most time first."""
    count: int = 1
    """So many objects are one here: see :func:`together`."""

    @property
    def has_name(self) -> bool:
        """Whether it is called by a symbol, or by where it is in a file: an address alone is none,
        be it told in what memory it lies."""
        return not self.name.startswith("0x")


_TOGETHER = 3
"""Ops to a moment from which on these are few."""


def are_few(moments: int, ops: int) -> bool:
    """Whether ``ops`` are of far fewer moments, so that their number promises more than they
    tell."""
    return _TOGETHER * moments <= ops


@dataclass(frozen=True)
class Waits:
    """Of the ops of one class."""

    ops: int
    cycles: int
    """Σ of their latencies."""
    objects: tuple[WaitedFor, ...]
    """Most time first."""
    lost: int = 0
    """So many events there was no room for."""
    not_followed: int = 0
    """Cycles in which ops were blocked, of which there was no room to write down in what."""
    moments: int = 0
    """Into how many groups the ops fall whose calls overlap: those that wait together wait for the
    same. 0: not known, as of files that do not tell."""

    @property
    def few_moments(self) -> int | None:
        """The same where they are few; see :func:`are_few`."""
        return self.moments if self.moments and are_few(self.moments, self.ops) else None

    @property
    def waited(self) -> int:
        """Σ of all waits, in cycles."""
        return sum(one.cycles for one in self.objects)

    @property
    def without_processor(self) -> int:
        """Σ of the time between a wake-up and a processor, in cycles."""
        return sum(
            holder.cycles
            for one in self.objects
            if one.kind is ObjectKind.WAKE_UP
            for holder in one.holders
            if holder.role is Role.HANDED_OVER
        )

    @property
    def ready(self) -> int:
        """Σ of the time in which threads could have run and had no processor, in cycles: behind a
        wake-up, and else."""
        waited = (one.cycles for one in self.objects if one.kind is ObjectKind.PROCESSOR)
        return self.without_processor + sum(waited)


def together(objects: Iterable[WaitedFor]) -> tuple[WaitedFor, ...]:
    """Objects that have no name, of one kind and waited for in the same functions, as one: those of
    a table's shards, each with a lock of its own, are held by the same functions."""
    alike: dict[object, list[WaitedFor]] = defaultdict(list)
    for number, one in enumerate(objects):
        alike[number if one.has_name else (one.kind, one.path)].append(one)
    made = (same[0] if len(same) == 1 else _as_one(same) for same in alike.values())
    return tuple(sorted(made, key=lambda one: -one.cycles))


def over_paths(waits: Waits) -> tuple[WaitedFor, ...]:
    """The objects that were waited for, each as one in whatever functions it was; those that have
    no name, and are :func:`together` at one place, are so at all."""
    groups: list[tuple[set[object], list[WaitedFor]]] = []
    for one in waits.objects:
        keys: set[object] = {(one.kind, one.name)}
        if not one.has_name:
            keys.add((one.kind, one.path))
        same = [one]
        for group in [group for group in groups if group[0] & keys]:
            groups.remove(group)
            keys |= group[0]
            same = [*group[1], *same]
        groups.append((keys, same))
    made = (_capped(_as_one(same), waits.ops) if len(same) > 1 else same[0] for _, same in groups)
    return tuple(sorted(made, key=lambda one: -one.cycles))


def _capped(one: WaitedFor, ops: int) -> WaitedFor:
    """An op that waited in several places is one."""
    holders = (replace(holder, ops=min(holder.ops, ops)) for holder in one.holders)
    return replace(one, ops=min(one.ops, ops), holders=tuple(holders))


def _as_one(same: Sequence[WaitedFor]) -> WaitedFor:
    names = {one.name for one in same}
    count = len(names)
    return WaitedFor(
        kind=same[0].kind,
        name=names.pop() if len(names) == 1 else "",
        path=same[0].path if len({one.path for one in same}) == 1 else (),
        cycles=sum(one.cycles for one in same),
        ops=sum(one.ops for one in same),
        waits=sum(one.waits for one in same),
        holders=_merged(holder for one in same for holder in one.holders),
        count=count,
    )


def most_of(one: WaitedFor) -> Holder:
    """Who had it for most of the time, where it has holders: those that did the same are one,
    whatever their names; where nothing tells what they did, only while none of them has most of
    it."""
    most, *_ = _merged(replace(holder, thread="") for holder in one.holders)
    key = most.role, most.path, most.is_outside
    alike = [h for h in one.holders if (h.role, h.path, h.is_outside) == key]
    largest = max(alike, key=lambda holder: holder.cycles)
    if not most.path and 2 * largest.cycles > most.cycles:
        return replace(largest, ops=min(largest.ops, one.ops))
    names = {holder.thread for holder in alike}
    name = names.pop() if len(names) == 1 else ""
    return replace(most, thread=name, ops=min(most.ops, one.ops))


def _merged(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """Those who do the same, as one."""
    alike: dict[object, list[Holder]] = defaultdict(list)
    for holder in holders:
        alike[holder.role, holder.thread, holder.path, holder.is_outside].append(holder)
    merged = (
        replace(
            those[0],
            cycles=sum(one.cycles for one in those),
            ops=sum(one.ops for one in those),
            threads=tuple(dict.fromkeys(thread for one in those for thread in one.threads)),
            behind=_merged(behind for one in those for behind in one.behind),
        )
        for those in alike.values()
    )
    return tuple(sorted(merged, key=lambda one: -one.cycles))
