"""What a walk shows of its groups and windows."""

from __future__ import annotations

import pytest

from darc.model.walk import Walk, WalkGroup
from darc.views.walkview import draw_walk


def lines(group: WalkGroup, longest: float = 1.0) -> list[str]:
    known = Walk((group,), 0.25, 1.0, 3, longest=longest)
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
