"""Orders carried out by breakpoints, and what becomes of these at the user's stops."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from darc.collectors.breakplaces import BreakPlaces
from darc.collectors.duties import Timing, UserStops
from darc.collectors.hitclock import HitClock
from darc.collectors.opcount import OpCount
from darc.collectors.reactions import Reactions
from darc.collectors.timedsites import TimedSites
from darc.model.ftree import Fnode
from darc.search.contest import Vote
from darc.search.descent import Orders


class BreakTiming(Timing):
    """Those of one analysis."""

    def __init__(
        self, sites: TimedSites, reactions: Reactions, count: OpCount, clock: HitClock
    ) -> None:
        self._sites = sites
        self._reactions = reactions
        self._count = count
        self._clock = clock

    def apply(self, orders: Orders) -> None:
        self._count.analyse = orders.analyse
        self._count.tally.forget_votes()
        self.drop_open_calls()
        self._sites.apply(orders, self._count.ops)

    def votes(self) -> dict[Fnode, Vote]:
        return self._count.tally.votes()

    @property
    def used(self) -> AbstractSet[int]:
        return self._sites.used

    @property
    def probe_cost(self) -> int:
        """Of both hits, which is taken out: calls much shorter than that cannot be told apart."""
        each = max(self._clock.cost, self._clock.exact_cost)
        return 2 * each * self._count.hz // 10**9

    def drop_open_calls(self) -> None:
        self._reactions.drop_all()


class BreakStops(UserStops):
    """The breakpoints at ``places`` are not there while the user looks."""

    def __init__(self, places: BreakPlaces, reactions: Reactions) -> None:
        self._places = places
        self._reactions = reactions
        self.cut_short = 0
        """Calls that are not measured."""

    def pause(self) -> None:
        self.cut_short += self._reactions.open
        self._reactions.drop_all()
        self._places.pause()

    def resume(self) -> list[str]:
        self._reactions.drop_all()
        self._places.resume()
        return []

    @property
    def paused(self) -> bool:
        return self._places.paused
