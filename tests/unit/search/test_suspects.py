"""Which of many functions ``darc why`` looks into, and what it says then, on made-up profiles."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.analyses.why import SuspectProfiles
from darc.analyses.whyanswer import idle_in
from darc.app.whypursuit import WhyPursuit
from darc.code.callers import CallCounts
from darc.collectors.set_collector import MOST_FUNCTIONS
from darc.collectors.setmembers import Members
from darc.model.ftree import Cause, Decision, Ending, Fnode, RootCausePath, Totals, Unclear
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.leftout import CALLED_OFF, NO_TIME, LeftOut, too_many
from darc.model.ops import KeptOps, ObjectKind, Off, OffReason, Op, OpClass, Sum
from darc.model.parameters import Parameters, Probes
from darc.model.part import parts_of
from darc.model.profile import OCTAVES
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import EndedBy, Status
from darc.model.waits import Holder, Role, WaitedFor, Waits
from darc.model.why import Answer, Verdict, Why
from darc.search.descent import end_where_it_is, ended_paths, open_paths
from darc.search.halves import agree, halves_of
from darc.search.suspects import (
    always_takes_it,
    are_alike,
    choice,
    does_the_work,
    first_of,
    is_disturbed,
    is_worth_its_probe,
    longest_tail,
    may_follow,
    returns,
    suspects,
    usual,
    without,
)
from darc.session.session import Session
from darc.views.exporters.json import to_json
from darc.views.general.status import status
from darc.views.style import Style
from tests.unit import samples
from tests.unit.ops import call, made_op
from tests.unit.sets import HZ, SECONDS, function, of, row


def names(known: FunctionSet) -> list[str]:
    return [one.name for one in suspects(known)]


SLOW = {10: 1000, 11: 200, 24: 30}
"""30 calls of some 25 ms: 0.75 s of 2 s."""


def test_what_is_slow_now_and_then_stands_out() -> None:
    (found,) = suspects(of(row("slow", SLOW), row("plain", {10: 5000}), row("always", {27: 40})))
    assert (found.name, found.slow, found.peak.first_bin, found.peak.last_bin) == (
        *("slow", 30),
        *(24, None),
    )
    assert found.share == pytest.approx(30 * 1.5 * 2**24 / (HZ * SECONDS), rel=0.01)
    assert found.gap == 12
    assert found.spec(1, OCTAVES) == f"22-{OCTAVES}"
    (close,) = suspects(of(row("slow", {10: 1000, 11: 200, 21: 3, 24: 30}), row("plain", {10: 9})))
    assert close.spec(1, OCTAVES) == f"23-{OCTAVES}"


def test_two_threads_have_no_more_time_than_two() -> None:
    """Bins tell latencies to a factor of two only: what was measured is their sum."""
    one = row("slow", {10: 1000, 24: 200})
    calls = 200 * 1.05 * 2**24  # all near the lower end of their bin
    total = round(1000 * 1.5 * 2**10 + calls)
    known = of(dataclasses.replace(one, profile=dataclasses.replace(one.profile, total=total)))
    (found,) = suspects(dataclasses.replace(known, seconds=total / HZ / 2))
    assert found.share == pytest.approx(2, rel=0.01)
    assert found.share <= 2


@pytest.mark.parametrize(
    "bins",
    [
        {10: 60, 24: 30},  # too few calls
        {10: 1000, 24: 19},  # too few of them slow
        {10: 1000, 18: 30},  # they take too little
        {23: 1000, 24: 30},  # no valley
        {22: 1000, 23: 100, 24: 1000},  # one that is too narrow
        {10: 100, 24: 900},  # most calls are
    ],
)
def test_what_does_not_stand_out(bins: dict[int, int]) -> None:
    assert names(of(row("f", bins))) == []


def test_where_a_thread_has_little_to_do_less_of_its_time_is_enough() -> None:
    """As it waits for requests most of the time; slow calls take 3 % of it."""
    slow = {20: round(0.03 * HZ * SECONDS / (1.5 * 2**20))}
    known = of(row("f", {10: 5000, **slow}))
    assert names(known) == []
    assert names(dataclasses.replace(known, busy=0.8)) == []
    (found,) = suspects(dataclasses.replace(known, busy=0.2))
    assert found.share == pytest.approx(0.03, rel=0.05)
    known = of(row("f", {10: 150, **slow}))  # every sixth call is slow
    assert names(dataclasses.replace(known, busy=0.2)) == []
    known = of(row("f", {10: 5000, 20: 20}))  # 1.6 %
    assert names(dataclasses.replace(known, busy=0.1)) == []


def test_some_calls_far_above_the_slow_ones_are_none_of_them() -> None:
    """They are too few to be told: what makes them slow may be another program."""
    few = {6: 30_000, 15: 3000}  # 147 ms, and three calls of 100 ms
    alone, beside = (suspects(of(row("f", bins)))[0] for bins in (few, {**few, 26: 3}))
    assert beside.slow == 3000
    assert beside.delay == pytest.approx(alone.delay, rel=0.1)
    assert suspects(of(row("f", {6: 30_000, 15: 1000, 26: 3}))) == ()
    assert suspects(of(row("f", {6: 30_000, 15: 1000, 26: 30})))[0].peak.first_bin == 26


@pytest.mark.parametrize(
    "symbol",
    [
        "nanosleep",
        "__clock_nanosleep@@GLIBC_2.17",
        "usleep",
        "pause",
        "_ZNSt11this_thread9sleep_forIlSt5ratioILl1ELl1000EEEEvRKNSt6chrono8durationIT_T0_EE",
    ],
)
def test_a_sleep_is_as_long_as_its_caller_says(symbol: str) -> None:
    slow = row("slow", SLOW)
    asleep = dataclasses.replace(slow.function, symbol=symbol)
    assert names(of(slow)) == ["slow"]
    known = FunctionSet((dataclasses.replace(slow, function=asleep),), seconds=SECONDS)
    assert names(known) == []


def test_one_that_waits_for_work_is_told_by_who_calls_it() -> None:
    """A byte of a message: who reads the message waits as often, and always."""
    byte, message = row("byte", {10: 1000, 24: 100}), row("message", {24: 100})
    request, other = row("request", {10: 2000, 24: 100}), row("other", {12: 9000})
    known = of(byte, message, request, other)
    at = {one.function.name: one.function for one in known.rows}
    suspect = next(one for one in suspects(known) if one.name == "byte")
    assert always_takes_it(known, at["message"], suspect)
    assert not always_takes_it(known, at["request"], suspect)
    assert not always_takes_it(known, function("main", 8), suspect)
    assert returns(known, at["request"])
    assert not returns(known, function("main", 8))
    assert not does_the_work(known, suspect)
    alone = of(byte, message)
    assert does_the_work(alone, next(one for one in suspects(alone) if one.name == "byte"))


def test_one_that_went_out_is_told_by_the_time_until_then() -> None:
    few = {10: 10_000, 20: 30}  # 47 ms
    assert names(of(row("f", few))) == []
    (found,) = suspects(of(dataclasses.replace(row("f", few), until=0.5)))
    assert (found.slow, found.seconds) == (30, 0.5)
    assert found.share == pytest.approx(30 * 1.5 * 2**20 / HZ / 0.5, rel=0.01)


HOT = {6: 100_000, 21: 200}
"""200 calls of 3 ms among many of 0.1 µs."""


def test_one_that_went_out_is_compared_by_the_time_until_then() -> None:
    part = {b: n // 4 for b, n in HOT.items()}
    inner = dataclasses.replace(row("inner", part), until=SECONDS / 4)
    known = of(inner, row("outer", HOT))
    assert are_alike(*suspects(known))
    first = first_of(suspects(known))
    assert first is not None
    assert does_the_work(known, first)
    longer = dataclasses.replace(row("longer", {6: 26_000, 21: 51}), until=SECONDS / 4)
    first = first_of(suspects(of(longer, row("outer", HOT))))
    assert first is not None
    assert first.name == "longer"


@pytest.mark.parametrize(
    ("bins", "cost", "stays"),
    [
        pytest.param({6: 100_000}, 30, False, id="none of its calls is slow"),
        pytest.param({6: 100_000, 9: 50}, 30, False, id="slow ones hardly count"),
        pytest.param({6: 1_000_000, 21: 59}, 100, True, id="not enough is known yet"),
        pytest.param({6: 1_000_000, 21: 80}, 100, False, id="the probe takes 5 %"),
        pytest.param(HOT, 300, True, id="the probe takes 1.5 %, its slow calls 30 %"),
    ],
)
def test_which_are_timed_though_their_probes_take_more_than_they_should(
    bins: dict[int, int], cost: int, stays: bool
) -> None:
    assert is_worth_its_probe(row("f", bins), SECONDS, cost) is stays


def test_the_peak_with_the_most_time_is_taken() -> None:
    """Also where a slower one is there, which is rare: it ends before that begins."""
    (found,) = suspects(of(row("f", {8: 100_000, 20: 2000, 27: 4})))
    assert (found.peak.number, found.peak.first_bin) == (2, 20)
    (found,) = suspects(of(row("f", {8: 100_000, 16: 2000, 25: 40, 30: 20})))
    assert found.peak.number == 4


def test_the_outermost_of_nested_ones_comes_first() -> None:
    """What is called in it has a little less excess, or even more, and less time in all."""
    outer = row("outer", {20: 1000, 24: 60})
    inner = row("inner", {8: 2000, 24: 62})
    other = row("other", {12: 1_000_000, 22: 40})
    known = of(inner, outer, other)
    assert names(known)[0] == "inner"
    first = first_of(suspects(known))
    assert first is not None
    assert first.name == "outer"


def test_long_calls_come_before_many_short_ones() -> None:
    """Also where those take more time in all: who waits for a call waits longer for these."""
    many = row("many", {6: 1_000_000, 12: 150_000})
    long = row("long", {12: 5000, 24: 30})
    first, second = suspects(of(many, long))
    assert (first.name, second.name) == ("long", "many")
    assert second.share > first.share
    assert first.delay == pytest.approx(30 * (1.5 * 2**24 / HZ) ** 2 / 2 / SECONDS, rel=0.01)


def test_longer_calls_that_are_rare_as_yet_are_waited_for() -> None:
    often = row("often", {6: 10_000, 20: 500})
    for rare, expected in ({12: 5000, 25: 8}, True), ({12: 5000, 25: 3}, False):
        known = of(often, row("rare", rare))
        (chosen,) = suspects(known)
        assert chosen.name == "often"
        assert may_follow(known, chosen) is expected


def test_the_same_calls_one_in_another() -> None:
    outer, inner, other = suspects(
        of(
            row("outer", {12: 5000, 25: 30}),
            row("inner", {10: 9000, 25: 28}),
            row("other", {10: 9000, 24: 40}),
        )
    )
    assert are_alike(outer, inner)
    assert not are_alike(outer, other)


def test_what_was_seen_comes_no_more() -> None:
    known = of(row("a", SLOW), row("b", {9: 500, 24: 25}))
    seen = {known.rows[0].function}
    rest = without(suspects(known), lambda one: one in seen)
    assert [one.name for one in rest] == [known.rows[1].function.name]


def disturbed(scale: float) -> dict[int, int]:
    """As much time as ``scale`` tells, and what interrupts it comes by the time."""
    return {11: round(400_000 * scale), 22: round(60 * scale)}


def test_what_happens_to_all_alike_is_no_function_s() -> None:
    noisy = [row(f"f{n}", disturbed(scale)) for n, scale in enumerate((3, 1, 1, 0.8, 0.5))]
    known = of(*noisy)
    assert names(known)[0] == "f0"
    assert all(is_disturbed(known, one) for one in suspects(known))
    guilty = row("guilty", {11: 100_000, 22: 200})
    known = of(*noisy, guilty)
    found = choice(known, lambda _: False)
    assert found is not None
    assert found.name == "guilty"


def test_what_happens_to_all_comes_first_where_the_rest_is_slight() -> None:
    """A function that takes 4 µs instead of 0.4 µs is nobody's trouble where all wait for 2 ms."""
    noisy = [row(f"f{n}", disturbed(scale)) for n, scale in enumerate((3, 1, 1, 0.8, 0.5))]
    small = row("small", {10: 300_000, 13: 200_000})
    known = of(*noisy, small)
    assert set(names(known)) >= {"f0", "small"}
    found = choice(known, lambda _: False)
    assert found is not None
    assert found.name == "f0"


