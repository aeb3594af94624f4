"""Locks without a name that are waited for at one place, as one."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from darc.analyses.closinground import waited_together
from darc.analyses.waits import moments_of
from darc.model.ops import Event, ObjectKind, Op, OpClass
from darc.model.waits import Holder, Role, WaitedFor, Waits, over_paths, together
from darc.views.waitsview import draw_waits, waited_text
from tests.unit.waits import wait


def lock(name: str, cycles: int, path: tuple[str, ...] = ("lookup", "get")) -> WaitedFor:
    sweep = Holder(
        role=Role.HELD,
        thread="store",
        path=("sweep", "run"),
        cycles=cycles - 10,
        ops=2,
        threads=(7,),
    )
    other = Holder(
        role=Role.HELD,
        thread="store",
        path=("lookup", "handle"),
        cycles=10,
        ops=1,
        threads=(len(name) + cycles,),
    )
    return WaitedFor(
        kind=ObjectKind.LOCK,
        name=name,
        path=path,
        cycles=cycles,
        ops=2,
        waits=2,
        holders=(sweep, other),
    )


def test_shards_of_a_table_are_one() -> None:
    shards = [lock(f"0x7ff{n} on a stack", 100 * n) for n in range(1, 14)]
    (made,) = together(shards)
    assert (made.count, made.cycles, made.ops) == (13, 9100, 26)
    sweep, other = made.holders
    assert (sweep.cycles, sweep.ops, sweep.threads) == (9100 - 130, 26, (7,))
    assert len(other.threads) == 13


def test_names_and_places_are_kept_apart() -> None:
    objects = (lock("log_lock", 50), lock("index_lock", 40), lock("0x10", 30, ("put",)))
    assert together(objects) == objects


def test_the_lines_say_how_many() -> None:
    waits = Waits(30, 10_000, tuple(lock(f"0x{n}", 100) for n in range(4)))
    lines = [
        line.plain
        for line in draw_waits(waits, None, "get", latency=lambda cycles: f"{cycles:.0f}")
    ]
    assert lines[1] == "├─   4 %  waited for 4 locks in lookup ← get: 8 calls"
    assert lines[2] == '│  ├─   4 %  held by thread 7 "store" in sweep ← run: 8 calls'


def test_calls_that_waited_together_are_few_answers() -> None:
    """Nineteen calls behind one holder say no more of who has it than one."""
    waits = Waits(19, 10_000, (lock("cache", 9000),), moments=2)
    lines = [
        line.plain
        for line in draw_waits(waits, None, "get", latency=lambda cycles: f"{cycles:.0f}")
    ]
    assert lines[0].endswith("of 19 calls kept, at 2 moments")
    assert "who had it may be another at other moments" in lines[-1]
    apart = dataclasses.replace(waits, moments=15)
    lines = [
        line.plain
        for line in draw_waits(apart, None, "get", latency=lambda cycles: f"{cycles:.0f}")
    ]
    assert lines[0].endswith("of 19 calls kept")
    assert "moments" not in lines[-1]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), max_size=30))
def test_moments_are_where_no_call_is_under_way_between(calls: list[tuple[int, int]]) -> None:
    ops = [
        Op(
            number=number,
            kept_as=OpClass.IN_PEAK,
            thread=1,
            start=2 * start,
            end=2 * (start + length),
            cost=0,
            latency=length,
        )
        for number, (start, length) in enumerate(calls, 1)
    ]
    busy = {at for start, length in calls for at in range(2 * start, 2 * (start + length) + 1)}
    assert moments_of(ops) == sum(at - 1 not in busy for at in busy)


def test_a_closing_round_goes_on_where_one_holder_has_blocked_them_all() -> None:
    def ops(*starts: int, events: tuple[Event, ...] = (wait(5),)) -> list[Op]:
        return [
            Op(
                number=number,
                kept_as=OpClass.IN_PEAK,
                thread=number,
                start=start,
                end=start + 50,
                cost=0,
                latency=50,
                events=events,
            )
            for number, start in enumerate(starts, 1)
        ]

    assert waited_together(ops(*range(19)))
    assert waited_together(ops(*range(19), 1000, 2000))
    assert not waited_together(ops(*range(0, 1900, 100))), "each at a moment of its own"
    assert not waited_together(ops(*range(19), events=())), "they do not wait for anybody"
    assert not waited_together(ops(1, 2, 3)), "so few say little anyway"


def test_the_same_lock_is_one_whatever_leads_to_it() -> None:
    objects = (lock("cache", 600, ("get",)), lock("cache", 350, ("set",)), lock("log", 400))
    first, second = over_paths(Waits(3, 1500, objects))
    assert (first.name, first.count, first.cycles, first.ops) == ("cache", 1, 950, 3)
    sweep, *_ = first.holders
    assert (sweep.cycles, sweep.ops, sweep.threads) == (930, 3, (7,))
    assert second == objects[2]


def test_shards_that_several_functions_wait_for_are_one() -> None:
    shards = [lock(f"0x7ff{n}", 100, ("get",)) for n in range(8)]
    shards += [lock(f"0x7ff{n}", 50, ("set",)) for n in range(4, 12)]
    found, other = over_paths(Waits(50, 1500, (*shards, lock("0x9", 30, ("put",)))))
    assert (found.name, found.count, found.cycles) == ("", 12, 1200)
    assert (other.name, other.count) == ("0x9", 1)


def test_one_line_tells_who_had_it_for_most_of_the_wait() -> None:
    def held(name: str, number: int, cycles: int, path: str) -> Holder:
        return Holder(
            role=Role.HELD, thread=name, path=(path,), cycles=cycles, ops=3, threads=(number,)
        )

    workers = tuple(held(f"worker{n}", n, 15, "ask") for n in range(1, 6))
    one = WaitedFor(
        kind=ObjectKind.LOCK,
        name="be_lock",
        path=("ask",),
        cycles=76,
        ops=6,
        waits=9,
        holders=workers,
    )
    assert waited_text(one, 100, str) == (
        "waited for the lock be_lock, 76 %, held by 5 threads in ask: 6 calls"
    )
    two = (held("janitor", 7, 56, "sweep"), held("compactor", 8, 20, "compact"))
    assert waited_text(dataclasses.replace(one, holders=two), 100, str) == (
        'waited for the lock be_lock, 76 %, 74 % of that held by thread 7 "janitor" in sweep: '
        "3 calls"
    )


def test_who_had_the_processor_for_most_of_it_is_told_and_not_how_many_others_ran() -> None:
    def ran(name: str, number: int, cycles: int) -> Holder:
        return Holder(
            role=Role.RAN,
            thread=name,
            path=(),
            cycles=cycles,
            ops=6,
            threads=(number,),
            is_outside=True,
        )

    others = tuple(ran(f"kworker{n}", n, 2) for n in range(2, 5))
    one = WaitedFor(
        kind=ObjectKind.PROCESSOR,
        name="",
        path=(),
        cycles=76,
        ops=6,
        waits=9,
        holders=(ran("hog", 9, 70), *others),
    )
    assert waited_text(one, 100, str) == (
        'waited for a processor, 76 %, meanwhile ran process 9 "hog": 6 calls'
    )
    alike = tuple(ran(f"make{n}", n, 19) for n in range(4))
    assert waited_text(dataclasses.replace(one, holders=alike), 100, str) == (
        "waited for a processor, 76 %, meanwhile ran 4 processes: 6 calls"
    )
