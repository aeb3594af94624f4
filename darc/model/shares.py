"""What a root cause explains of its peak, from the ops that were kept.

Two figures, both over the same ops, a uniform choice among those inside the peak:

- its *share*: Σ of the time that the cause took, by Σ of the latencies;
- *without it*: in which bins these ops would lie if the cause had taken no time, from the tenth to
  the ninetieth of a hundred. A function's own code cannot be left out: for it there is none.

Fewer than :data:`~darc.model.ops.LEAST_FOR_ESTIMATES` ops give neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from darc.model.ftree import Cause, Ending, Fnode, RootCausePath
from darc.model.offtimes import SHORTEST_TURN, cycles_within
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OffReason, Op, OpClass
from darc.model.parameters import Loops
from darc.model.peaks import Peak
from darc.model.profile import bin_of
from darc.model.snapshot import Snapshot

SLIGHT = 8
"""How many times what a path explains another one explains, for it to be no root cause. In one op
the contributors in the bin of the largest are within a factor of two of it (paper 3); the share is
over all ops."""

NEXT_TO_NOTHING = 0.1
"""Of what makes the calls of the peak slow: where all paths together explain less, no root cause is
known."""

MOST = 0.5
"""Of that: where they explain less, other things make calls slow as well."""

_OUTSIDE = 0.1
"""Part of the ops that is left out of the range of bins on each side."""


@dataclass(frozen=True)
class Without:
    """Where the ops would lie without the cause."""

    first_bin: int
    last_bin: int
    """Inclusive."""
    peak: int | None
    """The number of the peak that has all these bins; ``None``: none has."""


@dataclass(frozen=True)
class Explained:
    """What one cause explains: its share."""

    ops: int
    """Over how many in-peak ops."""
    share: float | None = None
    """0 to 1; ``None`` where there are too few ops, or where not all that it takes was timed in
    them."""
    without: Without | None = None


@dataclass(frozen=True)
class Weight:
    """What several causes explain together of what makes the calls of the peak slow: of the time
    that these take beyond the faster calls, and that is the program's own."""

    share: float
    """Of all the peak's time, as it is told: 0 to 1."""
    part: float
    """Of what makes its calls slow, at most: above 1 where the causes are in fast calls as well."""
    touched: float
    """The part of the calls of which they explain more than next to nothing."""

    @property
    def is_next_to_nothing(self) -> bool:
        """Whether neither the time nor the calls are explained: a few of the calls may be so long
        that most of the time is theirs."""
        return self.part < NEXT_TO_NOTHING and self.touched < MOST

    @property
    def is_minor(self) -> bool:
        """Whether most of the time is due to something else."""
        return self.part < MOST


def explain(path: RootCausePath, snapshot: Snapshot) -> Explained:
    """What the cause at the end of ``path`` explains of the kept ops of the peak."""
    kept, profile = snapshot.ops, snapshot.profile
    resolution = profile.resolution if profile is not None else 1
    ops = _ops_of(path, kept)
    taken = _taken(path, ops, kept)
    if taken is None:
        return Explained(len(ops))
    if is_own(path.ending):
        return Explained(len(ops), _share(taken))
    bins = [bin_of(latency - time, resolution) for time, latency in taken]
    return Explained(len(ops), _share(taken), _range(bins, snapshot.peaks))


def weigh_all(snapshot: Snapshot) -> Weight | None:
    """:func:`weigh` of all paths of a snapshot."""
    profile, peak = snapshot.profile, snapshot.peak
    if not snapshot.paths or profile is None or peak is None:
        return None
    fast = profile.mean_below(peak.first_bin)
    by_longest = snapshot.parameters.loops is Loops.PAPER
    return weigh(snapshot.paths, snapshot.ops, fast, by_longest=by_longest)


