"""Calling contexts: inferred from stacks as the paper does, measured, merged and ranked."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.contexts import (
    Context,
    Cost,
    FunctionName,
    coverage,
    folded,
    measured_tree,
    merged,
    rank,
)
from darc.model.ftree import Fnode, Totals
from darc.model.inference import Inference, Instance, Trace
from darc.saved import contexts
from darc.saved.checked import DamagedFileError
from darc.views.contextview import RankedContexts, table, to_json
from darc.views.jsonvalues import json_text
from darc.views.style import Style
from tests.unit import samples

Event = tuple[int, str]
"""A time, and the functions on the stack by their letters, main first."""


def function(name: str) -> FunctionName:
    return FunctionName(name, "program")


def inferred(*threads: Sequence[Event]) -> tuple[Context, list[Instance]]:
    tree, kept = Context(), list[Instance]()
    for events in threads:
        inference = Inference(tree, kept.append)
        for time, stack in events:
            inference.event(time, [function(letter) for letter in stack])
        inference.finish()
    return tree, kept


def at(tree: Context, names: Sequence[str]) -> Context:
    for one in names:
        tree = tree.children[function(one)]
    return tree


def names(nodes: Sequence[Context]) -> str:
    return "".join(node.function.name for node in nodes)


# ----------------------------------------------------------------------------- inference


TABLE_1 = ((100, "ABD"), (110, "ABD"), (140, "ACD"), (150, "AC"))
"""The paper's example (figure 3), at t1 to t4."""


def test_the_papers_table_1() -> None:
    """D under C is another context than D under B, though it is the function at that depth before:
    the change of B to C goes on to it."""
    tree, kept = inferred(TABLE_1)
    told = {(names(one.context.route()), one.first, one.last, one.next) for one in kept}
    assert told == {
        ("ABD", 100, 110, 140),
        ("AB", 100, 110, 140),
        ("ACD", 140, 140, 150),  # closed as the stack got shorter
        ("AC", 140, 150, 150),  # closed at the end, with the last event
        ("A", 100, 150, 150),
    }
    assert at(tree, "ABD").cost == Cost(1, 10, 40)
    assert at(tree, "ACD").cost == Cost(1, 0, 10)
    assert at(tree, "A").cost == Cost(1, 50, 50)
    assert [node.own_ns for node in at(tree, "A").walk()] == [0, 10, 10, 0]
    assert at(tree, "A").own_ns == 30


def test_what_events_do_not_part_is_one_instance() -> None:
    tree, _ = inferred(((0, "AB"), (10, "AB"), (20, "A"), (30, "AB"), (35, "AB")))
    assert at(tree, "AB").cost == Cost(2, 15, 25)
    assert at(tree, "AB").cost.mean_ns == 7.5


def test_threads_do_not_end_each_others_calls() -> None:
    tree, _ = inferred(((0, "AB"), (100, "AB")), ((50, "AC"), (60, "AC")))
    assert at(tree, "AB").cost == Cost(1, 100, 100)
    assert at(tree, "A").cost == Cost(2, 110, 110)


events = st.lists(
    st.tuples(st.integers(0, 20), st.text("ABC", min_size=1, max_size=5)), max_size=30
)


@given(st.lists(events, max_size=3))
def test_what_always_holds_of_what_is_inferred(steps: list[list[tuple[int, str]]]) -> None:
    """A callee's instance lies within its caller's, so that callees take no more than callers; an
    instance lasts at least from its first event to its last and at most to the next one; those
    at one depth of a thread never overlap; and all of it is within the thread's events."""
    for own in steps:
        time, thread = 0, list[Event]()
        for wait, stack in own:
            time += wait
            thread.append((time, stack))
        tree, kept = inferred(thread)
        seen = {stack[: depth + 1] for _, stack in thread for depth in range(len(stack))}
        assert {names(node.route()) for node in tree.walk()} == seen
        for node in tree.walk():
            assert sum(one.cost.ns for one in node.children.values()) <= node.cost.ns
            assert sum(one.cost.at_most for one in node.children.values()) <= node.cost.at_most
        by_depth: dict[int, list[Instance]] = {}
        for one in kept:
            assert 0 <= one.conservative <= one.aggressive
            assert {one.first, one.last, one.next} <= {time for time, _ in thread}
            by_depth.setdefault(len(one.context.route()), []).append(one)
        for same in by_depth.values():
            assert all(a.next <= b.first for a, b in pairwise(same))