def test_callees_that_are_slow_with_it_do_not_excuse_it() -> None:
    """Four functions one in another, and others that have nothing to do with it."""
    chain = [row(f"level{n}", {10 - n: 100_000, 24: 40}) for n in range(4)]
    plain = [row(f"plain{n}", {11: 400_000}) for n in range(3)]
    known = of(*chain, *plain)
    assert not any(is_disturbed(known, one) for one in suspects(known))


def half(before: dict[int, int], after: dict[int, int], name: str = "f") -> FunctionProfile:
    both = {b: before.get(b, 0) + after.get(b, 0) for b in {*before, *after}}
    return dataclasses.replace(row(name, both), lapse=(before, after))


def test_both_halves_must_choose_the_same() -> None:
    steady = half(SLOW, SLOW, "steady")
    late = half({9: 1000}, {9: 1000, 24: 90}, "late")
    every = SECONDS / 2
    assert agree(of(steady, every=every), lambda _: False)
    assert not agree(of(late, every=every), lambda _: False)
    assert not agree(of(steady, late, every=every), lambda _: False)
    assert agree(of(steady, late, every=every), lambda one: one.name == "late")
    assert not agree(of(steady), lambda _: False)


def test_of_one_that_went_out_the_halves_of_its_own_time_are_taken() -> None:
    slices = ({10: 500, 20: 25}, {10: 400, 20: 24}, {10: 500, 20: 26}, {10: 500, 20: 25})
    out = row("out", {10: 1900, 20: 100})
    out = dataclasses.replace(out, until=SECONDS / 2, slices=slices, lapse=(out.profile.bins, {}))
    halves = halves_of(of(out, every=SECONDS / 2))
    assert halves is not None
    assert [[(s.slow, s.seconds) for s in suspects(one)] for one in halves] == [
        [(49, SECONDS / 4)],
        [(51, SECONDS / 4)],
    ]
    assert agree(of(out, every=SECONDS / 2), lambda _: False)