def is_minor(snapshot: Snapshot) -> bool:
    """Whether most of the peak's time is known to have causes that are none of the paths': less
    than half of it is in these, and less than half of what makes its calls slow."""
    weight = weigh_all(snapshot)
    if weight is None:
        known = led_there(snapshot)
        return known is not None and known < MOST
    return weight.is_minor and weight.share < MOST and not _has_most_time(snapshot)


def led_there(snapshot: Snapshot) -> float | None:
    """Where the share of some of the paths is not known: to what part of the peak's time, from 0
    to 1, all of them may come. Such a path has the part of the calls that led to it by their votes,
    level after level; also where time was up before calls were kept. ``None`` where all shares are
    known, where no call was to be kept whole, or where the user has chosen the path."""
    parameters = snapshot.parameters
    if snapshot.ops is None and not snapshot.probes.can.keeps_ops:
        return None
    if not parameters.auto or parameters.loops is Loops.PAPER:
        return None
    shares = [explain(path, snapshot).share for path in snapshot.paths]
    if None not in shares:
        return None
    parts = (
        voted(path) if share is None else share
        for path, share in zip(snapshot.paths, shares, strict=True)
    )
    return min(1.0, sum(parts))


def voted(path: RootCausePath) -> float:
    """The part of the in-peak calls, from 0 to 1, that the votes led down ``path`` and to its end,
    as far as decisions tell."""
    part = 1.0
    for above, node in pairwise(path.nodes):
        if above.decision is not None and above.decision.ops:
            part *= min(1.0, node.maxcount / above.decision.ops)
    last = path.nodes[-1].decision
    if last is not None and last.ops:
        part *= min(1.0, path.ending.maxcount / last.ops)
    return part


def _has_most_time(snapshot: Snapshot) -> bool:
    """Whether a path is the one down which most of the time is, or that goes on below the call at
    its end: what has most of what that one has is no other cause."""
    nodes, most = most_time(snapshot)
    functions = [node.function for node in nodes]
    for path in snapshot.paths:
        way, share = [node.function for node in path.nodes], explain(path, snapshot).share
        is_there = functions == way or (_is_call(path) and functions[: len(way)] == way)
        if is_there and share is not None and share >= MOST * most:
            return True
    return False


def most_time(snapshot: Snapshot) -> tuple[tuple[Fnode, ...], float]:
    """Down from f0 the calls in which most of the peak's kept ops' time was that the debugger did
    not hold them for, each with half of its caller's at least, and what part of the whole the last
    one had; f0 alone where none has."""
    kept, root = snapshot.ops, snapshot.ftree
    ops = () if kept is None else kept.sample(OpClass.IN_PEAK)
    if root is None or len(ops) < LEAST_FOR_ESTIMATES:
        return (), 0.0
    times: dict[Fnode, int] = {}
    for op in ops:
        for total in op.sums:
            times[total.node] = times.get(total.node, 0) + total.sum
        held = [off for off in op.off or () if off.reason is OffReason.STOPPED]
        for span in op.spans if held else ():
            times[span.node] = times.get(span.node, 0) - cycles_within(held, span.start, span.end)
    whole = time = sum(map(_program_time, ops))
    nodes = [root]
    while below := [child for child in nodes[-1].children if not child.is_interrupt]:
        best = max(below, key=lambda child: times.get(child, 0))
        if times.get(best, 0) < MOST * time:
            break
        nodes.append(best)
        time = times[best]
    return tuple(nodes), min(1.0, time / whole)


def longest_with_most(snapshot: Snapshot) -> int | None:
    """How many cycles the longest of the peak's kept ops take at least that hold half of the time
    of all, without what the debugger held them for; ``None`` where these are as good as all, or
    where that is not known."""
    kept, profile, peak = snapshot.ops, snapshot.profile, snapshot.peak
    ops = () if kept is None else kept.sample(OpClass.IN_PEAK)
    if profile is None or peak is None or len(ops) < LEAST_FOR_ESTIMATES:
        return None
    longest = sorted(ops, key=_program_time, reverse=True)
    left = MOST * sum(map(_program_time, ops))
    for op in longest:
        left -= _program_time(op)
        if left <= 0:
            least = _program_time(op)
            return least if least > 2 * profile.low(peak.first_bin) else None
    return None


