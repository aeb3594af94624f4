"""Votes of whole ops, on time that is the program's own: made-up ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.analyses.offvotes import UNTOLD_NOTE, Rules, conclude, own_time, votes
from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Cut,
    Ending,
    Fnode,
    Function,
    RootCausePath,
    Unclear,
)
from darc.model.offtimes import OffTimes, watched
from darc.model.ops import KeptOps, Off, OffReason, Op, OpClass, Span, Sum
from darc.model.status import Status
from darc.search.contest import Vote
from darc.search.descent import outcome
from darc.search.loops import CallTimes, contributions

RULES = Rules()
BLOCKED, READY = OffReason.BLOCKED, OffReason.READY
STOPPED, UNKNOWN = OffReason.STOPPED, OffReason.UNKNOWN
LEAST = 10


class Tree:
    """f0 calls one, two and three; one calls inner."""

    def __init__(self) -> None:
        self.root = Fnode(
            Function(name="handle", symbol="handle", module="prog", address=0x1000, offset=0x1000)
        )
        self.one, self.two, self.three = (self._child(self.root, n) for n in range(3))
        self.inner = self._child(self.one, 3)

    @staticmethod
    def _child(above: Fnode, number: int) -> Fnode:
        address = 0x2000 + number
        name = ("one", "two", "three", "inner")[number]
        site = CallSite(address, CallKind.DIRECT, "prog", address)
        return above.add_child(
            Function(name=name, symbol=name, module="prog", address=address, offset=address), site
        )

    def path(self, *nodes: Fnode, cause: Cause = Cause.FUNCTION) -> RootCausePath:
        return RootCausePath((self.root, *nodes), Ending(cause, 20))


def op(
    length: int,
    spans: Sequence[tuple[Fnode, int, int]] = (),
    off: Sequence[tuple[int, int, OffReason]] | None = (),
    *,
    short: Sequence[Sum] = (),
    number: int = 1,
) -> Op:
    """An op of so many cycles, from 1000 on; all other times count from its beginning."""
    made = [Span(node, 1000 + start, 1000 + end) for node, start, end in spans]
    sums = []
    for node in dict.fromkeys(span.node for span in made):
        own = [span.latency for span in made if span.node is node]
        sums.append(Sum(node, len(own), sum(own), max(own)))
    return Op(
        number=number,
        kept_as=OpClass.IN_PEAK,
        thread=7,
        start=1000,
        end=1000 + length,
        cost=0,
        latency=length,
        spans=tuple(made),
        sums=(*sums, *short),
        least=LEAST,
        off=None if off is None else tuple(Off(1000 + a, 1000 + b, r) for a, b, r in off),
    )


@pytest.fixture
def tree() -> Tree:
    return Tree()


def three_parts(tree: Tree, at: int) -> Op:
    """Each callee takes 100, and in one of them (the ``at``-th) another program got its turn for
    4000."""
    spans, now = [], 0
    for number, node in enumerate((tree.one, tree.two, tree.three)):
        end = now + 100 + (4000 if number == at else 0)
        spans.append((node, now, end))
        if number == at:
            off = (now + 50, now + 4050, READY)
        now = end
    return op(now + 10, spans, [off])


class TestPreemption:
    def test_in_a_different_callee_each_time(self, tree: Tree) -> None:
        """It is one cause, and none of the callees is (DARC 3.6)."""
        ops = [three_parts(tree, number % 3) for number in range(21)]
        counted = votes(ops, tree.root, [tree.root], RULES)
        assert (counted.ops, counted.preemption) == (21, 21)
        assert counted.ending_beside(tree.root, RULES) is not None
        for child in tree.root.children:
            assert counted.votes[child].votes == 0
            assert counted.votes[child].totals.sum == 21 * 100
        found = conclude([tree.path(tree.one)], tree.root, ops, rules=RULES)
        assert found.beside == Ending(Cause.PREEMPTION, 21)
        assert found.disputed == (tree.one,)

    def test_many_short_turns_are_one(self, tree: Tree) -> None:
        """Each is shorter than the callee, all together are not."""
        off = [(start, start + 90, READY) for start in range(0, 3000, 100)]
        counted = votes([op(3500, [(tree.two, 3000, 3400)], off)], tree.root, [tree.root], RULES)
        assert counted.preemption == 1
        assert counted.votes[tree.two].votes == 0

    def test_small_beside_what_was_computed(self, tree: Tree) -> None:
        ops = [op(9000, [(tree.two, 0, 8900)], [(100, 400, READY)])] * 5
        counted = votes(ops, tree.root, [tree.root], RULES)
        assert counted.ending_beside(tree.root, RULES) is None
        assert counted.votes[tree.two] == Vote(
            ops=5, votes=5, totals=counted.votes[tree.two].totals
        )
        assert counted.votes[tree.two].totals.sum == 5 * 8600

    @pytest.mark.parametrize("ready", [500, 5000, 50_000])
    def test_of_a_call_that_would_be_slow_all_the_same(self, tree: Tree, ready: int) -> None:
        """However long it took: who computes for long on a busy machine waits for long."""
        ops = [op(1100 + ready, [(tree.two, 0, 1050 + ready)], [(100, 100 + ready, READY)])] * 5
        for slow_from, wins in ((1000, False), (1100, False), (1101, ready > 500)):
            counted = votes(ops, tree.root, [tree.root], Rules(slow_from=slow_from))
            assert (counted.ending_beside(tree.root, RULES) is not None) == wins
            assert counted.all_the_same == (0 if slow_from > 1100 else 5)
            assert bool(counted.votes[tree.two].votes) != wins

    def test_of_a_call_that_is_shorter_than_a_turn(self, tree: Tree) -> None:
        """It has lost its processor by chance: what it computed beside is nothing to that."""
        for ready, turn, wins in (
            *((20_000, 0, False), (20_000, 900, False), (20_000, 2000, True)),
            (8000, 2000, False),
        ):
            ops = [op(1100 + ready, [(tree.two, 0, 1000)], [(1000, 1000 + ready, READY)])] * 5
            counted = votes(ops, tree.root, [tree.root], Rules(slow_from=1000, turn=turn))
            assert (counted.ending_beside(tree.root, RULES) is not None) == wins, (ready, turn)

    def test_it_competes_with_f0_alone(self, tree: Tree) -> None:
        """Below it is out of all that is compared."""
        ops = [op(5000, [(tree.one, 0, 4900), (tree.inner, 100, 900)], [(1000, 4800, READY)])]
        counted = votes(ops, tree.root, [tree.root, tree.one], RULES)
        assert counted.preemption == 1
        assert counted.votes[tree.inner].votes == 1
        assert counted.votes[tree.one].own == 0

    def test_without_any_there_is_no_vote(self, tree: Tree) -> None:
        """Not even where all that is compared is 0 or 1."""
        assert votes([op(1)], tree.root, [tree.root], RULES).preemption == 0


class TestStopped:
    def test_is_nobodys(self, tree: Tree) -> None:
        spans = [(tree.one, 0, 5000), (tree.two, 5000, 5400)]
        counted = votes([op(5450, spans, [(100, 4900, STOPPED)])], tree.root, [tree.root], RULES)
        assert counted.preemption == 0
        assert counted.votes[tree.one].votes == 0
        assert counted.votes[tree.two].votes == 1
        assert counted.latency == 650

    def test_in_calls_that_there_was_no_room_for(self, tree: Tree) -> None:
        """As long as in all else that is not known one by one."""
        lost = [Sum(tree.one, 1, 4000, 4000)]
        made = op(5000, [(tree.two, 0, 1000)], [(1000, 4000, STOPPED)], short=lost)
        found = votes([dataclasses.replace(made, lost=1)], tree.root, [tree.root], RULES).votes
        assert (found[tree.one].totals.sum, found[tree.two].totals.sum) == (1600, 1000)
        found = votes([made], tree.root, [tree.root], RULES).votes
        assert found[tree.one].totals.sum == 4000, "it was shorter than any that has a span"

    @pytest.mark.parametrize(
        ("slow_from", "has_faster"), [(5000, False), (500, True), (5000, True)]
    )
    def test_what_is_slow_for_it_alone_has_no_cause_in_the_program(
        self, tree: Tree, slow_from: int, *, has_faster: bool
    ) -> None:
        """As where gdb stops it at a fork. Where no call is known to be faster, or it would be slow
        all the same, the path stays."""
        ops = [op(5450, [(tree.one, 0, 5400)], [(100, 4900, STOPPED)])] * 10
        rules = Rules(slow_from=slow_from, has_faster=has_faster)
        found = conclude([tree.path(tree.one)], tree.root, ops, rules=rules)
        if slow_from == 5000 and has_faster:
            assert found.beside == Ending(Cause.STOPPED, 10)
            assert found.disputed == (tree.one,)
        else:
            assert found.beside is None
            assert found.disputed == ()

    @pytest.mark.parametrize(
        ("each", "stops", "is_told"), [(480, 10, False), (490, 10, True), (700, 7, False)]
    )
    def test_what_was_held_again_and_again_for_many_times_the_rest_is_slow_for_it(
        self, tree: Tree, each: int, stops: int, *, is_told: bool
    ) -> None:
        """Though the rest is not fast, as each stop costs time outside as well; but not where the
        rest is a good part, or there are few stops, as at forks. A thread that was ready so long
        computes for long."""
        rules = Rules(slow_from=500, has_faster=True)
        for reason, cause in ((STOPPED, Cause.STOPPED), (READY, Cause.PREEMPTION)):
            off = [(i * 5400 // stops, i * 5400 // stops + each, reason) for i in range(stops)]
            ops = [op(5450, [(tree.one, 0, 5400)], off)] * 10
            found = conclude([tree.path(tree.one)], tree.root, ops, rules=rules)
            told = Ending(cause, 10) if is_told and reason is STOPPED else None
            assert found.beside == told

    def test_beside_calls_that_are_slow_for_something_else(self, tree: Tree) -> None:
        """As many of one kind as of the other: both are causes."""
        held = op(5450, [(tree.one, 0, 5400)], [(100, 4900, STOPPED)])
        computed = op(5450, [(tree.two, 0, 5400)])
        paths = [tree.path(tree.one), tree.path(tree.two)]
        found = conclude(
            paths, tree.root, [held, computed] * 6, rules=Rules(slow_from=5000, has_faster=True)
        )
        assert found.beside == Ending(Cause.STOPPED, 6)
        assert found.disputed == (tree.one,)

    def test_of_two_causes_that_are_no_calls_the_one_with_more_votes_is_told(
        self, tree: Tree
    ) -> None:
        held = op(5450, [(tree.one, 0, 5400)], [(100, 4900, STOPPED)])
        waited = op(5450, [(tree.one, 0, 5400)], [(100, 4900, READY)])
        for ops, cause in (
            ([held] * 7 + [waited] * 6, Cause.STOPPED),
            ([waited], Cause.PREEMPTION),
        ):
            found = conclude(
                [tree.path(tree.one)], tree.root, ops, rules=Rules(slow_from=5000, has_faster=True)
            )
            assert found.beside is not None
            assert found.beside.cause is cause

    def test_what_is_unknown_or_blocked_stays_where_it_is(self, tree: Tree) -> None:
        spans = [(tree.one, 0, 5000), (tree.two, 5000, 5400)]
        for reason in (UNKNOWN, BLOCKED):
            counted = votes([op(5450, spans, [(100, 4900, reason)])], tree.root, [tree.root], RULES)
            assert counted.votes[tree.one].votes == 1
            assert counted.votes[tree.two].votes == 0


class TestRules:
    def test_threads_that_were_not_watched_have_no_vote(self, tree: Tree) -> None:
        counted = votes([op(100, [(tree.one, 0, 90)], None)], tree.root, [tree.root], RULES)
        assert counted.ops == 0
        assert dict(counted.votes) == {}
        found = conclude([tree.path(tree.one)], tree.root, [op(100, off=None)], rules=RULES)
        assert found.endings == {tree.one: Ending(Cause.FUNCTION, 20)}
        assert found.beside is None
        assert found.disputed == ()

    @given(
        st.lists(st.lists(st.integers(LEAST, 10**6), max_size=20), min_size=3, max_size=3),
        st.booleans(),
        st.integers(0, 10**6),
    )
    def test_without_switches_they_are_the_searchs(
        self, calls: list[list[int]], by_longest: bool, rest: int
    ) -> None:
        """The same contributions, by the same rule."""
        tree = Tree()
        spans, now = [], 0
        for node, lengths in zip(tree.root.children, calls, strict=True):
            for length in lengths:
                spans.append((node, now, now + length))
                now += length
        whole = now + rest + 1
        called = [
            (node, CallTimes(max(lengths), sum(lengths), len(lengths)))
            for node, lengths in zip(tree.root.children, calls, strict=True)
            if lengths
        ]
        own, parts = contributions(
            CallTimes(whole, whole, 1), [c for _, c in called], by_longest=by_longest
        )
        largest = max([own, *parts]).bit_length()
        rules = Rules(by_longest=by_longest)
        counted = votes([op(whole, spans)], tree.root, [tree.root], rules)
        assert counted.votes[tree.root].own == (max(own, 1).bit_length() == largest)
        for (node, _), part in zip(called, parts, strict=True):
            assert counted.votes[node].votes == (part.bit_length() == largest)

    def test_calls_too_short_for_spans_count(self, tree: Tree) -> None:
        short = [Sum(tree.three, 900, 8000, 9)]
        ops = [op(9000, [(tree.one, 0, 500)], short=short)]
        assert votes(ops, tree.root, [tree.root], RULES).votes[tree.three].votes == 1

    def test_a_loop_loses_what_was_taken_from_each_of_its_calls(self, tree: Tree) -> None:
        spans = [(tree.one, start, start + 100) for start in range(0, 2000, 100)]
        off = [(start + 10, start + 99, READY) for start in range(0, 2000, 100)]
        counted = votes([op(2100, spans, off)], tree.root, [tree.root], RULES)
        assert counted.votes[tree.one].totals.sum == 20 * 11
        assert counted.votes[tree.one].totals.max_sum == 11


class TestEndings:
    def end(self, tree: Tree, ops: list[Op], *path: Fnode) -> Ending:
        found = conclude([tree.path(*path)], tree.root, ops, rules=RULES)
        return found.endings[path[-1] if path else tree.root]

    def test_asleep(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])] * 12
        assert self.end(tree, ops, tree.one) == Ending(Cause.BLOCKED, 12)

    def test_it_computed(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 500, BLOCKED)])] * 12
        assert self.end(tree, ops, tree.one) == Ending(Cause.FUNCTION, 20)

    def test_where_it_waited_in_a_callee_it_did_not_itself(self, tree: Tree) -> None:
        spans = [(tree.one, 0, 4900), (tree.inner, 1000, 4000)]
        ops = [op(5000, spans, [(1100, 3900, BLOCKED)])] * 3
        assert own_time(tree.one, tree.root, ops, RULES).cause is Cause.FUNCTION
        assert own_time(tree.inner, tree.root, ops, RULES).cause is Cause.BLOCKED

    def test_most_ops_decide(self, tree: Tree) -> None:
        slept = op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])
        ran = op(5000, [(tree.one, 0, 4900)])
        assert self.end(tree, [slept] * 8 + [ran] * 4, tree.one) == Ending(Cause.BLOCKED, 8)
        assert self.end(tree, [slept] * 4 + [ran] * 8, tree.one).cause is Cause.FUNCTION

    def mixed(self, tree: Tree, fast: Sequence[tuple[int, int, OffReason]] = ()) -> list[Op]:
        """In 12 the wait is in two, and one is called for a moment; in 8 it is in one."""
        locked = [(tree.two, 0, 4800), (tree.one, 4850, 4890)]
        slow_read = [(tree.two, 0, 40), (tree.one, 100, 4900)]
        return [op(5000, locked, [(50, 4780, BLOCKED), *fast])] * 12 + [
            op(5000, slow_read, [(150, 4880, BLOCKED)])
        ] * 8

    def test_ops_that_are_slow_for_something_else_do_not_say_what_it_did(self, tree: Tree) -> None:
        ops = self.mixed(tree)
        assert self.end(tree, ops, tree.one) == Ending(Cause.BLOCKED, 8)
        assert self.end(tree, ops, tree.two) == Ending(Cause.BLOCKED, 12)

    def test_nor_do_they_where_it_was_preempted_for_a_moment(self, tree: Tree) -> None:
        ops = self.mixed(tree, [(4855, 4889, READY)])
        assert self.end(tree, ops, tree.one) == Ending(Cause.BLOCKED, 8)

    def test_nor_deep_down_the_path(self, tree: Tree) -> None:
        ops = [
            op(5000, [(tree.one, 0, 4900), (tree.inner, 10, 60)], [(100, 4800, BLOCKED)]),
            op(5000, [(tree.one, 0, 4900), (tree.inner, 10, 60)], [(100, 4800, BLOCKED)]),
            op(5000, [(tree.one, 0, 4900), (tree.inner, 10, 4890)], [(30, 4800, BLOCKED)]),
        ]
        assert self.end(tree, ops, tree.one, tree.inner) == Ending(Cause.BLOCKED, 1)
        assert self.end(tree, ops, tree.one) == Ending(Cause.BLOCKED, 2)

    def test_where_no_op_is_its_own_all_tell(self, tree: Tree) -> None:
        locked = self.mixed(tree)[:12]
        assert self.end(tree, locked, tree.one) == Ending(Cause.FUNCTION, 20)

    def test_always_preempted_there(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, READY)])] * 4
        own = own_time(tree.one, tree.root, ops, RULES)
        assert (own.cause, own.won[Cause.PREEMPTION]) == (Cause.PREEMPTION, 4)

    def test_beside_preemption_it_is_what_it_did_else(self, tree: Tree) -> None:
        """Time ready is one cause, f0's: of 20 ops 12 were preempted there, and 8 waited."""
        preempted = op(5000, [(tree.one, 0, 4900)], [(50, 4800, READY)])
        slept = op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])
        found = conclude(
            [tree.path(tree.one)], tree.root, [preempted] * 12 + [slept] * 8, rules=RULES
        )
        assert found.beside == Ending(Cause.PREEMPTION, 12)
        assert found.endings[tree.one] == Ending(Cause.BLOCKED, 8)
        assert found.disputed == ()

    def test_of_f0_itself(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 90)], [(100, 4800, BLOCKED)])] * 4
        assert self.end(tree, ops) == Ending(Cause.BLOCKED, 4)

    def test_unknown_is_not_waiting_and_not_taken_for_it(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, UNKNOWN)])] * 4
        own = own_time(tree.one, tree.root, ops, RULES)
        assert own.off[UNKNOWN] == 4 * 4750
        assert own.won[Cause.BLOCKED] == 0

    def test_other_endings_stay(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])] * 4
        found = conclude([tree.path(tree.one, cause=Cause.LOOP)], tree.root, ops, rules=RULES)
        assert found.endings[tree.one].cause is Cause.LOOP

    def test_a_note_may_be_added(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])] * 4
        path = RootCausePath((tree.root, tree.one), Ending(Cause.FUNCTION, 20, note="was there"))
        found = conclude(
            [path], tree.root, ops=ops, rules=RULES, note=lambda own: f"{own.ops} calls"
        )
        assert found.endings[tree.one].note == "was there; 4 calls"

    def test_a_path_that_the_depth_cut_off_stays_so(self, tree: Tree) -> None:
        """Whatever is told of it besides: a larger depth goes on from there."""
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])] * 4
        nodes = (tree.root, tree.one, tree.inner)
        path = RootCausePath(nodes, Ending(Cause.FUNCTION, 20, cut=Cut.DEPTH))
        ending = conclude([path], tree.root, ops, rules=RULES).endings[tree.inner]
        assert ending.remark == f"{Cut.DEPTH.text}; {UNTOLD_NOTE}"
        assert outcome([RootCausePath(nodes, ending)]) is Status.MAX_DEPTH

    def test_an_end_that_no_op_has_seen_may_have_waited(self, tree: Tree) -> None:
        ops = [op(5000, [(tree.one, 0, 4900)], [(50, 4800, BLOCKED)])] * 4
        path = tree.path(tree.one, tree.inner)
        for compared in (None, frozenset({tree.root})):
            ending = conclude([path], tree.root, ops, rules=RULES, compared=compared).endings[
                tree.inner
            ]
            assert (ending.cause, ending.note) == (Cause.FUNCTION, UNTOLD_NOTE)
            assert ending.unclear == {Unclear.HOW_SPENT}
        unwatched = [dataclasses.replace(one, off=None) for one in ops]
        assert conclude([path], tree.root, unwatched, rules=RULES).endings[tree.inner].note is None

    def test_what_the_ops_agree_with_is_not_disputed(self, tree: Tree) -> None:
        spans = [(tree.one, 0, 4900), (tree.inner, 10, 4890)]
        found = conclude(
            [tree.path(tree.one, tree.inner)], tree.root, [op(5000, spans)] * 4, rules=RULES
        )
        assert found.disputed == ()


