"""A contest: one function's own time against that of its callees, by votes (paper section 3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from darc.model.ftree import Cause, Fnode, Totals
from darc.search import decision
from darc.search.decision import Taken

NOTHING = Totals()

_NOT_SLIGHT = 4
"""One callee against targets that could not be told apart: this part of their time and votes."""


@dataclass(frozen=True)
class Vote:
    """What the agent counted for one fnode since the last orders, over in-peak calls of f0."""

    own: int = 0
    """In how many its own time was among the largest contributors to itself. Only for nodes under
    analysis."""
    ops: int = 0
    """In how many it was on the path."""
    votes: int = 0
    """In how many it was among the largest contributors to its parent."""
    totals: Totals = NOTHING
    counted: bool = True
    """False: there was no room to compare it with its callees. It waits for its turn."""


Votes = Mapping[Fnode, Vote]
"""By node; one that is not there had none."""


@dataclass
class Contest:
    """The votes of a node under analysis and of its children, over all decisions that left it open.

    A node with too many call sites is contested in rounds: its callees in batches first, then the
    winners of these. Only the votes of the last round decide.
    """

    node: Fnode
    seen: int = 0
    """In-peak calls of f0 since the round began."""
    own: int = 0
    ops: int = 0
    totals: Totals = NOTHING
    votes: dict[Fnode, int] = field(default_factory=dict)
    callee_totals: dict[Fnode, Totals] = field(default_factory=dict)
    batch: tuple[Fnode, ...] | None = None
    """The children that are timed in this round; None: all."""
    waiting: list[tuple[Fnode, ...]] = field(default_factory=list)
    """The batches after this one."""
    last_round: bool = True
    measured: set[Fnode] = field(default_factory=set)
    """The children that were in a batch so far."""
    best: dict[Fnode, float] = field(default_factory=dict)
    """Those that won in one, with the mean time that counts in an in-peak call, in cycles."""

    @property
    def timed(self) -> Sequence[Fnode]:
        """The children that are timed in this round."""
        return self.node.children if self.batch is None else self.batch

    def add(self, votes: Votes, seen: int) -> None:
        """Count the votes of ``seen`` more in-peak calls."""
        mine = votes.get(self.node, Vote())
        if not mine.counted:
            return
        self.seen += seen
        self.own += mine.own
        self.ops += mine.ops
        self.totals += mine.totals
        for child in self.node.children:
            if vote := votes.get(child):
                self.votes[child] = self.votes.get(child, 0) + vote.votes
                self.callee_totals[child] = self.callee_totals.get(child, NOTHING) + vote.totals

    def show(self, others: Contests) -> None:
        """Bring the counts to the nodes."""
        self.node.compared(self.own, self.totals)
        for child, count in zip(self.node.children, self._votes(others), strict=True):
            child.voted(count, self.callee_totals.get(child, NOTHING))

    def ballot(self, others: Contests) -> list[int]:
        """The votes of the node itself, and then those of each child.

        An interrupt comes wherever it likes: a vote that a callee owes to one has its handler, as
        far as ``others``, the contests below this one, tell. Targets of an indirect call that could
        not be told apart are many callees: together they are none that could win.
        """
        votes = self._votes(others)
        return [
            self.own,
            *(
                0 if _is_untold(child) and self._are_many(child, count, votes) else count
                for child, count in zip(self.node.children, votes, strict=True)
            ),
        ]

    def _votes(self, others: Contests) -> list[int]:
        came = self._interrupted(others)
        own = {_handler(child) for child in self.node.children if child.is_interrupt}
        return [self._share(child, came, own, others) for child in self.node.children]

    def _are_many(self, untold: Fnode, count: int, votes: Sequence[int]) -> bool:
        """Whether a callee that was told apart outweighs each one of those that ``untold`` stands
        for, as far as is known: it took longer than their longest call did, and had votes beside
        all of them. What is slight beside them (:data:`_NOT_SLIGHT`) outweighs none."""
        theirs = self.callee_totals.get(untold, NOTHING)
        least = max(theirs.sum / _NOT_SLIGHT, theirs.max_sum + 1)
        return any(
            not _is_untold(child)
            and own * _NOT_SLIGHT >= count
            and self.callee_totals.get(child, NOTHING).sum >= least
            for child, own in zip(self.node.children, votes, strict=True)
        )

    def _share(
        self, child: Fnode, came: Mapping[_Handler, int], own: set[_Handler], others: Contests
    ) -> int:
        if child.is_interrupt:
            return came[_handler(child)]
        votes = self.votes.get(child, 0)
        if not votes or child not in others:
            return votes
        below = others[child]._interrupted(others)
        return max(0, votes - sum(count for handler, count in below.items() if handler in own))

    def _interrupted(self, others: Contests) -> Counter[_Handler]:
        """By the handler, in how many calls it won here, or in a callee that did."""
        came: Counter[_Handler] = Counter()
        for child in self.node.children:
            votes = self.votes.get(child, 0)
            if child.is_interrupt:
                came[_handler(child)] += votes
            elif votes and child in others:
                for handler, count in others[child]._interrupted(others).items():
                    came[handler] += min(votes, count)
        return came

    def called(self, child: Fnode) -> int:
        """In how many of the in-peak calls a child was on the path."""
        return self.callee_totals.get(child, NOTHING).ops

    def taken(self, by_longest: bool) -> list[Taken]:
        """What the node itself took, without its callees, and then each child. An interrupt takes
        what it takes in other functions, too: it is not known here."""
        called = [self.callee_totals.get(child, NOTHING) for child in self.node.children]
        parts = [self.totals, *called]
        whole, *theirs = [one.max_sum if by_longest else one.sum for one in parts]
        own = Taken(max(0, whole - sum(theirs)), self.ops)
        return [own, *map(_taken, self.node.children, called)]

    def next_round(self, percentage: float, size: int, weigh: Callable[[Totals], int]) -> None:
        """Keep the winners of this batch and go on to the next one or to the last round, with at
        most ``size`` call sites each. When no batch has a winner, this one was the last round.
        ``weigh`` says what of a callee's time counts."""
        self.best |= self._winners(percentage, weigh)
        self.measured.update(self.timed, *self.waiting)
        late = [child for child in self.node.children if child not in self.measured]
        self.waiting += in_batches(late, size)
        if self.waiting:
            self.batch = self.waiting.pop(0)
        else:
            self.last_round = True
            ranked = sorted(self.best, key=lambda child: -self.best[child])
            self.batch = in_batches(ranked, size)[0] if ranked else ()
            if not ranked:
                return
        self.seen = self.own = self.ops = 0
        self.totals = NOTHING
        self.votes.clear()
        self.callee_totals.clear()

    def _winners(self, percentage: float, weigh: Callable[[Totals], int]) -> dict[Fnode, float]:
        """By votes among the batch alone, and by time: where what is not timed outweighs the whole
        batch, nothing in it has votes."""
        means = {
            child: weigh(self.callee_totals[child]) / self.ops
            for child in self.timed
            if self.callee_totals.get(child, NOTHING).ops and self.ops
        }
        enough = percentage * max(means.values(), default=0.0)
        by_votes = decision.chosen([self.votes.get(child, 0) for child in means], percentage)
        return {
            child: mean
            for (child, mean), has_votes in zip(means.items(), by_votes, strict=True)
            if has_votes or mean >= enough
        }