# ------------------------------------------------------------------------------ measured


def test_levels_of_an_ftree_are_scaled_to_one_number_of_calls() -> None:
    """flush was compared in 20 calls of handle; its callees in 10 others with longer ones."""
    root = Fnode(samples.function("handle"))
    root.totals = Totals(20, 20, 20_000, 20_000)
    flush = root.add_child(samples.function("flush"), samples.site(1))
    flush.called = Totals(20, 40, 10_000, 8_000)
    flush.totals = Totals(10, 20, 6_000, 5_000)
    write = flush.add_child(samples.function("write"), samples.site(2))
    write.called = write.totals = Totals(10, 30, 3_000, 2_000)
    again = root.add_child(samples.function("flush"), samples.site(3))  # another call site
    again.called = again.totals = Totals(5, 5, 1_000, 1_000)
    root.add_child(samples.function("never"), samples.site(4))
    tree = measured_tree(root, 10**9)
    assert tree is not None
    handle = tree.children[FunctionName("handle", "mixture")]
    assert handle.cost == Cost(20, 20_000, 20_000)
    (same,) = handle.children.values()
    assert same.cost == Cost(45, 11_000, 11_000)
    (wrote,) = same.children.values()
    assert wrote.cost == Cost(60, 5_000, 5_000)  # half of the time of flush
    assert handle.own_ns == 9_000


def test_nothing_was_measured_before_the_first_decision() -> None:
    assert measured_tree(Fnode(samples.function("handle")), 10**9) is None


# ------------------------------------------------------------------------------- merging


def tree_of(**costs: tuple[float, float]) -> Context:
    """Measured: calls and ns of each context, by its letters."""
    tree = Context()
    for path, (calls, ns) in costs.items():
        node = tree
        for letter in path:
            node = node.child(function(letter))
        node.measured = Cost(calls, ns, ns)
    return tree


def measured(tree: Context) -> dict[str, tuple[float, float]]:
    return {
        names(node.route()): (node.measured.calls, node.measured.ns)
        for node in tree.walk()
        if node.measured is not None
    }


def test_trees_of_one_f0_are_added() -> None:
    one = tree_of(F=(10, 100), FA=(10, 50))
    two = tree_of(F=(30, 500), FA=(30, 250), FAB=(60, 120))
    assert measured(merged([one, two])) == {
        "F": (40, 600),
        "FA": (40, 300),
        "FAB": (80, 160),  # as in the calls of that one which looked into A
    }
    assert measured(one) == {"F": (10, 100), "FA": (10, 50)}, "what is merged stays as it is"


def test_many_trees_are_kept_as_one_for_each_f0() -> None:
    trees = [tree_of(F=(10, 100), FA=(10, 50)), tree_of(G=(1, 7))]
    for _ in range(3):
        trees = folded([*trees, tree_of(F=(30, 500), FA=(30, 250))])
        assert [len(tree.children) for tree in trees] == [1, 1]
    assert measured(merged(trees)) == {"F": (100, 1600), "FA": (100, 800), "G": (1, 7)}


def test_a_callee_that_one_of_two_runs_never_called() -> None:
    one = tree_of(F=(10, 100), FA=(10, 50))
    two = tree_of(F=(10, 100), FB=(10, 20))
    assert measured(merged([one, two])) == {"F": (20, 200), "FA": (10, 50), "FB": (10, 20)}


def test_a_tree_is_put_where_its_f0_is_called() -> None:
    outer = tree_of(F=(10, 1000), FG=(20, 400))
    inner = tree_of(G=(5, 200), GH=(5, 50))
    for trees in ([outer, inner], [inner, outer]):
        assert measured(merged(trees)) == {
            "F": (10, 1000),
            "FG": (20, 400),
            "FGH": (10, 100),  # a quarter of what G takes there
        }


