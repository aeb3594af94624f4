"""The call sites that breakpoints time: which fnodes meet at each, and what indirect ones call."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from darc.collectors.breakplaces import BreakPlaces, Timed
from darc.collectors.callees import Callees
from darc.collectors.routes import Routes, routes_of
from darc.model.ftree import Fnode
from darc.search.descent import Orders

MAX_TARGETS = 512
"""Targets that an indirect call site can learn; the time of all others is told together."""


class TimedSites:
    """Those of one analysis, at their ``places``."""

    def __init__(self, callees: Callees, places: BreakPlaces) -> None:
        self._callees = callees
        self._places = places
        self._sites: dict[int, Timed] = {}
        self._used: set[int] = set()
        self._given_up: set[int] = set()

    @property
    def used(self) -> AbstractSet[int]:
        """The addresses of all that were timed so far."""
        return self._used

    def apply(self, orders: Orders, ops: int) -> None:
        """Times what the orders name and nothing else, after ``ops`` calls of f0."""
        wanted = {
            address: routes
            for address, routes in routes_of(orders, self._callees).items()
            if address not in self._given_up
        }
        for address, timed in list(self._sites.items()):
            if address not in wanted:
                self._forget(timed)
        for address, routes in wanted.items():
            self._time(address, routes, ops)
        self._places.set_all()
        self._used.update(self._sites)

    def _time(self, address: int, routes: Routes, ops: int) -> None:
        site = routes.site
        timed = self._sites.get(address)
        if timed is None:
            timed = self._sites[address] = Timed(site)
            timed.targets += self._callees.targets.take_relearned(site)
            self._places.at(address).site = timed
            if not site.kind.is_tail:
                self._places.at(site.back).returns.append(timed)
        timed.routes = routes.callees
        for place in (self._places.at(address), self._places.at(site.back)):
            place.hits, place.since = 0, ops

    def give_up(self, timed: Timed, why: str) -> list[Fnode]:
        """A call site is not timed after all: the fnodes that its calls were."""
        found: list[Fnode] = []
        self._given_up.add(timed.site.address)
        for parent, child in timed.routes.items():
            self._callees.told.fail(parent, timed.site, why)
            found += [child] if child is not None else self._lanes(parent, timed)
        self._forget(timed)
        return found

    def _forget(self, timed: Timed) -> None:
        self._sites.pop(timed.site.address, None)
        place = self._places.find(timed.site.address)
        if place is not None and place.site is timed:
            place.site = None
        behind = self._places.find(timed.site.back)
        if behind is not None and timed in behind.returns:
            behind.returns.remove(timed)

    def learned(self, timed: Timed, parent: Fnode, target: int | None) -> Fnode | None:
        """The fnode of an indirect call's target."""
        if target is None:
            return None
        if target not in timed.targets:
            if len(timed.targets) >= MAX_TARGETS:
                return self._callees.targets.others(parent, timed.site)
            timed.targets.append(target)
        lane = timed.targets.index(target)
        known = self._callees.targets.learned(parent, timed.site, lane)
        return known or self._callees.targets.learn(parent, timed.site, lane, target)

    def _lanes(self, parent: Fnode, timed: Timed) -> list[Fnode]:
        lanes = (*range(len(timed.targets)), MAX_TARGETS)
        found = (self._callees.targets.learned(parent, timed.site, lane) for lane in lanes)
        return [node for node in found if node is not None]
