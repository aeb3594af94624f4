"""What a walk shows of its groups and windows."""

from __future__ import annotations

import pytest

from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.model.walk import Chain, ChainStep, End, Walk, WalkGroup
from darc.views.walkview import draw_walk
from tests.unit import samples


def lines(group: WalkGroup, longest: float = 1.0) -> list[str]:
    known = Walk((group,), 0.25, 1.0, windows=3, longest=longest)
    return [line.plain for line in draw_walk(known, str, is_over=True)]


@pytest.mark.parametrize(
    ("idle", "ran", "ready", "told"),
    [
        # It waits for a processor before it is back from its wait: that is idle time.
        (
            0.994,
            0.004,
            0.142,
            "idle 99.4% of the time, in usleep (in 14.0% woken, but without a processor); "
            "ran 0.4%, ready 0.2%, blocked 0.0%",
        ),
        (0.5, 0.2, 0.1, "idle 50.0% of the time, in usleep; ran 20.0%, ready 10.0%, blocked 20.0%"),
        (0.0, 0.7, 0.3, "ran 70.0%, ready 30.0%, blocked 0.0%"),
    ],
)
def test_the_parts_of_a_groups_time_are_all_of_it(
    idle: float, ran: float, ready: float, told: str
) -> None:
    waits = (("usleep", idle),) if idle else ()
    group = WalkGroup("heart", 1, waits, (), ran=ran, ready=ready)
    assert lines(group)[1] == f"heart: 1 thread; {told}; nothing else to walk down"


def test_windows_that_are_longer_than_was_asked_for_are_told() -> None:
    group = WalkGroup("work", 300, (), ())
    assert lines(group)[0].startswith("  3 windows of 1s; calls")
    assert lines(group, longest=1.05)[0].startswith("  3 windows of 1s; calls")
    assert lines(group, longest=2.34)[0].startswith("  3 windows of 1s to 2.3s; calls")


def chain(end: End, *shares: float, untimed: tuple[str, ...] = ()) -> Chain:
    names = ("main", "serve", "work")
    steps = zip(names, shares, strict=False)
    made = tuple(ChainStep(samples.function(name), share) for name, share in steps)
    return Chain(made, end, shares[-1], untimed)


def test_the_chain_that_is_worth_it_is_offered() -> None:
    """Not that of main, which is called once, and has waited nearly all the time."""
    idle = WalkGroup("main", 1, (("usleep", 0.997),), (chain(End.SYSTEM_CALL, 1.0),))
    busy = WalkGroup("serve", 3, (), (chain(End.ITSELF, 1.0, 0.3), chain(End.ITSELF, 1.0, 0.6)))
    known = Walk((idle, busy), 0.25, 1.0, windows=3)
    told = [line.plain for line in draw_walk(known, str, is_over=True)]
    assert told[-1] == "'darc start 3' looks for what makes calls of chain 3's last function slow"
    alone = Walk((idle,), 0.25, 1.0, windows=3)
    assert not any("darc start" in one.plain for one in draw_walk(alone, str, is_over=True))


def test_a_callee_that_cannot_be_timed_does_not_label_all_the_rest() -> None:
    group = WalkGroup("main", 1, (), (chain(End.UNTIMED, 1.0, 0.94, untimed=("memcpy",)),))
    assert lines(group)[2] == (
        "  1  main 100.0% → serve 94.0%: holds the time itself, or calls of memcpy, "
        "which cannot be timed (94.0%)"
    )


def test_an_end_that_hands_its_time_to_many_does_not_hold_it_itself() -> None:
    steps = (ChainStep(samples.function("handle"), 0.3),)
    names = ("look_up", "log", "answer", "count")
    spread = tuple(ChainStep(samples.function(name), 0.12) for name in names)
    group = WalkGroup("main", 1, (), (Chain(steps, End.SPREAD, 0.011, spread=spread),))
    assert lines(group)[2] == (
        "  1  handle 30.0%: in calls of look_up 12.0%, log 12.0%, answer 12.0% and 1 more; "
        "itself 1.1%"
    )


def test_threads_are_those_that_have_called_what_the_walk_began_with() -> None:
    root = WalkNode(samples.function("janitor"), None, {1: 0.0, 2: 0.97, 3: 0.0})
    group = ThreadGroup("janitor", {1, 2, 3}, root)
    assert group.members == {1, 2, 3}
    group.is_of_callers = True
    assert group.members == {2}


def test_threads_that_are_missing_are_told() -> None:
    known = Walk((), 0.25, 1.0, windows=3, lost=(11, 12, 13, 14))
    told = [line.plain for line in draw_walk(known, str, is_over=True)]
    assert "left out: 4 threads (11, 12, 13 and 1 more), whose stacks do not lead" in told[-1]
    later = WalkGroup("main", 1, (), (), is_known=False)
    assert "main: 1 thread; not looked into yet" in lines(later)
    nobody = WalkGroup("serve", 0, (), (), is_of_callers=True)
    assert lines(nobody)[1] == "serve: no thread was seen in it"