def test_a_tree_whose_f0_is_called_in_two_places_stays_by_itself() -> None:
    outer = tree_of(F=(10, 1000), FA=(1, 300), FAG=(1, 200), FG=(20, 400))
    inner = tree_of(G=(5, 200), GH=(5, 50))
    assert measured(merged([outer, inner]))["GH"] == (5, 50)


def test_what_was_put_together_before_goes_on() -> None:
    """A file of contexts may hold both: it is taken apart and put together again, and what is of no
    use is left out."""
    stacks, _ = inferred(((0, "MFA"), (60, "MFA"), (100, "M")))
    before = merged([tree_of(F=(2, 50), FA=(4, 25))], stacks)
    broken = tree_of(F=(0, 7), Q=(0, 0), QR=(1, 1))
    again = merged([before, broken], inferred(((0, "M"), (10, "M")))[0])
    assert at(again, "M").inferred == Cost(2, 110, 110)
    assert at(again, "MFA").inferred == Cost(1, 60, 100)
    assert measured(again).keys() == {"MF", "MFA", "R"}
    assert at(again, "MFA").cost.ns == at(before, "MFA").cost.ns
    assert set(again.children) == {function("M"), function("R")}


def test_measured_figures_count_before_inferred_ones() -> None:
    stacks, _ = inferred(((0, "MFA"), (60, "MFA"), (80, "MFB"), (90, "MFB"), (100, "M")))
    tree = merged([tree_of(F=(2, 50), FA=(4, 25), FC=(2, 10))], stacks)
    found = at(tree, "MF")
    assert found.cost == Cost(3.6, 90, 90), "as much time as the trace has for it"
    assert at(tree, "MFA").cost == Cost(7.2, 45, 45)
    assert at(tree, "MFA").inferred == Cost(1, 60, 80)
    assert at(tree, "MFB").measured is None
    assert at(tree, "MFC").inferred is None
    assert coverage(tree).contexts == 3
    assert coverage(tree).seen == 2
    assert coverage(tree, 0.01).share == 1


@given(st.permutations(range(4)), st.lists(st.integers(1, 50), min_size=8, max_size=8))
def test_the_order_of_trees_of_one_f0_does_not_matter(order: list[int], sizes: list[int]) -> None:
    trees = [
        tree_of(F=(n, 100 * n), FA=(n, 10 * m), **({"FAB": (n, m)} if n % 2 else {}))
        for n, m in zip(sizes[::2], sizes[1::2], strict=True)
    ]
    expected = measured(merged(trees))
    found = measured(merged([trees[index] for index in order]))
    assert found.keys() == expected.keys()
    for path, cost in found.items():
        assert cost == pytest.approx(expected[path])
    whole = measured(merged(trees))["F"]
    assert whole == pytest.approx((sum(sizes[::2]), 100 * sum(sizes[::2])))


# ------------------------------------------------------------------------------- ranking


def test_paths_are_ranked_by_what_their_functions_took_themselves() -> None:
    tree = tree_of(M=(1, 100), MA=(1, 60), MAX=(1, 5), MB=(1, 30), MBY=(1, 25), MC=(1, 1))
    paths = rank(tree)
    assert [(names(one.nodes), one.ns) for one in paths] == [
        ("MAX", 69),
        ("MBY", 39),
        ("MC", 10),
    ]
    assert paths[0].parts == (9, 55, 5)
    assert paths[0].hottest == 1


def test_of_equal_paths_the_shorter_one_comes_first() -> None:
    tree = tree_of(M=(1, 20), MA=(1, 10), MAX=(1, 10), MB=(1, 10))
    assert [names(one.nodes) for one in rank(tree)] == ["MB", "MAX"]


def test_callees_that_were_measured_in_other_calls_leave_nothing_below_0() -> None:
    assert rank(tree_of(M=(1, 20), MA=(1, 30)))[0].parts == (0, 30)


