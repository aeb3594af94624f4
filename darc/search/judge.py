"""The judge of contests: when the votes of one suffice, and who is chosen by them (paper sections 3
and 6). It changes nothing; whom to follow from there is the descent's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from darc.model.ftree import Decision, Ending, Fnode, Totals
from darc.model.parameters import Loops, Parameters
from darc.search import decision
from darc.search.contest import Contest, Contests
from darc.search.endings import loop_or_own, own_ending
from darc.search.loops import is_blurred, is_short, weight

AUTO_LEAST_OPS = decision.CHECKPOINTS[0]
"""In-peak calls that a decision rests on at least when ``decision_ops`` is auto."""

AUTO_BATCH_OPS = 20
"""In-peak calls for each batch when ``decision_ops`` is auto."""

_AT_ONCE = 1.5
"""Votes in each in-peak call for callees that call on what is on the path already."""


@dataclass(frozen=True)
class Ruling:
    """What the votes of one contest come to."""

    decision: Decision
    confidence: float = 0.0
    """How sure the choice is, from 0 to 1."""
    winners: tuple[Fnode, ...] = ()
    """Which callees are root causes."""
    divided: tuple[Fnode, ...] = ()
    """Those of them that no path is followed into, as its time divides there."""
    maxcount: int | None = None
    """The votes by which a path ends in the function: for its own time, or for a callee that it
    calls so often that its calls are too short to be looked into. ``None``: none does."""
    is_loop: bool = False
    """Whether some of these were for such a callee."""
    passed: Mapping[Fnode, str] = field(default_factory=dict)
    """Whom the votes alone would have chosen, and who took next to nothing, with the words for it:
    callees, and the function itself."""


class Judge:
    """Of all contests of one search. A timed call takes ``probe_cost`` cycles, as far as is known
    by then, and may take ``probe_doubt`` more at times; the fastest call inside the peak takes
    ``least`` cycles.

    Of a contest, ``others`` are those that are held at the same time, and ``share`` is in what part
    of the in-peak calls its node is on the path, at least.
    """

    def __init__(
        self,
        parameters: Parameters,
        probe_cost: Callable[[], int] = lambda: 0,
        least: int = 0,
        probe_doubt: Callable[[], int] = lambda: 0,
    ) -> None:
        self._parameters = parameters
        self._probe_cost = probe_cost
        self._probe_doubt = probe_doubt
        self._least_cycles = least

    # -- how many votes -------------------------------------------------------------------------

    def is_due(self, contest: Contest, others: Contests, share: float) -> bool:
        """Whether its votes suffice for a decision, or no more are to be waited for."""
        if contest.seen >= self._bound(share):
            return True
        if self._parameters.decision_ops is not None or not contest.last_round:
            return contest.ops >= self._goal(contest)
        if contest.ops >= decision.CHECKPOINTS[-1]:
            return True
        return self._confidence(contest.ballot(others)) >= decision.CONFIDENT

    def missing(self, contest: Contest, share: float) -> int:
        """How many more in-peak calls of f0 are to be waited for before a look at it."""
        seen_share = contest.ops / contest.seen if contest.ops else 1.0
        wanted = math.ceil((self._goal(contest) - contest.ops) / seen_share)
        return max(1, min(wanted, self._bound(share) - contest.seen))

    def _goal(self, contest: Contest) -> int:
        """In-peak calls with the node on the path after which to look at a contest."""
        if self._parameters.decision_ops is not None:
            return self._parameters.decision_ops
        if not contest.last_round:
            return AUTO_BATCH_OPS
        later = (ops for ops in decision.CHECKPOINTS if ops > contest.ops)
        return next(later, decision.CHECKPOINTS[-1])

    def _least(self, contest: Contest) -> int:
        """On how many of them a decision rests at least."""
        if self._parameters.decision_ops is not None:
            return self._parameters.decision_ops
        return AUTO_LEAST_OPS if contest.last_round else 1

    def _bound(self, share: float) -> int:
        """In-peak calls of f0 after which no more are waited for.

        A node that is on the path in a part ``s`` of them is so in ``g`` after g / s, on average,
        give or take (g (1 - s))^0.5 / s (a negative binomial distribution). It hardly ever takes
        four times that more: then the node is not on the path as often as it was.
        """
        goal = self._parameters.decision_ops or decision.CHECKPOINTS[-1]
        return math.ceil((goal + 4 * math.sqrt(goal * (1 - share))) / share)

    # -- what they come to ----------------------------------------------------------------------

    def rule(self, contest: Contest, others: Contests) -> Ruling:
        """What its votes come to. The nodes show its counts (:meth:`Contest.show`)."""
        ballot, needed = contest.ballot(others), self._least(contest)
        is_conclusive = any(ballot) and contest.ops >= needed
        made = Decision(contest.ops, needed, contest.own, is_conclusive)
        if not is_conclusive:
            return Ruling(made)
        (own_wins, *children_win), passed = self._winners(contest, ballot)
        winners, short = [], []
        for child, wins, count in zip(contest.node.children, children_win, ballot[1:], strict=True):
            if wins and self._is_short_loop(child):
                short.append(count)
            elif wins and not _is_told_above(child):
                winners.append(child)
        if self._may_be_of_probes(contest, winners):
            own_wins = False
        ends_here = [contest.own] if own_wins else []
        return Ruling(
            made,
            confidence=self._confidence(ballot),
            winners=tuple(winners),
            divided=tuple(self._dividing(contest, winners)),
            maxcount=max(ends_here + short, default=None),
            is_loop=bool(short),
            passed=passed,
        )

    def ending(self, contest: Contest, ruling: Ruling, note: str | None) -> Ending | None:
        """In what a path ends in the function of a contest, if one does, as was ruled. The nodes
        show its counts. ``note`` is what else there is to say of it."""
        if ruling.maxcount is None:
            return None
        if self._by_longest:
            return own_ending(contest.node, ruling.maxcount, note)
        return loop_or_own(
            contest.node,
            ruling.maxcount,
            probe_cost=self._most_cost(),
            probe_doubt=self._probe_doubt(),
            is_loop=ruling.is_loop,
            note=note,
            winners=ruling.winners,
        )

    def chosen(self, votes: Sequence[int]) -> list[bool]:
        """Who would be, by votes alone."""
        return decision.chosen(votes, self._parameters.maxcount_percentage)

    def weigh(self, totals: Totals) -> int:
        """What of a callee's time counts, in cycles."""
        return totals.max_sum if self._by_longest else weight(totals)

    def _confidence(self, ballot: Sequence[int]) -> float:
        return decision.confidence(ballot, self._parameters.maxcount_percentage)

    def _winners(
        self, contest: Contest, ballot: Sequence[int]
    ) -> tuple[list[bool], dict[Fnode, str]]:
        """The node itself and its children: which are root causes; and who merely passed."""
        wins = self.chosen(ballot)
        if not self._parameters.auto:
            return wins, {}
        node, taken = contest.node, contest.taken(self._by_longest)
        gone = decision.merely_passed(ballot, taken, self._least_cycles)
        named = {node: f"{node.function.name} itself"}
        named |= {child: child.function.name for child in node.children}
        passed = {
            one: f"{name} ({count} of {contest.ops})"
            for (one, name), count, won, is_gone in zip(
                named.items(), ballot, wins, gone, strict=True
            )
            if won and is_gone
        }
        percentage = self._parameters.maxcount_percentage
        return decision.chosen_of_slow(ballot, percentage, gone), passed

    def _dividing(self, contest: Contest, winners: Sequence[Fnode]) -> list[Fnode]:
        """Of the ``winners`` those that are called on the path already, where an in-peak call takes
        several of them: a sort that halves what it has takes as long in all of them, and so on. Of
        a tree in which one branch is slow at a time each is followed."""
        if self._by_longest or not self._parameters.auto:
            return []
        on_path = {node.function for node in contest.node.route()}
        again = [child for child in winners if child.function in on_path]
        votes = sum(child.maxcount for child in again)
        return again if len(again) > 1 and votes >= _AT_ONCE * contest.ops else []

    @property
    def _by_longest(self) -> bool:
        return self._parameters.loops is Loops.PAPER

    def _is_short_loop(self, child: Fnode) -> bool:
        """Whether the path ends at the caller, as the callee's many calls are too short."""
        return not self._by_longest and is_short(child.called, self._most_cost())

    def _may_be_of_probes(self, contest: Contest, winners: Sequence[Fnode]) -> bool:
        """Whether the node's own votes may be for what the probes of one of the ``winners`` have
        cost, which has as many itself."""
        doubt = self._probe_doubt()
        return any(
            is_blurred(child.called, doubt) and child.maxcount >= contest.own for child in winners
        )

    def _most_cost(self) -> int:
        return self._probe_cost() + self._probe_doubt()


def _is_told_above(node: Fnode) -> bool:
    """Whether it is an interrupt that is a root cause further up already, wherever it came."""
    return node.is_interrupt and any(
        other.root_cause and other.is_interrupt and other.function == node.function
        for above in node.route()[:-2]
        for other in above.children
    )


def what_was_seen(contest: Contest, needed: int) -> str:
    """Of a contest that was ended without a conclusion, which takes so many calls."""
    node = contest.node
    where = f"{node.id} {node.function.name}"
    if not contest.ops:
        return f"{where} was on the path in none of {contest.seen} in-peak calls"
    if contest.ops < needed:
        return (
            f"{where} was on the path in {contest.ops} of {contest.seen} in-peak calls: a decision "
            f"takes {needed}"
        )
    return (
        f"{where} was on the path in {contest.ops} of {contest.seen} in-peak calls, but neither "
        f"its own time nor any of its {len(node.children)} callees had a vote"
    )
