"""What kept ops correct in the paths that votes have found."""

from __future__ import annotations

import dataclasses

import pytest

from darc.analyses.corrections import (
    Corrections,
    hear_ops,
    leave_out_all,
    leave_out_passed,
    leave_out_slight,
    of_few,
    tell_blocked,
    tell_held,
    tell_others,
    tell_ready,
    tell_unheard,
)
from darc.analyses.offvotes import Rules
from darc.analyses.peakprofile import PeakProfile
from darc.collectors.learnedtargets import OTHERS
from darc.model.ftree import (
    Cause,
    Cut,
    Ending,
    Fnode,
    Function,
    NodeState,
    RootCausePath,
    Totals,
    Unclear,
)
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, Off, OffReason, Op, OpClass, Sum
from darc.model.parameters import Parameters
from darc.model.profile import bin_of
from darc.model.shares import share_of
from darc.search.descent import ended_paths
from darc.views.treeview import ending_text
from tests.unit import ops, samples
from tests.unit.ops import MS


def searched() -> tuple[Fnode, tuple[RootCausePath, ...], KeptOps]:
    """The sample's tree with its paths, of ``usleep`` and ``fill``, and kept ops of 5 ms."""
    root, paths = samples.tree()
    return root, paths, ops.of_samples(root)


def off(kept: KeptOps, start: int, end: int, reason: OffReason) -> KeptOps:
    """The same, whose threads were off their processors from ``start`` to ``end`` of each op."""
    changed = (
        dataclasses.replace(op, off=(Off(op.start + start, op.start + end, reason),))
        for op in kept.ops
    )
    return dataclasses.replace(kept, ops=tuple(changed))


