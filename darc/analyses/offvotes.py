"""Votes of ops that were kept whole, by the search's own rules, on time that is the program's own.

The agent's votes know nothing of switches: a call that was preempted has the latency of one that is
slow. Where an op is known as a whole, the time in which its thread was ready but off the processor
is taken out of every call that it fell into, and its *sum* is one more contestant at f0's level,
as events of one type are one cause however many calls they fall into (DARC 3.6). It is one of those
ops alone that would else be as fast as the next faster peak: whatever computes for long is
preempted, and one that would be slow all the same is so for what it computes. But an op that is
far shorter than a turn of the processor loses that by chance, and is slow for nothing else. Time
in which the debugger held the thread, as gdb does at each fork and signal, is taken out as well,
and contests in the same way: calls that are slow for it alone have no cause in the program; nor do
those that it held again and again, for many times what they took else, as each stop also costs
time outside. What a thread waited for (blocked) stays in the call that waited: the path is to lead
there, and what it ends in is told by :func:`ending_of`. Time that nothing is known of stays where
it is.

All times are in cycles. Pure.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from darc.model.ftree import Cause, Ending, Fnode, RootCausePath, Totals, Unclear
from darc.model.offtimes import cycles_within
from darc.model.ops import Off, OffReason, Op, Span
from darc.model.profile import bin_of
from darc.search import decision
from darc.search.contest import Vote, Votes
from darc.search.loops import CallTimes, contributions

_BESIDE = {Cause.PREEMPTION: OffReason.READY, Cause.STOPPED: OffReason.STOPPED}
"""Causes that are no call's, wherever in the op their time fell, with the reason of that."""
_NOT_ITS_OWN = tuple(_BESIDE.values())

_MANY_TIMES = 8
"""How many times what else it took an op that needs less than a turn was ready, for that to be what
makes it slow; or the debugger held any op, in many stops."""

_MANY_STOPS = 8
"""Stops of the debugger's in one op: at a fork there are one or two, and what is left of the op is
the program's."""


@dataclass(frozen=True)
class Rules:
    """What the search was told: by that ops vote here as well."""

    resolution: int = 1
    """Bins in an octave."""
    by_longest: bool = False
    """Callees are compared by their longest call (``--loops paper``)."""
    percentage: float = 0.5
    """What part of the most votes makes a root cause."""
    slow_from: int | None = None
    """Cycles from which on a call is no fast one, by the peaks; ``None``: it is not known."""
    has_faster: bool = False
    """Whether there are calls that are faster than those of the peak, by the peaks."""
    turn: int = 0
    """Cycles that a thread has a processor for before others get it, at least: who needs less is
    not preempted for what it computes. 0: that is not known."""


@dataclass(frozen=True)
class OffVotes:
    """The votes of kept ops."""

    ops: int
    """How many voted: those whose thread was watched."""
    votes: Votes
    """As the agent's would be: for every node that is compared, and for its callees."""
    preemption: int = 0
    """In how many of them the time ready was among the largest contributors to f0, and what made
    them slow."""
    stopped: int = 0
    """The same of the time in which the debugger held their threads."""
    all_the_same: int = 0
    """How many would be slow without the time ready, too."""
    ready: int = 0
    """Σ of that time."""
    latency: int = 0
    """Σ of their latencies, with that time, but without what the debugger took."""

    def ending_beside(self, root: Fnode, rules: Rules) -> Ending | None:
        """How the path that is f0 (``root``) alone ends where one of the causes that are no call's
        is a root cause of f0's, by the rule that chooses callees: the one with more votes."""
        mine = self.votes.get(root, Vote())
        rivals = [self.votes.get(child, Vote()).votes for child in root.children]
        counts = self.beside_counts
        chosen = decision.chosen([*counts, mine.own, *rivals], rules.percentage)
        asked = zip(counts, _BESIDE, chosen[: len(counts)], strict=True)
        won = [(count, cause) for count, cause, is_won in asked if is_won]
        most = max(won, default=None, key=lambda one: one[0])
        return None if most is None else Ending(most[1], most[0])

    @property
    def beside_counts(self) -> list[int]:
        """The votes of each of these causes."""
        return [self.preemption, self.stopped]


