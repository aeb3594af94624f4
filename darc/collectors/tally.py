"""Profile and votes of calls that are timed from outside the program.

The same rules as the agent's (``vote`` in ``darc/agent/votes.c``; the paper's figure 3), on whole
calls of f0: numbers in, numbers out. Latencies are in cycles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from darc.model.ftree import Fnode, Totals
from darc.model.profile import Profile, bin_of
from darc.search.contest import Vote
from darc.search.loops import CallTimes as CallTimes
from darc.search.loops import contributions

Sums = dict[Fnode, CallTimes]
"""Of the fnodes that were on the path in one call of f0."""


@dataclass
class Tally:
    """Counts calls of f0: their profile, and the votes of those inside a peak."""

    resolution: int
    hz: int
    bins: dict[int, int] = field(default_factory=dict)
    count: int = 0
    total: int = 0
    voted: int = 0
    """Calls whose votes were counted since :meth:`forget_votes`."""
    by_longest: bool = False
    """Whether only the longest call of a callee counts, as in the paper."""
    _votes: dict[Fnode, Vote] = field(default_factory=dict)

    def add_call(self, latency: int) -> None:
        """One more call for the profile."""
        number = bin_of(latency, self.resolution)
        self.bins[number] = self.bins.get(number, 0) + 1
        self.count += 1
        self.total += latency

    def profile(self) -> Profile:
        """All calls so far. Any thread: one that is being added may be missing from the count."""
        bins = dict(self.bins)
        return Profile(
            resolution=self.resolution,
            hz=self.hz,
            bins=bins,
            count=sum(bins.values()),
            total=self.total,
        )

    def add_votes(self, analyse: Iterable[Fnode], sums: Sums) -> None:
        """One more call inside the peak: the nodes of ``analyse`` and their callees vote."""
        self.voted += 1
        own, won = self.winners(analyse, sums)
        for node, times in sums.items():
            before = self._votes.get(node, Vote())
            self._votes[node] = Vote(
                before.own + (node in own),
                before.ops + 1,
                before.votes + (node in won),
                before.totals + Totals(1, times.calls, times.sum, times.longest),
            )

    def winners(
        self, analyse: Iterable[Fnode], sums: Mapping[Fnode, CallTimes]
    ) -> Sequence[set[Fnode]]:
        """The nodes whose own time, and those that as a callee, are in the bin of the largest
        contributor."""
        own_wins: set[Fnode] = set()
        wins: set[Fnode] = set()
        for node in analyse:
            if node not in sums:
                continue
            children = [child for child in node.children if child in sums]
            own, taken = contributions(
                sums[node], [sums[child] for child in children], by_longest=self.by_longest
            )
            largest = bin_of(max([own, *taken]), self.resolution)
            if bin_of(own, self.resolution) == largest:
                own_wins.add(node)
            wins.update(
                child
                for child, latency in zip(children, taken, strict=True)
                if bin_of(latency, self.resolution) == largest
            )
        return own_wins, wins

    def votes(self) -> dict[Fnode, Vote]:
        """What was counted since :meth:`forget_votes`."""
        return dict(self._votes)

    def forget_votes(self) -> None:
        """Votes are counted anew."""
        self._votes.clear()
        self.voted = 0