def test_a_function_that_waited_in_its_own_time_was_blocked() -> None:
    root, paths, kept = searched()
    waited = off(kept, MS // 2, 3 * MS, OffReason.BLOCKED)
    assert hear_ops(paths, root, waited, Rules()) == [
        "fill has the most time in none of 10 calls that were kept whole, "
        "of the time in which they had a processor or waited for something"
    ]
    assert paths[1].nodes[-1].end is not None, "it is told, and stays"
    usleep = paths[0].nodes[-1]
    assert usleep.end is not None
    assert usleep.end.cause is Cause.BLOCKED


def test_a_kernels_function_was_blocked_for_most_of_its_own_time() -> None:
    """As below a call that could not be timed. Whatever else its task waited for is no matter."""
    root, paths, kept = searched()
    usleep, fill = (path.nodes[-1] for path in paths)
    before = usleep.end, fill.end
    tell_blocked(paths, root, kept, Rules())
    tell_blocked(paths, root, off(kept, MS // 2, MS // 2 + 1000, OffReason.BLOCKED), Rules())
    tell_blocked(paths, root, off(kept, MS // 2, 3 * MS, OffReason.READY), Rules())
    assert (usleep.end, fill.end) == before
    tell_blocked(paths, root, off(kept, MS // 2, 3 * MS, OffReason.BLOCKED), Rules())
    assert usleep.end is not None
    assert (usleep.end.cause, fill.end) == (Cause.BLOCKED, before[1])


def test_that_a_kernels_tasks_waited_for_a_processor_is_told_beside_the_paths() -> None:
    """Where an interrupt begins that, no path ends in the scheduler. Nothing is told of a little,
    nor where a path says it."""
    root, paths, kept = searched()
    ready = off(kept, MS // 8, 3 * MS, OffReason.READY)
    for slow_from, slow in ((MS, 10), (4 * MS, 0)):
        assert tell_ready(paths, root, ready, Rules(slow_from=slow_from)) == [
            "their threads were off the processor though ready for 58 % of these calls' time: "
            f"without that {slow} of 10 would be slow all the same"
        ]
    assert tell_ready(paths, root, kept, Rules(slow_from=MS)) == []
    little = off(kept, MS // 8, MS // 4, OffReason.READY)
    assert tell_ready(paths, root, little, Rules(slow_from=MS)) == []
    last = paths[0].nodes[-1]
    assert last.end is not None
    last.end_path(dataclasses.replace(last.end, cause=Cause.PREEMPTION))
    assert tell_ready(ended_paths(root), root, ready, Rules(slow_from=MS)) == []


def test_a_path_through_calls_that_were_preempted_is_no_root_cause() -> None:
    root, paths, kept = searched()
    assert hear_ops(paths, root, off(kept, MS // 4, 19 * MS // 4, OffReason.READY), Rules()) == []
    assert root.end is not None
    assert root.end.cause is Cause.PREEMPTION
    for path in paths:
        assert path.nodes[-1].end is None
        assert not path.nodes[1].root_cause
        assert path.nodes[1].state is NodeState.REJECTED


def test_calls_that_are_slow_all_the_same_keep_their_paths() -> None:
    """What computes for long is preempted: that is told, and is no answer."""
    root, paths, kept = searched()
    kept = off(kept, MS // 8, 3 * MS, OffReason.READY)
    for slow_from, stays in ((MS, True), (4 * MS, False)):
        notes = hear_ops(paths, root, kept, Rules(slow_from=slow_from))
        if stays:
            assert ended_paths(root) == paths
            assert notes[-1] == (
                "their threads were off the processor though ready for 58 % of these calls' time: "
                "without that 10 of 10 would be slow all the same"
            )
    assert root.end is not None
    assert root.end.cause is Cause.PREEMPTION


@pytest.mark.parametrize(("reason", "stays"), [(OffReason.READY, True), (OffReason.BLOCKED, False)])
def test_fast_calls_that_were_preempted_do_not_hide_what_computes(
    reason: OffReason, *, stays: bool
) -> None:
    """By their peak a call of 1.5 ms may be a fast one; without the time ready they take far less,
    but what they wait for is their own."""
    root, paths, kept = searched()
    slow = off(kept, MS // 8, 29 * MS // 8, OffReason.READY).sample(OpClass.IN_PEAK)
    fast = [
        dataclasses.replace(op, end=op.start + MS, latency=MS, kept_as=OpClass.FASTEST, sums=())
        for op in slow
    ]
    fast = [dataclasses.replace(op, off=(Off(op.start, op.end - MS // 8, reason),)) for op in fast]
    profile = PeakProfile(samples.profile({}), None)
    profile.take(
        samples.profile({bin_of(MS, 1): 300, bin_of(5 * MS, 1): 20}), 1.0, is_searching=False
    )
    assert profile.choose("last")
    both = dataclasses.replace(kept, ops=(*slow, *fast))
    Corrections(paths, root, profile, Parameters()).by_ops(both, were_watched=True, are_all=True)
    assert (root.end is None) is stays
    assert stays or (root.end is not None and root.end.cause is Cause.PREEMPTION)


def test_what_may_have_waited_for_the_debugger_alone_is_no_sure_cause() -> None:
    root, paths, _ = searched()
    last = paths[0].nodes[-1]
    last.end = Ending(Cause.BLOCKED, 20)
    tell_held(ended_paths(root))
    tell_held(ended_paths(root))  # once more: it is said once
    told = Unclear.WHO_HELD
    assert last.end == Ending(Cause.BLOCKED, 20, note=told.text, unclear=frozenset({told}))
    assert [path.is_sure for path in ended_paths(root)] == [False, True]


def test_what_votes_alone_blame_is_not_said_to_have_computed() -> None:
    """The program ended before enough calls were kept whole, say."""
    _, paths, kept = searched()
    watched = off(kept, MS // 2, 3 * MS, OffReason.BLOCKED)
    before = paths[0].nodes[-1].end
    tell_unheard(paths, watched, "too few")
    assert paths[0].nodes[-1].end is before, "the calls tell"
    few = watched.sample(OpClass.IN_PEAK)[: LEAST_FOR_ESTIMATES - 1]
    for too_few in (None, dataclasses.replace(watched, ops=few)):
        tell_unheard(ended_paths(paths[0].nodes[0]), too_few, "too few")
        usleep, fill = (path.nodes[-1].end for path in paths)
        assert usleep is not None
        assert usleep.note == "whether it ran or waited is not known: too few"
        assert ending_text("usleep", usleep) == f"cause: usleep running or waiting ({usleep.note})"
        assert fill == paths[1].ending, "a loop's calls are one cause, whatever they do"


def test_ops_that_nobody_watched_say_nothing() -> None:
    root, paths, kept = searched()
    assert hear_ops(paths, root, kept, Rules()) == []
    few = kept.sample(OpClass.IN_PEAK)[: LEAST_FOR_ESTIMATES - 1]
    watched = off(dataclasses.replace(kept, ops=few), MS // 2, 3 * MS, OffReason.BLOCKED)
    assert hear_ops(paths, root, watched, Rules()) == []
    assert ended_paths(root) == paths


def test_what_explains_next_to_nothing_is_left_out_up_to_where_paths_part() -> None:
    root, _, kept = searched()
    parse = root.find("1.1")
    kept = dataclasses.replace(kept, compared=kept.compared | {parse})
    samples.decide(parse, 20, 900)
    parse.end = Ending(Cause.FUNCTION, 20)
    before = ended_paths(root)
    (note,) = leave_out_slight(before, kept)
    assert note == (
        "parse0 was chosen by votes, but explains 0 % of the peak's time, another cause 60 %: "
        "it is no root cause"
    )
    assert [path.nodes[-1] for path in before if path.nodes[-1].end is None] == [parse]
    assert (parse.root_cause, parse.state) == (False, NodeState.REJECTED)
    assert root.find("1.7").root_cause


def test_a_path_that_slow_calls_pass_through_in_nanoseconds_is_left_out_beside_others() -> None:
    root, paths, kept = searched()
    passed, other = paths
    name, least = passed.nodes[-1].function.name, 64 * 100
    for path in paths:
        for node in path.nodes[1:]:
            node.totals = Totals(20, 20, 20 * least, 20 * least)
    passed.nodes[-1].totals = Totals(20, 20, 20 * 99, 20 * 99)
    assert leave_out_passed(paths, kept, least) == [], "the kept ops know what it takes"
    few = dataclasses.replace(kept, ops=kept.ops[:1])
    assert leave_out_passed([passed], few, least) == [], "there would be nothing left"
    (note,) = leave_out_passed(paths, few, least)
    assert name in note
    assert note.endswith("chosen by votes of calls that take next to nothing there: no root cause")
    assert ended_paths(root) == (other,)
    assert leave_out_passed(paths[1:], None, least) == []


def test_a_path_of_which_kept_ops_show_next_to_nothing_is_left_out_beside_an_unknown_one() -> None:
    root, _, kept = searched()
    parse = root.find("1.1")
    unknown = ended_paths(root)[0]
    kept = dataclasses.replace(kept, compared=frozenset({root, parse}))
    samples.decide(parse, 20, 900)
    parse.end = Ending(Cause.FUNCTION, 20)
    before = [path for path in ended_paths(root) if path.nodes[-1] in (parse, unknown.nodes[-1])]
    if share_of(unknown, kept) is not None:
        kept = dataclasses.replace(
            kept,
            ops=tuple(dataclasses.replace(op, sums=(), spans=()) for op in kept.ops),
        )
    assert share_of(unknown, kept) is None
    (note,) = leave_out_passed(before, kept, 64)
    assert note.startswith("parse0 was chosen by votes of calls that take next to nothing")


def test_what_takes_a_64th_of_the_fastest_call_is_not_passed_through() -> None:
    _, paths, kept = searched()
    least = 64 * 100
    for path in paths:
        for node in path.nodes[1:]:
            node.totals = Totals(20, 20, 20 * 100, 20 * 100)
    paths[0].nodes[-1].totals = Totals(LEAST_FOR_ESTIMATES - 1, 1, 1, 1)  # hardly looked at
    few = dataclasses.replace(kept, ops=())
    assert leave_out_passed(paths, few, least) == []


def test_where_a_rejected_path_parts_from_one_that_goes_on_nothing_else_is_left_out() -> None:
    root, paths, kept = searched()
    flush = root.find("1.7")
    goes_on = flush.add_child(samples.function("sync"), samples.site(50))
    samples.decide(goes_on, 20, 900)
    parse = root.find("1.1")
    samples.decide(parse, 20, 900)
    parse.end = Ending(Cause.FUNCTION, 20)
    for path in paths:
        path.nodes[-1].end = None
    fill = paths[1].nodes[-1]
    short = root.find("1.7.1")
    short.end = Ending(Cause.FUNCTION, 20)
    fill.root_cause = paths[0].nodes[-1].root_cause = False
    kept = dataclasses.replace(kept, ops=tuple(with_sum(op, short, 800) for op in kept.ops))
    assert leave_out_all(ended_paths(root), kept, 2000, by_longest=False)
    assert ended_paths(root) == ()
    assert not short.root_cause
    assert flush.root_cause, "it is on a way that has not ended"


def with_sum(op: Op, node: Fnode, cycles: int) -> Op:
    """The same op, in which calls of ``node`` took so long."""
    others = [total for total in op.sums if total.node is not node]
    return dataclasses.replace(op, sums=(*others, Sum(node, 1, cycles, cycles)))


def found_alone(*names: str) -> tuple[Fnode, KeptOps]:
    """The sample's tree, where the search has ended at these callees of f0."""
    root, paths, kept = searched()
    for path in paths:
        path.nodes[-1].end = None
        for node in path.nodes[1:]:
            node.root_cause = False
    for child in root.children:
        if child.function.name in names:
            samples.decide(child, 20, 900)
            child.end = Ending(Cause.FUNCTION, 20)
    return root, kept


def test_what_explains_next_to_nothing_alone_is_no_root_cause_either() -> None:
    root, kept = found_alone("parse0")
    assert leave_out_all(ended_paths(root), kept, 2000, by_longest=False) == [
        "parse0 was chosen by votes, but explains 0 % of the peak's time: it is no root cause"
    ]
    assert ended_paths(root) == ()
    assert (root.children[0].root_cause, root.children[0].state) == (False, NodeState.REJECTED)


def test_several_that_explain_next_to_nothing_are_named() -> None:
    names = [f"parse{number}" for number in range(5)]
    told = "were chosen by votes, but together explain 0 % of the peak's time: none is a root cause"
    for count, words in ((2, "parse0 and parse1"), (5, "parse0, parse1, parse2 and 2 more")):
        root, kept = found_alone(*names[:count])
        (note,) = leave_out_all(ended_paths(root), kept, 2000, by_longest=False)
        assert note == f"{words} {told}"


def test_what_explains_the_smaller_part_stays_and_is_told() -> None:
    root, paths, kept = searched()
    paths[0].nodes[-1].end = None
    (fill,) = ended_paths(root)
    assert leave_out_all([fill], kept, 2000, by_longest=False) == [
        "flush → fill explains 10 % of the peak's time: most of it has other causes"
    ]
    assert ended_paths(root) == (fill,)


def test_a_path_is_named_by_its_ends() -> None:
    _, paths, kept = searched()
    waited = off(kept, 0, 5 * MS, OffReason.STOPPED)
    (note,) = leave_out_all(paths[:1], waited, -2 * MS, by_longest=False)
    assert note.startswith("flush → … → usleep was chosen by votes, but explains 0 % of ")


def test_what_explains_most_of_it_stays_without_a_word() -> None:
    root, paths, kept = searched()
    assert leave_out_all(paths, kept, 2000, by_longest=False) == []
    assert ended_paths(root) == paths


def test_callees_that_were_not_timed_in_the_ops_dispute_nothing() -> None:
    """Of a search that is cut short the ops are those of the level that it had come to."""
    root, paths, kept = searched()
    level = root.find("1.7.1").children
    of_level = dataclasses.replace(
        kept,
        compared=frozenset({root.find("1.7.1")}),
        ops=tuple(
            dataclasses.replace(
                op,
                sums=tuple(total for total in op.sums if total.node in level),
                spans=tuple(span for span in op.spans if span.node in level),
            )
            for op in kept.ops
        ),
    )
    waited = off(of_level, MS, 2 * MS, OffReason.BLOCKED)
    assert hear_ops(paths, root, waited, Rules()) == []
    assert ended_paths(root) == paths
    ready = off(of_level, MS // 4, 19 * MS // 4, OffReason.READY)
    assert hear_ops(paths, root, ready, Rules()) == []
    assert root.end is not None, "what f0 takes is known all the same"
    assert root.end.cause is Cause.PREEMPTION
    assert [path.nodes for path in ended_paths(root)] == [(root,)]


def test_other_targets_are_told_once() -> None:
    root, paths, _ = searched()
    function = Function(
        name="others of 0x1344", symbol=OTHERS, module="mixture", address=0, offset=0
    )
    samples.decide(paths[1].nodes[1].add_child(function, samples.site(60)), 7, 900, False)
    tell_others(paths)
    told = "others of 0x1344, more than could be told apart, won in 7 of 20 calls"
    assert [path.ending.note for path in ended_paths(root)] == [told, told]
    tell_others(ended_paths(root))
    assert [path.ending.note for path in ended_paths(root)] == [told, told]


def test_other_targets_that_never_won_are_told_of_together() -> None:
    root, paths, _ = searched()
    for at, name in enumerate(["others of 0x1344", "others of 0x1388"]):
        function = Function(name=name, symbol=OTHERS, module="mixture", address=0, offset=0)
        samples.decide(paths[0].nodes[at].add_child(function, samples.site(60)), 0, 20, False)
    tell_others(paths[:1])
    told = (
        "others of 0x1344 and others of 0x1388, more than could be told apart, won in 0 of 20 calls"
    )
    assert ended_paths(root)[0].ending.note == told


def test_where_the_depth_was_reached_nothing_else_is_told() -> None:
    root, paths, _ = searched()
    last = paths[0].nodes[-1]
    last.end = dataclasses.replace(paths[0].ending, cut=Cut.DEPTH)
    function = Function(
        name="others of 0x1344", symbol=OTHERS, module="mixture", address=0, offset=0
    )
    samples.decide(paths[0].nodes[2].add_child(function, samples.site(60)), 7, 900, False)
    tell_others(ended_paths(root))
    assert last.end.remark == Cut.DEPTH.text


def test_many_functions_that_few_calls_speak_for_are_one_line() -> None:
    where = (
        "of 19 calls that were kept whole, of the time in which they had a processor or waited for "
        "something"
    )
    few = {"f": 2, "g": 0}
    assert of_few(few, 19) == [
        f"f has the most time in only 2 {where}",
        f"g has the most time in none {where}",
    ]
    many = {f"f{number}": number % 3 for number in range(21)}
    assert of_few(many, 19) == [f"f0, f1, f2 and 18 more have the most time in 2 at most {where}"]
