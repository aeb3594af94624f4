"""What records of switches say of a thread: when it was off its processor, and why. Pure.

Times are in ns of CLOCK_MONOTONIC_RAW. The kernel tells of each wait whether the thread could have
run (it was *preempted*), and of none what it waited for: a thread that its debugger holds has left
its processor as one that waits for a lock. These tell them apart:

- the stops that darc knows of, as the debugger told it of them;
- for those that it hears nothing of (signals that are passed on at once), the switches of the
  debugger's own thread: a stop wakes it, and ends while it is awake or as soon as it sleeps again;
- the same where that thread is a server's, as lldb's, which sleeps in the middle of a stop while
  the debugger thinks: none of the program's threads runs then;
- where that fits, but other things would, too, nothing does: the wait is *doubtful*. So it is where
  the debugger was awake as it had just let the program go on, which needs no other reason.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from darc.debuggee.perf import Switch
from darc.model.ops import OffReason

AT_ONCE_NS = 100_000
"""So soon after a stop its debugger is awake, and so soon after its order the thread runs again, if
a processor is free. Where none is, for how long each had to wait for one tells
(:attr:`Seen.queued`)."""

SOON_NS = 5_000_000
"""So soon it may be where nothing tells: some slices of the scheduler's."""

TOLERANCE_NS = 3_000
"""By how much the times of the kernel and of the program's probes may differ: what the mapping of
one clock to the other, and the way from a probe to the switch, may take."""


class SwitchedOut(NamedTuple):
    """A thread was off its processor."""

    out: int
    back: int
    was_preempted: bool


class Interval(NamedTuple):
    """From one time to another."""

    begin: int
    end: int


class Woken(NamedTuple):
    """A thread was woken, by its debugger or by anybody else."""

    time: int
    by_debugger: bool


class Queued(NamedTuple):
    """At some time a thread had waited for a processor for so long, ever since it was made."""

    time: int
    total: int


@dataclass(frozen=True)
class OffTime:
    """From ``begin`` to ``end`` the thread was off its processor."""

    begin: int
    end: int
    reason: OffReason
    is_doubtful: bool = False
    """It counts as blocked, but the debugger may have held it."""


@dataclass(frozen=True)
class Seen:
    """All that is known of one stretch of time."""

    thread: int
    """Whose waits are asked for."""
    switches: Sequence[Switch]
    """Of all threads that were watched, by time."""
    tracer: Sequence[Switch] = ()
    """Of the debugger's thread, by time."""
    by_server: bool = False
    """Whether that is a server's: another process decides at a stop what becomes of the program,
    and all threads stand still until it has."""
    stops: Sequence[Interval] = ()
    """While these lasted, the debugger held every thread."""
    queued: Sequence[Queued] = ()
    """Of the thread, by time."""
    tracer_queued: Sequence[Queued] = ()
    """Of the debugger's, by time."""
    wakings: Sequence[Woken] = ()
    """Of the thread, by time, as far as they are known."""
    losses: Sequence[Interval] = ()
    """There may be other records of these times, which there was no room for."""


def off_times(seen: Seen, begin: int, end: int) -> tuple[OffTime, ...]:
    """Where the thread was off its processor between two moments at which it was on one."""
    own = [s for s in seen.switches if s.thread == seen.thread and begin <= s.time <= end]
    waits, unknown = _waits_within(own, begin, end)
    losses = _merged([*seen.losses, *unknown], begin, end)
    others = _all_waits(s for s in seen.switches if s.thread != seen.thread)
    others.sort()
    awake = awake_times(seen.tracer)
    found = [OffTime(loss.begin, loss.end, OffReason.UNKNOWN) for loss in losses]
    held = _held(waits, seen)
    for wait, told in _held_by_server(waits, awake, seen).items():
        if told == _STOP or wait not in held:
            held[wait] = told
    for wait in waits:
        reason, is_doubtful = _reason(wait, others, awake, seen)
        if reason is OffReason.BLOCKED and wait in held:
            reason, is_doubtful = held[wait]
        found += _without(OffTime(wait.out, wait.back, reason, is_doubtful), losses)
    return tuple(sorted(found, key=lambda off: off.begin))


def _waits_within(
    switches: Sequence[Switch], begin: int, end: int
) -> tuple[list[SwitchedOut], list[Interval]]:
    """The waits of one thread, which ran at both ends; and for which times records are missing."""
    waits, unknown = [], []
    out: Switch | None = None
    for switch in switches:
        if switch.is_out:
            out = out or switch
        elif out is not None:
            waits.append(SwitchedOut(out.time, switch.time, out.was_preempted))
            out = None
        elif not waits and switch.time - begin > TOLERANCE_NS:
            unknown.append(Interval(begin, switch.time))
    if out is not None and end - out.time > TOLERANCE_NS:
        unknown.append(Interval(out.time, end))
    return waits, unknown


