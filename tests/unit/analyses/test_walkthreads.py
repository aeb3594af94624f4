"""Which threads a walk is about, by what they have begun with."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from darc.analyses.walkthreads import WalkThreads
from darc.collectors.manyduties import ThreadStack
from darc.model.ftree import Function
from tests.unit.sets import function

MAIN, WORK, POOL = function("main", 16), function("work", 32), function("pool", 48)


class Starts:
    """What threads have begun with is told by their keys; a stack that goes back to no beginning is
    one of no key."""

    def __init__(self, of: dict[int, Function], whole: tuple[int, ...] = ()) -> None:
        self.begun = of
        self.whole = whole

    def of(self, stack: ThreadStack) -> Function | None:
        return self.begun.get(stack.key)

    def is_whole(self, stack: ThreadStack) -> bool:
        return stack.key in self.whole


def stacks(*keys: int) -> dict[int, ThreadStack]:
    """Of threads whose numbers are a hundred above their keys."""
    return {100 + key: ThreadStack(key, ()) for key in keys}


def of_starts(starts: Starts) -> WalkThreads:
    return WalkThreads(MAIN, "main", cast(Any, starts))


def groups(seen: WalkThreads) -> dict[str, set[int]]:
    return {group.name: group.threads for group in seen.groups}


def test_threads_that_began_alike_are_a_group() -> None:
    seen = of_starts(Starts({1: MAIN, 2: WORK, 3: WORK}))
    seen.see(stacks(1, 2))
    assert groups(seen) == {"main": {1}, "work": {2}}
    seen.see(stacks(1, 3))  # one has ended meanwhile, and one is new
    assert groups(seen) == {"main": {1}, "work": {2, 3}}
    root = seen.groups[1].root
    assert (root.function, root.share, root.base) == (WORK, {2: 1.0, 3: 1.0}, frozenset({2, 3}))


def test_one_that_comes_when_its_group_is_measured_is_late() -> None:
    starts = Starts({1: WORK, 2: WORK})
    seen = of_starts(starts)
    seen.see(stacks(1))
    seen.groups[0].root.is_done = True
    seen.see(stacks(1, 2))
    seen.groups[0].root.is_done = False
    seen.see(stacks(1, 2))
    assert groups(seen) == {"work": {1}}
    assert not seen.lost


def test_one_of_which_nobody_knows_the_start_is_lost_until_it_shows() -> None:
    """Where its stack goes back to the library that has begun it, it is none of the program's."""
    starts = Starts({1: MAIN}, whole=(3,))
    seen = of_starts(starts)
    seen.see(stacks(1, 2, 3))
    assert seen.lost == {2: 102}
    starts.begun[2] = POOL
    seen.see(stacks(1, 2, 3))
    assert (groups(seen), seen.lost) == ({"main": {1}, "pool": {2}}, {})


def test_one_that_has_just_begun_is_waited_for() -> None:
    begins = dataclasses.replace(function("execute_native_thread_routine"), module="libstdc++.so.6")
    starts = Starts({1: begins})
    seen = of_starts(starts)
    seen.see(stacks(1))
    assert (groups(seen), seen.lost) == ({}, {})
    starts.begun[1] = WORK
    seen.see(stacks(1))
    assert groups(seen) == {"work": {1}}


def test_below_a_function_all_threads_are_one_group() -> None:
    seen = WalkThreads(WORK, "work(int)", None)
    seen.see(stacks(1, 2))
    seen.see(stacks(3))
    assert groups(seen) == {"work(int)": {1, 2, 3}}
    (group,) = seen.groups
    assert (group.root.function, group.root.share, group.is_of_callers) == (WORK, {}, True)