def test_of_the_same_slow_calls_one_in_another_either_may_be_chosen() -> None:
    """A little of what the outer one takes is in another bin: of the sums of halves nothing is
    known but by bins."""
    outer = half({20: 990, 21: 10, 24: 30}, {20: 1000, 24: 30}, "outer")
    inner = half({20: 1000, 24: 30}, {20: 990, 21: 20, 24: 31}, "inner")
    known = of(outer, inner, every=SECONDS / 2)
    halves = halves_of(known)
    assert halves is not None
    chosen = [choice(one, lambda _: False) for one in halves]
    assert [one.name for one in chosen if one is not None] == ["outer", "inner"]
    assert agree(known, lambda _: False)


def test_as_many_slow_calls_at_other_times_are_not_the_same() -> None:
    first = half({20: 1000, 24: 40}, {20: 1000, 24: 25}, "first")
    second = half({20: 1000, 24: 25}, {20: 1000, 24: 40}, "second")
    known = of(first, second, every=SECONDS / 2)
    assert are_alike(*suspects(known))
    assert not agree(known, lambda _: False)


BINS = st.dictionaries(st.integers(0, 40), st.integers(1, 1000), max_size=6)


@given(st.lists(st.tuples(BINS, BINS), min_size=1, max_size=5))
def test_halves_add_up_to_the_whole(parts: list[tuple[dict[int, int], dict[int, int]]]) -> None:
    known = of(*(half(a, b, f"f{n}") for n, (a, b) in enumerate(parts)), every=SECONDS / 2)
    found = halves_of(known)
    assert found is not None
    for one in known.rows:
        of_halves = [r.profile for h in found for r in h.rows if r.function == one.function]
        assert sum(p.count for p in of_halves) == one.profile.count
        assert sum(p.total for p in of_halves) == pytest.approx(one.profile.total, abs=2)
    assert found[0].seconds + found[1].seconds == known.seconds


@given(st.lists(BINS, max_size=6))
def test_a_suspect_is_what_the_rules_say(all_bins: list[dict[int, int]]) -> None:
    known = of(*(row(f"f{n}", bins) for n, bins in enumerate(all_bins)))
    found = suspects(known)
    assert [one.delay for one in found] == sorted((one.delay for one in found), reverse=True)
    for one in found:
        assert one.row.profile.count >= 100
        assert one.slow >= 20
        assert one.share >= 0.05
        assert one.slow_mean > one.fast_mean
    chosen = choice(known, lambda _: False)
    assert (chosen is None) == (not found)


def test_direct_calls_are_told_by_their_bytes() -> None:
    code = b"\x90\xe8\x05\x00\x00\x00\x90\xe8\xf3\xff\xff\xff\xe8\x01"
    counts = CallCounts([0x100B, 0xFFF, 0x1000])
    counts.add(code, 0x1000)
    counts.add(code, 0x1000)
    assert counts.found() == {0xFFF: 2, 0x1000: 0, 0x100B: 2}


# ------------------------------------------------------------------------------- the votes


def voted(parent: Fnode, ops: int, own: int = 0, **callees: int) -> list[Fnode]:
    """The callees of a function, and itself, with their votes in so many calls."""
    parent.totals, parent.self_maxcount = Totals(ops=ops), own
    parent.decision = Decision(ops, 20, own)
    found = [parent.add_child(function(name), None) for name in callees]
    for child, votes in zip(found, callees.values(), strict=True):
        child.maxcount = votes
    return found


def agreement(*paths: Sequence[Fnode], ending: Ending | None = None) -> float:
    ending = Ending(Cause.BLOCKED, 9) if ending is None else ending
    (suspect,) = suspects(of(row("handle", SLOW)))
    made = tuple(RootCausePath(tuple(path[-1].route()), ending) for path in paths)
    return Answer(suspect, Snapshot("handle", Status.FOUND, Probes.PAD, paths=made)).agreement


def test_votes_for_any_of_the_causes_agree() -> None:
    root = Fnode(function("handle"))
    get, put, send = voted(root, 20, get=11, put=8, send=1)
    assert agreement([get], [put]) == pytest.approx(0.95)
    assert agreement([get]) == pytest.approx(0.55)
    assert agreement([put]) == pytest.approx(0.4)
    assert agreement([get], [send]) == pytest.approx(0.6)


def test_a_cause_that_is_not_named_counts_against_wherever_it_is() -> None:
    root = Fnode(function("handle"))
    get, put = voted(root, 20, get=10, put=10)
    lock, _ = voted(get, 20, lock=14, find=6)
    (other,) = voted(put, 20, lock=20)
    assert agreement([lock], [other]) == pytest.approx(0.85)
    voted(root, 20, own=5)
    assert agreement([lock], [other]) == pytest.approx(0.75)


def test_a_call_that_votes_for_both_is_one() -> None:
    """Ten vote for both, and ten for none of them."""
    root = Fnode(function("handle"))
    get, put, _ = voted(root, 20, get=10, put=10, send=10)
    assert agreement([get], [put]) == pytest.approx(0.5)


def test_what_kept_calls_tell_of_a_wait_is_no_vote_of_the_search() -> None:
    root = Fnode(function("handle"))
    (wait,) = voted(root, 20, poll=20)
    voted(wait, 30, own=30, enable=0)
    assert agreement([wait], ending=Ending(Cause.BLOCKED, 9)) == 1.0
    voted(wait, 30, own=24)
    assert agreement([wait], ending=Ending(Cause.FUNCTION, 24)) == pytest.approx(0.8)


# ------------------------------------------------------------------------------- the answer


def shown(why: Why) -> Snapshot:
    return Snapshot("main", Status.DONE, Probes.PAD, parts=parts_of(why))


def test_what_was_not_looked_into_is_offered() -> None:
    (suspect,) = suspects(of(row("slow", SLOW)))
    why = Why(
        Verdict.UNKNOWN,
        (),
        functions=3,
        calls=1230,
        seconds=2.0,
        reasons=("it ended before",),
        open=(suspect,),
    )
    text = status(shown(why), Style())
    assert "darc: why: cannot tell\n  1230 calls of 3 functions in 2.0s\n" in text
    assert "slow: 30 of 1230 calls take about 25ms, not " in text
    assert "not looked into: 'darc start slow --peak last'" in text
    assert "'darc why' looks again, 'darc why --time 5min' for longer" in text
    cut = status(shown(dataclasses.replace(why, is_cut=True)), Style())
    assert "'set darc max-time none', or more of it, lets 'darc why' look for longer" in cut
    made = to_json(shown(why))["why"]
    assert made["verdict"] == "cannot tell"
    assert [one["function"] for one in made["open"]] == ["slow"]
    assert made["answers"] == []


