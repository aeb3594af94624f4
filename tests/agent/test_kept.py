"""Ops that are kept whole, by the agent's own machine code: what is in them is what happened.

As in :mod:`tests.agent.test_agent`, whose programs these are; :mod:`tests.agent.model` knows which
ops there were, and every call in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.agent import compiled
from tests.agent import model
from tests.agent.trees import (
    ARMS,
    CALL,
    DEBUGGER,
    EXAMPLES,
    EXCEPTIONS,
    FUNCTION,
    INDIRECT,
    JUMP,
    JUMPS,
    RETURN,
    SWITCHES,
    TAIL,
    WORK,
    Op,
    look,
    settings_of,
    trees,
)
from tests.agent.world import Setting, Timed, World, tree_of

SPANS = compiled.load().constants.MAX_SPANS
SUMS = compiled.load().constants.MAX_SUMS


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One process for all."""
    made = World()
    yield made
    made.close()


STOPS = st.tuples(st.just(DEBUGGER), st.sampled_from((0, 1, 2, 5)))
STEPS = st.one_of(
    st.tuples(st.just(WORK), st.integers(1, 60)),
    st.tuples(st.just(CALL), FUNCTION),
    st.tuples(st.just(CALL), st.just(0)),
    st.just((RETURN,)),
    st.just((RETURN,)),
    st.tuples(st.just(TAIL), FUNCTION),
    st.tuples(st.just(INDIRECT), FUNCTION),
)


def programs(*more: st.SearchStrategy[Op]) -> st.SearchStrategy[list[list[Op]]]:
    """Those of three threads, and of handlers."""
    return st.lists(st.lists(st.one_of(STEPS, STEPS, *more), max_size=60), min_size=1, max_size=6)


@st.composite
def keeping(draw: st.DrawFn) -> Setting:
    """An analysis that keeps ops: what is shorter than the peak is of the fastest one."""
    low = draw(st.sampled_from((0, 30, 100)))
    return dataclasses.replace(
        draw(settings_of()),
        trees=(draw(trees()), draw(trees())),
        analyse=True,
        needed=1 << 40,
        signal=0,
        peak=(low, 1 << 62),
        least_span=draw(st.sampled_from((1, 10, 50))),
        fast=(0, low),
    )


@EXAMPLES
@given(keeping(), programs(JUMPS, STOPS))
def test_what_is_kept_is_what_happened(
    world: World, setting: Setting, program: list[list[Op]]
) -> None:
    """Calls, tail calls, jumps out of them, and stops that fall into ops: these are not kept."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


@EXAMPLES
@given(keeping(), programs(JUMPS, EXCEPTIONS, SWITCHES, STOPS))
def test_of_threads_and_exceptions(world: World, setting: Setting, program: list[list[Op]]) -> None:
    """Each thread's op has its own calls, also where they take turns."""
    done = world.run(setting, program)
    look(done)
    model.check(setting, done)


@EXAMPLES
@given(keeping(), programs(ARMS, JUMPS, EXCEPTIONS, SWITCHES, STOPS))
def test_interruptions_spoil_nothing(
    world: World, setting: Setting, program: list[list[Op]]
) -> None:
    """Handlers that call f0 and jump out, anywhere: what is kept can be read, and is in order."""
    done = world.run(setting, program)
    look(done)
    for op in done.kept:
        assert op.start < op.end
        assert all(op.start <= span.end <= op.end for span in op.spans)
        assert len({one.node for one in op.sums}) == len(op.sums)
        assert all(one.max <= one.sum for one in op.sums)


_TREE = tree_of([Timed(0, ("call", 0, 1)), Timed(1, ("call", 1, 2))], [0, 1])


def op_of(calls: int, work: int) -> list[Op]:
    """An op that makes so many calls."""
    return [(CALL, 0), *[(CALL, 1), (WORK, work), (RETURN,)] * calls, (RETURN,)]


