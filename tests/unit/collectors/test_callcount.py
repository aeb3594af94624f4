"""Which calls of f0 count that were timed outside the program, and when they are enough."""

from __future__ import annotations

from darc.collectors.callcount import CallCount
from darc.collectors.tally import CallTimes
from darc.model.ftree import Fnode
from tests.unit import samples

ROOT = Fnode(samples.function("handle"))


def timed(latency: int) -> dict[Fnode, CallTimes]:
    return {ROOT: CallTimes(latency, latency, 1)}


def count() -> CallCount:
    made = CallCount(1, samples.HZ, by_longest=False)
    made.analyse = (ROOT,)
    return made


def test_all_calls_count_until_there_is_a_peak() -> None:
    made = count()
    made.await_calls(2)
    assert made.add_call(100, timed(100))
    assert not made.is_enough
    assert made.add_call(1_000_000, timed(1_000_000))
    assert made.is_enough
    assert (made.profile().count, made.seen, made.voted) == (2, 2, 0)


def test_then_those_inside_it_alone_and_the_profile_stays() -> None:
    made = count()
    made.add_call(100, timed(100))
    made.search(1000, 2000)
    made.await_in_peak(1)
    for latency in (999, 2000):
        assert not made.add_call(latency, timed(latency))
    assert not made.is_enough
    assert made.add_call(1000, timed(1000))
    assert made.is_enough
    assert (made.profile().count, made.seen, made.voted) == (1, 1, 1)
    assert made.tally.votes()[ROOT].own == 1


def test_a_round_that_asks_for_more_rests_on_what_has_voted() -> None:
    made = count()
    made.search(0, 2000)
    made.await_in_peak(1)
    made.add_call(1000, timed(1000))
    made.await_more(2)
    assert not made.is_enough
    made.add_call(1000, timed(1000))
    assert made.is_enough


def test_the_user_may_take_time_and_a_time_limit_none() -> None:
    made = count()
    made.await_user()
    made.add_call(100, timed(100))
    assert not made.is_enough
    made.hurry()
    assert made.is_enough