def test_nothing_that_stands_out_is_said_in_words() -> None:
    text = status(shown(Why(Verdict.NOTHING, (), functions=5, calls=900, seconds=4.0)), Style())
    assert text.startswith("darc: why: nothing stands out\n  900 calls of 5 functions in 4.0s\n")
    assert "'darc walk'" in text


PHASES = {10: 500, 24: 100}
"""Six calls for each of a hundred requests; one of them does the work."""


def test_what_each_call_of_another_function_does_is_usual() -> None:
    known = of(row("phase", PHASES), row("request", {25: 100}), row("plain", {10: 5000}))
    ((suspect, whole),) = usual(known).values()
    assert (suspect.name, whole.name) == ("phase", "request")


@pytest.mark.parametrize(("slow", "are_usual"), [(85, True), (40, False)])
def test_what_most_calls_of_another_function_do_is_usual_where_all_take_as_long(
    slow: int, are_usual: bool
) -> None:
    """Those without a slow one do something else that takes as long."""
    phase = row("phase", {10: 600 - slow, 24: slow})
    assert bool(usual(of(phase, row("request", {25: 100}), row("unseen", {})))) == are_usual


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({24: 99}, id="it is what is called"),
        pytest.param({25: 80}, id="not as many calls"),
        pytest.param({10: 50, 26: 50}, id="half of its calls are fast"),
    ],
)
def test_what_only_some_calls_do_is_not_usual(other: dict[int, int]) -> None:
    assert names(of(row("phase", PHASES))) == ["phase"]
    assert not usual(of(row("phase", PHASES), row("request", other)))


def test_what_comes_once_in_many_calls_or_now_and_then_is_not_usual() -> None:
    for fast in (5 * 100 + 50, 99 * 100):
        slow_one = row("append", {10: fast, 24: 100})
        assert not usual(of(slow_one, row("batch", {25: 100})))


def test_what_is_usual_is_not_looked_into_and_told() -> None:
    known = of(row("phase", PHASES), row("request", {25: 100}))
    pursuit = profiled(known)
    assert pursuit.next() is None
    session = session_of(SimpleNamespace(status=Status.DONE))
    why = pursuit.known(session, Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(known)))
    assert why.verdict is Verdict.NOTHING
    text = status(shown(why), Style())
    assert "left out: phase is slow once in each call of request, which always takes as " in text
    assert "'darc start phase --peak last' looks into it all the same\n" in text


def test_what_was_timed_for_a_while_only_is_told() -> None:
    out = (dataclasses.replace(row(f"f{n}", {6: 10_000 * n}), until=0.1) for n in range(1, 8))
    known = of(*out, row("plain", {10: 5000}))
    pursuit = profiled(known)
    assert pursuit.next() is None
    session = session_of(SimpleNamespace(status=Status.DONE))
    why = pursuit.known(session, Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(known)))
    assert why.verdict is Verdict.NOTHING
    text = " ".join(status(shown(why), Style()).split())
    assert "their calls are many and short, or call themselves: f7 (0.1s), f6 (0.1" in text
    assert "f3 (0.1s), 2 more; what is slow in them less often was not seen" in text


def test_what_was_left_out_is_told() -> None:
    (suspect,) = suspects(of(row("step", SLOW)))
    timed = Why(Verdict.WAITS, (), functions=5, calls=900, seconds=4.0)
    text = status(shown(dataclasses.replace(timed, idle=((suspect, "poll"),))), Style())
    assert text.startswith("darc: why: nothing but waits for work\n")
    assert "left out: step waits in poll, as for its next work\n" in text
    assert "'darc start step --peak last' looks into it all the same\n" in text


def test_what_waits_as_the_answer_does_is_not_said_to_wait_for_work() -> None:
    """It may be its caller."""
    (suspect,) = suspects(of(row("step", SLOW)))
    found = samples.snapshot()
    answer = Answer(suspect, found)
    wait = answer.paths[0].nodes[-1].function.name
    known = Why(Verdict.FOUND, (answer,), idle=((suspect, wait), (suspect, "poll")))
    text = status(shown(known), Style())
    assert f"left out: step waits in {wait}, as in 1\n" in text
    assert "left out: step waits in poll, as for its next work\n" in text


def test_a_search_that_could_not_be_begun_says_why() -> None:
    (suspect,) = suspects(of(row("slow", SLOW)))
    answer = Answer(suspect, None, why="no pad")
    text = status(shown(Why(Verdict.UNKNOWN, (answer,))), Style())
    assert "\n  not looked into: no pad\n" in text
    assert "'darc start slow --peak last' looks longer into that" in text


def test_a_search_without_an_end_says_how_far_it_came() -> None:
    (suspect,) = suspects(of(row("slow", SLOW)))
    root = Fnode(function("slow"))
    root.add_child(function("other"), None)
    root.add_child(function("below"), None).root_cause = True
    found = Snapshot("slow", Status.INCONCLUSIVE, Probes.PAD, ftree=root)
    text = status(shown(Why(Verdict.UNKNOWN, (Answer(suspect, found),))), Style())
    assert "\n  why is not known: not conclusive\n  so far it is in slow → below\n" in text


@pytest.mark.parametrize("status_of", [None, *Status])
@pytest.mark.parametrize("ended_by", [None, EndedBy.TIME])
def test_below_each_row_stands_why_and_what_to_do(
    status_of: Status | None, ended_by: EndedBy | None
) -> None:
    """Also below those that come behind one that was found."""
    (suspect,) = suspects(of(row("slow", SLOW)))
    root = Fnode(function("slow"))
    path = RootCausePath((root,), Ending(Cause.BLOCKED, 20))
    first = Answer(suspect, Snapshot("slow", Status.FOUND, Probes.PAD, ftree=root, paths=(path,)))
    found = (
        None if status_of is None else Snapshot("slow", status_of, Probes.PAD, ended_by=ended_by)
    )
    known = Why(Verdict.FOUND, (first, Answer(suspect, found, why=" ")))
    lines = status(shown(known), Style()).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("2 slow: "))
    why = "not looked into" if found is None else f"why is not known: {found.status.value}"
    if found is not None and ended_by is not None:
        why = "why is not known: no time was left"
    assert lines[at + 1] == f"  {why}"
    assert lines[at + 2] == "  'darc start slow --peak last' looks longer into that"
    goes_on = status(shown(dataclasses.replace(known, is_over=False)), Style())
    assert "looks longer" not in goes_on