def explained_together(paths: Sequence[RootCausePath], snapshot: Snapshot) -> float | None:
    """The share of the peak's time, from 0 to 1, that the causes of all ``paths`` have taken
    together, none of it twice; ``None`` where it is not known of each of them."""
    taken = _taken_together(paths, snapshot.ops)
    return None if taken is None else _share([(time, most) for _, time, most in taken])


def weigh(
    paths: Sequence[RootCausePath], kept: KeptOps | None, fast: float, *, by_longest: bool = False
) -> Weight | None:
    """What the causes of ``paths`` explain together, where a call that is faster than the peak
    takes ``fast`` cycles; ``None`` where it is not known of each of them, or where nothing is left
    to explain: the time in which a thread could have run is no function's, and counts only where
    it is one of the causes, or more than these, in calls that are too short to be preempted for
    what they compute. ``by_longest`` says that of each callee its longest call was
    taken out of a function's own time (``--loops paper``), which is not known of ops."""
    if by_longest and any(
        is_own(path.ending) and not _is_whole(path.nodes[-1], path.ending) for path in paths
    ):
        return None
    told = _taken_together(paths, kept)
    taken = _taken_together(paths, kept, of_loops=_loop_and_caller)
    if told is None or taken is None:
        return None
    is_ready = any(path.ending.cause is Cause.PREEMPTION for path in paths)
    is_ready = is_ready or _is_ready_by_chance(kept, taken)
    slow = [(time, most - (0 if is_ready else _not_known(op)) - fast) for op, time, most in taken]
    whole = sum(excess for _, excess in slow)
    if whole <= 0:
        return None
    touched = sum(time >= NEXT_TO_NOTHING * excess for time, excess in slow)
    explained = sum(time for time, _ in slow)
    share = _share([(time, most) for _, time, most in told])
    return Weight(share, explained / whole, touched / len(slow))


def _is_ready_by_chance(kept: KeptOps | None, taken: Sequence[tuple[Op, int, int]]) -> bool:
    """Whether ops spent more time in which their threads could have run than what is ``taken`` of
    them, in calls that need less than a turn of the processor: whatever computes for longer is
    preempted for that."""
    turn = 0.0 if kept is None else SHORTEST_TURN * kept.hz
    ready = ((op.off_time(OffReason.READY), most) for op, _, most in taken)
    short = sum(time for time, most in ready if most - time < turn)
    return short > sum(time for _, time, _ in taken)


def _not_known(op: Op) -> int:
    """Cycles of an op in which its thread did nothing that anybody knows of."""
    return op.off_time(OffReason.READY) + op.off_time(OffReason.UNKNOWN)


def _taken_together(
    paths: Sequence[RootCausePath],
    kept: KeptOps | None,
    of_loops: Callable[[Op, Fnode, Ending], int] | None = None,
) -> Sequence[tuple[Op, int, int]] | None:
    """The ops, each with the cycles that the causes took together, and all; ``None`` as for
    :func:`explained_together`. ``of_loops`` tells what a loop took, if not as :func:`_time`."""
    ops = _ops_of(paths[0], kept) if paths else ()
    if any(_by_switches(path, ops) for path in paths):
        ops = [op for op in ops if op.off is not None]
    found = []
    for path in _apart(paths, ops):
        taken = _taken(path, ops, kept, of_loops)
        if taken is None:
            return None
        found.append(taken)
    if not found:
        return None
    mosts = (max(most for _, most in of_op) for of_op in zip(*found, strict=True))
    times = (sum(time for time, _ in of_op) for of_op in zip(*found, strict=True))
    return [(op, min(time, m), m) for op, time, m in zip(ops, times, mosts, strict=True)]