def _all_waits(switches: Iterable[Switch]) -> list[SwitchedOut]:
    """Those of all threads."""
    return [wait for waits in _waits_by_thread(switches).values() for wait in waits]


def _waits_by_thread(switches: Iterable[Switch]) -> dict[int, list[SwitchedOut]]:
    out: dict[int, Switch] = {}
    found: dict[int, list[SwitchedOut]] = {}
    for switch in switches:
        if switch.is_out:
            out.setdefault(switch.thread, switch)
        elif (left := out.pop(switch.thread, None)) is not None:
            wait = SwitchedOut(left.time, switch.time, left.was_preempted)
            found.setdefault(switch.thread, []).append(wait)
    return found


def awake_times(switches: Sequence[Switch]) -> list[Interval]:
    """When a thread was not asleep: from its first turn on a processor to where it waits again."""
    found = []
    begin: int | None = None
    for switch in switches:
        if not switch.is_out:
            begin = switch.time if begin is None else begin
        elif not switch.was_preempted:
            found.append(Interval(begin if begin is not None else switch.time, switch.time))
            begin = None
    if begin is not None:
        found.append(Interval(begin, max(begin, switches[-1].time)))
    return found


def _merged(spans: Iterable[Interval], begin: int, end: int) -> list[Interval]:
    found: list[Interval] = []
    for one in sorted(spans):
        span = Interval(max(one.begin, begin), min(one.end, end))
        if span.begin >= span.end:
            continue
        if found and found[-1].end >= span.begin:
            found[-1] = Interval(found[-1].begin, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


def _without(off: OffTime, losses: Sequence[Interval]) -> list[OffTime]:
    """What of a wait is known. One that goes on after a loss may be another one than before it."""
    found = []
    begin, reason = off.begin, off.reason
    for loss in losses:
        if loss.end <= begin or loss.begin >= off.end:
            continue
        if loss.begin > begin:
            found.append(OffTime(begin, loss.begin, reason, off.is_doubtful))
        begin, reason = loss.end, OffReason.UNKNOWN
    if begin < off.end:
        doubtful = off.is_doubtful and reason is off.reason
        found.append(OffTime(begin, off.end, reason, doubtful))
    return found


def _reason(
    wait: SwitchedOut, others: Sequence[SwitchedOut], awake: Sequence[Interval], seen: Seen
) -> tuple[OffReason, bool]:
    if wait.was_preempted:
        return OffReason.READY, False
    if any(_is_in(wait, stop) for stop in seen.stops):
        return OffReason.STOPPED, False
    mine = _reply(wait, awake)
    if mine is None:
        return OffReason.BLOCKED, False
    is_long = wait.back - wait.out > AT_ONCE_NS
    if is_long and any(mine.begin < s.end <= wait.out + TOLERANCE_NS for s in seen.stops):
        return OffReason.BLOCKED, mine.lag <= SOON_NS
    if mine.lag <= AT_ONCE_NS:
        return OffReason.STOPPED, False
    # Another thread's stop may have woken the debugger.
    rivals = (w for w in _between(others, mine.since, mine.end) if not w.was_preempted)
    replies = [_reply(w, awake) for w in rivals if w.back > mine.begin]
    best = min((a.lag for a in replies if a is not None), default=None)
    if best is not None and (best <= AT_ONCE_NS or 2 * best < mine.lag):
        return OffReason.BLOCKED, False
    late, later = (_waited(q, wait) for q in (seen.tracer_queued, seen.queued))
    fits = mine.late <= AT_ONCE_NS + late and mine.later <= AT_ONCE_NS + later
    if fits and (best is None or best > mine.lag):
        return OffReason.STOPPED, False
    return OffReason.BLOCKED, fits or mine.lag <= SOON_NS


_STOP, _PERHAPS = (OffReason.STOPPED, False), (OffReason.BLOCKED, True)


def _held(waits: Sequence[SwitchedOut], seen: Seen) -> dict[SwitchedOut, tuple[OffReason, bool]]:
    """What the waits were that the debugger has ended, and whether that is doubtful, as
    :func:`_reason` has it: stops as a rule. But the signal that is to
    stop a thread that sleeps wakes it, too, and that one stops at once, perhaps for longer than is
    seen. So it is with two stops, one behind the other: then nobody knows of the first, unless the
    second is one that darc knows of."""
    outs = [s.time for s in seen.switches if s.thread == seen.thread and s.is_out]
    after = {wait.out: wait for wait in waits}
    found = {}
    for wait in waits:
        if not _is_ended_by_debugger(wait, seen.wakings):
            continue
        at = bisect_left(outs, wait.back)
        if at == len(outs) or outs[at] > wait.back + AT_ONCE_NS:
            found[wait] = _STOP
        elif (following := after.get(outs[at])) is not None:
            if not _is_ended_by_debugger(following, seen.wakings):
                found[wait] = _STOP
            elif not any(_is_in(following, stop) for stop in seen.stops):
                found[wait] = _PERHAPS
    return found


def _is_in(wait: SwitchedOut, stop: Interval) -> bool:
    """Whether the debugger held the thread for a stop that is known."""
    return wait.out <= stop.begin + TOLERANCE_NS and stop.end - TOLERANCE_NS <= wait.back


def _is_ended_by_debugger(wait: SwitchedOut, wakings: Sequence[Woken]) -> bool:
    ended = _ended(wait, wakings)
    return ended is not None and ended.by_debugger


def _is_ended_by_other(wait: SwitchedOut, wakings: Sequence[Woken]) -> bool:
    ended = _ended(wait, wakings)
    return ended is not None and not ended.by_debugger


def _ended(wait: SwitchedOut, wakings: Sequence[Woken]) -> Woken | None:
    """What has woken the thread; ``None`` where the kernel does not tell."""
    first = bisect_left(wakings, wait.out, key=lambda woken: woken.time)
    is_told = first < len(wakings) and wakings[first].time < wait.back
    return wakings[first] if is_told else None


def _waited(queued: Sequence[Queued], wait: SwitchedOut) -> int:
    """For how long a thread waited for a processor during the wait, at most."""
    first = bisect_right(queued, wait.out, key=lambda q: q.time) - 1
    last = bisect_left(queued, wait.back, key=lambda q: q.time)
    if first < 0 or last == len(queued):
        return SOON_NS  # nobody knows: the thread has ended since
    return queued[last].total - queued[first].total


class _Reply(NamedTuple):
    """The debugger's to a stop, if a wait was one."""

    since: int
    """It slept from here on,"""
    begin: int
    """was awake from here"""
    end: int
    """to here."""
    late: int
    """So long after the thread had stopped it woke,"""
    later: int
    """and so long after it slept again the thread ran."""

    @property
    def lag(self) -> int:
        """The longer one of the two."""
        return max(self.late, self.later)


def _reply(wait: SwitchedOut, awake: Sequence[Interval]) -> _Reply | None:
    """``None``: the debugger slept all the time, so it was no stop."""
    first = bisect_right(awake, wait.out, key=lambda span: span.end)
    if first == len(awake) or awake[first].begin >= wait.back:
        return None
    last = first
    while (
        last + 1 < len(awake)
        and awake[last + 1].begin < wait.back
        and awake[last + 1].begin - awake[last].end <= AT_ONCE_NS
    ):
        last += 1  # it waits for the other threads to stop as well
    begin, end = awake[first].begin, awake[last].end
    since = awake[first - 1].end if first else 0
    return _Reply(
        since=since,
        begin=begin,
        end=end,
        late=max(begin - wait.out, 0),
        later=max(wait.back - end, 0),
    )


def _between(waits: Sequence[SwitchedOut], begin: int, end: int) -> Sequence[SwitchedOut]:
    """Those that began between two times."""
    first = bisect_left(waits, begin, key=lambda wait: wait.out)
    return waits[first : bisect_right(waits, end, key=lambda wait: wait.out)]


# ------------------------------------------------------------------ stops by a server


class _ServerStop(NamedTuple):
    """A stop of all threads, from where one had a reason for it to where that went on."""

    out: int
    back: int
    taken: int
    """By then the server had stopped the others, and told the debugger;"""
    let_go: int
    """here it began to do what that wanted last."""


def _held_by_server(
    waits: Sequence[SwitchedOut], awake: Sequence[Interval], seen: Seen
) -> dict[SwitchedOut, tuple[OffReason, bool]]:
    """What the ``waits`` of the thread were that a server may have ended, as :func:`_held`. By the
    server's turns: they tell a stop from a sleep also where another stop is right behind it.
    Nothing of those of which the kernel tells that somebody else has ended them."""
    if not seen.by_server:
        return {}
    stops = sorted(_ServerStops(awake, seen).all())
    found = {}
    for wait in waits:
        if wait.was_preempted or _is_ended_by_other(wait, seen.wakings):
            continue
        at = bisect_right(stops, wait.out, key=lambda stop: stop.out) - 1
        if at >= 0 and _is_with(wait, stops[at], _waited(seen.queued, wait)):
            found[wait] = _STOP
        elif _may_be_served(wait, awake, seen):
            found[wait] = _PERHAPS
    return found


def _is_with(wait: SwitchedOut, stop: _ServerStop, queued: int) -> bool:
    """Whether a thread left its processor as all were stopped, and came back as all went on."""
    is_begun = stop.out <= wait.out <= stop.taken + AT_ONCE_NS
    return is_begun and stop.let_go <= wait.back <= stop.back + AT_ONCE_NS + queued


def _may_be_served(wait: SwitchedOut, awake: Sequence[Interval], seen: Seen) -> bool:
    """Whether the server was awake where the wait began, or soon after, and where it ended."""
    first = bisect_right(awake, wait.out, key=lambda span: span.end)
    last = bisect_left(awake, wait.back, key=lambda span: span.begin) - 1
    if not first <= last:
        return False
    late = AT_ONCE_NS + _waited(seen.tracer_queued, wait)
    later = AT_ONCE_NS + _waited(seen.queued, wait)
    return awake[first].begin - wait.out <= late and wait.back - awake[last].end <= later


class _ServerStops:
    """Those that the server's turns show: it slept, was woken by a thread that stopped, and let all
    go on, among which that one, and none of them has run in between."""

    def __init__(self, awake: Sequence[Interval], seen: Seen) -> None:
        self._awake = awake
        self._seen = seen
        self._comings = sorted(one.time for one in seen.switches if not one.is_out)
        self._changes: list[int] = []
        self._running: list[int] = []
        """How many threads were on a processor from each of these times on."""
        self._count()

    def _count(self) -> None:
        first: dict[int, bool] = {}
        for one in self._seen.switches:
            first.setdefault(one.thread, one.is_out)
        running, is_on = sum(first.values()), dict(first)
        for one in self._seen.switches:
            if is_on[one.thread] is one.is_out:
                running += -1 if one.is_out else 1
                is_on[one.thread] = not one.is_out
                self._changes.append(one.time)
                self._running.append(running)

    def all(self) -> Iterable[_ServerStop]:
        """Of all threads, in no order."""
        for waits in _waits_by_thread(self._seen.switches).values():
            since: int | None = None
            for wait in waits:
                if wait.was_preempted:
                    continue
                stop = self._of(wait, since)
                since = None if stop is None else wait.back
                if stop is not None:
                    yield stop

    def _of(self, wait: SwitchedOut, since: int | None) -> _ServerStop | None:
        """``since``: the thread has run from there on, let go by the server."""
        awake, begun = self._awake, wait.out - TOLERANCE_NS
        first = bisect_left(awake, begun, key=lambda span: span.begin)
        if first and awake[first - 1].end > wait.out:
            if since is None or wait.out - since > AT_ONCE_NS:
                return None  # it was awake for something else
            first -= 1  # it has made a step
        last = bisect_left(awake, wait.back, key=lambda span: span.begin) - 1
        if not first <= last:
            return None
        late = _waited(self._seen.tracer_queued, wait)
        if awake[first].begin - wait.out > AT_ONCE_NS + late:
            return None
        if wait.back - awake[last].end > AT_ONCE_NS + _waited(self._seen.queued, wait):
            return None
        taken = first
        while taken < last and awake[taken + 1].begin - awake[taken].end <= AT_ONCE_NS:
            taken += 1
        stop = _ServerStop(wait.out, wait.back, awake[taken].end, awake[last].begin)
        return stop if taken == last or self._stand_still(stop) else None

    def _stand_still(self, stop: _ServerStop) -> bool:
        """Whether no thread has run since all were stopped, until they went on."""
        at = bisect_right(self._changes, stop.taken) - 1
        is_none_on = at < 0 or not self._running[at]
        comings = self._comings
        return is_none_on and bisect_left(comings, stop.taken) == bisect_left(comings, stop.let_go)


# -------------------------------------------------------------------------- quota


class Growth(NamedTuple):
    """From ``begin`` to ``end`` it became known that a quota had kept the threads of its group
    waiting for ``ns``, all together. The kernel adds a wait when it is over."""

    begin: int
    end: int
    ns: int


def by_quota(ready: Sequence[Interval], used_up: Sequence[Growth]) -> int:
    """For how many ns of these times, at most, a quota was what kept the thread waiting. The
    longest of the times come first: quotas make long waits."""
    left = {growth: growth.ns for growth in used_up}
    total = 0
    for span in sorted(ready, key=lambda s: s.begin - s.end):
        at = bisect_left(used_up, span.end - SOON_NS, key=lambda growth: growth.end)
        wanted = span.end - span.begin
        while at < len(used_up) and used_up[at].begin < span.end and wanted:
            part = min(wanted, left[used_up[at]])
            left[used_up[at]] -= part
            wanted -= part
            total += part
            at += 1
    return total