def test_what_is_waited_for_is_added_up_over_the_functions_that_wait() -> None:
    (suspect,) = suspects(of(row("slow", SLOW)))
    objects = []
    for cycles, waits_in in (510, "get"), (480, "set"):
        sweep = Holder(
            role=Role.HELD, thread="house", path=("sweep",), cycles=cycles - 20, ops=9, threads=(7,)
        )
        path = (waits_in, "slow")
        objects.append(
            WaitedFor(
                kind=ObjectKind.LOCK,
                name="cache_lock",
                path=path,
                cycles=cycles,
                ops=9,
                waits=9,
                holders=(sweep,),
            )
        )
    found = Snapshot(
        "slow",
        Status.FOUND,
        Probes.PAD,
        paths=(RootCausePath((Fnode(function("slow")),), Ending(Cause.BLOCKED, 20)),),
        ops=KeptOps(HZ, sees_waits=True),
        waits=Waits(19, 1000, tuple(objects)),
    )
    text = status(shown(Why(Verdict.FOUND, (Answer(suspect, found),))), Style())
    line = 'waited for the lock cache_lock, 99 %, held by thread 7 "house" in sweep: 18 calls\n'
    assert line in text


@pytest.mark.parametrize(
    ("where", "after"),
    [("lookup", "    cause: blocked in lookup"), ("account", "    cause: blocked in account")],
)
def test_what_was_waited_for_stands_below_its_path(where: str, after: str) -> None:
    """Whichever of two that is; what was waited for in another function says so."""
    (suspect,) = suspects(of(row("slow", SLOW)))
    root = Fnode(function("slow"))
    paths = [
        RootCausePath(
            (root, root.add_child(function(name, number), None)), Ending(Cause.BLOCKED, 20)
        )
        for number, name in enumerate(("lookup", "account"), 2)
    ]
    sweep = Holder(role=Role.HELD, thread="house", path=(), cycles=500, ops=9, threads=(7,))

    def told(place: str) -> list[str]:
        lock = WaitedFor(
            kind=ObjectKind.LOCK,
            name="cache_lock",
            path=(place, "slow"),
            cycles=500,
            ops=9,
            waits=9,
            holders=(sweep,),
        )
        found = Snapshot(
            "slow",
            Status.FOUND,
            Probes.PAD,
            paths=tuple(paths),
            ops=KeptOps(HZ, sees_waits=True),
            waits=Waits(9, 1000, (lock,)),
        )
        known = shown(Why(Verdict.FOUND, (Answer(suspect, found),)))
        return status(known, Style()).splitlines()

    lines = told(where)
    held = '50 %, held by thread 7 "house": 9 calls'
    assert lines[lines.index(after) + 1] == f"    waited for the lock cache_lock, {held}"
    lines = told("log")
    last = lines.index("    cause: blocked in account")
    assert lines[last + 1] == f"  elsewhere: waited for the lock cache_lock in log ← slow, {held}"


def told_of(known: FunctionSet) -> Why:
    """What is said where profiles have shown that and nothing was searched."""
    shown = Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(known))
    return WhyPursuit(20.0, Parameters()).known(session_of(None), shown)


def test_that_functions_were_not_timed_is_said_where_nothing_was_found() -> None:
    reasons = (NO_TIME, too_many(MOST_FUNCTIONS), CALLED_OFF, LeftOut("it walks the stack"))
    left_out = tuple((function(why.text), why) for why in reasons)
    known = dataclasses.replace(of(row("slow", {10: 12})), left_out=left_out, seconds=0.6)
    why = told_of(known)
    assert why.verdict is Verdict.UNKNOWN
    assert why.reasons == (
        "no function was called 100 times in 0.6s",
        "1 function was not timed: Ctrl-C came before its pad was made",
        "1 function was not timed: the probes were not made in time",
        "1 function was not timed, as there are so many: 'darc profile PATTERN' times those that "
        "it names",
    )


def test_where_no_probe_was_made_nothing_is_said_of_calls() -> None:
    """In a large program that begins, or at Ctrl-C while probes are made."""
    known = FunctionSet((), left_out=((function("f"), NO_TIME),), seconds=0.6)
    why = told_of(known)
    assert why.verdict is Verdict.UNKNOWN
    assert why.reasons == (
        "it ended before anything was timed: probes were still being made",
        "1 function was not timed: the probes were not made in time",
    )


@pytest.mark.parametrize(
    ("is_over", "line"),
    [
        (True, "it ended as it made probe 47 of 1,955: nothing was timed"),
        (False, "makes probe 47 of 1,955: nothing is timed yet"),
    ],
)
def test_how_many_probes_were_made_is_told_where_nothing_is_timed(is_over: bool, line: str) -> None:
    known = FunctionSet((), uncalled=(function("f"),), making=(47, 1955))
    text = status(shown(dataclasses.replace(told_of(known), is_over=is_over)), Style())
    assert text.splitlines()[1] == f"  {line}"
    assert "0 calls" not in text
    assert "probes were still being made" not in text


TOO_MANY = too_many(MOST_FUNCTIONS)


@pytest.mark.parametrize(
    ("called", "left", "why_left", "can_tell"),
    [
        (3, 2000, TOO_MANY, False),
        (3, 2000, NO_TIME, False),
        (3, 2, NO_TIME, True),
        (40, 2000, TOO_MANY, True),
        (40, 2000, NO_TIME, False),  # these were the likeliest
    ],
)
def test_little_was_seen_of_a_very_large_program(
    called: int, left: int, why_left: LeftOut, can_tell: bool
) -> None:
    """Of 2,000 functions of a browser three were timed, and none of these stood out."""
    rows = [
        dataclasses.replace(row("quick", {10: 500}), function=function(f"f{n}"))
        for n in range(called)
    ]
    left_out = tuple((function(f"g{n}"), why_left) for n in range(left))
    known = dataclasses.replace(of(*rows), left_out=left_out, seconds=15.0)
    pursuit = WhyPursuit(30.0, Parameters())
    pursuit.take(profiled := session_of(profiles(known)), Snapshot("*", Status.DONE, Probes.PAD))
    why = pursuit.known(profiled, Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(known)))
    assert why.verdict is (Verdict.NOTHING if can_tell else Verdict.UNKNOWN)
    said = "not made in time" if why_left == NO_TIME else "not timed, as there are so many"
    assert any(said in reason for reason in why.reasons)
    if called + left > 2000 and called < 10:
        assert why.reasons[0] == (
            "only 3 of the 3 functions that were timed were called, and 2,000 others were not timed"
        )


def slept(fast: str) -> Snapshot:
    """A search that has found a sleep below ``dispatch``, whose fast calls take all their time in
    ``fast``."""
    root = Fnode(function("handle"))
    dispatch = root.add_child(function("dispatch"), None)
    sleep = dispatch.add_child(function("bulk"), None).add_child(function("usleep"), None)
    nodes = {"dispatch": (dispatch,), "usleep": (dispatch, sleep)}

    def op(number: int, kept_as: OpClass, latency: int, *called: Fnode) -> Op:
        sums = [Sum(node, 1, latency - 10, latency - 10) for node in called]
        return made_op(number, kept_as, latency, short=sums)

    ops = [op(n, OpClass.IN_PEAK, 10**6, dispatch, sleep) for n in range(8)]
    ops += [op(n, OpClass.FASTEST, 10**4, *nodes[fast]) for n in range(8, 16)]
    path = RootCausePath((root, dispatch, *dispatch.children, sleep), Ending(Cause.BLOCKED, 20))
    kept = KeptOps(HZ, tuple(ops), 8, 8)
    return Snapshot("handle", Status.FOUND, Probes.PAD, ftree=root, paths=(path,), ops=kept)