def _apart(paths: Sequence[RootCausePath], ops: Sequence[Op]) -> list[RootCausePath]:
    """Those of ``paths`` whose causes have no time in common: without what is in another one, and
    one for all that is summed over the whole op."""
    found: dict[object, RootCausePath] = {}
    for path in paths:
        last = path.nodes[-1]
        if any(_holds(other, path) for other in paths if other is not path):
            continue
        by_op = _by_switches(path, ops)
        cause = path.ending.cause
        key = cause if by_op else _handler(last) if last.is_interrupt else id(path)
        found.setdefault(key, path)
    return list(found.values())


def _holds(outer: RootCausePath, path: RootCausePath) -> bool:
    """Whether the cause of ``path`` is in a call that is the cause of ``outer``, or in a loop."""
    return _is_call(outer) and outer.nodes[-1] in path.nodes[:-1]


def _is_call(path: RootCausePath) -> bool:
    """Whether the cause at its end is all of a call, or of a loop, whatever is called in it."""
    last, ending = path.nodes[-1], path.ending
    return ending.cause is Cause.LOOP or (
        not ending.cause.is_of_no_call and _is_whole(last, ending)
    )


def share_of(path: RootCausePath, kept: KeptOps | None) -> float | None:
    """What share of the peak's time the cause of ``path`` takes, from 0 to 1, as far as ``kept``
    ops tell."""
    taken = _taken(path, _ops_of(path, kept), kept)
    return None if taken is None else _share(taken)


def slight(
    paths: Sequence[RootCausePath], kept: KeptOps
) -> Sequence[tuple[RootCausePath, float, float]]:
    """Those of ``paths`` that explain next to nothing beside another one, with their shares and the
    largest one. A path whose share is not known is not among them."""
    shares = [share_of(path, kept) for path in paths]
    most = max((share for share in shares if share is not None), default=0.0)
    return [
        (path, share, most)
        for path, share in zip(paths, shares, strict=True)
        if share is not None and share * SLIGHT < most
    ]


def _ops_of(path: RootCausePath, kept: KeptOps | None) -> Sequence[Op]:
    ops = kept.sample(OpClass.IN_PEAK) if kept is not None else ()
    return [op for op in ops if op.off is not None] if _by_switches(path, ops) else ops


def _by_switches(path: RootCausePath, ops: Sequence[Op]) -> bool:
    return path.ending.cause.is_of_no_call and any(op.off is not None for op in ops)


def _taken(
    path: RootCausePath,
    ops: Sequence[Op],
    kept: KeptOps | None,
    of_loops: Callable[[Op, Fnode, Ending], int] | None = None,
) -> Sequence[tuple[int, int]] | None:
    """In each op the cycles that the cause took, and all; ``None`` where there are too few ops, or
    where not all that it takes was timed in them."""
    node, ending = path.nodes[-1], path.ending
    if kept is None or len(ops) < LEAST_FOR_ESTIMATES:
        return None
    if not _by_switches(path, ops) and not _was_timed(node, ending, kept):
        return None
    time_of = of_loops if of_loops is not None and ending.cause is Cause.LOOP else _time
    latencies = [_program_time(op) for op in ops]
    if ending.cause is Cause.STOPPED:
        latencies = [op.latency for op in ops]
    return [
        (min(time_of(op, node, ending), most), most)
        for op, most in zip(ops, latencies, strict=True)
    ]


def _program_time(op: Op) -> int:
    """Cycles of an op in which the debugger did not hold its thread."""
    return max(1, op.latency - op.off_time(OffReason.STOPPED))


def _share(taken: Sequence[tuple[int, int]]) -> float:
    return sum(time for time, _ in taken) / sum(latency for _, latency in taken)


def is_own(ending: Ending) -> bool:
    """Whether the cause is a function's own code."""
    return ending.cause in (Cause.FUNCTION, Cause.BLOCK)


