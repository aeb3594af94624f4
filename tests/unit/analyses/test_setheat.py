"""Which functions of a set are timed no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.setheat import LOOK_SECONDS, SetHeat
from darc.model.ftree import Function
from tests.unit.sets import counts, function

F, G = function("f", 1), function("g", 2)
HZ, COST = 10**9, 100


class Timed:
    """A set of which it is told what is to go out."""

    def __init__(self) -> None:
        self.counting = SimpleNamespace(hz=HZ, call_cost=COST)
        self.gone: list[frozenset[Function]] = []

    def give_up(self, functions: frozenset[Function]) -> None:
        self.gone.append(functions)


@pytest.fixture
def timed() -> Timed:
    return Timed()


@pytest.fixture
def heat(timed: Timed) -> SetHeat:
    return SetHeat(cast(Any, timed), 0.1)


CALLS = 10**6
"""In a tenth of a second, of 100 cycles each: their probe takes a whole processor."""


def test_short_calls_that_are_many_go_out_once(heat: SetHeat, timed: Timed) -> None:
    assert heat.next_look == LOOK_SECONDS
    heat.look(0.1, {F: counts({6: CALLS}), G: counts({6: 10})})
    assert heat.found == {F}
    assert heat.calls == {F: CALLS, G: 10}
    assert heat.next_look == 2 * LOOK_SECONDS
    assert heat.go_out(0.1234) == {F}
    assert (timed.gone, heat.until, heat.found) == ([frozenset({F})], {F: 0.123}, frozenset())
    assert heat.go_out(0.2) == frozenset()
    assert timed.gone == [frozenset({F})]


def test_while_some_wait_for_a_stop_no_others_are_looked_for(heat: SetHeat) -> None:
    heat.look(0.1, {F: counts({6: CALLS})})
    heat.look(0.2, {F: counts({6: CALLS}), G: counts({6: CALLS})})
    assert heat.found == {F}
    assert heat.calls == {F: CALLS}


def test_two_stops_for_it_are_half_a_second_apart(heat: SetHeat) -> None:
    heat.look(0.1, {F: counts({6: CALLS})})
    heat.go_out(0.1)
    heat.look(0.2, {G: counts({6: CALLS})})
    assert heat.found == frozenset()
    heat.look(0.7, {G: counts({6: 10 * CALLS}), F: counts({6: CALLS})})
    assert heat.found == {G}


def test_what_takes_long_stays(heat: SetHeat) -> None:
    heat.look(0.1, {F: counts({20: CALLS})})
    assert heat.found == frozenset()


def test_calls_within_its_own_are_those_of_its_probe(heat: SetHeat) -> None:
    """However long the outermost ones seem to take."""
    heat.look(0.1, {F: counts({20: 10}, recursions=CALLS)})
    assert heat.found == {F}
