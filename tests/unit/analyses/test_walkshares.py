"""What shares of a thread's time a window has shown, with the calls that were under way at its
edges."""

from __future__ import annotations

from typing import Any, cast

import pytest

from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.analyses.walkran import RanTimes
from darc.analyses.walkshares import LevelShares
from darc.code.unwind import Frame
from darc.collectors.manyduties import Counted, ThreadStack
from darc.model.ftree import Function

KEY, LENGTH = 7, 1000
LOOP, WORK, POLL, EPOLL = 0x1000, 0x2000, 0x3000, 0x4000


def function(address: int, name: str) -> Function:
    return Function(name=name, symbol=name, module="program", address=address, offset=address)


CALLEES = [function(WORK, "work"), function(POLL, "__poll"), function(EPOLL, "epoll_wait")]


class Code:
    """Of a loop: what it calls; and of frames: each stands at its function's entry."""

    def callees(self, node: WalkNode) -> list[Function]:
        return CALLEES

    def entry(self, frame: Frame) -> int:
        return frame.at


class AtEdges:
    """Calls that were under way, and how long an event wait was."""

    def __init__(self, *seeds: tuple[int, float, bool], event: float = 0.0, base: bool) -> None:
        self._seeds, self._event, self._base = seeds, event, base

    def is_base(self, *stands: object) -> bool:
        return self._base

    def seeds(self, *stands: object) -> tuple[tuple[int, float, bool], ...]:
        return self._seeds

    def event_wait(self, *stands: object) -> float:
        return self._event


def seen(
    counted: Counted, edges: AtEdges, *, frames: tuple[int, ...] = (), root: int | None = None
) -> tuple[ThreadGroup, dict[str, float]]:
    """The group, and the shares of what the loop calls."""
    node = WalkNode(function(LOOP, "loop"), None, {KEY: 1.0})
    group = ThreadGroup("loop", {KEY}, node)
    level = LevelShares(group, node, cast(Any, Code()), cast(Any, edges), length=LENGTH, root=root)
    stack = ThreadStack(KEY, tuple(Frame(at, 0x9000 - at) for at in frames))
    level.add(stack, stack, counted)
    level.tell()
    return group, {one.function.name: one.share[KEY] for one in node.below}


def counted(**cycles: int) -> Counted:
    named = {one.name: one for one in CALLEES}
    spent = {named[name]: long for name, long in cycles.items()}
    return Counted(dict.fromkeys(spent, 3), spent)


def test_what_was_counted_is_a_share_of_the_window() -> None:
    group, shares = seen(counted(work=250), AtEdges(base=False))
    assert shares == {"work": 0.25}
    (work,) = group.root.below
    assert (work.calls, work.whole, work.base) == ({KEY: 3}, {KEY: 1.0}, frozenset())


def test_calls_under_way_count_with_the_others() -> None:
    group, shares = seen(counted(work=250), AtEdges((WORK, 500.0, False), base=True))
    assert shares == {"work": 0.75}
    assert group.root.base == {KEY}
    assert group.root.below[0].base == frozenset()


def test_no_share_is_more_than_the_window() -> None:
    _, shares = seen(counted(work=1200), AtEdges(base=False))
    assert shares == {"work": 1.0}


def test_event_waits_are_no_part_of_the_threads_time() -> None:
    group, shares = seen(counted(work=250, epoll_wait=400), AtEdges(base=False))
    assert shares == {"work": 0.25}
    assert group.event_waits == {KEY: 0.4}
    assert group.root.share == {KEY: 0.6}


@pytest.mark.parametrize(("stays", "share"), [(True, 0.5), (False, 0.7)])
def test_an_event_wait_inside_of_what_was_under_way_is_not_its_time(
    stays: bool, share: float
) -> None:
    """All of its waits, where it lasts for the whole window; else the one that it was in."""
    edges = AtEdges((WORK, 1000.0, stays), event=300.0, base=False)
    group, shares = seen(counted(epoll_wait=200), edges, frames=(LOOP, WORK, EPOLL))
    assert shares["work"] == pytest.approx(share)
    assert group.event_waits == {KEY: 0.5}


def test_a_wait_that_a_threads_own_loop_calls_is_idle_time() -> None:
    group, shares = seen(counted(work=250, __poll=600), AtEdges(base=True))
    assert shares == {"work": 0.25}
    assert group.root.idle == {KEY: 0.6}
    assert group.waits == {"__poll": 0.6}


def test_elsewhere_a_wait_is_a_callee() -> None:
    group, shares = seen(counted(work=250, __poll=600), AtEdges(base=False))
    assert shares == {"work": 0.25, "__poll": 0.6}
    assert not group.waits


def test_where_a_walk_begins_with_a_function_its_calls_are_the_whole() -> None:
    edges = AtEdges((LOOP, 800.0, False), base=False)
    group, _ = seen(counted(work=250), edges, root=LOOP)
    assert group.root.share == {KEY: 0.8}
    assert group.root.below[0].whole == {KEY: 0.8}


class Clocks:
    """Threads that have run so long, and waited so long, in ns."""

    def __init__(self) -> None:
        self.threads: dict[int, tuple[int, int]] = {1: (0, 0), 2: (0, 0)}
        self.quota_used_up = 0

    def ran(self, thread: int) -> tuple[int, int] | None:
        return self.threads.get(thread)


def test_only_a_groups_own_threads_tell_how_long_it_ran() -> None:
    clocks = Clocks()
    times = RanTimes(cast(Any, clocks))
    group = ThreadGroup("loop", {KEY}, WalkNode(function(LOOP, "loop"), None, {}))
    times.begin([1, 2, 3])
    clocks.threads = {1: (250_000_000, 500_000_000), 2: (10**9, 500_000_000), 3: (10**9, 0)}
    clocks.quota_used_up = 250_000_000
    times.end(group, {1: ThreadStack(KEY, ()), 2: ThreadStack(8, ()), 3: ThreadStack(KEY, ())}, 1.0)
    assert (group.ran, group.ready) == (0.25, 0.5)
    assert times.by_quota == 0.25


def test_a_window_that_tells_of_no_thread_leaves_what_is_known() -> None:
    times = RanTimes(cast(Any, Clocks()))
    group = ThreadGroup("loop", {KEY}, WalkNode(function(LOOP, "loop"), None, {}), ran=0.5)
    times.end(group, {}, 1.0)
    assert (group.ran, times.by_quota) == (0.5, 0.0)
