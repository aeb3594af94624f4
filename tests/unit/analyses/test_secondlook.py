"""When breakpoints time what took no pad, and what holds afterwards."""

from __future__ import annotations

import dataclasses

import pytest

from darc.analyses.secondlook import SecondLook, for_others, tell_untimed, why_not
from darc.collectors.breakpoints import BreakpointCollector
from darc.model.ftree import Cause, Ending, Fnode, NodeState, Totals, Unclear
from darc.model.parameters import Probes
from darc.model.snapshot import SiteReport, SiteState
from tests.unit import samples

GHZ = 1_000_000_000
RESTRAINT = BreakpointCollector.restraint
assert RESTRAINT is not None
UNTIMED = SiteReport(
    function="fill",
    offset=0x1234,
    callee="plugin_run",
    state=SiteState.NOT_POSSIBLE,
    why="no room for a jump",
)


def fill() -> Fnode:
    _, paths = samples.tree()
    return paths[1].nodes[-1]


@pytest.mark.parametrize(
    ("callee", "is_for_breakpoints"), [("plugin_run", True), (None, True), ("vfork", False)]
)
def test_which_calls_they_can_time(callee: str | None, is_for_breakpoints: bool) -> None:
    calls = {fill(): [dataclasses.replace(UNTIMED, callee=callee)]}
    assert bool(for_others(calls)) == is_for_breakpoints


@pytest.mark.parametrize(
    ("cycles", "calls_per_second", "why"),
    [
        (2_000_000, 500.0, None),
        (1_999_999, 500.0, "it takes less than 2 ms"),
        (2_000_000, 501.0, "serve is called 501 times a second"),
    ],
)
def test_they_time_what_is_long_and_seldom(
    cycles: int, calls_per_second: float, why: str | None
) -> None:
    node = fill()
    node.totals = Totals(20, 20, 20 * cycles, 20 * cycles)
    found = why_not(
        {node: [UNTIMED]}, RESTRAINT, hz=GHZ, spec="serve", calls_per_second=calls_per_second
    )
    assert found == why


def test_a_kernels_call_is_where_it_runs() -> None:
    """Not where its file has it: it may have moved."""
    live = 0xFFFFFFFFA5C9CA1D
    report = dataclasses.replace(UNTIMED, offset=live - (0x24 << 24), address=live)
    node = fill()
    tell_untimed({node: [report]}, Probes.BREAKPOINT, None)
    assert node.end is not None
    assert node.end.note is not None
    assert f"plugin_run at {live:#x}: no room" in node.end.note


def test_the_shortest_function_says_whether_it_is_long() -> None:
    short, long = fill(), fill()
    short.totals = Totals(20, 20, 20_000, 20_000)
    calls = {long: [UNTIMED], short: [UNTIMED]}
    assert why_not(calls, RESTRAINT, hz=GHZ, spec="serve", calls_per_second=1.0) is not None


def test_a_path_that_goes_no_further_ends_as_before() -> None:
    node = fill()
    before, decision = node.end, node.decision
    look = SecondLook({node: [UNTIMED]}, Probes.PAD)
    node.end, node.state, node.decision = Ending(Cause.FUNCTION, 3), NodeState.ANALYSIS, None
    look.close(is_cut_short=True)
    assert (node.end, node.state, node.decision) == (before, NodeState.ROOT_CAUSE, decision)


def test_a_path_that_had_not_ended_again_says_so() -> None:
    node = fill()
    before = node.end
    assert before is not None
    look = SecondLook({node: [UNTIMED]}, Probes.PAD)
    node.end = None
    look.close(is_cut_short=True)
    note = "calls of it that take no pad were still being timed: the time may be theirs"
    assert node.end == dataclasses.replace(before, note=note, unclear=frozenset({Unclear.WHOSE}))


def test_a_path_that_goes_on_ends_below() -> None:
    node = fill()
    look = SecondLook({node: [UNTIMED]}, Probes.PAD)
    below = node.add_child(samples.function("plugin_run"), samples.site(50))
    node.end, below.end = None, Ending(Cause.FUNCTION, 19)
    look.close(is_cut_short=False)
    assert (node.end, below.end) == (None, Ending(Cause.FUNCTION, 19))


@pytest.mark.parametrize(
    ("kind", "why", "ends"),
    [
        (Probes.BREAKPOINT, None, "plugin_run at 0x1234: no room for a jump"),
        (Probes.PAD, None, "'--probes breakpoint' can time them, if they take milliseconds"),
        (Probes.PAD, "it is short", "milliseconds; darc did not by itself: it is short"),
    ],
)
def test_what_the_ending_says(kind: Probes, why: str | None, ends: str) -> None:
    node = fill()
    tell_untimed({node: [UNTIMED]}, kind, why)
    assert node.end is not None
    assert node.end.note is not None
    told = "1 of its calls could not be timed, the time may be theirs: "
    assert node.end.note.startswith(told)
    assert node.end.note.endswith(ends)