def test_a_base_takes_away_what_was_there_before() -> None:
    """Compressing is costly in both; what came with the plugin is ranked first, though it is less.
    main's own time is in both and lifts no rare path that only one of them has."""
    base = tree_of(M=(1, 1000), MC=(1, 700), MP=(1, 10))
    now = tree_of(M=(1, 1200), MC=(1, 710), MP=(1, 190), MPS=(1, 170), MR=(1, 2))
    paths = rank(now, base)
    assert [(names(one.nodes), one.ns, one.is_new) for one in paths] == [
        ("MPS", 188, False),
        ("MC", 18, False),
        ("MR", 10, True),
    ]
    assert paths[0].parts == (8, 10, 170)
    assert paths[0].hottest == 2


def test_what_the_base_has_not_looked_into_is_not_called_new() -> None:
    base = tree_of(F=(1, 100), FA=(1, 60), FR=(1, 30))
    now = tree_of(F=(1, 190), FA=(1, 60), FR=(1, 120), FRD=(1, 110), FX=(1, 1))
    paths = {names(one.nodes): one for one in rank(now, base)}
    assert {path: one.is_new for path, one in paths.items()} == {
        "FRD": False, "FX": True, "FA": False
    }  # fmt: skip
    assert paths["FRD"].parts == (9 - 10, 10 - 30, 110), "R's share of it is taken off again"


def test_measured_trees_are_compared_for_equally_many_calls_of_f0() -> None:
    base, now = tree_of(F=(10, 100), FA=(10, 50)), tree_of(F=(20, 200), FA=(20, 140))
    assert rank(now, base)[0].parts == (60 - 100, 140 - 100)


@given(st.lists(st.tuples(st.text("ABC", min_size=1, max_size=4), st.integers(1, 90)), min_size=1))
def test_nothing_has_changed_against_itself(costs: list[tuple[str, int]]) -> None:
    tree = tree_of(**{path: (1.0, float(ns)) for path, ns in costs})
    for path in rank(tree, tree):
        assert path.ns == 0
        assert not path.is_new


# ------------------------------------------------------------------------------ coverage


def test_stacks_show_the_slow_contexts() -> None:
    """A made-up program with a system call here and there: as in the paper's table 3, stacks show
    few of all contexts, and most of the slowest."""
    chance = random.Random(1)
    truth, thread = Context(), list[Event]()
    now = 0

    def call(node: Context, stack: str) -> int:
        nonlocal now
        begun = now
        for _ in range(chance.randrange(4) if len(stack) < 7 else 0):
            letter = chance.choice("ABCDEFGH")
            call(node.child(function(letter)), stack + letter)
        now += round(chance.paretovariate(0.8))
        if chance.random() < 0.02:
            thread.append((now, stack))
        now += 1
        node.measured = (node.measured or Cost(0, 0, 0)) + Cost(1, now - begun, now - begun)
        return now - begun

    while len(thread) < 300:
        call(truth.child(function("M")), "M")
    inference = Inference(truth)
    for time, stack in thread:
        inference.event(time, [function(letter) for letter in stack])
    inference.finish()
    every, slowest = coverage(truth), coverage(truth, 0.01)
    assert every.contexts > 1000
    assert every.share < 0.5
    assert slowest.share > 2 * every.share


# ---------------------------------------------------------------------------------- shown


def shown(known: RankedContexts, width: int = 80) -> list[str]:
    return table(known, Style(width)).splitlines()