class TestJoined:
    def test_with_what_a_reader_must_know(self) -> None:
        blocked, ready = Off(1100, 1300, BLOCKED), Off(1400, 1500, READY)
        answers: list[OffTimes | None] = [
            OffTimes((blocked, ready), doubtful=14, by_quota=80),
            None,
        ]
        found = watched(KeptOps(10**9, (op(1000), op(1000))), answers)
        assert [one.off for one in found.kept.ops] == [(blocked, ready), None]
        assert found.notes == (
            "the time blocked includes debugger stops: up to 7 % of it",
            "up to 80 % of the time ready was its CPU quota's",
            "of 1 of 2 kept calls it is not known whether they ran or waited: their threads could "
            "not be watched",
        )

    @pytest.mark.parametrize(("doubtful", "is_most"), [(100, False), (101, True)])
    def test_whether_most_that_was_waited_may_be_the_debuggers(
        self, doubtful: int, *, is_most: bool
    ) -> None:
        answers = [OffTimes((Off(1100, 1300, BLOCKED),), doubtful=doubtful)]
        found = watched(KeptOps(10**9, (op(1000),)), answers)
        assert found.is_mostly_doubtful is is_most

    def test_with_stops_of_the_debuggers(self) -> None:
        """As at each fork; for a tenth of the time they are not told of."""
        for end, told in ((1100, ()), (1520, ("for 52 % of their time, as it does at each fork",))):
            answers: list[OffTimes | None] = [OffTimes((Off(1000, end, STOPPED),))]
            (*notes,) = watched(KeptOps(10**9, (op(1000),)), answers).notes
            assert len(notes) == len(told)
            assert all(part in note for part, note in zip(told, notes, strict=True))

    def test_with_nothing_to_say(self) -> None:
        answers: list[OffTimes | None] = [OffTimes((Off(1100, 1300, BLOCKED),), doubtful=1)]
        assert watched(KeptOps(10**9, (op(1000),)), answers).notes == ()
