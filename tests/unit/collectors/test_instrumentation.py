"""Room for the numbers of what orders name."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from darc.agent import compiled
from darc.agent.rows import Node, Route
from darc.code.architecture import Site
from darc.collectors.instrumentation import Instrumentation
from darc.search.descent import Orders
from tests.unit.callees import Make, Rules, World

TARGETS = 16


class ManyTargets(Rules):
    max_targets = TARGETS


class Agent:
    """Takes what it is told; a site's number is its address."""

    max_targets = TARGETS
    max_nodes = 0
    f0_back = 1

    def __init__(self) -> None:
        self.tables = self.sites = self.kept = self
        self.blob = compiled.load()
        self.round = 0
        self.seen: dict[int, tuple[int, ...]] = {}
        """The targets that each indirect site has had."""
        self.nodes: list[Node] = []
        self.routes: dict[int, list[Route]] = {}
        self._of: dict[int, tuple[int, int]] = {}

    def prepare_site(self, site: Site, parent: int) -> Any:
        return SimpleNamespace(site=site, index=site.address, pad_back=site.address + 1)

    def learned(self, index: int) -> tuple[int, ...]:
        return self.seen.get(index, ())

    def set_routes(self, index: int, first: int, count: int, timed: bool) -> None:
        self._of[index] = first, count

    def write_nodes(self, nodes: list[Node], routes: list[Route], analysis: Sequence[int]) -> None:
        self.nodes = nodes
        self.routes = {index: routes[at : at + n] for index, (at, n) in self._of.items()}
        self._of = {}

    def activate(self, patch: object) -> None: ...

    deactivate = activate

    def set(self, *_: int, **__: int) -> None: ...

    def forget(self) -> None: ...

    begin_epoch = forget

    def rows_of(self, site: Site) -> list[int]:
        """How many rows each node has that calls there."""
        lanes = (1 << TARGETS + 1) - 1
        return [(route.lanes & lanes).bit_count() for route in self.routes[site.address]]


def timing_of(agent: Agent, world: World) -> Instrumentation:
    return Instrumentation(agent, world.callees, world.root)  # type: ignore[arg-type]


@pytest.fixture
def world(make: Make) -> World:
    world = make(ManyTargets())
    world.callees.expand(world.root)
    return world


def test_an_indirect_call_needs_room_for_all_its_targets(world: World) -> None:
    """So that of what is called below such a function nothing may be timed."""
    g = world.root.children[0]
    world.callees.expand(g)
    agent = Agent()
    timing = timing_of(agent, world)

    def needed(orders: Orders) -> int:
        agent.max_nodes = 0
        while not timing.fits(orders):
            agent.max_nodes += 1
        return agent.max_nodes

    direct = len(g.children) + len(world.root.children)
    assert needed(Orders((world.root, g))) == 1 + direct + TARGETS + 1
    batch = {world.root: (g,)}
    assert needed(Orders((world.root, g), batch)) == 1 + 1 + len(g.children) + TARGETS + 1
    exact = Orders((world.root, g), batch, exact=frozenset({world.root}))
    assert needed(exact) == 1 + 1 + len(g.children)
    assert needed(Orders((g,))) == needed(exact), "who leads there is followed"


def test_a_decided_indirect_call_needs_room_for_the_targets_on_the_paths(world: World) -> None:
    """Also a target that was not the first to be called; calls of the others are left alone."""
    agent = Agent()
    agent.max_nodes = 64
    agent.seen[world.indirect.address] = world.at("h"), world.at("g")
    world.callees.targets.learn(world.root, world.indirect, 0, world.at("h"))
    g = world.callees.targets.learn(world.root, world.indirect, 1, world.at("g"))
    world.callees.expand(g)
    timing = timing_of(agent, world)
    timing.apply(Orders((world.root,)))
    assert agent.rows_of(world.indirect) == [TARGETS + 1]
    timing.apply(Orders((g,)))
    assert agent.rows_of(world.indirect) == [1]
    (route,) = agent.routes[world.indirect.address]
    assert route.lanes == 1 << 1
    assert len(agent.nodes) == 1 + 1 + len(g.children)


def test_where_there_is_no_room_for_all_targets_some_are_told_apart(world: World) -> None:
    """What is not told apart is one callee together, so its time is not the caller's."""
    agent = Agent()
    timing = timing_of(agent, world)
    direct = len(world.root.children)
    for room in (1, 2, 5, TARGETS):
        agent.max_nodes = 1 + direct + room
        timing.apply(Orders((world.root,)))
        assert agent.rows_of(world.indirect) == [room]
        (route,) = agent.routes[world.indirect.address]
        assert route.lanes >> TARGETS == 1, "all others"
        assert not world.callees.told.missed(world.root.function)


def test_what_has_no_room_at_all_is_told_with_what_to_type(world: World) -> None:
    agent = Agent()
    timing = timing_of(agent, world)
    agent.max_nodes = 1 + len(world.root.children)
    timing.apply(Orders((world.root,)))
    (missed,) = world.callees.told.missed(world.root.function)
    assert missed.why == "there was no room left for it, but 'darc start f' has room"