def test_a_sleep_that_fast_calls_do_not_come_to_is_a_cause() -> None:
    assert idle_in(slept("dispatch")) is None
    assert idle_in(slept("usleep")) == "usleep"


# ------------------------------------------------------------------------------- its steps


def session_of(analysis: object, root: Fnode | None = None) -> Session:
    analysis = analysis or SimpleNamespace(status=Status.DONE)
    return cast("Session", SimpleNamespace(alive=False, analysis=analysis, root=root, program=None))


def profiles(known: FunctionSet, elsewhere: tuple[int, ...] | None = None) -> SuspectProfiles:
    analysis = SuspectProfiles.__new__(SuspectProfiles)
    vars(analysis).update(_known=known, _clock=SimpleNamespace(begun=None), elsewhere=elsewhere)
    analysis._status = Status.DONE
    return analysis


def profiled(known: FunctionSet, elsewhere: tuple[int, ...] | None = None) -> WhyPursuit:
    """One that has timed functions, in two stops of half a second."""
    pursuit = WhyPursuit(20.0, Parameters())
    take_profiles(pursuit, profiles(known, elsewhere))
    return pursuit


def take_profiles(pursuit: WhyPursuit, analysis: SuspectProfiles) -> None:
    pursuit.take(session_of(analysis), Snapshot("*", Status.DONE, Probes.PAD, program=spent(2)))


def test_where_the_work_is_elsewhere_that_is_profiled_once() -> None:
    nothing = FunctionSet((), seconds=3.0)
    pursuit = profiled(nothing, (4096, 8192))
    following = pursuit.next()
    assert following is not None
    members = following[1].finder
    assert isinstance(members, Members)
    assert members.places == (4096, 8192)
    take_profiles(pursuit, profiles(nothing, (4096,)))
    assert pursuit.next() is None
    known = pursuit.known(session_of(None), Snapshot("*", Status.DONE, Probes.PAD))
    assert known.verdict is Verdict.UNKNOWN


def spent(stops: int) -> ProgramFigures:
    return ProgramFigures(stops=stops, stopped_seconds=stops / 4, longest_stop=stops / 8)


def search(
    pursuit: WhyPursuit, *names: str, unclear: Sequence[Unclear] = ()
) -> tuple[Session, Snapshot]:
    """The next search, of ``names[0]``, which finds that path, in three stops."""
    following = pursuit.next()
    assert following is not None
    places = {"log_line": 64, "serve": 128, "other": 192}
    nodes = [Fnode(function(names[0], following[0]))]
    assert following[0] == places[names[0]]
    for name in names[1:]:
        nodes.append(nodes[-1].add_child(function(name, places.get(name, 4096)), None))
    path = RootCausePath(tuple(nodes), Ending(Cause.BLOCKED, 20, unclear=frozenset(unclear)))
    found = Snapshot(
        names[0], Status.FOUND, Probes.PAD, ftree=nodes[0], paths=(path,), program=spent(3)
    )
    session = session_of(None, nodes[0])
    pursuit.take(session, found)
    return session, found


def told(known: Why) -> list[str]:
    return [one.suspect.name for one in known.answers]


def test_of_nested_ones_with_the_same_slow_calls_the_outermost_is_told() -> None:
    """The inner one was looked into first: one more of its calls had ended."""
    pursuit = profiled(of(row("log_line", {**SLOW, 24: 31}), row("serve", SLOW)))
    search(pursuit, "log_line", "write")
    last = search(pursuit, "serve", "log_line", "write")
    assert pursuit.next() is None
    assert told(pursuit.known(*last)) == ["serve"]
    assert pursuit.best is last[0]


def test_one_that_others_call_too_stays_for_all_of_them() -> None:
    pursuit = profiled(of(row("log_line", {**SLOW, 24: 90}), row("serve", SLOW)))
    first = search(pursuit, "log_line", "write")
    last = search(pursuit, "serve", "log_line", "write")
    assert told(pursuit.known(*last)) == ["log_line"]
    assert pursuit.best is first[0]


def test_what_happens_to_all_is_looked_into_where_the_rest_waits_for_work() -> None:
    """Each has 3 % of a thread's time of it."""
    noisy = [
        row(f"f{n}", {11: round(20_000 * scale), 20: round(40 * scale)})
        for n, scale in enumerate((1.2, 1, 1, 0.8))
    ]
    assert profiled(of(*noisy)).next() is None
    pursuit = profiled(of(row("log_line", SLOW), *noisy))
    search(pursuit, "log_line", "epoll_wait")
    following = pursuit.next()
    assert following is not None
    assert following[1].function == "f0"
    pursuit = profiled(of(row("log_line", SLOW), *noisy))
    search(pursuit, "log_line", "write")
    assert pursuit.next() is None


def test_two_that_have_nothing_to_do_with_each_other_are_two() -> None:
    pursuit = profiled(of(row("log_line", {**SLOW, 24: 31}), row("serve", SLOW)))
    search(pursuit, "log_line", "write")
    last = search(pursuit, "serve", "read")
    assert told(pursuit.known(*last)) == ["log_line", "serve"]


@pytest.mark.parametrize("slow", [30, 90])
def test_of_the_same_slow_calls_the_answer_that_looked_into_all_is_the_first(slow: int) -> None:
    """The other one's path ends where calls could not be timed; of other calls, it stays first."""
    pursuit = profiled(of(row("log_line", {**SLOW, 24: slow + 1}), row("serve", SLOW)))
    search(pursuit, "log_line", "run", unclear=[Unclear.WHOSE])
    last = search(pursuit, "serve", "write")
    known = pursuit.known(*last)
    assert told(known) == (["serve", "log_line"] if slow == 30 else ["log_line", "serve"])
    assert any("the time may be theirs" in one for one in known.reasons) == (slow != 30)


@pytest.mark.parametrize(("preempted", "is_sure"), [(20, True), (12, False)])
def test_calls_that_would_be_slow_all_the_same_do_not_agree_that_others_are_to_blame(
    preempted: int, is_sure: bool
) -> None:
    """Of twenty calls that were kept eight compute for as long as they take."""
    pursuit = profiled(of(row("serve", SLOW)))
    assert pursuit.next() is not None
    root = Fnode(function("serve", 64))
    ops = [
        made_op(n, OpClass.IN_PEAK, 1000, off=(Off(50, 950, OffReason.READY),)) for n in range(20)
    ]
    path = RootCausePath((root,), Ending(Cause.PREEMPTION, preempted))
    kept = KeptOps(HZ, tuple(ops))
    found = Snapshot("serve", Status.FOUND, Probes.PAD, ftree=root, paths=(path,), ops=kept)
    session = session_of(None, root)
    pursuit.take(session, found)
    known = pursuit.known(session, found)
    assert known.answers[0].agreement == pytest.approx(preempted / 20)
    assert ("60 % of the votes agree" in known.reasons) == (not is_sure)


