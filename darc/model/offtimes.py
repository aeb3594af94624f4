"""Where threads were off their processors, in the ops that were kept (:mod:`darc.model.ops`).

Who watches that, and is asked, is :class:`darc.debuggee.switchwatch.OffWatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from darc.model.ops import Event, KeptOps, Off, OffReason, Op

SHORTEST_TURN = 700e-6
"""Seconds: what Linux gives a thread at least (``base_slice_ns``, kernel/sched/fair.c, 6.18; up to
6.11 it was 0.75 ms). Who needs less of a processor is not preempted for what it computes."""


@dataclass(frozen=True)
class OffTimes:
    """Where a thread was off its processor in one call, by the time-stamp counter, in cycles."""

    off: tuple[Off, ...]
    """By time; no two of them overlap."""
    doubtful: int = 0
    """For so long it counts as blocked, but the debugger may have held it."""
    by_quota: int = 0
    """For so long of the time in which it was ready, at most, the quota of its group had been used
    up."""
    wakers: tuple[Event, ...] | None = None
    """Who woke it, by time; ``None`` where that was not watched."""


_MUCH_STOPPED = 0.1
"""The part of the kept calls' time from which on stops of the debugger's are told of."""


@dataclass(frozen=True)
class WatchedOps:
    """Kept ops with their :attr:`~darc.model.ops.Op.off`."""

    kept: KeptOps
    doubtful: int = 0
    """Over all ops: for so long they count as blocked, but the debugger may have held them."""
    unwatched: int = 0
    """Ops of threads that were not watched."""

    @property
    def is_mostly_doubtful(self) -> bool:
        """Whether the debugger may have held them for most of the time that counts as blocked."""
        return 2 * self.doubtful > self.kept.off_time(OffReason.BLOCKED)

    @property
    def others(self) -> frozenset[int]:
        """The program's threads that have woken those of the ops, or had their processors."""
        wakers = (
            one.thread for op in self.kept.ops for one in op.wakers or () if not one.is_outside
        )
        ran = (
            one.number
            for op in self.kept.ops
            for off in op.off or ()
            for one in off.ran
            if not one.is_outside
        )
        return frozenset((*wakers, *ran)) - {0}

    def named(self, names: Mapping[int, str]) -> WatchedOps:
        """The same with these names of threads."""
        threads = {**self.kept.threads, **names}
        return replace(self, kept=replace(self.kept, threads=threads))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of these ops must know."""
        found = []
        blocked = self.kept.off_time(OffReason.BLOCKED)
        if share := _per_cent(self.doubtful, blocked):
            found.append(f"the time blocked includes debugger stops: up to {share} of it")
        stopped = self.kept.off_time(OffReason.STOPPED)
        all_of_it = sum(op.latency for op in self.kept.ops)
        if stopped > all_of_it * _MUCH_STOPPED:
            found.append(
                f"the debugger had stopped the kept calls for {_per_cent(stopped, all_of_it)} of "
                "their time, as it does at each fork and signal, and to look for darc: without it "
                "they are shorter there"
            )
        if share := _per_cent(self.kept.quota_share, 1):
            found.append(f"up to {share} of the time ready was its CPU quota's")
        if self.unwatched:
            found.append(
                f"of {self.unwatched} of {len(self.kept.ops)} kept calls it is not known whether "
                "they ran or waited: their threads could not be watched"
            )
        return tuple(found)


def _per_cent(part: float, whole: int) -> str:
    """Empty where that is nothing to speak of."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 else ""


def watched(
    kept: KeptOps,
    answers: Sequence[OffTimes | None],
    why_no_wakers: str | None = None,
    why_no_places: str | None = None,
) -> WatchedOps:
    """The same ops with what is known of each; ``None`` where its thread was not watched."""
    ops = [_with(op, times) for op, times in zip(kept.ops, answers, strict=True)]
    known = [times for times in answers if times is not None]
    quota = sum(times.by_quota for times in known)
    return WatchedOps(
        replace(
            kept,
            ops=tuple(ops),
            why_no_wakers=why_no_wakers,
            why_no_places=why_no_places,
            by_quota=quota,
        ),
        doubtful=sum(times.doubtful for times in known),
        unwatched=len(answers) - len(known),
    )


def _with(op: Op, times: OffTimes | None) -> Op:
    if times is None:
        return replace(op, off=None, wakers=None)
    return replace(op, off=times.off, wakers=times.wakers)


def cycles_within(off: Iterable[Off], start: int, end: int) -> int:
    """For how many cycles from ``start`` to ``end`` it was off its processor."""
    return sum(one.within(start, end) for one in off)
