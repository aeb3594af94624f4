"""The round behind a search: the paths are known, and the program goes on for a moment with all
calls on them timed, so that whole ops can be kept. No decision rests on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from darc.analyses.waits import moments_of
from darc.collectors.collector import Collector
from darc.model.ftree import Fnode, RootCausePath
from darc.model.ops import LEAST_FOR_ESTIMATES, MOST_KEPT, KeptOps, Op, OpClass
from darc.model.parameters import Parameters
from darc.model.waits import are_few
from darc.search.contest import call_sites
from darc.search.descent import Orders

_CLOSING_SECONDS = 1.0
"""For how long at most ops are kept when the paths are known, where many come in that time;"""

_MORE_TIME = 2.5
"""where few do, by how much longer than it takes on average until there are enough of them, as they
come by chance (by half as much again, there were too few in one of seven rounds),"""

_LONGEST_CLOSING = 20.0
"""though for so many seconds at most."""


def closing_seconds(rate: float) -> float:
    """For how long it lasts at most, where ``rate`` calls inside the peak come a second: enough are
    kept in less than the time of a level, however rare they are."""
    needed = _MORE_TIME * LEAST_FOR_ESTIMATES / rate if rate else math.inf
    return min(max(_CLOSING_SECONDS, needed), _LONGEST_CLOSING)


def is_frequent(rate: float) -> bool:
    """Whether enough calls inside the peak come meanwhile, where so many come a second."""
    return rate * _CLOSING_SECONDS >= LEAST_FOR_ESTIMATES


_LENGTHENED_SECONDS = 0.5
"""For how long more, where all ops waited together."""


def waited_together(ops: Sequence[Op]) -> bool:
    """Whether ops that waited for others are of far fewer moments than they are."""
    waited = [op for op in ops if op.events]
    return len(waited) >= LEAST_FOR_ESTIMATES and are_few(moments_of(waited), len(waited))


def closing_calls(decision_ops: int | None, is_frequent: bool) -> int:
    """How many calls inside the peak a closing round is held for: as many as a level takes, but
    enough to tell what the causes explain, however few the user decides by. The slowest one is kept
    beside those that tell."""
    least = LEAST_FOR_ESTIMATES + 1
    enough = MOST_KEPT if is_frequent else least
    return min(max(decision_ops or enough, least), enough)


def closing_orders(
    paths: Sequence[RootCausePath], most: int, fits: Callable[[Orders], bool] = lambda orders: True
) -> Orders:
    """To time the callees of every fnode on ``paths``, chosen or not, at up to ``most`` call sites:
    those on the paths first, then by the time that they took. Where they are more than ``fits``,
    those on the paths all the same, down to the ends: without them it is not known what slow calls
    did there. What the ends call comes next, and f0, and then what those call that call few."""
    nodes = dict.fromkeys(node for path in paths for node in path.nodes if node.children)
    on_paths = {node for path in paths for node in path.nodes}
    ends = {path.nodes[-1] for path in paths}
    children = [child for node in nodes for child in node.children]
    children.sort(key=lambda child: (child not in on_paths, -child.called.sum))

    def orders(timed: AbstractSet[Fnode], whole: AbstractSet[Fnode]) -> Orders:
        batches = {
            node: tuple(c for c in node.children if c in timed or node in whole) for node in nodes
        }
        return Orders(tuple(nodes), batches, exact=nodes.keys() - whole)

    all_of_them = Orders(tuple(nodes), orders(set(children[:most]), set()).batches)
    if fits(all_of_them):
        return all_of_them
    whole: set[Fnode] = set()
    for node in sorted(nodes, key=lambda one: (one not in ends, one.depth > 1, len(one.children))):
        more = orders(on_paths, {*whole, node})
        if fits(more) and len(call_sites(c for b in more.batches.values() for c in b)) <= most:
            whole.add(node)
    count = len(children)
    while count > len(on_paths) and not fits(orders({*children[:count], *on_paths}, whole)):
        count = count * 3 // 4
    return orders({*children[:count], *on_paths}, whole)


@dataclass
class ClosingRound:
    """One that is under way: ops are kept on which no decision rests, with all calls on the paths
    timed."""

    until: float
    """In seconds that the program has run."""
    needed: int
    """Calls inside the peak, with which it is over before."""
    _is_lengthened: bool = False

    @classmethod
    def begun(
        cls,
        collector: Collector,
        paths: Sequence[RootCausePath],
        parameters: Parameters,
        *,
        rate: float,
        now: float,
    ) -> ClosingRound:
        """It begins ``now``; by the profile ``rate`` calls inside the peak come a second."""
        assert collector.ops is not None
        collector.ops.watch_waits()
        most = collector.within_limits(parameters).max_probes
        collector.timing.apply(closing_orders(paths, most, collector.timing.fits))
        needed = closing_calls(parameters.decision_ops, is_frequent(rate))
        collector.counting.await_in_peak(needed)
        return cls(now + closing_seconds(rate), needed)

    def lasts(self, kept: KeptOps, now: float) -> bool:
        """At a decision, with the ops that are ``kept`` by then: whether it goes on up to another
        time, once, as all of them waited together: many threads that one holder blocks are kept at
        once, and tell of that one alone."""
        if self._is_lengthened or now >= self.until:
            return False
        self._is_lengthened = waited_together(kept.sample(OpClass.IN_PEAK))
        if self._is_lengthened:
            self.until = now + _LENGTHENED_SECONDS
        return self._is_lengthened