@pytest.mark.parametrize(("waited", "part"), [(20, 1.0), (11, 0.55)])
def test_calls_that_spend_their_time_otherwise_do_not_agree(waited: int, part: float) -> None:
    """The last function's own time has all votes; it waits in some calls, computes in others."""
    pursuit = profiled(of(row("serve", SLOW)))
    assert pursuit.next() is not None
    root = Fnode(function("serve", 64))
    (last,) = voted(root, 20, write=20)
    voted(last, 30, own=30)
    ops = []
    for n in range(20):
        off = (Off(50, 950, OffReason.BLOCKED),) if n < waited else ()
        span = call(0, last, 10, 980)
        ops.append(made_op(n, OpClass.IN_PEAK, 1000, spans=[span], off=off))
    path = RootCausePath((root, last), Ending(Cause.BLOCKED, waited))
    found = Snapshot(
        "serve", Status.FOUND, Probes.PAD, ftree=root, paths=(path,), ops=KeptOps(HZ, tuple(ops))
    )
    session = session_of(None, root)
    pursuit.take(session, found)
    (answer,) = pursuit.known(session, found).answers
    assert answer.agreement == pytest.approx(part)


@pytest.mark.parametrize(
    ("slow", "seconds", "votes"), [(60, SECONDS, 20), (180, 12.0, 10), (30, 12.0, 8)]
)
def test_as_many_votes_as_there_is_time_for(slow: int, seconds: float, votes: int) -> None:
    """Where slow calls are rare."""
    known = of(row("serve", {10: 1000, 26: slow}))
    following = profiled(dataclasses.replace(known, seconds=seconds)).next()
    assert following is not None
    assert following[1].parameters.decision_ops == votes


@pytest.mark.parametrize(("without", "is_idle"), [(800, False), (200, True)])
def test_who_is_awake_without_a_processor_waits_for_no_work(without: int, is_idle: bool) -> None:
    """The work had come by then."""
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    wait = root.add_child(function("epoll_wait"), None)
    holder = Holder(role=Role.HANDED_OVER, thread="", path=(), cycles=without, ops=19)
    objects = (
        WaitedFor(
            kind=ObjectKind.WAKE_UP,
            name="",
            path=(),
            cycles=950,
            ops=19,
            waits=19,
            holders=(holder,),
        ),
    )
    found = Snapshot(
        "serve",
        Status.FOUND,
        Probes.PAD,
        paths=(RootCausePath((root, wait), Ending(Cause.BLOCKED, 20)),),
        ops=KeptOps(HZ, sees_waits=True),
        waits=Waits(19, 1000, objects),
    )
    session = session_of(None, root)
    pursuit.take(session, found)
    known = pursuit.known(session, found)
    assert [one.suspect.name for one in known.answers] == ([] if is_idle else ["serve"])
    text = status(shown(known), Style())
    assert ("threads were woken, which waited for 80 % of the time\n" in text) == (not is_idle)


@pytest.mark.parametrize(("quota", "is_told"), [(900, True), (300, False)])
def test_who_is_throttled_is_not_said_to_wait_for_others(quota: int, is_told: bool) -> None:
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    off = (Off(0, 1000, OffReason.READY),)
    op = made_op(1, OpClass.IN_PEAK, 1000, off=off)
    waited = (
        WaitedFor(
            kind=ObjectKind.PROCESSOR, name="", path=(), cycles=950, ops=1, waits=1, holders=()
        ),
    )
    found = Snapshot(
        "serve",
        Status.FOUND,
        Probes.PAD,
        paths=(RootCausePath((root,), Ending(Cause.FUNCTION, 20)),),
        ops=KeptOps(HZ, (op,), sees_waits=True, by_quota=quota),
        waits=Waits(1, 1000, waited),
    )
    session = session_of(None, root)
    pursuit.take(session, found)
    text = status(shown(pursuit.known(session, found)), Style())
    told = "its CPU quota took up to 90 % of the time without a processor\n"
    assert (told in text) == is_told
    assert ("others had the processor" in text) == (not is_told)


@pytest.mark.parametrize(
    ("unclear", "reason"),
    [
        (set(), None),
        ({Unclear.HOW_SPENT}, "whether read ran or waited is not known"),
        ({Unclear.WHOSE}, "calls of read could not be timed: the time may be theirs"),
        (
            {Unclear.WHO_HELD},
            "of read: whether it waited or the debugger held it is not known",
        ),
    ],
)
def test_of_whom_not_all_is_known_is_no_sure_answer(
    unclear: set[Unclear], reason: str | None
) -> None:
    """Whatever words the note has for it."""
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    (read,) = voted(root, 20, read=20)
    path = RootCausePath((root, read), Ending(Cause.FUNCTION, 20, unclear=frozenset(unclear)))
    kept = KeptOps(HZ, (made_op(1, OpClass.IN_PEAK, 1000, off=()),))
    found = Snapshot("serve", Status.FOUND, Probes.PAD, ftree=root, paths=(path,), ops=kept)
    session = session_of(None, root)
    pursuit.take(session, found)
    reasons = pursuit.known(session, found).reasons
    assert [one for one in reasons if re.search(r"\bread\b", one)] == (
        [] if reason is None else [reason]
    )


def test_whose_threads_were_not_watched_may_have_been_preempted() -> None:
    """A call that computes and one that was taken the processor are the same to a clock."""
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    path = RootCausePath((root,), Ending(Cause.FUNCTION, 20))
    kept = KeptOps(HZ, (made_op(1, OpClass.IN_PEAK, 1000, off=None),))
    found = Snapshot("serve", Status.FOUND, Probes.PAD, ftree=root, paths=(path,), ops=kept)
    session = session_of(None, root)
    pursuit.take(session, found)
    known = pursuit.known(session, found)
    assert not known.is_sure
    assert "whether serve ran or waited is not known" in known.reasons


@pytest.mark.parametrize(
    ("quota", "who"), [(0, "others had the processor"), (900, "its CPU quota was used up")]
)
def test_whose_calls_were_preempted_is_no_cause(quota: int, who: str) -> None:
    """It is said what is sure: nothing of the function's own."""
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    root.decision = Decision(20, 20, 20)
    op = made_op(1, OpClass.IN_PEAK, 1000, off=(Off(0, 1000, OffReason.READY),))
    found = Snapshot(
        "serve",
        Status.FOUND,
        Probes.PAD,
        paths=(RootCausePath((root,), Ending(Cause.PREEMPTION, 20)),),
        ops=KeptOps(HZ, (op,), by_quota=quota),
    )
    session = session_of(None, root)
    pursuit.take(session, found)
    known = pursuit.known(session, found)
    text = status(shown(known), Style())
    assert re.match(f"darc: why: found, (not )?sure: {who}", text), text
    assert "  preempted in serve: no cause of its own\n" in text
    assert "root cause" not in text
    (answer,) = to_json(shown(known))["why"]["answers"]
    assert answer["preempted"]
    assert answer["root_cause_paths"][0]["cause"] == "preemption"