def _was_timed(node: Fnode, ending: Ending, kept: KeptOps) -> bool:
    """Whether all that the cause took is in the ops. A function was timed where its callees were,
    or its caller's, or where it has a sum. An interrupt's handler was where it was wherever it is
    known to have come: of ops that were kept as less was timed a part would be told (3.6)."""
    if node.is_interrupt and not _was_timed_everywhere(node, kept):
        return False
    is_timed = (
        node.parent is None
        or not kept.compared.isdisjoint((node, node.parent))
        or any(total.node is node for op in kept.ops for total in op.sums)
    )
    if not is_timed:
        return False
    return not node.children or node in kept.compared or _is_whole(node, ending)


def _was_timed_everywhere(interrupt: Fnode, kept: KeptOps) -> bool:
    handler = _handler(interrupt)
    return all(
        other.parent in kept.compared
        for other in interrupt.route()[0].walk()
        if other.is_interrupt and _handler(other) == handler and other.called.ops
    )


def _is_whole(node: Fnode, ending: Ending) -> bool:
    """Whether the cause is all that the last node took, whatever it calls: also where the path ends
    as it may go no deeper."""
    return ending.cause is not Cause.LOOP and (not is_own(ending) or node.decision is None)


def _time(op: Op, node: Fnode, ending: Ending) -> int:
    """Cycles that the cause took in one op."""
    cause = ending.cause
    if cause.is_of_no_call and op.off is not None:
        return op.off_time(OffReason.STOPPED if cause is Cause.STOPPED else OffReason.READY)
    if is_own(ending):
        # What another thread took, or the debugger, is not the function's.
        lost = sum(_off_in(op, node, reason) for reason in (OffReason.READY, OffReason.STOPPED))
        whole = op.time_of([node]) if node.parent is not None else op.latency
        taken = whole if _is_whole(node, ending) else op.own_time_of(node)
        return max(0, taken - lost)
    if cause is Cause.LOOP:
        return op.time_of(c for c in node.children if c.function.name == ending.loop_callee)
    if node.is_interrupt:  # it comes wherever it likes: all of this handler's count (3.6)
        handler = _handler(node)
        return sum(s.sum for s in op.sums if s.node.is_interrupt and _handler(s.node) == handler)
    if cause is Cause.BLOCKED and op.off is not None and _has_spans(op, node):
        return _off_in(op, node, OffReason.BLOCKED)
    return op.latency if node.parent is None else op.time_of([node])


def _loop_and_caller(op: Op, node: Fnode, ending: Ending) -> int:
    """Cycles of a loop's calls and of their caller itself: of short calls a probe sees a part."""
    return op.own_time_of(node) + _time(op, node, ending)


def _has_spans(op: Op, node: Fnode) -> bool:
    """Whether it is known of every call of ``node`` when it was."""
    calls = sum(total.calls for total in op.sums if total.node is node)
    return node.parent is None or sum(span.node is node for span in op.spans) == calls


def _off_in(op: Op, node: Fnode, reason: OffReason) -> int:
    """For how many cycles the thread was off the processor in ``node`` itself, and in none of its
    callees that have spans."""
    spans = [(span.start, span.end) for span in op.spans if span.node is node]
    mine = [(op.start, op.end)] if node.parent is None else spans
    below = [(span.start, span.end) for span in op.spans if span.node.parent is node]
    return max(
        0,
        sum(
            sum(off.within(*one) for one in mine) - sum(off.within(*one) for one in below)
            for off in op.off or ()
            if off.reason is reason
        ),
    )


def _handler(node: Fnode) -> tuple[str, int]:
    return node.function.module, node.function.offset


def _range(bins: Sequence[int], peaks: Sequence[Peak]) -> Without:
    ranked = sorted(bins)
    count = len(ranked)
    first = ranked[math.ceil(_OUTSIDE * count) - 1]
    last = ranked[count - math.ceil(_OUTSIDE * count)]
    inside = (p.number for p in peaks if p.first_bin <= first and last <= p.last_bin)
    return Without(first, last, next(inside, None))