def test_the_heat_map() -> None:
    """Rows are paths, columns functions; each is a shade by decades and its distance from the
    hottest one."""
    base = tree_of(M=(1, 10e6))
    tree = tree_of(M=(1, 90e6), MA=(2, 80e6), MAX=(1, 500e3), MB=(1, 3e6), MBY=(1, 1e6))
    lines = shown(RankedContexts(tree, tuple(rank(tree)), 10))
    assert lines == [
        "darc: 5 contexts on 2 paths",
        "  measured: the calls of M, those of the peak",
        "own time: █ 8.0ms  ▓ 795µs  ▒ 80µs and more  ░ less; 0: the path's hottest",
        "1 87ms  ▓1█0▒1",
        "2 10ms  ▓0▓1▓2",
        "  1  M → [A] → X: 80ms itself in program, 40ms each of 2.0, measured",
        "  2  [M] → B → Y: 7.0ms itself in program, 90ms each of 1.0, measured",
    ]
    against = shown(RankedContexts(tree, tuple(rank(tree, base)), 1, "old.json"))
    assert against[0] == "darc: 5 contexts on 2 paths against old.json"
    assert against[-1] == "1 more: '--top 2'"
    assert shown(RankedContexts(tree, tuple(rank(tree, tree)), 9, "me.json"))[-1] == (
        "nothing takes longer than there"
    )


def test_a_path_that_tells_nothing_new_is_no_row() -> None:
    """What the functions on the way took is told once, however many they call."""
    leaves = {f"MA{letter}": (10, 5.0) for letter in "abcdefghijklmnopqrst"}
    tree = tree_of(M=(10, 1000.0), MA=(10, 900.0), **leaves, MB=(10, 90.0))
    paths = tuple(rank(tree))
    lines = shown(RankedContexts(tree, paths, 10))
    rows = [line for line in lines if re.match(r" +\d+  ", line)]
    assert len(rows) == 2, lines
    assert "[B]" in rows[1], lines
    assert "19 paths end elsewhere below these, and have little else" in lines
    whole = table(RankedContexts(tree, paths, 10), Style(80, verbose=True)).splitlines()
    assert len([line for line in whole if re.match(r" +\d+  ", line)]) == 10, whole


def test_long_paths_fit_the_screen() -> None:
    tree = Context()
    node = tree
    for number in range(300):
        node = node.child(function(f"function_{number}"))
        node.measured = Cost(1, 1000 - number, 1000 - number)
    other = tree.child(function("other"))
    other.measured = Cost(1, 1, 1)
    lines = shown(RankedContexts(tree, tuple(rank(tree)), 10))
    (row,) = (line for line in lines if line.startswith("1 "))
    assert len(row) <= 80
    assert "█0" in row, "the hottest is in sight"
    assert [line for line in lines if "[function_299]" in line]


def test_what_is_written_is_read_again() -> None:
    stacks, _ = inferred(TABLE_1)
    tree = merged([tree_of(B=(3, 30), BE=(3, 10))], stacks)
    known = RankedContexts(
        tree, tuple(rank(tree)), 10, trace=Trace(tree, 4, 1, 5e-8, cut=2, lost=7)
    )
    written = json.loads(json_text(to_json(known)))
    again = contexts.from_json(written)
    assert [(names(node.route()), node.measured, node.inferred) for node in again.walk()] == [
        (names(node.route()), node.measured, node.inferred) for node in tree.walk()
    ]
    assert written["trace"]["lost"] == 7
    assert written["coverage"]["all"] == {"contexts": 2, "seen": 1}
    for path in written["paths"]:
        assert [written["nodes"][n]["function"] for n in path["nodes"]] == path["functions"]


@given(st.data())
def test_damaged_files_are_refused_in_one_line(data: st.DataObject) -> None:
    tree = tree_of(A=(1, 10), AB=(2, 5), C=(1, 1))
    content = to_json(RankedContexts(tree, tuple(rank(tree)), 10))
    row = data.draw(st.integers(0, 2))
    key = data.draw(st.sampled_from(("parent", "function", "module", "measured", "inferred")))
    odd = data.draw(st.one_of(st.none(), st.integers(), st.text(max_size=3), st.just({"calls": 1})))
    content["nodes"][row][key] = odd
    try:
        said = repr(contexts.from_json(content))
    except DamagedFileError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def test_a_context_with_a_foreign_name_is_shown_in_plain_ascii() -> None:
    shown = repr(Context().child(FunctionName("naïve\uda90", "m")).child(FunctionName("\x1b", "m")))
    assert shown.isascii()
    assert shown.isprintable()