class _Times:
    """What the calls of one op took, without the time off the processor for some reasons: as a
    rule with nothing in them that is not the program's."""

    def __init__(self, op: Op, root: Fnode, without: Collection[OffReason] = _NOT_ITS_OWN) -> None:
        self._off = tuple(off for off in op.off or () if off.reason in without)
        self.ready = op.off_time(OffReason.READY)
        self.stopped = op.off_time(OffReason.STOPPED)
        self.stops = sum(off.reason is OffReason.STOPPED for off in op.off or ())
        self.whole = whole = self._own(op.latency, op.start, op.end)
        self.of: dict[Fnode, CallTimes] = {root: CallTimes(whole, whole, 1)}
        for total in op.sums:
            self.of[total.node] = self._sum(
                op, total.node, calls=total.calls, total=total.sum, longest=total.max
            )

    def beside(self, rules: Rules, *, is_slow: bool) -> dict[Cause, int]:
        """What contests with calls in an op that would else be as fast as others; in one that would
        be slow all the same (``is_slow``) the debugger alone, where it held it in many stops for
        many times what is left, which is what they cost outside, too. That this has made it slow is
        known only where there are some that are faster."""
        stopped = self.stopped if rules.has_faster else 0
        if not is_slow:
            return {Cause.PREEMPTION: self.ready, Cause.STOPPED: stopped}
        is_held = self.stops >= _MANY_STOPS and stopped >= _MANY_TIMES * self.whole
        return {Cause.STOPPED: stopped} if is_held else {}

    def _own(self, latency: int, start: int, end: int) -> int:
        return max(1, latency - cycles_within(self._off, start, end))

    def _sum(self, op: Op, node: Fnode, calls: int, *, total: int, longest: int) -> CallTimes:
        spans = [span for span in op.spans if span.node is node]
        owns = [self._own(span.latency, span.start, span.end) for span in spans]
        taken = sum(span.latency for span in spans) - sum(owns)
        others = 0  # the longest of those that have no span
        if len(spans) < calls and not op.lost:  # they are shorter than any that has one
            others = min(longest, op.least)
        elif len(spans) < calls:  # there was no room for them
            off = self._off_unseen(op, spans)
            taken += round(off * max(0, total - sum(span.latency for span in spans)))
            if all(span.latency < longest for span in spans):
                others = round((1 - off) * longest)
        if taken and (spans or op.lost):
            longest = max([*owns, others])
        total = max(total - taken, longest)
        return CallTimes(longest, total, calls)

    def _off_unseen(self, op: Op, spans: Sequence[Span]) -> float:
        """Which part of the op's time outside of some calls it was off the processor."""
        outside = op.latency - sum(span.latency for span in spans)
        off = cycles_within(self._off, op.start, op.end)
        off -= sum(cycles_within(self._off, span.start, span.end) for span in spans)
        return min(1.0, max(0, off) / outside) if outside > 0 else 0.0


def votes(ops: Sequence[Op], root: Fnode, analyse: Iterable[Fnode], rules: Rules) -> OffVotes:
    """What these ops of f0 (``root``) vote for at each node of ``analyse``, all of whose timed
    callees are among its children. Ops of threads that were not watched have no vote."""
    ops = [op for op in ops if op.off is not None]
    nodes = list(analyse)
    found: dict[Fnode, Vote] = {}
    beside: Counter[Cause] = Counter()
    all_the_same = ready = latency = 0
    for op in ops:
        times = _Times(op, root)
        is_slow = _is_slow_all_the_same(op, rules)
        all_the_same += is_slow
        ready += times.ready
        latency += max(1, op.latency - times.stopped)
        for node, total in times.of.items():
            one = Totals(1, total.calls, total.sum, total.longest)
            found[node] = _plus(found.get(node), ops=1, totals=one)
        for node in nodes:
            if node not in times.of:
                continue
            contest = times.beside(rules, is_slow=is_slow) if node is root else {}
            for winner in _largest(node, times, rules, contest):
                if isinstance(winner, Cause):
                    beside[winner] += 1
                elif winner is node:
                    found[node] = _plus(found[node], own=1)
                else:
                    found[winner] = _plus(found[winner], votes=1)
    return OffVotes(
        len(ops),
        found,
        beside[Cause.PREEMPTION],
        beside[Cause.STOPPED],
        all_the_same=all_the_same,
        ready=ready,
        latency=latency,
    )


def _largest(
    node: Fnode, times: _Times, rules: Rules, beside: Mapping[Cause, int]
) -> list[Fnode | Cause]:
    """Who has a vote of an op at ``node``: of its callees, itself, and what is ``beside`` them."""
    children = [child for child in node.children if child in times.of]
    own, parts = contributions(
        times.of[node], [times.of[child] for child in children], by_longest=rules.by_longest
    )
    times_of: list[tuple[Fnode | Cause, int]] = [
        *((cause, time) for cause, time in beside.items() if time),
        (node, own),
    ]
    times_of += zip(children, parts, strict=True)
    best = bin_of(max(time for _, time in times_of), rules.resolution)
    return [one for one, time in times_of if bin_of(time, rules.resolution) == best]


