"""When the votes of a contest suffice, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.ftree import CallKind, CallSite, Cause, Fnode, Function, Totals
from darc.model.parameters import Loops, Parameters
from darc.search.contest import Contest, Vote
from darc.search.decision import CHECKPOINTS, CONFIDENT
from darc.search.judge import AUTO_BATCH_OPS, AUTO_LEAST_OPS, Judge, Ruling, what_was_seen

PROBE_COST = 60
FASTEST = 10_000
"""Cycles of the fastest call inside the peak."""
SLOW = 100_000
CALLS = Parameters(decision_ops=20)
AUTO = Parameters(decision_ops=None)


@dataclass(frozen=True)
class Callee:
    """What was counted of one, over all in-peak calls."""

    votes: int
    time: int = SLOW
    """In an in-peak call."""
    calls: int = 1
    """Likewise; they all take as long."""
    ops: int = 20
    name: str = ""
    interrupt: bool = False


callees = st.lists(
    st.builds(
        Callee,
        votes=st.integers(0, 40),
        time=st.integers(0, 2 * SLOW),
        calls=st.integers(1, 200),
        ops=st.integers(0, 40),
    ),
    max_size=6,
)
percentages = st.floats(0.05, 1.0)


def function(name: str, address: int) -> Function:
    return Function(name=name, symbol=name, module="prog", address=address, offset=address)


def add(node: Fnode, callee: Callee, number: int) -> Fnode:
    kind = CallKind.INTERRUPT if callee.interrupt else CallKind.DIRECT
    name = callee.name or f"f{number}"
    site = CallSite(16 * number, kind, "prog", 16 * number)
    return node.add_child(function(name, sum(map(ord, name))), site)


def totals(callee: Callee) -> Totals:
    calls, time = callee.ops * callee.calls, callee.ops * callee.time
    return Totals(callee.ops, calls, time, time // callee.calls) if callee.ops else Totals()


def contest(
    timed: Sequence[Callee],
    *,
    own: int = 0,
    ops: int = 20,
    seen: int | None = None,
    node: Fnode | None = None,
    numbers: Sequence[int] = (),
) -> Contest:
    """Of f0, or of another ``node``, with these callees, which the ``numbers`` name."""
    node = node or Fnode(function("f0", 0))
    children = [add(node, one, n) for one, n in zip(timed, numbers or range(1, 99), strict=False)]
    time = ops * sum(one.time for one in timed) + ops * SLOW * bool(own)
    found = Contest(node, seen=ops if seen is None else seen, own=own, ops=ops)
    found.totals = Totals(ops, ops, time, time)
    found.votes = {child: one.votes for child, one in zip(children, timed, strict=True)}
    found.callee_totals = {child: totals(one) for child, one in zip(children, timed, strict=True)}
    found.show({})
    return found


def judge(parameters: Parameters = CALLS) -> Judge:
    return Judge(parameters, lambda: PROBE_COST, FASTEST)


def names(nodes: Sequence[Fnode]) -> list[str]:
    return [node.function.name for node in nodes]


def told(ruling: Ruling) -> object:
    """All that it says, by names and not by order."""
    passed = {node.function.name: text for node, text in ruling.passed.items()}
    sets = frozenset(names(ruling.winners)), frozenset(names(ruling.divided))
    return ruling.decision, ruling.confidence, sets, ruling.maxcount, ruling.is_loop, passed


# -------------------------------------------------------------------- what they come to


def test_who_has_most_votes_is_a_root_cause_and_so_are_others_that_have_almost_as_many() -> None:
    ruling = judge().rule(contest([Callee(20), Callee(12), Callee(3), Callee(0)]), {})
    assert names(ruling.winners) == ["f1", "f2"]
    assert (ruling.maxcount, ruling.is_loop, dict(ruling.passed)) == (None, False, {})
    assert ruling.decision.is_conclusive


def test_a_path_ends_in_the_function_for_its_own_time() -> None:
    found = contest([Callee(3)], own=20)
    ruling = judge().rule(found, {})
    assert (ruling.winners, ruling.maxcount, ruling.decision.own) == ((), 20, 20)
    ending = judge().ending(found, ruling, "as told")
    assert ending is not None
    assert (ending.cause, ending.maxcount, ending.note) == (Cause.FUNCTION, 20, "as told")


@pytest.mark.parametrize(
    ("own", "calls", "doubt", "is_cause"),
    [
        (10, 5000, 0, True),  # as long as what probes cost is known
        (10, 5000, 50, False),
        (14, 5000, 50, True),  # more than the callee has
        (10, 1, 50, True),  # no loop
        (10, 100, 50, True),  # whose calls are long enough
    ],
)
def test_own_votes_that_may_be_for_probes_do_not_stand_beside_those_of_a_loops_callee(
    own: int, calls: int, doubt: int, *, is_cause: bool
) -> None:
    """One of the calls has all of the time but next to nothing."""
    found = contest([Callee(12, calls=calls)], own=own)
    (child,) = found.node.children
    of_rest = 20 * 10_000
    found.callee_totals[child] = Totals(20, 20 * calls, 20 * SLOW + of_rest, 20 * SLOW)
    found.show({})
    made = Judge(CALLS, lambda: PROBE_COST, FASTEST, probe_doubt=lambda: doubt)
    ruling = made.rule(found, {})
    assert names(ruling.winners) == ["f1"]
    assert (ruling.maxcount is not None) == is_cause


def test_calls_that_may_be_too_short_to_look_into_end_the_path_as_a_loop() -> None:
    """Probes that were measured at 60 cycles may cost three times as much."""
    found = contest([Callee(20, time=SLOW, calls=400)])
    assert names(judge().rule(found, {}).winners) == ["f1"]
    made = Judge(CALLS, lambda: PROBE_COST, FASTEST, probe_doubt=lambda: 2 * PROBE_COST)
    ruling = made.rule(found, {})
    assert (ruling.winners, ruling.is_loop, ruling.maxcount) == ((), True, 20)


def test_a_path_that_goes_on_has_no_ending() -> None:
    found = contest([Callee(20)])
    assert judge().ending(found, judge().rule(found, {}), None) is None


def test_who_takes_next_to_nothing_has_merely_passed() -> None:
    """Whatever has the votes; but the user may choose it."""
    timed = [Callee(20, time=FASTEST // 100), Callee(4), Callee(3, time=FASTEST // 100)]
    ruling = judge().rule(contest(timed), {})
    assert names(ruling.winners) == ["f2"]
    assert {node.function.name: text for node, text in ruling.passed.items()} == {
        "f1": "f1 (20 of 20)"
    }
    by_hand = judge(replace(CALLS, auto=False)).rule(contest(timed), {})
    assert names(by_hand.winners) == ["f1"]
    assert not by_hand.passed


@pytest.mark.parametrize("loops", Loops)
def test_calls_that_are_too_short_to_look_into_end_the_path_as_a_loop(loops: Loops) -> None:
    """By the paper's rule they have no votes in the first place, and are taken as they are."""
    found = contest([Callee(20, time=PROBE_COST * 500, calls=500)])
    made = judge(replace(CALLS, loops=loops))
    ruling = made.rule(found, {})
    if loops is Loops.PAPER:
        assert names(ruling.winners) == ["f1"]
        return
    assert (ruling.winners, ruling.maxcount, ruling.is_loop) == ((), 20, True)
    ending = made.ending(found, ruling, None)
    assert ending is not None
    assert (ending.cause, ending.loop_callee, ending.loop_calls) == (Cause.LOOP, "f1", 500)


