"""Room for the numbers of what orders name."""

from __future__ import annotations

from types import SimpleNamespace

from darc.collectors.instrumentation import Instrumentation
from darc.pads.guards import Guard
from darc.search.descent import Orders
from tests.unit.test_callees import Make
from tests.unit.test_callees import make as make
from tests.unit.test_code_reading import assembled as assembled

TARGETS = 16


def test_an_indirect_call_needs_room_for_all_its_targets(make: Make) -> None:
    """So that of what is called below such a function nothing may be timed."""
    world = make()
    world.callees.expand(world.root)
    g = world.root.children[0]
    world.callees.expand(g)
    installer = SimpleNamespace(
        tables=SimpleNamespace(
            blob=SimpleNamespace(constants=dict.fromkeys((one.value for one in Guard), 0)), round=0
        ),
        max_targets=TARGETS,
        max_nodes=0,
    )
    timing = Instrumentation(installer, world.callees, world.root)  # type: ignore[arg-type]

    def needed(orders: Orders) -> int:
        installer.max_nodes = 0
        while not timing.fits(orders):
            installer.max_nodes += 1
        return int(installer.max_nodes)

    direct = len(g.children) + len(world.root.children)
    assert needed(Orders((world.root, g))) == 1 + direct + TARGETS + 1
    batch = {world.root: (g,)}
    assert needed(Orders((world.root, g), batch)) == 1 + 1 + len(g.children) + TARGETS + 1
    exact = Orders((world.root, g), batch, exact=frozenset({world.root}))
    assert needed(exact) == 1 + 1 + len(g.children)
    assert needed(Orders((g,))) == needed(exact), "who leads there is followed"