def slow_all_the_same(ops: Iterable[Op], rules: Rules) -> list[Op]:
    """Those that would be slow without the time that is none of the program's as well."""
    return [op for op in ops if _is_slow_all_the_same(op, rules)]


def time_of_program(op: Op) -> int:
    """What it took without the time ready, and that in which the debugger held it."""
    return op.latency - sum(map(op.off_time, _NOT_ITS_OWN))


def _is_slow_all_the_same(op: Op, rules: Rules) -> bool:
    if rules.slow_from is None:
        return False
    left = time_of_program(op)
    if left < rules.turn and op.off_time(OffReason.READY) >= _MANY_TIMES * left:
        return False
    return left >= rules.slow_from


def _plus(
    vote: Vote | None, *, own: int = 0, ops: int = 0, votes: int = 0, totals: Totals | None = None
) -> Vote:
    before = vote or Vote()
    return dataclasses.replace(
        before,
        own=before.own + own,
        ops=before.ops + ops,
        votes=before.votes + votes,
        totals=before.totals + (totals or Totals()),
    )


# ------------------------------------------------------------------- paths' ends

UNTOLD_NOTE = f"{Unclear.HOW_SPENT.text}: it was in no call that was kept whole"
"""Of a path that ends in a function's own time."""


@dataclass(frozen=True)
class OwnTime:
    """What a function did in its own time: that of its calls, without those of its callees that
    were timed. In the ops that voted for it: in those that are slow for something else, a call that
    mostly waits may have had nothing to wait for. In all that it was called in where none did."""

    ops: int
    """In how many."""
    ran: int
    """Σ of the time in which it was on a processor, or nothing is known."""
    off: Mapping[OffReason, int]
    """Σ of the time in which it was not, by reason."""
    won: Mapping[Cause, int]
    """In how many ops the time spent so was among the largest contributors to its own:
    ``FUNCTION`` (it ran), ``BLOCKED`` and, in those that would else not be slow,
    ``PREEMPTION``."""

    @property
    def cause(self) -> Cause:
        """What most ops say; where as many say one as the other, what took longer."""
        return self._most_of(Cause.FUNCTION, Cause.BLOCKED, Cause.PREEMPTION)

    @property
    def cause_beside_preemption(self) -> Cause:
        """The same of what it did when it could."""
        return self._most_of(Cause.FUNCTION, Cause.BLOCKED)

    def _most_of(self, *causes: Cause) -> Cause:
        time = {
            Cause.FUNCTION: self.ran,
            Cause.BLOCKED: self.off.get(OffReason.BLOCKED, 0),
            Cause.PREEMPTION: self.off.get(OffReason.READY, 0),
        }
        return max(causes, key=lambda cause: (self.won.get(cause, 0), time[cause]))


def own_time(node: Fnode, root: Fnode, ops: Sequence[Op], rules: Rules) -> OwnTime:
    """See :class:`OwnTime`. Ops of threads that were not watched do not count."""
    called = ran = 0
    off = dict.fromkeys(OffReason, 0)
    won = dict.fromkeys((Cause.FUNCTION, Cause.BLOCKED, Cause.PREEMPTION), 0)
    ops = [op for op in ops if op.off is not None]
    for op in [op for op in ops if _is_for(node, root, op, rules)] or ops:
        whole = _within(node, root, op)
        if whole is None:
            continue
        latency, by_reason = whole
        for child in node.children:
            if (part := _within(child, root, op)) is not None:
                latency -= part[0]
                for reason in OffReason:
                    by_reason[reason] -= part[1][reason]
        called += 1
        is_slow = _is_slow_all_the_same(op, rules)
        latency = left = max(0, latency)
        for reason in OffReason:  # callees that were too short for spans may have waited, too
            by_reason[reason] = min(max(0, by_reason[reason]), left)
            left -= by_reason[reason]
            off[reason] += by_reason[reason]
        on = max(0, latency - sum(t for r, t in by_reason.items() if r is not OffReason.UNKNOWN))
        ran += on
        spent = {
            Cause.FUNCTION: on,
            Cause.BLOCKED: by_reason[OffReason.BLOCKED],
            Cause.PREEMPTION: 0 if is_slow else by_reason[OffReason.READY],
        }
        best = bin_of(max(spent.values()), rules.resolution)
        for cause, time in spent.items():
            won[cause] += bool(time) and bin_of(time, rules.resolution) == best
    return OwnTime(called, ran, off, won)


def _is_for(node: Fnode, root: Fnode, op: Op, rules: Rules) -> bool:
    """Whether an op voted for ``node`` itself, at each level of its path, as the agent counts: with
    the time ready where it fell."""
    times = _Times(op, root, without=(OffReason.STOPPED,))
    winner = node
    while node in times.of and winner in _largest(node, times, rules, {}):
        if node is root:
            return True
        winner, node = node, node.parent or root
    return False


