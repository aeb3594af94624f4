"""What a root cause path ends in when the function's own time wins (paper section 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from darc.model.ftree import Cause, Ending, Fnode, Totals
from darc.search.loops import is_blurred, is_short, repeats

UNSEEN_CYCLES = 32
"""What a call may take beyond what is measured. The time-stamp counter is read in no fixed order
with the instructions around it (Intel SDM, RDTSC): a callee's last ones may still be under way. It
matters for calls as short as that alone."""


MANY_PATHS = 4
"""Paths under way at once from which on a search is told to widen."""


def widening(paths: int, level: int) -> list[str]:
    """Of a search that was cut short with so many ``paths`` under way: what may be done about it,
    where they are many."""
    if paths < MANY_PATHS:
        return []
    return [
        f"the tree widens: {paths} paths are under way at level {level}: give a longer --max-time, "
        "a higher --maxcount-percentage, or a function nearer to the cause"
    ]


def too_few(per_second: float, needed: int) -> str:
    """Of a search that time has ended with fewer calls inside the peak than the ``needed`` ones:
    what may be done about it, where they come slowly; as the end of a line."""
    if not 0 < per_second < needed:
        return ""
    often = f"{per_second:.1f} times a second" if per_second >= 0.1 else "less often than every 10s"
    return f", which come {often}: give a longer --max-time, or fewer --decision-ops"


def own_ending(node: Fnode, maxcount: int, note: str | None = None) -> Ending:
    """The ending of a path at ``node``, whose own time was chosen with ``maxcount`` votes.

    Only the longest call of each callee is taken out of a function's own time, so that time may be
    many short calls. Where those of one callee make up more than half of it, the cause is a loop.
    Call sites of one callee are taken together, as a compiler that unrolls a loop repeats its site.
    ``node.totals`` and those of its children must be over the same calls of f0.
    """
    whole = node.totals
    own = whole.max_sum - sum(child.totals.max_sum for child in node.children)
    # Where the node itself was called several times, only its longest call counts.
    longest = whole.max_sum / whole.sum if whole.sum else 0.0
    callee: Fnode | None = None
    short_calls, loop = 0.0, Totals()
    for sites in _by_callee(node.children):
        totals = _added(sites)
        unseen = UNSEEN_CYCLES * max(totals.calls - totals.ops, 0)
        rest = (totals.sum + unseen) * longest - totals.max_sum
        if rest > short_calls:
            callee, short_calls, loop = sites[0], rest, totals
    if callee is None or 2 * short_calls <= own:
        return Ending(Cause.FUNCTION, maxcount, note=note)
    return _loop(node, callee, loop=loop, maxcount=maxcount, note=note)


def loop_or_own(
    node: Fnode,
    maxcount: int,
    probe_cost: int,
    *,
    is_loop: bool,
    note: str | None = None,
    winners: Collection[Fnode] = (),
    probe_doubt: int = 0,
) -> Ending:
    """The same where all calls of a callee count, so that the function's own time is without them.

    A loop is what it is then where its calls are so short that measuring them tells little
    (:func:`~darc.search.loops.is_short`): ``is_loop`` says that such calls were chosen; else what
    goes unseen of them may be what was. And where the calls of one callee outweigh its caller
    only together, made at several sites as a compiler unrolls a loop, none of which is among the
    ``winners``: those were chosen by themselves. Each call may have cost the caller
    ``probe_doubt`` cycles more than were taken out of it.
    """
    unseen = UNSEEN_CYCLES + probe_doubt
    own = node.totals.sum - sum(child.totals.sum for child in node.children)
    best: tuple[int, Fnode, Totals] | None = None
    for sites in _by_callee(node.children):
        if is_loop:
            sites = [site for site in sites if is_short(site.totals, probe_cost)]
        totals = _added(sites)
        is_any = bool(sites) if is_loop else repeats(totals) or is_blurred(totals, probe_doubt)
        if any(site in winners for site in sites) or not is_any:
            continue
        time = totals.sum + unseen * totals.calls
        if best is None or time > best[0]:
            best = time, sites[0], totals
    if best is not None:
        time, callee, loop = best
        if is_loop or time > own - unseen * loop.calls:
            return _loop(node, callee, loop=loop, maxcount=maxcount, note=note)
    return Ending(Cause.FUNCTION, maxcount, note=note)


def _loop(node: Fnode, callee: Fnode, loop: Totals, *, maxcount: int, note: str | None) -> Ending:
    return Ending(
        Cause.LOOP,
        maxcount,
        loop_callee=callee.function.name,
        loop_calls=loop.calls / loop.ops,
        loop_share=min(1.0, loop.sum / max(1, node.totals.sum)),
        note=note,
    )


def _by_callee(nodes: Iterable[Fnode]) -> Iterable[list[Fnode]]:
    groups: defaultdict[int, list[Fnode]] = defaultdict(list)
    for node in nodes:
        if node.totals.ops:
            groups[node.function.address].append(node)
    return groups.values()


def _added(sites: Iterable[Fnode]) -> Totals:
    """The calls from several sites; ``ops`` as far as it is known, that of the busiest."""
    totals = [site.totals for site in sites]
    return Totals(
        ops=max((t.ops for t in totals), default=0),
        calls=sum(t.calls for t in totals),
        sum=sum(t.sum for t in totals),
        max_sum=sum(t.max_sum for t in totals),
    )
