"""How a search ends, by itself or ended from outside."""

from __future__ import annotations

from itertools import pairwise

import pytest

from darc.analyses.closinground import closing_calls, closing_orders
from darc.analyses.rootcauses import early_status
from darc.model.ftree import Cause, Ending, Fnode, RootCausePath, Totals
from darc.model.ops import LEAST_FOR_ESTIMATES, MOST_KEPT
from darc.model.status import Status
from darc.search.descent import Orders
from tests.unit import samples

LEAST = LEAST_FOR_ESTIMATES + 1  # with the slowest one, which is no one of the sample


@pytest.mark.parametrize(
    ("status", "has_paths", "ends_as"),
    [
        (Status.SEARCHING, True, Status.FOUND),  # one of several paths has ended
        (Status.SEARCHING, False, Status.INCONCLUSIVE),
        (Status.MAX_DEPTH, True, Status.MAX_DEPTH),
        (Status.INCONCLUSIVE, False, Status.INCONCLUSIVE),
    ],
)
def test_time_is_up(status: Status, has_paths: bool, ends_as: Status) -> None:
    assert early_status(status, has_paths) is ends_as


@pytest.mark.parametrize(
    ("decision_ops", "is_frequent", "calls"),
    [
        (None, True, MOST_KEPT),
        (20, True, 20),
        (5, True, LEAST),  # else no share of any cause is known
        (5, False, LEAST),
        (1000, True, MOST_KEPT),
        (1000, False, LEAST),
    ],
)
def test_calls_of_the_closing_round(
    decision_ops: int | None, is_frequent: bool, calls: int
) -> None:
    assert closing_calls(decision_ops, is_frequent) == calls


def small_end() -> tuple[Fnode, RootCausePath]:
    """f0 calls 100 functions, the first of which leads to one that calls two more."""
    root = Fnode(samples.function("handle"))
    nodes = [root]
    for count in (100, 1, 1, 2):
        for number in range(count):
            child = nodes[-1].add_child(samples.function(f"c{number}"), samples.site(number))
            child.called = Totals(20, 20, 1000 - number, 1000 - number)
        nodes.append(nodes[-1].children[0])
    path = RootCausePath(tuple(nodes[:-1]), Ending(Cause.FUNCTION, 20))
    return root, path


def timed(orders: Orders) -> int:
    return sum(map(len, orders.batches.values()))


@pytest.mark.parametrize("room", [104, 103, 60, 5, 4])
def test_a_closing_round_times_the_paths_down_to_their_ends(room: int) -> None:
    root, path = small_end()
    orders = closing_orders([path], 192, lambda orders: timed(orders) <= room)
    batches = orders.batches
    assert timed(orders) <= room
    for above, node in pairwise(path.nodes):
        assert node in batches[above], "else nobody knows what the slow calls did there"
    last = path.nodes[-1]
    is_last_whole = list(batches[last]) == last.children
    assert is_last_whole == (room >= 5)
    assert (root in orders.exact) == (room < 104)
    assert set(batches[root]) < set(root.children) or room == 104