def _within(node: Fnode, root: Fnode, op: Op) -> tuple[int, dict[OffReason, int]] | None:
    """The latency of all calls of a node in an op, and the time off the processor in them; ``None``
    where it was not called."""
    if node is root:
        return op.latency, {reason: op.off_time(reason) for reason in OffReason}
    total = next((total.sum for total in op.sums if total.node is node), None)
    if total is None:
        return None
    spans = [span for span in op.spans if span.node is node]
    return total, {
        reason: sum(_cycles(op.off or (), reason, span.start, span.end) for span in spans)
        for reason in OffReason
    }


def _cycles(off: Iterable[Off], reason: OffReason, start: int, end: int) -> int:
    return cycles_within((one for one in off if one.reason is reason), start, end)


def ending_of(
    ending: Ending,
    node: Fnode,
    root: Fnode,
    *,
    ops: Sequence[Op],
    rules: Rules,
    note: Callable[[OwnTime], str | None] = lambda own: None,
    beside_preemption: bool = False,
) -> Ending:
    """The ending of a path at ``node``, whose own time was the cause: ``blocked`` or ``preemption``
    where most ops say so, with the votes that say it; else the same one. ``note`` may add to it.
    Where no op has seen ``node``, that is said. Of a path ``beside_preemption``, that of f0, which
    is one cause wherever it fell (DARC 3.6), it is what it did else."""
    if ending.cause is not Cause.FUNCTION:
        return ending
    own = own_time(node, root, ops, rules)
    if not own.ops and any(op.off is not None for op in ops):
        return ending.noting(UNTOLD_NOTE, Unclear.HOW_SPENT)
    cause = own.cause_beside_preemption if beside_preemption else own.cause
    if cause is Cause.FUNCTION:
        return ending
    told = ending.noting(note(own))
    return dataclasses.replace(told, cause=cause, maxcount=own.won[cause])


# -------------------------------------------------------------------- conclusions


@dataclass(frozen=True)
class Conclusion:
    """What kept ops say of paths that were found by the agent's votes."""

    voted: OffVotes
    beside: Ending | None
    """How f0 itself ends where preemption is a root cause, or the debugger's stops, wherever in the
    op that fell."""
    endings: Mapping[Fnode, Ending]
    """The paths' last fnodes, with the endings that these ops give them."""
    disputed: tuple[Fnode, ...]
    """Fnodes on the paths that are no root causes by these ops, each nearest to f0."""


def conclude(
    paths: Iterable[RootCausePath],
    root: Fnode,
    ops: Sequence[Op],
    *,
    rules: Rules,
    note: Callable[[OwnTime], str | None] = lambda own: None,
    compared: Collection[Fnode] | None = None,
) -> Conclusion:
    """What ``ops`` of f0 (``root``), of one class and all in the peak, say of ``paths``. Where none
    of them was watched, nothing that the paths do not. Of fnodes that are not among those
    ``compared`` the callees were not all timed, and their own time is not known (``None``: there
    are none)."""
    paths = list(paths)
    nodes = dict.fromkeys(node for path in paths for node in path.nodes)
    counted = votes(ops, root, nodes, rules)
    beside = counted.ending_beside(root, rules) if counted.ops else None
    endings: dict[Fnode, Ending] = {}
    disputed: dict[Fnode, None] = {}
    for path in paths:
        last = path.nodes[-1]
        is_known = compared is None or not last.children or last in compared
        is_seen = last is root or any(total.node is last for op in ops for total in op.sums)
        if is_known or last.decision is None or not is_seen:
            is_beside = beside is not None and last is not root
            endings[last] = ending_of(
                path.ending,
                last,
                root=root,
                ops=ops,
                rules=rules,
                note=note,
                beside_preemption=is_beside,
            )
        if counted.ops and (first := _first_disputed(path, counted, rules, compared)) is not None:
            disputed[first] = None
    return Conclusion(counted, beside, endings, tuple(disputed))


def _first_disputed(
    path: RootCausePath, counted: OffVotes, rules: Rules, compared: Collection[Fnode] | None
) -> Fnode | None:
    for above, node in pairwise(path.nodes):
        seen = counted.votes.get(above, Vote())
        rivals = [counted.votes.get(child, Vote()).votes for child in above.children]
        beside = counted.beside_counts if above.parent is None else []
        chosen = decision.chosen([*beside, seen.own, *rivals], rules.percentage)[len(beside) :]
        is_known = compared is None or above in compared
        if is_known and seen.ops and not chosen[1 + above.children.index(node)]:
            return node
        if not is_known and any(beside) and not chosen[0]:  # all that it calls is in its own time
            return node
    return None
