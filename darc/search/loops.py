"""Callees that are called again and again: their calls count together.

The paper takes a callee by its longest call (section 3.3), so that a loop of many short calls
stays with its caller. Of thousands of calls the longest one tells nothing, and on a busy machine it
is the one that was preempted. So where no single call is half of them all, they are taken as one,
and so are then the calls that they make. The same rules as the agent's (``vote`` in
``darc/agent/votes.c``), in the same integers. Times are in cycles.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from darc.model.ftree import Totals

LEAST_REPEATS = 8
"""Calls in one call of f0 from which on they may be taken as one (``DARC_REPEATED``)."""


@dataclass
class CallTimes:
    """What an fnode took within one call of f0."""

    longest: int = 0
    sum: int = 0
    calls: int = 0

    def add(self, latency: int) -> None:
        """Counts one more call of it."""
        self.longest = max(self.longest, latency)
        self.sum += latency
        self.calls += 1

    @property
    def is_repeated(self) -> bool:
        """Whether its calls count together: many, and no single one is half of them all."""
        return self.calls >= LEAST_REPEATS and 2 * self.longest < self.sum

    def share(self, part: int) -> int:
        """Of what all of its calls took, the part of its longest one."""
        if self.longest >= self.sum:
            return part
        return min(part, self.sum) * self.longest // self.sum


def contributions(
    node: CallTimes, children: Collection[CallTimes], *, by_longest: bool
) -> tuple[int, list[int]]:
    """What a node and its children are compared by: its own time, and the time of each child.

    ``by_longest`` is the paper's rule. Otherwise a child has all of its calls where it is repeated,
    and its longest one where not; the node has what all of their calls leave. Where the node
    was called several times it is its longest call that is looked into, and so the part of it;
    where it is repeated itself, they all are.
    """
    if by_longest:
        taken = [child.longest for child in children]
        return max(0, node.longest - sum(taken)), taken
    own = max(0, node.sum - sum(child.sum for child in children))
    if node.is_repeated:
        return own, [child.sum for child in children]
    taken = [node.share(c.sum) if c.is_repeated else c.longest for c in children]
    return node.share(own), taken


def repeats(totals: Totals) -> bool:
    """Whether a callee was called again and again, on the average of many calls of f0."""
    return totals.calls >= LEAST_REPEATS * totals.ops > 0 and 2 * totals.max_sum < totals.sum


def weight(totals: Totals) -> int:
    """What a callee took over many calls of f0: all of its calls, or the longest in each."""
    return totals.sum if repeats(totals) else totals.max_sum


def is_short(totals: Totals, probe_cost: int) -> bool:
    """Whether calls are so short that timing them costs more than a third of what they take: what
    was measured of them is not worth much, nor can their own callees be told apart."""
    return repeats(totals) and 3 * probe_cost * totals.calls > totals.sum


def is_blurred(totals: Totals, probe_doubt: int) -> bool:
    """Whether a callee is called again and again, and the probes of these calls may have cost as
    many cycles more than was taken out for them, ``probe_doubt`` each, as all of the calls took but
    the longest of each call of f0: that may be one during which an emulator had no processor, as
    it is in the probes more often."""
    is_called_again = totals.calls >= LEAST_REPEATS * totals.ops > 0
    return is_called_again and probe_doubt * totals.calls > totals.sum - totals.max_sum
