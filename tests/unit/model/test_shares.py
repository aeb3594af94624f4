"""What a root cause explains, and what slow ops do that fast ones do not: from kept ops."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darc.model.contrast import Side, contrast
from darc.model.errors import UsageError
from darc.model.ftree import Cause, Decision, Ending, Fnode, RootCausePath, Totals
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OffReason, OpClass, Sum
from darc.model.parameters import Probes
from darc.model.peaks import find_peaks
from darc.model.shares import (
    SLIGHT,
    Explained,
    Without,
    explain,
    explained_together,
    is_minor,
    led_there,
    most_time,
    slight,
    voted,
    weigh,
    weigh_all,
)
from darc.model.snapshot import Snapshot
from tests.unit import ops, samples
from tests.unit.ops import MS
from tests.unit.watchedops import NODES, sides, watched


def test_own_code_has_a_share_and_no_without() -> None:
    snapshot = ops.snapshot()
    found = explain(ops.path_of(snapshot, "usleep"), snapshot)
    assert found.ops == 10
    assert found.share == pytest.approx((3 * MS - 100) / (5 * MS))
    assert found.without is None


def test_own_time_is_without_the_callees() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    flush = snapshot.ftree.find("1.7")
    path = RootCausePath((snapshot.ftree, flush), Ending(Cause.FUNCTION, 20))
    assert explain(path, snapshot).share == pytest.approx(0.0, abs=0.001)
    whole = RootCausePath((snapshot.ftree,), Ending(Cause.FUNCTION, 20))
    assert explain(whole, snapshot).share == pytest.approx(0.2, abs=0.001)


def test_where_a_path_may_go_no_deeper_the_whole_call_counts() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    flush = snapshot.ftree.find("1.7")
    flush.decision = None
    path = RootCausePath((snapshot.ftree, flush), Ending(Cause.FUNCTION, 20, note="cut"))
    assert explain(path, snapshot).share == pytest.approx(0.8)


def test_a_loop_is_left_out_by_its_sums() -> None:
    snapshot = ops.snapshot()
    found = explain(ops.path_of(snapshot, "fill"), snapshot)
    assert found.share == pytest.approx(0.1)
    assert found.without == Without(23, 23, 3)


def test_two_causes_explain_their_sum() -> None:
    snapshot = ops.snapshot()
    both = [ops.path_of(snapshot, name) for name in ("usleep", "fill")]
    apart = [explain(path, snapshot).share or 0.0 for path in both]
    assert explained_together(both, snapshot) == pytest.approx(sum(apart))
    assert sum(apart) == pytest.approx(0.7, abs=0.001)


def test_a_cause_in_another_one_is_not_counted_twice() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    whole = RootCausePath((snapshot.ftree, snapshot.ftree.find("1.7")), Ending(Cause.BLOCKED, 20))
    inner = ops.path_of(snapshot, "usleep")
    assert explained_together([inner, whole], snapshot) == pytest.approx(0.8)


def test_without_the_cause_calls_may_lie_in_another_peak() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    path = RootCausePath((snapshot.ftree, snapshot.ftree.find("1.7")), Ending(Cause.BLOCKED, 20))
    found = explain(path, snapshot)
    assert found.share == pytest.approx(0.8)
    assert found.without == Without(21, 21, None)
    assert snapshot.ops is not None
    fewer = [dataclasses.replace(op, latency=4 * MS + 2100) for op in snapshot.ops.ops]
    changed = dataclasses.replace(snapshot.ops, ops=tuple(fewer))
    assert explain(path, dataclasses.replace(snapshot, ops=changed)).without == Without(11, 11, 1)


def test_few_ops_tell_nothing() -> None:
    made = samples.snapshot()
    assert made.ftree is not None
    few = ops.of_samples(made.ftree, LEAST_FOR_ESTIMATES - 1)
    snapshot = dataclasses.replace(made, ops=few)
    for path in snapshot.paths:
        assert explain(path, snapshot) == Explained(LEAST_FOR_ESTIMATES - 1)
        assert explain(path, made) == Explained(0)


def untimed(kept: KeptOps) -> KeptOps:
    """The same where no call below f0 was timed."""
    bare = tuple(dataclasses.replace(op, sums=(), spans=()) for op in kept.ops)
    return dataclasses.replace(kept, ops=bare, compared=frozenset())


def test_what_was_not_timed_has_no_share() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    kept = untimed(snapshot.ops)
    for path in snapshot.paths:
        assert explain(path, dataclasses.replace(snapshot, ops=kept)) == Explained(10)


@pytest.mark.parametrize("compared", [(), ("1.7.1.1",)])
def test_what_was_timed_has_a_share_though_its_caller_was_decided_on_before(
    compared: tuple[str, ...],
) -> None:
    """The last round is of functions that are deep in the tree: their callers are followed, and not
    timed."""
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    assert snapshot.ftree is not None
    nodes = frozenset(map(snapshot.ftree.find, compared))
    kept = dataclasses.replace(snapshot.ops, compared=nodes)
    found = explain(ops.path_of(snapshot, "usleep"), dataclasses.replace(snapshot, ops=kept))
    assert found.share == pytest.approx(0.6, abs=0.001)


def test_a_path_that_explains_next_to_nothing_is_told_beside_one_that_does() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    assert snapshot.ops is not None
    usleep, fill = (ops.path_of(snapshot, name) for name in ("usleep", "fill"))
    flush = RootCausePath((snapshot.ftree, snapshot.ftree.find("1.7")), usleep.ending)
    assert slight((usleep, fill), snapshot.ops) == []  # 60 % and 10 %
    ((path, share, most),) = slight((usleep, flush, fill), snapshot.ops)
    assert path == flush
    assert share * SLIGHT < most == pytest.approx((3 * MS - 100) / (5 * MS))
    assert slight((usleep, flush, fill), untimed(snapshot.ops)) == []


def test_preemption_is_what_the_switches_say() -> None:
    snapshot = watched((0, MS, OffReason.READY), (2 * MS, 3 * MS, OffReason.BLOCKED),
                       (4 * MS, 5 * MS, OffReason.READY))  # fmt: skip
    assert snapshot.ftree is not None
    found = explain(RootCausePath((snapshot.ftree,), Ending(Cause.PREEMPTION, 20)), snapshot)
    assert found.share == pytest.approx(0.4)
    assert found.without == Without(22, 22, None)


def test_a_wait_is_what_of_its_call_was_off_the_processor() -> None:
    snapshot = watched((MS, 2 * MS, OffReason.BLOCKED), (2 * MS, 3 * MS, OffReason.READY))
    path = ops.path_of(snapshot, "usleep")
    blocked = dataclasses.replace(path, ending=Ending(Cause.BLOCKED, 20))
    assert explain(blocked, snapshot).share == pytest.approx(0.2)


def test_what_others_took_is_not_the_functions() -> None:
    half = MS // 2
    snapshot = watched((half, half + MS, OffReason.READY), (2 * MS, 3 * MS, OffReason.STOPPED))
    found = explain(ops.path_of(snapshot, "usleep"), snapshot)
    assert found.share == pytest.approx(1 / 4, abs=0.001)  # of what was left of the op


def parse_of(snapshot: Snapshot) -> tuple[RootCausePath, KeptOps]:
    """A path that explains nothing, and ops that tell so."""
    assert snapshot.ftree is not None
    assert snapshot.ops is not None
    parse = snapshot.ftree.find("1.1")
    return RootCausePath((snapshot.ftree, parse), Ending(Cause.FUNCTION, 20)), snapshot.ops


def test_causes_are_weighed_by_what_slow_calls_take_beyond_fast_ones() -> None:
    snapshot = ops.snapshot()
    usleep = ops.path_of(snapshot, "usleep")
    assert snapshot.ops is not None
    found = weigh([usleep], snapshot.ops, 1.0)
    assert found is not None
    assert found.share == pytest.approx(0.6, abs=0.001) == pytest.approx(found.part, abs=0.001)
    assert (found.touched, found.is_minor, found.is_next_to_nothing) == (1.0, False, False)
    found = weigh([usleep], snapshot.ops, 2 * MS)
    assert found is not None
    assert found.part == pytest.approx(1.0, abs=0.001)
    assert weigh([usleep], snapshot.ops, 5 * MS) is None, "nothing is left to explain"


def test_next_to_nothing() -> None:
    path, kept = parse_of(ops.snapshot())
    found = weigh([path], kept, 2000)
    assert found is not None
    assert found.is_next_to_nothing
    untimed = tuple(dataclasses.replace(op, sums=()) for op in kept.ops)
    assert weigh([path], dataclasses.replace(kept, ops=untimed, compared=frozenset()), 2000) is None
    assert weigh([path], None, 2000) is None
    assert weigh([], kept, 2000) is None


def test_a_few_calls_that_take_very_long_are_not_all_that_is_to_explain() -> None:
    snapshot = ops.snapshot()
    usleep = ops.path_of(snapshot, "usleep")
    assert snapshot.ops is not None
    longer = [
        dataclasses.replace(op, latency=op.latency * (100 if number < 3 else 1))
        for number, op in enumerate(snapshot.ops.ops)
    ]
    found = weigh([usleep], dataclasses.replace(snapshot.ops, ops=tuple(longer)), 2000)
    assert found is not None
    assert found.part < 0.02
    assert not found.is_next_to_nothing
    assert found.is_minor, "but it is told"


def test_what_most_of_the_time_is_in_is_no_other_cause() -> None:
    """Less than half of it is the cause's own where others had the processor in the midst of it."""
    snapshot = watched((MS, 22 * MS // 10, OffReason.READY))
    usleep, fill = (ops.path_of(snapshot, name) for name in ("usleep", "fill"))
    nodes, most = most_time(snapshot)
    assert nodes == usleep.nodes
    assert most == pytest.approx(0.6, abs=0.001)
    found = weigh_all(dataclasses.replace(snapshot, paths=(usleep,)))
    assert found is not None
    assert found.is_minor
    assert found.share == pytest.approx(0.36, abs=0.001)
    assert not is_minor(dataclasses.replace(snapshot, paths=(usleep,)))
    assert is_minor(dataclasses.replace(snapshot, paths=(fill,)))
    root = usleep.nodes[0]
    itself = RootCausePath((root,), Ending(Cause.FUNCTION, 20))
    assert is_minor(dataclasses.replace(snapshot, paths=(itself,))), "what it calls has the time"


def test_time_that_the_debugger_held_them_is_no_calls() -> None:
    """Neither where most of the time was, nor what the longest calls are."""
    held = watched((MS, 22 * MS // 10, OffReason.STOPPED))
    nodes, most = most_time(held)
    assert nodes == ops.path_of(held, "usleep").nodes
    assert most == pytest.approx(1.8 / 3.8, abs=0.001)
    assert held.ftree is not None
    root = RootCausePath((held.ftree,), Ending(Cause.STOPPED, 20))
    assert explain(root, held).share == pytest.approx(1.2 / 5, abs=0.001)
    assert explained_together([root], held) == pytest.approx(1.2 / 5, abs=0.001)


def test_time_that_others_had_the_processor_is_nothing_to_explain() -> None:
    path, kept = parse_of(watched((MS, 5 * MS, OffReason.READY)))
    assert weigh([path], kept, MS) is None
    preempted = watched((0, 4 * MS, OffReason.READY))
    assert preempted.ftree is not None
    root = RootCausePath((preempted.ftree,), Ending(Cause.PREEMPTION, 20))
    found = weigh([root], preempted.ops, 2000)
    assert found is not None
    assert found.part == pytest.approx(0.8, abs=0.001)


@pytest.mark.parametrize(("ran", "is_told"), [(MS // 4, True), (MS, False)])
def test_that_short_calls_waited_for_a_processor_is_most_of_their_time(
    ran: int, *, is_told: bool
) -> None:
    """Unlike calls that are preempted as they compute for longer than a turn of the processor."""
    snapshot = watched((ran, 4 * ran, OffReason.READY))
    assert snapshot.ops is not None
    assert snapshot.ftree is not None
    short = [
        dataclasses.replace(op, latency=4 * ran, end=op.start + 4 * ran, sums=(), spans=())
        for op in snapshot.ops.ops
    ]
    kept = dataclasses.replace(snapshot.ops, ops=tuple(short))
    root = RootCausePath((snapshot.ftree,), Ending(Cause.FUNCTION, 20))
    little = dataclasses.replace(snapshot, ops=kept, paths=(root,))
    found = weigh_all(little)
    assert found is not None
    assert found.share == pytest.approx(0.25, abs=0.001)
    assert found.is_minor == is_told
    assert is_minor(little) == is_told


def test_of_a_loop_of_short_calls_its_caller_is_a_part() -> None:
    snapshot = ops.snapshot()
    found = weigh([ops.path_of(snapshot, "fill")], snapshot.ops, 2000)
    assert found is not None
    assert found.share == pytest.approx(0.1)
    assert found.part == pytest.approx(0.2, abs=0.001)


def test_by_the_papers_rule_a_functions_own_time_is_not_known_of_ops() -> None:
    snapshot = ops.snapshot()
    assert snapshot.ftree is not None
    flush = snapshot.ftree.find("1.7")
    own = RootCausePath((snapshot.ftree, flush), Ending(Cause.FUNCTION, 20))
    assert weigh([own], snapshot.ops, 2000) is not None
    assert weigh([own], snapshot.ops, 2000, by_longest=True) is None
    usleep = ops.path_of(snapshot, "usleep")  # all that it takes
    assert weigh([usleep], snapshot.ops, 2000, by_longest=True) is not None


def test_interrupts_of_one_handler_count_wherever_they_came() -> None:
    snapshot = ops.snapshot()
    root = snapshot.ftree
    assert root is not None
    assert snapshot.ops is not None
    handler = samples.function("sysvec_apic_timer_interrupt", "vmlinux", 0x900)
    nodes = [root.find(i).add_child(handler, ops.indirect_site()) for i in ("1.7", "1.7.1")]
    kept = dataclasses.replace(
        snapshot.ops,
        ops=tuple(
            dataclasses.replace(op, sums=(*op.sums, *(Sum(n, 2, MS // 2, MS // 4) for n in nodes)))
            for op in snapshot.ops.ops
        ),
    )
    path = RootCausePath((root, root.find("1.7"), nodes[0]), Ending(Cause.INTERRUPT, 20))
    assert explain(path, dataclasses.replace(snapshot, ops=kept)).share == pytest.approx(0.2)


def test_interrupts_that_came_where_the_kept_ops_tell_nothing_of_them_have_no_share() -> None:
    """They were kept as less was timed: what is left would be taken for all."""
    snapshot = ops.snapshot()
    root = snapshot.ftree
    assert root is not None
    assert snapshot.ops is not None
    handler = samples.function("vring_interrupt", "virtio_ring.ko", 0x900)
    own, below = (root.find(i).add_child(handler, ops.indirect_site()) for i in ("1", "1.7"))
    below.called = Totals(20 * MS, 19)
    path = RootCausePath((root, own), Ending(Cause.INTERRUPT, 20))
    for compared, share in (({root}, None), ({root, root.find("1.7")}, 0.0)):
        kept = dataclasses.replace(snapshot.ops, compared=frozenset(compared))
        assert explain(path, dataclasses.replace(snapshot, ops=kept)).share == share


@settings(max_examples=40)
@given(
    ops.kept_ops(NODES),
    st.sampled_from(Cause),
    st.sampled_from(NODES),
    st.dictionaries(st.integers(0, 63), st.integers(1, 1000), min_size=1, max_size=8),
)
def test_shares_are_parts(kept: KeptOps, cause: Cause, node: Fnode, bins: dict[int, int]) -> None:
    profile = samples.profile(bins)
    snapshot = samples.snapshot(ops=kept, profile=profile, peaks=find_peaks(bins))
    callee = "memcpy" if cause is Cause.LOOP else None
    path = RootCausePath(
        tuple(node.route()),
        Ending(cause=cause, maxcount=1, loop_callee=callee, loop_calls=2.0, loop_share=0.5),
    )
    found = explain(path, snapshot)
    sample = kept.sample(OpClass.IN_PEAK)
    counted = [op for op in sample if op.off is not None] if cause.is_of_no_call else []
    assert found.ops == len(counted or sample)
    if found.ops < LEAST_FOR_ESTIMATES:
        assert found.share is None
        assert found.without is None
    if found.share is None:
        assert found.without is None
        return
    assert 0 <= found.share <= 1
    if found.without is not None:
        longest = max(op.latency for op in sample).bit_length() - 1
        assert 0 <= found.without.first_bin <= found.without.last_bin <= longest
        assert cause is not Cause.FUNCTION


# ------------------------------------------------------------------------------ compare


def test_the_largest_difference_comes_first() -> None:
    made = contrast(*sides(ops.snapshot()))
    names = [(row.node.function.name, row.is_own) for row in made.calls]
    assert names[:3] == [("flush", False), ("write_out", False), ("usleep", False)]
    assert names[-1] == ("parse0", False)
    assert ("handle", True) in names
    flush, parse = made.calls[0], made.calls[-1]
    assert flush.first is not None
    assert flush.second is not None
    assert (flush.first.time, flush.first.calls) == (4 * MS, 1)
    assert (flush.second.time, flush.second.calls) == (0, 0)
    assert parse.difference == 700 - 900
    assert made.latency == (5 * MS, 1600)
    assert made.off is None


def test_time_off_the_processor_is_compared_by_reason() -> None:
    made = contrast(*sides(watched((0, 800, OffReason.READY), (900, 3 * MS, OffReason.BLOCKED))))
    assert made.off is not None
    assert [row.reason for row in made.off] == [OffReason.BLOCKED, OffReason.READY]
    assert made.off[0].second == 700  # not what lies behind the op's end
    assert made.off[1].first == made.off[1].second == 800


def test_calls_of_two_sessions_are_the_same_by_their_functions() -> None:
    one, other = sides(ops.snapshot())[0], sides(ops.snapshot())[0]
    assert one.ops[0].sums[0].node is not other.ops[0].sums[0].node
    kept = dataclasses.replace(other.kept, hz=2 * one.kept.hz)
    made = contrast(one, dataclasses.replace(other, kept=kept))
    for row in made.calls:
        assert row.first is not None
        assert row.second is not None
        assert row.second.time == row.first.time / 2
        assert row.second.calls == row.first.calls


def test_what_one_session_did_not_time_is_not_compared() -> None:
    one, other = sides(ops.snapshot())
    nothing = Side("old.json", other.ops, dataclasses.replace(other.kept, compared=frozenset()))
    made = contrast(one, nothing)
    flush = next(row for row in made.calls if row.node.function.name == "flush")
    assert flush.second is None
    assert flush.difference is None
    assert made.calls[0].difference is not None


def test_no_ops_cannot_be_compared() -> None:
    one, other = sides(ops.snapshot())
    with pytest.raises(UsageError, match="no op of peak 1 is kept"):
        contrast(one, dataclasses.replace(other, ops=()))


@settings(max_examples=40)
@given(ops.kept_ops(NODES))
def test_a_side_does_not_differ_from_itself(kept: KeptOps) -> None:
    side = Side.of("peak 3", kept, OpClass.IN_PEAK)
    if not side.ops:
        return
    made = contrast(side, side)
    assert all(row.difference == 0 for row in made.calls)
    assert all(row.first == row.second for row in made.off or ())


def voted_for(votes: int, ops_kept: bool = False, **changes: Any) -> Snapshot:
    """One path, to ``usleep``, that so many of twenty votes led to at its first call."""
    snapshot = ops.snapshot()
    path = ops.path_of(snapshot, "usleep")
    for above, node in pairwise(path.nodes):
        above.decision, node.maxcount = Decision(20, 20, 0), 20
    path.nodes[1].maxcount = votes
    assert snapshot.ops is not None
    kept = snapshot.ops if ops_kept else dataclasses.replace(snapshot.ops, ops=())
    return dataclasses.replace(snapshot, paths=(path,), ops=kept, **changes)


def test_what_no_kept_op_tells_of_a_path_its_votes_bound() -> None:
    assert voted(voted_for(20).paths[0]) == 1.0
    assert led_there(voted_for(9)) == pytest.approx(0.45)
    assert is_minor(voted_for(9))
    assert not is_minor(voted_for(10))
    assert led_there(voted_for(9, ops_kept=True)) is None, "they know better"
    too_late = dataclasses.replace(voted_for(9), ops=None)
    assert led_there(too_late) == pytest.approx(0.45), "time was up before one was kept"
    assert is_minor(too_late)
    by_breakpoints = dataclasses.replace(too_late, probes=Probes.BREAKPOINT)
    assert not is_minor(by_breakpoints), "none was to be kept"
    by_hand = dataclasses.replace(voted_for(9).parameters, auto=False)
    assert not is_minor(voted_for(9, parameters=by_hand)), "the user has chosen it"


def test_votes_of_paths_without_a_share_are_added_to_the_shares_of_others() -> None:
    snapshot = ops.snapshot()
    path = ops.path_of(snapshot, "usleep")
    for above, node in pairwise(path.nodes):
        above.decision, node.maxcount = Decision(20, 20, 0), 20
    path.nodes[1].maxcount = 8
    unseen = path.nodes[-1].add_child(samples.function("unseen"), samples.site(60))
    other = RootCausePath((*path.nodes, unseen), Ending(Cause.FUNCTION, 20))
    fill = ops.path_of(snapshot, "fill")
    both = dataclasses.replace(snapshot, paths=(fill, other))
    share = explain(fill, both).share
    assert share is not None
    assert explain(other, both).share is None
    assert led_there(both) == pytest.approx(share + 0.4)