@pytest.mark.parametrize(("own", "loop"), [(20, 15), (15, 20)])
def test_a_path_ends_by_the_most_votes(own: int, loop: int) -> None:
    short = Callee(loop, time=PROBE_COST * 500, calls=500)
    ruling = judge().rule(contest([short], own=own), {})
    assert (ruling.maxcount, ruling.is_loop) == (20, True)


@pytest.mark.parametrize(
    ("votes", "auto", "expected"),
    [
        ((16, 16), True, ["f0", "f0"]),
        ((10, 10), True, []),  # one of them at a time
        ((16, 16), False, []),  # it is for the user to say
    ],
)
def test_time_that_divides_among_calls_of_what_is_on_the_path(
    votes: tuple[int, int], auto: bool, expected: list[str]
) -> None:
    found = contest([Callee(count, name="f0") for count in votes])
    for child in found.node.children:
        child.function = found.node.function
    ruling = judge(replace(CALLS, auto=auto)).rule(found, {})
    assert names(ruling.winners) == ["f0", "f0"]
    assert names(ruling.divided) == expected


@pytest.mark.parametrize("above", [True, False])
def test_an_interrupt_that_is_a_root_cause_further_up_is_none_again(above: bool) -> None:
    root = Fnode(function("f0", 0))
    came = Callee(20, name="handler", interrupt=True)
    add(root, came, 50).root_cause = above
    middle = root.add_child(function("middle", 1600), CallSite(1, CallKind.DIRECT, "prog", 1))
    ruling = judge().rule(contest([came, Callee(20)], node=middle), {})
    assert names(ruling.winners) == ["f2"] if above else ["handler", "f2"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (contest([Callee(9)], ops=0, seen=30), "1 f0 was on the path in none of 30 in-peak calls"),
        (
            contest([Callee(9)], ops=19, seen=30),
            "1 f0 was on the path in 19 of 30 in-peak calls: a decision takes 20",
        ),
        (
            contest([Callee(0), Callee(0)], seen=30),
            "1 f0 was on the path in 20 of 30 in-peak calls, but neither its own time nor any of "
            "its 2 callees had a vote",
        ),
    ],
)
def test_votes_that_tell_nothing(found: Contest, text: str) -> None:
    ruling = judge().rule(found, {})
    assert not ruling.decision.is_conclusive
    assert ruling == Ruling(ruling.decision)
    assert what_was_seen(found, ruling.decision.needed) == text


