"""Function or loop."""

from __future__ import annotations

import pytest

from darc.model.ftree import CallKind, CallSite, Cause, Ending, Fnode, Function, Totals
from darc.search.endings import loop_or_own, own_ending


def node_with(totals: Totals, *callees: tuple[str, Totals]) -> Fnode:
    node = Fnode(function("caller"))
    node.totals = totals
    for i, (name, of_callee) in enumerate(callees):
        child = node.add_child(function(name), CallSite(i, CallKind.DIRECT, "prog", i))
        child.totals = of_callee
    return node


def function(name: str) -> Function:
    address = sum(name.encode())
    return Function(name=name, symbol=name, module="prog", address=address, offset=address)


def test_no_callees() -> None:
    assert own_ending(node_with(Totals(10, 10, 1000, 1000)), 10) == Ending(Cause.FUNCTION, 10)


def test_many_short_calls_of_one_callee_are_a_loop() -> None:
    node = node_with(
        Totals(10, 10, 10_000, 10_000),
        ("short", Totals(10, 900, 9_000, 100)),
        ("once", Totals(10, 10, 500, 500)),
    )
    ending = own_ending(node, 10)
    assert ending.cause is Cause.LOOP
    assert ending.loop_callee == "short"
    assert ending.loop_calls == 90
    assert ending.loop_share == pytest.approx(0.9)


def test_half_of_the_own_time_is_not_enough() -> None:
    node = node_with(Totals(10, 10, 10**7, 10**7), ("short", Totals(10, 500, 4_900_000, 50_000)))
    assert own_ending(node, 10).cause is Cause.FUNCTION
    node.children[0].totals = Totals(10, 500, 5_100_000, 50_000)
    assert own_ending(node, 10).cause is Cause.LOOP


def test_a_single_long_call_is_no_loop() -> None:
    node = node_with(Totals(10, 10, 10_000, 10_000), ("long", Totals(10, 10, 4_900, 4_900)))
    assert own_ending(node, 10).cause is Cause.FUNCTION


def test_the_sites_of_an_unrolled_loop_count_together() -> None:
    part = Totals(10, 200, 2_000, 100)
    node = node_with(Totals(10, 10, 10_000, 10_000), *[("short", part)] * 4)
    ending = own_ending(node, 10)
    assert (ending.cause, ending.loop_calls) == (Cause.LOOP, 80)
    assert ending.loop_share == pytest.approx(0.8)


def test_a_loop_that_only_some_calls_enter() -> None:
    node = node_with(Totals(10, 10, 10_000, 10_000), ("short", Totals(5, 900, 9_000, 50)))
    assert own_ending(node, 10).loop_calls == 180


def test_calls_of_the_function_itself_are_not_taken_for_a_loop_in_it() -> None:
    """Called three times in each call of f0, and each time it calls ``once`` once."""
    node = node_with(Totals(10, 30, 30_000, 10_000), ("once", Totals(10, 30, 12_000, 4_000)))
    assert own_ending(node, 10).cause is Cause.FUNCTION


def test_nothing_measured() -> None:
    assert own_ending(node_with(Totals(), ("callee", Totals())), 0).cause is Cause.FUNCTION


def test_the_note_is_kept() -> None:
    assert own_ending(node_with(Totals()), 3, "a note").note == "a note"


COST = 60


def test_short_calls_that_were_chosen_are_a_loop_of_their_caller() -> None:
    node = node_with(
        Totals(10, 10, 10_000, 10_000),
        ("short", Totals(10, 900, 9_000, 100)),
        ("long", Totals(10, 90, 9_500, 150)),
    )
    ending = loop_or_own(node, 10, COST, is_loop=True)
    assert (ending.cause, ending.loop_callee, ending.loop_calls) == (Cause.LOOP, "short", 90)


def test_what_goes_unseen_of_short_calls_is_not_the_callers_own() -> None:
    """Of 100 cycles that 2 calls take, 96 are not seen."""
    node = node_with(Totals(10, 10, 10**6, 10**6), ("short", Totals(10, 20_000, 40_000, 20)))
    assert loop_or_own(node, 10, COST, is_loop=False).cause is Cause.LOOP
    node.children[0].totals = Totals(10, 2_000, 4_000, 20)
    assert loop_or_own(node, 10, COST, is_loop=False).cause is Cause.FUNCTION


def test_the_sites_of_an_unrolled_loop_outweigh_the_caller_together() -> None:
    part = Totals(10, 200, 18_000, 1_000)
    node = node_with(Totals(10, 10, 100_000, 100_000), *[("step", part)] * 4)
    ending = loop_or_own(node, 10, 0, is_loop=False)
    assert (ending.cause, ending.loop_callee, ending.loop_calls) == (Cause.LOOP, "step", 80)
    alone = loop_or_own(node, 10, 0, is_loop=False, winners=node.children)
    assert alone.cause is Cause.FUNCTION


def test_what_probes_may_have_cost_beyond_what_was_taken_out_is_not_the_callers_own() -> None:
    """Of 5000 calls an op, an emulator's were stopped in one, or in a probe."""
    long, calls = 120_000_000, 100_000
    node = node_with(
        Totals(20, 20, 4 * long, 4 * long), ("short", Totals(20, calls, long + 10**7, long))
    )
    assert loop_or_own(node, 10, COST, is_loop=False).cause is Cause.FUNCTION
    ending = loop_or_own(node, 10, COST, is_loop=False, probe_doubt=1200)
    assert (ending.cause, ending.loop_callee, ending.loop_calls) == (Cause.LOOP, "short", 5000)
    node.children[0].totals = Totals(20, 20, long, long)  # called once
    assert loop_or_own(node, 10, COST, is_loop=False, probe_doubt=1200).cause is Cause.FUNCTION
