"""Votes and profile that are counted outside the program: the agent's rules."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from darc.collectors.tally import CallTimes, Tally
from darc.model.ftree import Fnode
from darc.model.parameters import Loops, Parameters
from darc.search.descent import Orders
from tests.unit.simulation import Routine, Simulation

HZ = 10**9
CYCLES = st.integers(1, 10**7)


@st.composite
def programs(draw: st.DrawFn, depth: int = 3) -> Routine:
    """A routine with callees of all kinds of latencies."""
    routine = Routine(f"f{draw(st.integers(0, 999))}", draw(CYCLES))
    if depth:
        for callee in draw(st.lists(programs(depth - 1), max_size=3)):
            routine.call(callee, draw(st.sampled_from((0, 1, 2, 3, 20))))
    return routine


def sums_of(simulation: Simulation, orders: Orders) -> dict[Fnode, CallTimes]:
    """What the calls of one call of f0 add up to, in an order that does not matter."""
    found = {}
    for node in simulation.root.walk():
        totals = simulation.totals(node)
        if totals.calls:
            found[node] = CallTimes(totals.max_sum, totals.sum, totals.calls)
    shuffled = list(found.items())
    random.Random(0).shuffle(shuffled)
    return dict(shuffled)


@given(programs(), st.sampled_from(Loops))
def test_votes_are_those_of_the_rules(f0: Routine, loops: Loops) -> None:
    """As the simulated agent counts them, for every node under analysis and its callees."""
    simulation = Simulation(f0, Parameters(decision_ops=1, lookahead=3, loops=loops))
    orders = simulation.descent.begin()
    while not orders.finished:
        sums = sums_of(simulation, orders)
        tally = Tally(1, HZ, by_longest=loops is Loops.PAPER)
        tally.add_votes(orders.analyse, sums)
        needed = simulation.descent.in_peak_needed()
        votes = simulation.collect(orders)
        counted = tally.votes()
        for node, vote in votes.items():
            if vote.ops:
                assert counted[node] == vote
        orders = simulation.descent.decide(votes, needed)


@given(st.lists(st.integers(0, 2**40), max_size=50), st.sampled_from([1, 2, 4]))
def test_profile(latencies: list[int], resolution: int) -> None:
    tally = Tally(resolution, HZ)
    for latency in latencies:
        tally.add_call(latency)
    profile = tally.profile()
    profile.check()
    assert profile.count == len(latencies)
    assert profile.total == sum(latencies)


def test_votes_are_counted_anew() -> None:
    simulation = Simulation(Routine("f"), Parameters())
    tally = Tally(1, HZ)
    tally.add_votes([simulation.root], {simulation.root: CallTimes(9, 9, 1)})
    assert tally.votes()[simulation.root].own == 1
    tally.forget_votes()
    assert tally.votes() == {}