@given(
    timed=callees,
    own=st.integers(0, 40),
    percentage=percentages,
    loops=st.sampled_from(Loops),
    data=st.data(),
)
def test_the_order_of_callees_does_not_matter(
    timed: list[Callee], own: int, percentage: float, *, loops: Loops, data: st.DataObject
) -> None:
    parameters = replace(CALLS, maxcount_percentage=percentage, loops=loops)
    order = data.draw(st.permutations(range(len(timed))))
    one = contest(timed, own=own, ops=40)
    other = contest([timed[n] for n in order], own=own, ops=40, numbers=[n + 1 for n in order])
    ruling, again = (judge(parameters).rule(found, {}) for found in (one, other))
    assert told(ruling) == told(again)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), max_size=60),
    st.data(),
)
def test_the_order_in_which_votes_come_does_not_matter(
    ops: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Nor how many are counted at a time."""
    orders = [ops, data.draw(st.permutations(ops))]
    pieces = data.draw(st.integers(1, 7))
    made = judge(AUTO)
    rulings = []
    for order, size in zip(orders, (1, pieces), strict=True):
        found = contest([Callee(0, ops=0), Callee(0, ops=0)], ops=0)
        first, second = found.node.children
        for at in range(0, len(order), size):
            part = order[at : at + size]
            found.add(
                {
                    found.node: Vote(own=sum(one[0] for one in part), ops=len(part)),
                    first: Vote(votes=sum(one[1] for one in part)),
                    second: Vote(votes=sum(one[2] for one in part)),
                },
                len(part),
            )
        found.show({})
        rulings.append((told(made.rule(found, {})), made.is_due(found, {}, 1.0)))
    assert rulings[0] == rulings[1]


@given(
    timed=callees,
    own=st.integers(0, 40),
    percentage=percentages,
    auto=st.booleans(),
    loops=st.sampled_from(Loops),
)
def test_a_conclusive_ruling_names_somebody_and_changes_nothing(
    timed: list[Callee], own: int, percentage: float, *, auto: bool, loops: Loops
) -> None:
    parameters = replace(CALLS, maxcount_percentage=percentage, auto=auto, loops=loops)
    found = contest(timed, own=own, ops=40)
    before = state(found)
    ruling = judge(parameters).rule(found, {})
    judge(parameters).ending(found, ruling, None)
    assert state(found) == before
    some = own > 0 or any(one.votes for one in timed)
    assert ruling.decision.is_conclusive == some
    assert some == (bool(ruling.winners) or ruling.maxcount is not None)
    assert not set(ruling.winners) & set(ruling.passed)
    assert set(ruling.divided) <= set(ruling.winners) <= set(found.node.children)
    assert all(child.maxcount for child in (*ruling.winners, *ruling.divided))


def state(found: Contest) -> object:
    """All that a ruling could change."""
    nodes = [
        (
            (node.state, node.root_cause, node.end, node.decision),
            (node.maxcount, node.self_maxcount, node.totals, node.called),
        )
        for node in found.node.walk()
    ]
    return repr(found), nodes


@given(callees, st.integers(0, 40), percentages, percentages)
def test_a_higher_percentage_adds_no_root_cause(
    timed: list[Callee], own: int, one: float, other: float
) -> None:
    found = contest(timed, own=own, ops=40)
    many, few = (
        judge(replace(CALLS, maxcount_percentage=part)).rule(found, {})
        for part in sorted((one, other))
    )
    assert set(few.winners) <= set(many.winners)
    assert few.maxcount is None or many.maxcount is not None


# ------------------------------------------------------------------------ how many votes


def test_as_many_as_the_user_asks_for() -> None:
    assert not judge().is_due(contest([Callee(19)], ops=19), {}, 1.0)
    assert judge().is_due(contest([Callee(20)]), {}, 1.0)
    assert judge().missing(contest([Callee(4)], ops=4), 1.0) == 16
    assert judge().missing(contest([Callee(4)], ops=4, seen=8), 0.5) == 32


def test_a_node_that_is_seldom_on_the_path_is_not_waited_for_for_ever() -> None:
    """Four standard deviations beyond the mean of a negative binomial distribution: of one that is
    there every other time, 20 times in 40 calls, give or take 6.3."""
    for seen, is_due in ((65, False), (66, True)):
        found = contest([Callee(3)], ops=3, seen=seen)
        assert judge().is_due(found, {}, 0.5) == is_due
    assert judge().missing(contest([Callee(3)], ops=3, seen=60), 0.5) == 66 - 60


def test_as_many_as_make_it_sure() -> None:
    auto = judge(AUTO)
    clear, even = contest([Callee(10)], ops=10), contest([Callee(10), Callee(5)], ops=10)
    assert auto.is_due(clear, {}, 1.0)
    assert auto.rule(clear, {}).confidence >= CONFIDENT
    assert not auto.is_due(even, {}, 1.0)
    assert auto.missing(even, 1.0) == 20 - 10, "until the next look"
    last = CHECKPOINTS[-1]
    assert auto.is_due(contest([Callee(last), Callee(last // 2)], ops=last), {}, 0.5)
    assert auto.rule(contest([Callee(4)], ops=4), {}).decision.needed == AUTO_LEAST_OPS


def test_a_round_of_a_batch_takes_few() -> None:
    auto, found = judge(AUTO), contest([Callee(0)], ops=AUTO_BATCH_OPS - 1)
    found.last_round = False
    assert not auto.is_due(found, {}, 1.0)
    assert auto.missing(found, 1.0) == 1
    found.ops += 1
    assert auto.is_due(found, {}, 1.0)
    assert auto.rule(found, {}).decision.needed == 1


@given(st.integers(1, 200), st.integers(0, 300), st.integers(0, 300), st.floats(0.05, 1.0))
def test_no_more_calls_are_waited_for_than_are_missing(
    decision_ops: int, ops: int, beside: int, share: float
) -> None:
    """Where the node is on the path in all of them; and in the end also where it is in none."""
    made = judge(Parameters(decision_ops=decision_ops))
    found = contest([Callee(0)], ops=ops, seen=ops + beside)
    more = made.missing(found, share)
    assert more >= 1
    sure = contest([Callee(0)], ops=ops + more, seen=ops + beside + more)
    assert made.is_due(sure, {}, share)
    gone = found
    for _ in range(1000):
        if made.is_due(gone, {}, share):
            break
        seen = gone.seen + made.missing(gone, share)
        gone = contest([Callee(0)], ops=ops, seen=seen)
    assert made.is_due(gone, {}, share)


def test_a_path_ends_as_was_ruled_whatever_stands_in_the_tree_by_then() -> None:
    """Sites of one callee that were chosen are no loop of their caller's: nobody has to have
    marked them before."""
    found = contest([Callee(20, calls=20, name="step")] * 4, own=20)
    made = judge()
    ruling = made.rule(found, {})
    assert len(ruling.winners) == 4
    assert not any(child.root_cause for child in found.node.children)
    ending = made.ending(found, ruling, None)
    assert ending is not None
    assert ending.cause is Cause.FUNCTION
    together = made.ending(found, replace(ruling, winners=()), None)
    assert together is not None
    assert together.cause is Cause.LOOP
