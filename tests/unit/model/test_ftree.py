"""The ftree."""

import pytest

from darc.model.errors import NotFoundError
from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Decision,
    Ending,
    Fnode,
    Function,
    NodeState,
    Totals,
)


def function(name: str) -> Function:
    return Function(name=name, symbol=name, module="prog", address=0x1000, offset=0x1000)


def site(address: int) -> CallSite:
    return CallSite(address, CallKind.DIRECT, "prog", address)


@pytest.fixture
def tree() -> Fnode:
    root = Fnode(function("f0"))
    a = root.add_child(function("a"), site(1))
    root.add_child(function("a"), site(2))
    a.add_child(function("b"), site(3)).add_child(function("a"), site(4))
    return root


def test_two_call_sites_of_one_function_are_two_nodes(tree: Fnode) -> None:
    first, second = tree.children
    assert first.function == second.function
    assert first != second
    assert (first.id, second.id) == ("1.1", "1.2")


def test_ids_and_depths_follow_the_path(tree: Fnode) -> None:
    assert [(n.id, n.depth) for n in tree.walk()] == [
        ("1", 1),
        ("1.1", 2),
        ("1.1.1", 3),
        ("1.1.1.1", 4),
        ("1.2", 2),
    ]


def test_a_route_begins_at_f0(tree: Fnode) -> None:
    deep = tree.find("1.1.1.1")
    assert [n.function.name for n in deep.route()] == ["f0", "a", "b", "a"]
    assert tree.route() == [tree]


def test_a_copy_is_a_tree_of_its_own(tree: Fnode) -> None:
    tree.children[0].maxcount = 3
    copies = tree.copied()
    made = copies[tree]
    assert [(n.id, n.function, n.site) for n in made.walk()] == [
        (n.id, n.function, n.site) for n in tree.walk()
    ]
    assert [copies[n] for n in tree.walk()] == list(made.walk())
    assert made.find("1.1.1.1").route()[0] is made
    tree.children[0].maxcount = 4
    tree.children[0].add_child(function("c"), site(5))
    assert made.children[0].maxcount == 3
    assert len(made.children[0].children) == 1


def test_find_says_what_to_do_when_there_is_no_such_node(tree: Fnode) -> None:
    with pytest.raises(NotFoundError, match=r"no fnode 1\.3; 'darc tree'"):
        tree.find("1.3")


def test_causes_are_the_words_of_the_report() -> None:
    assert [c.value for c in Cause] == [
        "function",
        "loop",
        "block",
        "interrupt",
        "preemption",
        "stopped",
        "blocked",
        "untold",
    ]


def test_mean_latency_of_a_call() -> None:
    assert Totals().mean_cycles == 0
    assert Totals(ops=2, calls=4, sum=402, max_sum=300).mean_cycles == 100


@pytest.mark.parametrize("name", ["f\uda90", "caf\udce9", "naïve", "a\x1b[2J\nb"])
def test_a_node_with_a_foreign_name_is_shown_in_plain_ascii(name: str) -> None:
    node = Fnode(function(name))
    shown = repr(node) + repr([node]) + repr(node.function)
    assert shown.encode()
    assert repr(node).isascii()
    assert repr(node).isprintable()


# ---------------------------------------------------------------------- what becomes of a node

ENDING = Ending(Cause.FUNCTION, 7)
DECISION = Decision(20, 20, 3, True)
COUNTED = Totals(20, 40, 4000, 150)


def states(node: Fnode) -> list[NodeState]:
    return [below.state for below in node.walk()]


def test_what_loses_is_rejected_with_all_below_it(tree: Fnode) -> None:
    tree.win()
    won, lost = tree.children
    won.win()
    lost.win()
    lost.lose()
    assert (won.root_cause, lost.root_cause) == (True, False)
    won.reject()
    assert set(states(won)) == set(states(lost)) == {NodeState.REJECTED}
    assert won.root_cause, "what is rejected alone was never chosen in this look, or before it"
    assert tree.state is NodeState.CANDIDATE


def test_a_node_is_opened_and_closed(tree: Fnode) -> None:
    tree.end_path(ENDING)
    tree.decide(DECISION)
    assert (tree.state, tree.decision, tree.end) == (NodeState.ROOT_CAUSE, DECISION, ENDING)
    tree.open()
    assert (tree.state, tree.decision, tree.end) == (NodeState.ANALYSIS, None, None)
    tree.close()
    assert (tree.state, tree.decision) == (NodeState.ROOT_CAUSE, None)
    tree.await_decision()
    assert tree.state is NodeState.CANDIDATE
    tree.end_as_before(ENDING, None)
    assert (tree.state, tree.decision, tree.end) == (NodeState.ROOT_CAUSE, None, ENDING)


def test_what_is_taken_back_leaves_alone_what_is_below_it(tree: Fnode) -> None:
    first = tree.children[0]
    first.win()
    first.end_path(ENDING)
    first.take_back()
    assert (first.root_cause, first.end) == (False, None)
    assert states(first) == [NodeState.REJECTED, NodeState.CANDIDATE, NodeState.CANDIDATE]


def test_a_node_is_counted_beside_its_siblings_and_with_its_callees(tree: Fnode) -> None:
    more = Totals(30, 60, 9000, 300)
    tree.voted(5, COUNTED)
    assert (tree.maxcount, tree.totals, tree.called) == (5, COUNTED, COUNTED)
    tree.compared(3, more)
    assert (tree.self_maxcount, tree.totals, tree.called) == (3, more, COUNTED)
    assert tree.maxcount == 5


def test_a_node_takes_over_what_was_known_of_another_one(tree: Fnode) -> None:
    """Not what it calls: that is another tree's."""
    old = Fnode(function("old"))
    old.win()
    old.voted(5, COUNTED)
    old.compared(3, COUNTED)
    old.decide(DECISION)
    old.end_path(ENDING)
    tree.expect_more()
    tree.take_over(old)
    assert (tree.root_cause, tree.maxcount, tree.self_maxcount) == (True, 5, 3)
    assert (tree.state, tree.decision, tree.end) == (NodeState.ROOT_CAUSE, DECISION, ENDING)
    assert (tree.totals, tree.called, tree.has_unknown_callees) == (COUNTED, COUNTED, True)
    assert (tree.function.name, len(tree.children)) == ("f0", 2)


def test_a_child_may_have_a_number_of_its_own(tree: Fnode) -> None:
    assert tree.add_child(function("c"), site(9), number=7).id == "1.7"
    assert tree.add_child(function("d"), site(10)).id == "1.4"