def _is_untold(child: Fnode) -> bool:
    return child.meaning is not None and child.meaning.cause is Cause.UNTOLD


def _taken(child: Fnode, totals: Totals) -> Taken:
    return Taken() if child.is_interrupt else Taken(totals.sum, totals.ops)


_Handler = tuple[str, int]
"""A handler of interrupts. By where it is in its module: a session that was read from a file knows
no addresses, and two modules may have handlers at the same offset."""


def _handler(node: Fnode) -> _Handler:
    return node.function.module, node.function.offset


Contests = Mapping[Fnode, Contest]
"""What is being compared, by node."""


def likely_share(count: int, calls: int) -> float:
    """What part of all calls something is in at least that was in ``count`` of these: the lower end
    of Wilson's interval, at two standard deviations, but never none. What was in all twenty of
    twenty calls may be missing in the next one."""
    spread = 2 * math.sqrt(count * (calls - count) / calls + 1)
    return max((count + 2 - spread) / (calls + 4), 0.5 / calls)


def call_sites(nodes: Iterable[Fnode]) -> set[object]:
    """What stands for the call sites of nodes: several nodes may share one, and one probe."""
    return {node.site.address if node.site else node for node in nodes}


def in_batches(nodes: Sequence[Fnode], size: int) -> list[tuple[Fnode, ...]]:
    """Nodes, in their order, in turns of at most ``size`` call sites."""
    batches: list[list[Fnode]] = []
    sites: set[object] = set()
    for node in nodes:
        sites |= call_sites([node])
        if not batches or len(sites) > size:
            batches.append([])
            sites = call_sites([node])
        batches[-1].append(node)
    return [tuple(batch) for batch in batches]
