"""What a walk looks into next."""

from __future__ import annotations

from typing import Any, cast

from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.analyses.walkorder import WalkOrder
from tests.unit.sets import function

THRESHOLD = 0.25


class Code:
    """Names of functions that call others, and of those of which it is not known whether."""

    def __init__(self, callers: str, unknown: str = "") -> None:
        self.callers, self.unknown = callers.split(), unknown.split()

    def callees(self, node: WalkNode) -> list[str]:
        return ["one"] if node.function.name in self.callers else []

    def has_unknown(self, node: WalkNode) -> bool:
        return node.function.name in self.unknown


def order(callers: str, unknown: str = "") -> WalkOrder:
    return WalkOrder(cast(Any, Code(callers, unknown)), THRESHOLD)


def below(above: WalkNode, name: str, address: int, share: float) -> WalkNode:
    node = WalkNode(function(name, address), above, {1: share}, whole={1: 1.0})
    above.below.append(node)
    return node


def group(name: str = "main") -> ThreadGroup:
    root = WalkNode(function(name), None, {1: 1.0}, base=frozenset({1}))
    return ThreadGroup(name, {1}, root)


def test_down_into_what_holds_enough() -> None:
    one, walk = group(), order("main small large")
    assert walk.next([one]) == (one, one.root)
    one.root.is_done = True
    below(one.root, "small", 32, 0.2)
    large = below(one.root, "large", 48, 0.6)
    assert walk.next([one]) == (one, large)
    large.is_done = True
    assert walk.next([one]) is None
    assert one.is_done


def test_what_calls_nothing_is_done_and_the_next_one_asked_for() -> None:
    one, walk = group(), order("main", "maybe")
    one.root.is_done = True
    leaf, maybe = below(one.root, "leaf", 32, 0.3), below(one.root, "maybe", 48, 0.3)
    assert walk.next([one]) == (one, maybe)
    maybe.is_done = True
    assert walk.next([one]) is None
    assert leaf.is_done


def test_what_threads_never_leave_comes_first() -> None:
    one, walk = group(), order("hot loop")
    one.root.is_done = True
    loop = below(one.root, "loop", 32, 0.01)
    loop.base = frozenset({1})
    hot = below(one.root, "hot", 48, 0.9)
    assert walk.next([one]) == (one, loop)
    loop.is_done = True
    assert walk.next([one]) == (one, hot)


def test_what_a_loop_calls_of_cxxs_library_is_looked_into_from_a_fifth_of_that_on() -> None:
    one, walk = group(), order("wait")
    one.root.is_done = True
    wait = below(one.root, "wait", 32, 0.06)
    assert walk.next([one]) is None
    one.is_done = False
    wait.lends = frozenset({1})
    assert walk.next([one]) == (one, wait)


def test_a_chain_goes_nowhere_twice() -> None:
    one, walk = group(), order("main again")
    one.root.is_done = True
    again = below(one.root, "again", 32, 0.9)
    again.is_done = True
    below(again, "again", 32, 0.9)
    assert walk.next([one]) is None


def test_groups_come_in_the_order_in_which_they_are_given() -> None:
    one, two, walk = group(), group("work"), order("work")
    assert walk.next([one, two]) == (two, two.root)
    assert one.is_done
    assert walk.next([two, one]) == (two, two.root)
