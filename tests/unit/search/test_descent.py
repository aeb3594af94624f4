"""The descent, driven by a simulated program."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darc.model.errors import UsageError
from darc.model.ftree import Cause, Cut, Decision, Fnode, NodeState, Totals
from darc.model.parameters import Loops, Parameters
from darc.model.status import Status
from darc.search.contest import Contest
from darc.search.descent import Descent, Orders, Vote
from darc.search.endings import too_few, widening
from darc.views.treeview import draw_tree
from tests.unit.simulation import Routine, Simulation, added, chain, names

PAPER = Parameters(lookahead=1)
SLOW = 1_000_000
LOOKAHEADS = [1, 2, 3, 4, None]


def search(f0: Routine, parameters: Parameters = PAPER, **options: Any) -> Simulation:
    return Simulation(f0, parameters, **options).run()


def slow_chain(*middle: str, end: str = "slow") -> Routine:
    """f0 → … → end, each beside a quick callee; the end is slow."""
    routines = [Routine(name) for name in ("f0", *middle)]
    for routine in routines:
        routine.call(Routine("quick"))
    return chain(*routines, Routine(end, SLOW))


# -- the paper's rules ------------------------------------------------------------------------


def test_one_level_at_a_time() -> None:
    simulation = search(slow_chain("a", "b"))
    assert [names(orders.analyse) for orders in simulation.history] == [["f0"], ["a"], ["b"], []]
    assert simulation.paths() == [["f0", "a", "b", "slow"]]
    assert simulation.descent.status is Status.FOUND
    assert simulation.op == 3 * 20


def test_a_function_without_callees_ends_the_path_with_its_votes() -> None:
    (path,) = search(slow_chain("a")).descent.paths()
    assert path.ending.cause is Cause.FUNCTION
    assert path.ending.maxcount == path.nodes[-1].maxcount == 20
    assert path.ending.note is None


def test_a_function_that_is_slow_itself_ends_the_path() -> None:
    f0 = chain(Routine("f0"), Routine("a", SLOW).call(Routine("quick")))
    simulation = search(f0)
    (path,) = simulation.descent.paths()
    assert names(path.nodes) == ["f0", "a"]
    assert (path.ending.cause, path.ending.maxcount) == (Cause.FUNCTION, 20)
    assert path.nodes[-1].self_maxcount == 20


def test_a_loop_of_short_calls_stays_with_its_caller() -> None:
    f0 = chain(Routine("f0"), Routine("a").call(Routine("short", 100), 5000))
    (path,) = search(f0).descent.paths()
    assert names(path.nodes) == ["f0", "a"]
    assert path.ending.cause is Cause.LOOP
    assert path.ending.loop_callee == "short"
    assert path.ending.loop_calls == 5000
    assert path.ending.loop_share == pytest.approx(1.0, abs=0.01)


def test_long_calls_in_a_loop_are_the_callees() -> None:
    f0 = chain(Routine("f0"), Routine("a").call(Routine("long", SLOW), 2))
    assert search(f0).paths() == [["f0", "a", "long"]]
    paper = search(f0, replace(PAPER, loops=Loops.PAPER))
    assert paper.paths() == [["f0", "a"], ["f0", "a", "long"]]


def test_a_loop_of_calls_that_can_be_timed_is_followed() -> None:
    """Of 5000 calls the longest one is nothing, and together they are everything."""
    work = Routine("work", 10).call(Routine("inner", 2000)).call(Routine("quick", 300))
    f0 = chain(Routine("f0"), Routine("a", 3000).call(work, 5000))
    for lookahead in LOOKAHEADS:
        (path,) = search(f0, Parameters(lookahead=lookahead)).descent.paths()
        assert names(path.nodes) == ["f0", "a", "work", "inner"]
        assert path.ending.cause is Cause.FUNCTION
    (path,) = search(f0, replace(PAPER, loops=Loops.PAPER)).descent.paths()
    assert names(path.nodes) == ["f0", "a"]
    assert (path.ending.cause, path.ending.loop_callee) == (Cause.LOOP, "work")


def test_a_few_calls_of_a_function_with_time_of_its_own() -> None:
    """What it calls in all of its calls is no part of its longest one."""
    few = Routine("few", 6000).call(Routine("part", 4000)).call(Routine("parts", 100), 10)
    f0 = Routine("f0").call(few, 5)
    (path,) = search(f0).descent.paths()
    assert names(path.nodes) == ["f0", "few"]
    assert path.ending.cause is Cause.FUNCTION


def test_one_call_of_many_that_is_half_of_them_all_counts_by_itself() -> None:
    class Uneven(Simulation):
        def totals(self, node: Fnode) -> Totals:
            found = super().totals(node)
            if node.function.name == "many":  # 5000 calls of 200 cycles, one of 2,000,000
                return replace(found, sum=found.sum + 2 * SLOW, max_sum=2 * SLOW)
            if node.function.name in ("f0", "a"):
                return replace(found, sum=found.sum + 2 * SLOW, max_sum=found.max_sum + 2 * SLOW)
            return found

    a = Routine("a").call(Routine("many", 200), 5000).call(Routine("once", SLOW // 2))
    simulation = Uneven(chain(Routine("f0"), a), PAPER).run()
    (path,) = simulation.descent.paths()
    assert names(path.nodes) == ["f0", "a", "many"]
    assert "one of 5,000 calls" in tree_text(simulation.root)


def test_a_loop_shows_how_often_it_calls() -> None:
    """Below it, only how often what is called again and again calls in turn."""
    work = Routine("work", 100).call(Routine("inner", 2000)).call(Routine("turns", 400), 20)
    f0 = chain(Routine("f0"), Routine("a").call(work, 20_000))
    lines = tree_text(search(f0).root).splitlines()
    for callee, told in (
        ("1.1.1 work", "×20,000"),
        ("1.1.1.2 turns", "×20"),
        ("1.1.1.1 inner", ""),
    ):
        (line,) = (line for line in lines if f" {callee} " in line)
        repetitions = [word for word in line.split(callee)[1].split() if word.startswith("×")]
        assert repetitions == [told][: bool(told)]


def tree_text(root: Fnode) -> str:
    return "\n".join(
        line.plain for line in draw_tree(root, 200, True, latency=lambda c: f"{c:.0f}")
    )


def test_an_interrupt_is_one_cause_wherever_it_comes() -> None:
    """Neither the functions that it happens to hit are a cause, nor, where it is elsewhere, their
    own time in a call of f0 that it made slow."""
    handler = Routine("handler", SLOW)
    deep = Routine("deep", 100).call(handler, [0, 0, 1, 1, 0], interrupt=True)
    middle = chain(Routine("middle"), deep).call(handler, [0, 1, 0, 0, 0], interrupt=True)
    f0 = chain(Routine("f0"), middle).call(handler, [1, 0, 0, 0, 1], interrupt=True)
    simulation = search(f0, Parameters())
    assert simulation.paths() == [["f0", "handler"]]
    assert [child.maxcount for child in simulation.root.children] == [0, 20]


def test_a_callee_is_a_cause_beside_the_interrupts_that_hit_it() -> None:
    handler = Routine("handler", SLOW)
    busy = Routine("busy", [SLOW, 10]).call(handler, [0, 1], interrupt=True)
    f0 = chain(Routine("f0"), busy).call(handler, [0, 0, 0, 1], interrupt=True)
    paths = search(f0, replace(PAPER, lookahead=2)).paths()
    assert sorted(paths) == [["f0", "busy"], ["f0", "handler"]]


def test_f0_alone() -> None:
    simulation = search(Routine("f0", SLOW))
    assert simulation.paths() == [["f0"]]
    assert [orders.finished for orders in simulation.history] == [True]
    assert simulation.descent.in_peak_needed() == 0


def test_f0_is_a_root_cause_from_the_start() -> None:
    simulation = Simulation(slow_chain(), PAPER)
    simulation.descent.begin()
    assert simulation.root.root_cause
    assert simulation.root.state is NodeState.ANALYSIS


def test_candidates_that_are_not_chosen_come_out() -> None:
    simulation = Simulation(slow_chain("a"), PAPER)
    orders = simulation.step(simulation.descent.begin())
    quick, a = simulation.root.children
    assert (quick.state, quick.root_cause) == (NodeState.REJECTED, False)
    assert (a.state, a.root_cause) == (NodeState.ANALYSIS, True)
    assert simulation.root.state is NodeState.ROOT_CAUSE
    assert orders.remove == (quick,)


def test_two_call_sites_of_one_function_are_told_apart() -> None:
    helper, busy = Routine("helper"), Routine("helper", SLOW)
    (path,) = search(Routine("f0").call(helper).call(busy)).descent.paths()
    assert path.nodes[-1].id == "1.2"


def test_several_paths_go_on_at_once() -> None:
    a = chain(Routine("a", 1), Routine("slow a", [SLOW, 10]))
    b = chain(Routine("b", 1), Routine("slow b", [10, SLOW]))
    simulation = search(Routine("f0").call(a).call(b))
    assert simulation.paths() == [["f0", "a", "slow a"], ["f0", "b", "slow b"]]
    assert [names(orders.analyse) for orders in simulation.history] == [["f0"], ["a", "b"], []]


def test_what_is_merely_passed_through_is_no_root_cause() -> None:
    """In half of the slow calls ``send`` is fast, and ``lookup`` is all that there is of it."""
    send = Routine("send", 1).call(Routine("lookup", 10)).call(Routine("wire", SLOW), [1, 0])
    f0 = Routine("f0").call(Routine("disk", [1, SLOW])).call(send)
    assert ["f0", "send", "lookup"] in search(f0).paths(), "by votes alone"
    simulation = search(f0, least=SLOW)
    assert simulation.paths() == [["f0", "disk"], ["f0", "send", "wire"]]
    (told,) = simulation.descent.passed
    assert told == (
        "no root cause, though chosen by votes: lookup (10 of 20); next to nothing of a call "
        "inside the peak is spent there"
    )


def test_its_own_time_that_is_merely_passed_is_none() -> None:
    send = Routine("send", 10).call(Routine("wire", SLOW), [1, 0])
    f0 = Routine("f0").call(Routine("disk", [1, SLOW])).call(send)
    assert ["f0", "send"] in search(f0).paths()
    assert search(f0, least=SLOW).paths() == [["f0", "disk"], ["f0", "send", "wire"]]


def test_calls_that_are_slow_elsewhere_have_no_say_in_what_they_pass_through() -> None:
    """Half of them were slow in ``send`` when that was chosen, and three in ten are behind it."""
    of_send = [SLOW, 1] * 10 + [SLOW, *[1] * 9, SLOW, 1, SLOW, 1, SLOW, 1, SLOW, *[1] * 3]
    of_disk = [1 if slow > 1 else SLOW for slow in of_send]
    for send in (
        Routine("send", 10).call(Routine("wire", of_send)),
        Routine("send", 1).call(Routine("lookup", 10)).call(Routine("wire", of_send)),
    ):
        f0 = Routine("f0").call(Routine("disk", of_disk)).call(send)
        assert search(f0, least=SLOW).paths() == [["f0", "disk"], ["f0", "send", "wire"]]


def test_one_slow_call_is_no_cause_of_those_that_are_slow_elsewhere() -> None:
    of_send = [SLOW, 1] * 10 + [1000 * SLOW] + [1] * 19
    of_disk = [1 if slow > 1 else SLOW for slow in of_send]
    send = Routine("send", 10).call(Routine("wire", of_send))
    simulation = search(Routine("f0").call(Routine("disk", of_disk)).call(send), least=SLOW)
    assert ["f0", "send", "wire"] not in simulation.paths()


def test_a_call_that_was_held_up_leaves_the_other_causes() -> None:
    """One call of a thousand times as long is most of the sum."""
    slow = Routine("wire", [*[SLOW, 1] * 9, 1000 * SLOW, 1])
    f0 = Routine("f0").call(Routine("disk", [1, SLOW])).call(slow)
    assert search(f0, least=SLOW).paths() == [["f0", "disk"], ["f0", "wire"]]


def test_many_small_causes_stay() -> None:
    f0 = Routine("f0", 1)
    for number in range(20):
        f0.call(Routine(f"part {number}", SLOW // 20))
    assert len(search(f0, least=SLOW).paths()) == 20


@pytest.mark.parametrize(("percentage", "paths"), [(0.2, 2), (0.5, 1), (1.0, 1)])
def test_maxcount_percentage_is_what_a_minor_cause_needs(percentage: float, paths: int) -> None:
    common = Routine("common", [SLOW, SLOW, SLOW, 10])
    rare = Routine("rare", [10, 10, 10, SLOW])
    parameters = replace(PAPER, maxcount_percentage=percentage)
    assert len(search(Routine("f0").call(common).call(rare), parameters).paths()) == paths


def test_votes_are_those_of_the_last_decision_ops_calls() -> None:
    simulation = search(slow_chain("a"), replace(PAPER, decision_ops=7))
    assert simulation.op == 14
    assert simulation.root.children[1].maxcount == 7


def test_the_tree_shows_what_was_measured() -> None:
    simulation = search(slow_chain("a"))
    slow = simulation.descent.paths()[0].nodes[-1]
    assert slow.totals == Totals(20, 20, 20 * SLOW, 20 * SLOW)
    assert simulation.root.totals.ops == 20


# -- depth and recursion ----------------------------------------------------------------------


def test_maximum_depth() -> None:
    simulation = search(slow_chain("a", "b", "c"), replace(PAPER, max_depth=3))
    (path,) = simulation.descent.paths()
    assert names(path.nodes) == ["f0", "a", "b"]
    assert path.ending.cut is Cut.DEPTH
    assert simulation.descent.status is Status.MAX_DEPTH


def test_a_path_that_ends_at_the_maximum_depth_by_itself_is_found() -> None:
    simulation = search(slow_chain("a"), replace(PAPER, max_depth=3))
    assert simulation.descent.status is Status.FOUND
    assert simulation.descent.paths()[0].ending.note is None


def test_one_path_cut_off_is_enough_for_maximum_depth() -> None:
    deep = chain(Routine("a"), Routine("b"), Routine("slow a", SLOW))
    f0 = Routine("f0").call(deep).call(Routine("slow b", SLOW))
    simulation = search(f0, replace(PAPER, max_depth=2))
    assert simulation.paths() == [["f0", "a"], ["f0", "slow b"]]
    assert simulation.descent.status is Status.MAX_DEPTH


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_recursion_grows_the_tree_until_it_ends(lookahead: int | None) -> None:
    """f_x calls f_y calls f_x (paper figure 6); of six frames the last two take as long."""
    x, y = Routine("x"), Routine("y")
    x.call(y)
    y.call(x)
    simulation = search(x, replace(PAPER, lookahead=lookahead, max_depth=9), deepest=6)
    assert simulation.paths() == [["x", "y", "x", "y", "x"], ["x", "y", "x", "y", "x", "y"]]
    assert simulation.descent.status is Status.FOUND


def test_endless_recursion_is_bounded_by_the_maximum_depth() -> None:
    x = Routine("x", 10)
    x.call(x)
    simulation = search(x, replace(PAPER, max_depth=5, lookahead=4), deepest=12)
    assert simulation.paths() == [["x"] * 5]
    assert simulation.descent.status is Status.MAX_DEPTH
    assert max(node.depth for node in simulation.root.walk()) <= 6


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_a_function_that_divides_what_it_does_is_followed_once(lookahead: int | None) -> None:
    """A sort by halves: each level would have twice as many paths, of equal time."""
    sort = Routine("sort", 10)
    sort.call(sort).call(sort)
    simulation = search(Routine("f0").call(sort), Parameters(lookahead=lookahead), deepest=8)
    assert simulation.paths() == [["f0", "sort", "sort"]] * 2
    assert {path.ending.cut for path in simulation.descent.paths()} == {Cut.DIVIDES}
    assert simulation.descent.status is Status.FOUND


def test_a_tree_in_which_one_branch_is_slow_at_a_time_is_followed_to_its_end() -> None:
    evaluate = Routine("evaluate", 10)
    evaluate.call(evaluate, [1, 0]).call(evaluate, [0, 1])
    paths = search(evaluate, Parameters(), deepest=6).paths()
    assert ["evaluate"] * 6 in paths
    assert all(len(path) >= 5 for path in paths)


def test_each_node_is_expanded_once() -> None:
    simulation = search(slow_chain("a", "b", "c"), Parameters(lookahead=3))
    assert len(simulation.expanded) == len(set(simulation.expanded))


def test_a_tree_that_widens_has_many_paths_under_way() -> None:
    """Eight functions of which each slow call takes another one: all of them are chosen."""
    f0 = Routine("f0")
    for number in range(8):
        leaf = Routine("slow", SLOW)
        f0.call(chain(Routine(f"way{number}"), leaf), [int(op % 8 == number) for op in range(8)])
    simulation = Simulation(f0, PAPER)
    simulation.descent.begin()
    assert simulation.descent.under_way == 1
    counted = {node: Vote(votes=5, ops=5) for node in simulation.root.children}
    simulation.descent.decide({simulation.root: Vote(ops=40), **counted}, 40)
    assert simulation.descent.under_way == 8


@pytest.mark.parametrize(
    ("per_second", "needed", "told"),
    [
        (0.0, 20, ""),
        (400.0, 20, ""),
        (0.9, 20, ", which come 0.9 times a second: give a longer --max-time"),
        (0.01, 20, ", which come less often than every 10s: give a longer --max-time"),
    ],
)
def test_what_to_do_where_calls_come_slowly(per_second: float, needed: int, told: str) -> None:
    said = too_few(per_second, needed)
    assert said.startswith(told)
    assert bool(said) == bool(told)


@pytest.mark.parametrize(("paths", "is_told"), [(1, False), (3, False), (64, True)])
def test_what_to_do_about_a_tree_that_widens_is_told(paths: int, *, is_told: bool) -> None:
    told = widening(paths, 9)
    assert bool(told) == is_told
    for line in told:
        assert "64 paths are under way at level 9" in line
        assert "--max-time" in line


# -- not conclusive ---------------------------------------------------------------------------


def test_a_path_that_is_not_taken_any_more() -> None:
    a = chain(Routine("a"), Routine("slow", SLOW))
    f0 = Routine("f0").call(a, [1] * 20 + [0] * 1000)
    descent = search(f0).descent
    assert descent.status is Status.INCONCLUSIVE
    assert descent.paths() == ()
    assert descent.explain() == "1.1 a was on the path in none of 33 in-peak calls"


def test_a_decision_tells_on_how_many_votes_it_rests() -> None:
    simulation = search(slow_chain("a"))
    a = simulation.root.children[1]
    assert simulation.root.decision == a.decision == Decision(20, 20, 0)
    assert a.compared_in == 20
    auto = search(slow_chain("a"), replace(PAPER, decision_ops=None)).root.decision
    assert auto is not None
    assert auto.ops >= auto.needed == 5


def test_nothing_is_found_on_fewer_votes_than_asked_for() -> None:
    a = chain(Routine("a"), Routine("slow", SLOW))
    f0 = Routine("f0").call(a, [1] * 27 + [0] * 1000)
    simulation = search(f0)
    assert simulation.descent.status is Status.INCONCLUSIVE
    assert simulation.root.children[0].decision == Decision(7, 20, 0, is_conclusive=False)


def test_mean_latencies_of_siblings_are_over_the_same_calls() -> None:
    """What a callee takes in the calls that decide about its own callees is another matter."""
    slow = Routine("slow", [SLOW] * 20 + [9 * SLOW] * 999)
    a = chain(Routine("a"), slow)
    simulation = search(Routine("f0").call(Routine("quick")).call(a))
    a_node = simulation.root.children[1]
    assert a_node.called.max_sum / a_node.called.ops < 2 * SLOW
    assert a_node.totals.max_sum / a_node.totals.ops > 8 * SLOW
    assert all(child.called.ops == 20 for child in simulation.root.children)


def test_no_votes_at_all() -> None:
    simulation = Simulation(slow_chain(), PAPER)
    simulation.descent.begin()
    orders = simulation.descent.decide({simulation.root: Vote(ops=20)}, 20)
    assert orders.finished
    assert simulation.descent.status is Status.INCONCLUSIVE
    assert simulation.descent.explain() == (
        "1 f0 was on the path in 20 of 20 in-peak calls, but neither its own time nor any of its "
        "2 callees had a vote"
    )
    assert set(orders.remove) == {simulation.root, *simulation.root.children}


def test_one_path_is_a_conclusion() -> None:
    gone = chain(Routine("gone"), Routine("x", SLOW))
    stays = chain(Routine("stays"), Routine("y", SLOW))
    descent = search(Routine("f0").call(gone, [1] * 20 + [0] * 1000).call(stays)).descent
    assert descent.status is Status.FOUND
    assert "1.1 gone" in descent.explain()


def test_nothing_to_explain_when_all_is_found() -> None:
    assert search(slow_chain()).descent.explain() == ""


# -- callees that are learned -----------------------------------------------------------------


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_a_callee_that_is_learned_at_run_time(lookahead: int | None) -> None:
    hidden = chain(Routine("hidden"), Routine("slow", SLOW))
    a = Routine("a").call(Routine("quick")).call(hidden, learned=True)
    simulation = search(chain(Routine("f0"), a), replace(PAPER, lookahead=lookahead))
    assert simulation.paths() == [["f0", "a", "hidden", "slow"]]


def test_a_function_with_only_indirect_calls_is_no_leaf() -> None:
    a = Routine("a").call(Routine("slow", SLOW), learned=True)
    assert search(chain(Routine("f0"), a)).paths() == [["f0", "a", "slow"]]


def test_a_learned_callee_that_is_not_chosen_comes_out() -> None:
    f0 = Routine("f0").call(Routine("hidden"), learned=True).call(Routine("slow", SLOW))
    simulation = search(f0)
    assert "hidden" in names(simulation.history[-1].remove)


# -- lookahead --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lookahead", "decisions"), [(1, 6), (2, 3), (3, 2), (4, 2), (6, 1), (None, 2)]
)
def test_several_levels_from_the_same_votes(lookahead: int | None, decisions: int) -> None:
    simulation = search(slow_chain(*"abcde"), replace(PAPER, lookahead=lookahead))
    assert simulation.paths() == [["f0", *"abcde", "slow"]]
    assert simulation.op == decisions * 20


@pytest.mark.parametrize("room", [1, 2, 3])
def test_nodes_that_there_is_no_room_for_wait_their_turn(room: int) -> None:
    """The agent saw them on the path, but did not compare them with their callees."""
    simulation = Simulation(slow_chain(*"abcde"), replace(PAPER, lookahead=4))
    orders = simulation.descent.begin()
    while not orders.finished:
        needed = simulation.descent.in_peak_needed()
        votes = simulation.collect(orders)
        for node in orders.analyse[room:]:
            votes[node] = replace(votes[node], own=0, counted=False)
            votes |= {c: replace(votes[c], votes=0) for c in node.children if c in votes}
        orders = simulation.descent.decide(votes, needed)
    assert simulation.paths() == [["f0", *"abcde", "slow"]]


def test_the_frontier_comes_first_and_levels_follow() -> None:
    simulation = Simulation(slow_chain("a", "b"), replace(PAPER, lookahead=3))
    orders = simulation.descent.begin()
    assert names(orders.analyse) == ["f0", "a", "b"]
    assert simulation.root.children[1].state is NodeState.CANDIDATE
    assert simulation.descent.level == 1


def test_what_was_timed_below_a_rejected_node_comes_out_with_it() -> None:
    wrong = chain(Routine("wrong"), Routine("w1"), Routine("w2"))
    f0 = Routine("f0").call(wrong).call(chain(Routine("right"), Routine("slow", SLOW)))
    simulation = search(f0, replace(PAPER, lookahead=3))
    below = list(simulation.root.children[0].walk())
    assert names(below) == ["wrong", "w1", "w2"]
    assert all(node.state is NodeState.REJECTED for node in below)
    assert set(below) <= set(simulation.history[-1].remove)


def test_a_node_with_too_few_votes_is_not_decided_ahead() -> None:
    """``sometimes`` is the root cause of half the calls, and its callee needs as many votes."""
    a = chain(Routine("sometimes"), Routine("slow a", SLOW))
    b = Routine("slow b", [10, SLOW])
    simulation = Simulation(Routine("f0").call(a, [1, 0]).call(b), replace(PAPER, lookahead=2))
    orders = simulation.step(simulation.descent.begin())
    assert names(orders.analyse) == ["sometimes"]
    assert simulation.descent.in_peak_needed() == 20  # it has ten already, of twenty
    assert simulation.step(orders).finished
    assert simulation.paths() == [["f0", "sometimes", "slow a"], ["f0", "slow b"]]
    assert simulation.descent.paths()[0].ending.maxcount == 20


def bush(fan: int, depth: int, name: str = "f0") -> Routine:
    routine = Routine(name, 10)
    for i in range(fan if depth else 0):
        routine.call(bush(fan, depth - 1, f"{name}.{i}"))
    return routine


@pytest.mark.parametrize("lookahead", [2, 3, 5, None])
@pytest.mark.parametrize("max_probes", [3, 10, 100, 1000])
def test_lookahead_keeps_to_max_probes(lookahead: int | None, max_probes: int) -> None:
    parameters = replace(PAPER, lookahead=lookahead, max_probes=max_probes)
    orders = Simulation(bush(3, 5), parameters).descent.begin()
    sites = {child.site.address for node in orders.analyse for child in node.children if child.site}
    assert 3 <= len(sites) <= max_probes
    if lookahead is None:
        assert len(sites) <= 3 + 200


def test_sites_that_nodes_share_count_once() -> None:
    x = Routine("x")
    x.call(x).call(Routine("y"))
    orders = Simulation(x, replace(PAPER, lookahead=5, max_probes=3)).descent.begin()
    assert names(orders.analyse) == ["x"] * 5


def test_paths_that_do_not_fit_together_wait_for_their_turn() -> None:
    f0 = Routine("f0")
    for name in "abc":
        part = Routine(name).call(Routine(f"slow {name}", SLOW))
        f0.call(part.call(Routine("quick 1")).call(Routine("quick 2")))
    simulation = search(f0, replace(PAPER, max_probes=6))
    assert [names(o.analyse) for o in simulation.history] == [["f0"], ["a", "b"], ["c"], []]
    assert len(simulation.paths()) == 3


# -- more callees than max_probes -------------------------------------------------------------


def crowd(size: int, slow: dict[int, int]) -> Routine:
    f0 = Routine("f0")
    for i in range(size):
        f0.call(Routine(f"c{i}", slow.get(i, 100)))
    return f0


def test_batches_in_turns_and_a_last_round() -> None:
    simulation = search(crowd(25, {13: SLOW}), Parameters(max_probes=10))
    rounds = [names(o.batches[simulation.root]) for o in simulation.history[:-1]]
    assert rounds == [
        [f"c{i}" for i in range(10)],
        [f"c{i}" for i in range(10, 20)],
        [f"c{i}" for i in range(20, 25)],
        rounds[-1],
    ]
    assert "c13" in rounds[-1]
    assert len(rounds[-1]) <= 10
    assert simulation.paths() == [["f0", "c13"]]
    assert simulation.op == 4 * 20


def test_no_self_while_callees_are_not_timed() -> None:
    """Three callees share the time equally, each in a batch of its own: the rest always wins."""
    slow = {3: SLOW, 13: SLOW, 23: SLOW}
    simulation = search(crowd(30, slow), Parameters(max_probes=10))
    assert simulation.paths() == [["f0", "c3"], ["f0", "c13"], ["f0", "c23"]]


def test_self_wins_the_last_round_when_it_is_slow() -> None:
    f0 = crowd(25, {})
    f0.own = SLOW
    simulation = search(f0, Parameters(max_probes=10))
    (path,) = simulation.descent.paths()
    assert names(path.nodes) == ["f0"]
    assert path.ending.note == "the last round compared 10 of 25 callees"


@pytest.mark.parametrize("max_probes", [1, 2, 3])
def test_few_probes(max_probes: int) -> None:
    f0 = crowd(7, {5: SLOW})
    f0.calls[5].routine.call(Routine("quick")).call(Routine("slow", 10 * SLOW))
    simulation = search(f0, Parameters(max_probes=max_probes))
    assert simulation.paths() == [["f0", "c5", "slow"]]
    assert all(
        len(orders.batches.get(node, node.children)) <= max_probes
        for orders in simulation.history
        for node in orders.analyse
    )


def test_callees_that_are_never_called() -> None:
    f0 = crowd(9, {})
    f0.own = SLOW
    for call in f0.calls:
        call.times = 0
    simulation = search(f0, Parameters(max_probes=4))
    (path,) = simulation.descent.paths()
    assert names(path.nodes) == ["f0"]
    assert path.ending.maxcount == 20


def test_a_batch_also_has_the_callees_that_were_learned_meanwhile() -> None:
    f0 = crowd(5, {}).call(Routine("hidden", SLOW), learned=True)
    simulation = search(f0, Parameters(max_probes=2))
    assert simulation.paths() == [["f0", "hidden"]]


# -- decision_ops auto ------------------------------------------------------------------------


def test_decisive_votes_need_few_calls() -> None:
    simulation = search(slow_chain("a"), replace(PAPER, decision_ops=None))
    assert simulation.paths() == [["f0", "a", "slow"]]
    assert simulation.op == 2 * 10
    assert simulation.descent.confidence is not None
    assert simulation.descent.confidence >= 0.95


def test_the_next_checkpoint() -> None:
    a, b = Routine("a", [SLOW, 10, SLOW]), Routine("b", [10, SLOW, 10])
    simulation = Simulation(Routine("f0").call(a).call(b), replace(PAPER, decision_ops=None))
    orders = simulation.descent.begin()
    asked = []
    while not orders.finished:
        asked.append(simulation.descent.in_peak_needed())
        orders = simulation.step(orders)
    assert asked == [5, 5, 10, 20, 40, 80, 40]  # votes just at the limit never are decisive
    assert simulation.descent.status is Status.FOUND


def test_undecided_votes_change_nothing() -> None:
    simulation = Simulation(slow_chain("a"), replace(PAPER, decision_ops=None))
    first = simulation.descent.begin()
    second = simulation.step(first)
    assert second == replace(first, remove=())
    assert simulation.descent.status is Status.SEARCHING


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_auto_and_lookahead_together(lookahead: int | None) -> None:
    parameters = replace(PAPER, decision_ops=None, lookahead=lookahead)
    simulation = search(slow_chain(*"abcd"), parameters)
    assert simulation.paths() == [["f0", *"abcd", "slow"]]
    assert simulation.op <= 50


# -- by hand ----------------------------------------------------------------------------------

MANUAL = Parameters(auto=False)


def two_ways() -> Simulation:
    a = chain(Routine("a"), Routine("slow a", SLOW))
    b = chain(Routine("b"), Routine("slow b", SLOW))
    c = chain(Routine("c"), Routine("c1"), Routine("c2"))
    return Simulation(Routine("f0").call(a).call(b).call(c), MANUAL)


def test_a_decision_by_hand_waits() -> None:
    simulation = two_ways()
    orders = simulation.step(simulation.descent.begin())
    assert names(simulation.descent.pending) == ["a", "b"]
    assert (orders.analyse, orders.finished) == ((), False)
    assert simulation.descent.in_peak_needed() == 0
    assert simulation.descent.status is Status.SEARCHING


def test_going_on_into_one_node_only() -> None:
    simulation = two_ways()
    simulation.step(simulation.descent.begin())
    b = simulation.root.find("1.2")
    orders = simulation.descent.choose([b])
    assert orders.analyse == (b,)
    orders = simulation.step(orders)
    assert orders.finished
    assert simulation.paths() == [["f0", "b", "slow b"]]
    assert simulation.descent.status is Status.FOUND


def test_going_on_into_all() -> None:
    simulation = two_ways()
    simulation.step(simulation.descent.begin())
    assert names(simulation.descent.choose().analyse) == ["a", "b"]


def test_going_on_into_a_candidate_that_was_not_chosen() -> None:
    simulation = two_ways()
    simulation.step(simulation.descent.begin())
    c = simulation.root.find("1.3")
    assert c.state is NodeState.REJECTED
    orders = simulation.descent.choose([c])
    assert orders.analyse == (c,)
    assert (c.state, c.root_cause) == (NodeState.ANALYSIS, True)


def test_no_lookahead_by_hand() -> None:
    assert names(two_ways().descent.begin().analyse) == ["f0"]


def test_nodes_that_cannot_be_chosen() -> None:
    simulation = two_ways()
    orders = simulation.descent.begin()
    with pytest.raises(UsageError, match="no fnode waits"):
        simulation.descent.choose()
    simulation.step(orders)
    with pytest.raises(UsageError, match="fnode 1 is not a candidate"):
        simulation.descent.choose([simulation.root])


# -- resuming ---------------------------------------------------------------------------------


def test_a_search_that_was_cut_off_is_resumed() -> None:
    f0 = slow_chain("a", "b", "c")
    cut = search(f0, replace(PAPER, max_depth=3))
    resumed = Simulation(f0, PAPER, root=cut.root)
    orders = resumed.descent.begin()
    assert names(orders.analyse) == ["b"]
    assert resumed.run(orders).paths() == [["f0", "a", "b", "c", "slow"]]
    assert resumed.descent.status is Status.FOUND


def test_a_search_that_was_interrupted_is_resumed() -> None:
    f0 = slow_chain("a", "b", "c")
    first = Simulation(f0, PAPER)
    first.step(first.step(first.descent.begin()))
    resumed = Simulation(f0, PAPER, root=first.root).run()
    assert names(resumed.history[0].analyse) == ["b"]
    assert resumed.paths() == [["f0", "a", "b", "c", "slow"]]


def test_paths_that_had_ended_stay() -> None:
    f0 = slow_chain("a")
    done = search(f0)
    again = Simulation(f0, PAPER, root=done.root)
    assert again.descent.begin().finished
    assert again.paths() == done.paths()


@pytest.mark.parametrize("lookahead", [1, None])
def test_votes_that_did_not_suffice_count_when_the_search_goes_on(lookahead: int | None) -> None:
    f0 = slow_chain("a", "b", "c", "d", "e")
    parameters = replace(PAPER, lookahead=lookahead)
    contests: tuple[Contest, ...] = ()
    root, runs = None, 0
    while True:  # a program that ends after every 8 in-peak calls
        run = Simulation(f0, parameters, root=root)
        orders = run.descent.begin(contests)
        left = 8
        while not orders.finished and run.descent.in_peak_needed() <= left:
            left -= run.descent.in_peak_needed()
            orders = run.step(orders)
        runs += 1
        assert runs < 20
        if orders.finished:
            break
        votes: dict[Fnode, Vote] = {}
        for _ in range(left):
            for node, vote in run.vote(orders).items():
                votes[node] = added(votes.get(node, Vote()), vote)
        contests = run.descent.open_contests(votes, left)
        root = run.root
    assert run.paths() == search(f0, parameters).paths()
    levels = 6 if lookahead == 1 else 2  # the calls of one decision serve several levels
    assert runs == 20 * levels // 8


def test_looking_at_open_contests_changes_nothing() -> None:
    simulation = Simulation(slow_chain("a"), PAPER)
    orders = simulation.descent.begin()
    votes = simulation.vote(orders)
    assert simulation.descent.open_contests({}, 0) == ()
    for _ in range(2):
        (contest,) = simulation.descent.open_contests(votes, 1)
        assert contest.seen == 1
    assert simulation.descent.in_peak_needed() == 20


def test_votes_may_suffice_at_once_when_fewer_are_asked_for() -> None:
    f0 = slow_chain("a")
    first = Simulation(f0, PAPER)
    orders = first.descent.begin()
    votes: dict[Fnode, Vote] = {}
    for _ in range(12):
        for node, vote in first.vote(orders).items():
            votes[node] = added(votes.get(node, Vote()), vote)
    contests = first.descent.open_contests(votes, 12)
    resumed = Simulation(f0, replace(PAPER, decision_ops=10), root=first.root)
    assert names(resumed.descent.begin(contests).analyse) == ["a"]


# -- whatever the program does ----------------------------------------------------------------


@st.composite
def dominated(draw: st.DrawFn) -> tuple[Routine, list[str]]:
    """A program with one dominating path, and its names."""
    length = draw(st.integers(1, 6))
    path = [Routine(f"p{i}", draw(st.integers(0, 1000))) for i in range(length)]
    end = draw(st.sampled_from(["leaf", "own", "loop"]))
    own = draw(st.lists(st.integers(SLOW, 40 * SLOW), min_size=1, max_size=5))
    if end == "loop":
        path[-1].call(Routine("short", 100), [cycles // 100 for cycles in own])
    else:
        path[-1].own = own
    if end == "own":
        path[-1].call(Routine("minor", 100))
    chain(*path)
    for i, routine in enumerate(path[:-1]):
        for j in range(draw(st.integers(0, 3))):
            aside = bush(draw(st.integers(0, 3)), draw(st.integers(0, 2)), f"q{i}{j}")
            routine.call(aside, draw(st.integers(0, 50)))
        draw(st.randoms(use_true_random=False)).shuffle(routine.calls)
    return path[0], [routine.name for routine in path]


@given(
    dominated(),
    st.sampled_from(LOOKAHEADS),
    st.sampled_from([None, 1, 5, 20]),
    st.sampled_from([1, 2, 5, 1000]),
)
@settings(deadline=None)
def test_the_dominating_path_is_found(
    program: tuple[Routine, list[str]],
    lookahead: int | None,
    decision_ops: int | None,
    max_probes: int,
) -> None:
    f0, path = program
    parameters = Parameters(lookahead=lookahead, decision_ops=decision_ops, max_probes=max_probes)
    simulation = search(f0, parameters)
    assert simulation.paths() == [path]
    assert simulation.descent.status is Status.FOUND


@st.composite
def programs(draw: st.DrawFn, depth: int = 4, name: str = "f") -> Routine:
    """Any program whose call sites are all reached in every call."""
    cycles = st.integers(0, 16).map(lambda power: 2**power)
    routine = Routine(name, draw(st.lists(cycles, min_size=1, max_size=4)))
    for i in range(draw(st.integers(0, 3 if depth else 0))):
        callee = draw(programs(depth - 1, f"{name}{i}"))
        times = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        routine.call(callee, times, learned=draw(st.sampled_from([False, False, False, True])))
    return routine


@given(programs(), st.floats(0.1, 1.0))
@settings(deadline=None)
def test_the_paths_do_not_depend_on_the_lookahead(f0: Routine, percentage: float) -> None:
    parameters = replace(PAPER, maxcount_percentage=percentage)
    plain = search(f0, parameters, replay=True)
    for lookahead in (2, 3, 4, None):
        ahead = search(f0, replace(parameters, lookahead=lookahead), replay=True)
        assert ahead.paths() == plain.paths()
        assert [p.ending for p in ahead.descent.paths()] == [
            p.ending for p in plain.descent.paths()
        ]
        assert len(ahead.history) <= len(plain.history)


@given(
    f0=programs(),
    lookahead=st.sampled_from(LOOKAHEADS),
    decision_ops=st.sampled_from([None, 20]),
    max_probes=st.sampled_from([1, 2, 4, 1000]),
    max_depth=st.sampled_from([2, 3, 32]),
)
@settings(deadline=None)
def test_orders_are_consistent(
    f0: Routine,
    lookahead: int | None,
    decision_ops: int | None,
    *,
    max_probes: int,
    max_depth: int,
) -> None:
    simulation = search(
        f0,
        Parameters(
            lookahead=lookahead,
            decision_ops=decision_ops,
            max_probes=max_probes,
            max_depth=max_depth,
        ),
    )
    in_place: set[Fnode] = set()
    for orders in simulation.history:
        assert len(set(orders.analyse)) == len(orders.analyse)
        assert all(node.depth < max_depth for node in orders.analyse)
        assert set(orders.batches) <= set(orders.analyse)
        timed = {c for n in orders.analyse for c in orders.batches.get(n, n.children)}
        followed = {above for node in orders.analyse for above in node.route()}
        assert not set(orders.remove) & (timed | followed)
        in_place = (in_place | timed | followed) - set(orders.remove)
        learned = {node for node in in_place if simulation.is_learned(node)}
        assert in_place - learned <= timed | followed
    assert not in_place
    assert orders.finished
    descent = simulation.descent
    assert descent.status in (Status.FOUND, Status.MAX_DEPTH)
    for path in descent.paths():
        assert all(node.root_cause for node in path.nodes)
    assert all(node.state is not NodeState.ANALYSIS for node in simulation.root.walk())


def test_deciding_after_the_end_changes_nothing() -> None:
    simulation = search(slow_chain())
    before = simulation.paths()
    assert simulation.descent.decide({}, 0) == Orders(finished=True)
    assert simulation.paths() == before


def test_votes_of_strangers_are_ignored() -> None:
    simulation = Simulation(slow_chain(), PAPER)
    stranger = Simulation(slow_chain(), PAPER).root
    orders = simulation.descent.begin()
    votes = simulation.collect(orders) | {stranger: Vote(own=99, ops=99, votes=99)}
    assert simulation.descent.decide(votes, 20).finished
    assert simulation.paths() == [["f0", "slow"]]


def test_a_descent_needs_no_simulation() -> None:
    root = Simulation(slow_chain(), PAPER).root
    descent = Descent(root, PAPER, lambda _node: None)
    assert descent.begin().finished
    assert [names(path.nodes) for path in descent.paths()] == [["f0"]]


def test_a_node_that_was_on_the_path_each_time_may_be_missing_once() -> None:
    """A call of f0 may be slow for another reason once, and its path is another one."""
    a = chain(Routine("a"), Routine("slow", SLOW))
    now_and_then = [0] * 20 + [SLOW] + [0] * 40
    f0 = Routine("f0", own=now_and_then).call(a, [1] * 20 + [0] + [1] * 40)
    simulation = search(f0)
    assert simulation.paths() == [["f0", "a", "slow"]]


def test_who_leads_before_the_votes_suffice() -> None:
    """What leads and is compared already leads on to its own leader."""
    f0 = slow_chain("a", "b")
    simulation = Simulation(f0, Parameters(lookahead=2))
    orders = simulation.descent.begin()
    root, a = orders.analyse[0], next(n for n in orders.analyse if n.function.name == "a")
    b = next(child for child in a.children if child.function.name == "b")
    votes = {root: Vote(ops=3), a: Vote(ops=3, votes=3), b: Vote(ops=3, votes=2)}
    assert simulation.descent.leaders({}) == []
    assert simulation.descent.leaders(votes) == [b]
    assert names(simulation.descent.decide({}, 0).analyse) == names(orders.analyse)