def test_what_is_slow_by_itself_comes_before_whose_calls_were_preempted() -> None:
    """Whose turn it was is nothing that one can mend in the program."""
    serve, read = row("serve", SLOW), row("read", {10: 1000, 11: 200, 25: 30})
    pursuit = profiled(of(serve, read))
    for name, cause in (("read", Cause.PREEMPTION), ("serve", Cause.BLOCKED)):
        following = pursuit.next()
        assert following is not None
        root = Fnode(function(name, following[0]))
        path = RootCausePath((root,), Ending(cause, 20))
        found = Snapshot(name, Status.FOUND, Probes.PAD, ftree=root, paths=(path,))
        session = session_of(None, root)
        pursuit.take(session, found)
    known = pursuit.known(session, found)
    assert [one.suspect.name for one in known.answers] == ["serve", "read"]
    assert [one.is_preempted for one in known.answers] == [False, True]


def test_a_search_that_had_no_time_left_tells_how_far_it_came() -> None:
    """By its votes up to then; that is no sure answer."""
    pursuit = profiled(of(row("serve", SLOW)))
    following = pursuit.next()
    assert following is not None
    root = Fnode(function("serve", following[0]))
    parse, _ = voted(root, 20, parse=20, log=0)
    (wait,) = voted(parse, 20, lock=20)
    for node in (parse, wait):
        node.root_cause = True
    assert open_paths(root) == [[root, parse, wait]]
    end_where_it_is(root)
    assert not open_paths(root)
    found = Snapshot("serve", Status.INCONCLUSIVE, Probes.PAD, ftree=root, paths=ended_paths(root))
    session = session_of(None, root)
    pursuit.take(session, found)
    known = pursuit.known(session, found)
    assert (known.verdict, known.is_sure) == (Verdict.FOUND, False)
    assert "the search was not at its end" in known.reasons
    text = status(shown(known), Style())
    assert "root cause: serve → parse → lock\n" in text
    assert "in lock or what it calls: the search was not at its end" in text


def test_the_stops_of_all_steps_are_told() -> None:
    pursuit = profiled(of(row("log_line", {**SLOW, 24: 31}), row("serve", SLOW)))
    pursuit.setup_seconds = 1.5
    search(pursuit, "log_line", "write")
    pursuit.stood_still(0.25)
    last = search(pursuit, "serve", "read")
    known = pursuit.known(*last)
    assert (known.stops, known.stopped_seconds) == (2 + 3 + 3, 2.25)
    text = status(shown(known), Style())
    assert "stood still for 2.2s in 8 stops; before, for 1.5s, for its probes\n" in text
    made = to_json(shown(known))["why"]
    assert (made["stops"], made["stopped_seconds"], made["setup_seconds"]) == (8, 2.25, 1.5)
    assert made["longest_stop"] == 0.375
    pursuit.stood_still(0.5)
    assert pursuit.known(*last).longest_stop == 0.5
    one_more = Snapshot("*", Status.DONE, Probes.PAD, program=spent(1))
    assert pursuit.known(session_of(None), one_more).stops == 9


def test_preempted_calls_between_do_not_hide_a_slow_peak() -> None:
    """Of a machine that is busy: fewer calls than the slow peak has, and no valley beside it."""
    busy = {12: 590_447, 16: 820, 17: 16, 18: 1002, 19: 41, 20: 4071, 21: 510, 22: 859}
    (found,) = suspects(of(row("parse", busy)))
    assert found.peak.first_bin == 20


TAIL = {14: 3000, 15: 1500, 16: 700, 17: 300, 18: 120, 19: 60, 20: 30, 21: 25}
"""Of 16 µs as a rule, and up to 4 ms, without a valley: as a disk's latency is spread."""


def test_the_longest_tail_is_told_where_nothing_stands_out() -> None:
    known = of(row("flush", TAIL), row("handle", {**TAIL, 13: 100}), row("plain", {10: 5000}))
    assert suspects(known) == ()
    pursuit = profiled(known)
    assert pursuit.next() is None
    session = session_of(None)
    why = pursuit.known(session, shown(Why(Verdict.NOTHING, ())))
    assert why.verdict is Verdict.NOTHING
    text = status(shown(why), Style())
    assert "handle has no slow peak, but a long tail: 535 of 5835 calls take" in text
    assert "'darc start handle --peak >200us' looks into these" in text
    assert to_json(shown(why))["why"]["tail"]["slow"] == 535


def test_so_is_one_of_more_than_a_tenth_of_the_calls() -> None:
    """Of requests that wait for a disk, a fifth take 1 to 10 ms, and no valley is left."""
    asks = {12: 10, 14: 75, 16: 500, 17: 250, 18: 90, 19: 60, 20: 44, 21: 42, 22: 43, 23: 38}
    known = of(row("handle", asks))
    assert suspects(known) == ()
    tail = longest_tail(known)
    assert tail is not None
    assert (tail.row.function.name, tail.slow) == ("handle", 227)


def test_it_is_not_where_most_wait_or_where_it_takes_next_to_nothing() -> None:
    waits = of(row("next_job", {18: 5000, 19: 900, 23: 100, 24: 50, 25: 25}))
    assert longest_tail(waits) is None, "it takes longer than one thread has been computing"
    assert longest_tail(of(row("short", {4: 5000, 7: 30}))) is None
    assert longest_tail(of(row("few", {14: 5000, 20: 19}))) is None
    assert longest_tail(of(row("usleep", TAIL))) is None


def test_one_with_few_calls_as_yet_is_worth_a_wait() -> None:
    few = {14: 3000, 15: 100, 16: 30, 17: 6, 18: 3, 19: 2, 20: 2, 21: 1, 22: 1, 23: 1, 24: 3}
    known = of(row("send_out", {7: 14_000, 14: 6000}), row("request", few))
    found = choice(known, lambda function: False)
    assert found is not None
    assert found.name == "send_out"
    assert may_follow(known, found)
    assert not may_follow(of(row("send_out", {7: 14_000, 14: 6000})), found)


def test_a_program_that_ends_early_is_asked_for_less_time() -> None:
    known = of(row("plain", {10: 5000}))
    pursuit = WhyPursuit(30.0, Parameters())
    session = session_of(SimpleNamespace(status=Status.ENDED))
    why = pursuit.known(session, Snapshot("*", Status.ENDED, Probes.PAD, parts=parts_of(known)))
    assert why.verdict is Verdict.UNKNOWN
    assert why.reasons[0].startswith("the program ended after 2.0s")
    assert "'darc why --time 2s', then 'run'" in status(shown(why), Style())