def test_more_calls_than_there_is_room_for_are_counted(world: World) -> None:
    setting = Setting((_TREE,), analyse=True, least_span=10)
    calls = SPANS + 7
    done = world.run(setting, [[*op_of(calls, 20), *op_of(2, 5)]])
    look(done)
    model.check(setting, done)
    slow = max(done.kept, key=lambda op: op.latency)
    assert (len(slow.spans), slow.lost) == (SPANS, 7)
    assert [(one.calls, one.sum) for one in slow.sums] == [(calls, 20 * calls)]
    fast = min(done.kept, key=lambda op: op.latency)
    assert (len(fast.spans), [one.calls for one in fast.sums]) == (0, [2])


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=100))
@EXAMPLES
def test_a_choice_of_all_and_the_slowest(world: World, works: list[int]) -> None:
    """Of n ops the slowest is kept and 32 of all others, or all of them, in whatever order they
    come."""
    setting = Setting((_TREE,), analyse=True, least_span=1)
    done = world.run(setting, [[step for work in works for step in op_of(1, work)]])
    look(done)
    model.check(setting, done)
    assert len(done.kept) == min(len(works), model.MOST + 1)
    assert [op.latency for op in done.kept if op.is_slowest] == [max(works)]
    assert done.ops_seen[0] == len(works)


def test_every_op_has_the_same_chance(world: World) -> None:
    """Also one that was the slowest for a time."""
    setting = Setting((_TREE,), analyse=True, least_span=1)
    count, times = [0] * 64, 60
    for first in range(times):
        works = [(WORK, 1 + 977 * first)]
        done = world.run(setting, [[*works, *(s for n in range(64) for s in op_of(1, 10 + n))]])
        look(done)
        for op in done.kept:
            count[op.latency - 10] += not op.is_slowest
    assert count[63] == 0
    assert sum(count) == 32 * times
    assert all(times / 6 < one < times for one in count[:63]), count


def test_a_jump_out_of_f0_leaves_nothing_behind(world: World) -> None:
    """The next op of the thread begins with nothing of the one that has no end."""
    setting = Setting((_TREE,), analyse=True, least_span=1)
    left: list[Op] = [(CALL, 0), (CALL, 1), (WORK, 30), (RETURN,), (WORK, 5), (JUMP, 5, 0)]
    done = world.run(setting, [[*left * 200, *op_of(1, 40)]])
    look(done)
    model.check(setting, done)
    (op,) = done.kept
    assert [span.end - span.start for span in op.spans] == [40]
    assert done.ops_seen[2] == 0  # no entry of the pool was lost


def test_the_long_ones_of_more_functions_than_there_is_room_for(world: World) -> None:
    """They have the last numbers, as all are numbered from f0 on."""
    depth = 6
    timed: list[Timed] = []
    program: list[Op] = [(CALL, 0)]

    def grow(place: int, function: int, below: int) -> None:
        program.extend([(CALL, function)] if place else [])
        for callee in (1, 2) if below else ():
            timed.append(Timed(place, ("call", function, callee)))
            grow(len(timed), callee, below - 1)
        program.extend([(WORK, 1)] if below else [(WORK, 1), (WORK, 5000 * (len(timed) == 125))])
        program.append((RETURN,))

    grow(0, 0, depth)
    assert len(timed) > SUMS
    done = world.run(Setting((tree_of(timed, [0]),), analyse=True, least_span=10), [program])
    look(done)
    (op,) = done.kept
    assert len(op.sums) == SUMS
    assert max(one.max for one in op.sums) > 5000
    numbers = [one.node for one in op.sums]
    assert numbers == sorted(numbers)
    assert len([one for one in op.sums if one.sum > 5000]) == depth


def test_a_call_that_is_kept_costs_what_that_takes(world: World) -> None:
    """The op's first one is written down by C, those after it by the stub."""
    setting = Setting(
        (_TREE,),
        analyse=True,
        least_span=10,
        full_cost=7,
        kept_cost=19,
        return_cost=30,
        span_cost=3,
        first_cost=5,
    )
    done = world.run(setting, [op_of(4, 20)])
    look(done)
    model.check(setting, done)
    (op,) = done.kept
    assert op.cost == 7 + 30 + 3 + 5 + 3 * 19
