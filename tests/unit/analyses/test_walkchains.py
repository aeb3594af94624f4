"""Where chains of calls end, by the shares that windows have shown."""

from __future__ import annotations

from typing import Any, cast

import pytest

from darc.analyses.walkchains import Chains
from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.code.architecture import FunctionCode
from darc.model.ftree import Function
from darc.model.walk import Chain, End

KEY = 7
MAIN, SERVE, FETCH, PARSE = (
    Function(name=name, symbol=name, module="program", address=at, offset=at)
    for at, name in enumerate(("main", "serve", "fetch", "parse"), 0x1000)
)


class Code:
    """Of functions whose calls are all known: none is a system's."""

    def function(self, address: int) -> FunctionCode:
        return cast(FunctionCode, type("Code", (), {"instructions": {}}))

    def callees(self, node: WalkNode) -> list[Function]:
        return []

    def has_unknown(self, node: WalkNode) -> bool:
        return False


def chain(share: float, now: float | None, *below: float) -> Chain:
    """The one of a thread that was in ``serve`` for this ``share``, and for as much as it is
    ``now`` when that was looked into, where its callees had the shares ``below``."""
    whole = {KEY: 1.0}
    main = WalkNode(MAIN, None, whole, base=frozenset({KEY}), is_done=True)
    serve = WalkNode(SERVE, main, {KEY: share}, whole, is_done=True)
    serve.is_timed = now is not None
    serve.had({} if now is None else {KEY: now}, whole)
    for callee, part in zip((FETCH, PARSE), below, strict=False):
        serve.below.append(WalkNode(callee, serve, {KEY: part}, whole, is_done=True))
    main.below = [serve]
    group = ThreadGroup("main", {KEY}, main)
    chains = Chains(cast(Any, Code()), cast(Any, Code()), 0.25, frozenset())
    (only,) = chains.told(group).chains
    return only


def test_who_hands_little_on_holds_the_time() -> None:
    found = chain(0.8, 0.8, 0.2)
    assert found.end is End.ITSELF
    assert found.own == pytest.approx(0.6)


def test_who_is_called_no_more_holds_nothing() -> None:
    """What its callees had when it was found, nobody has seen."""
    found = chain(0.8, 0.0)
    assert (found.end, found.steps[-1].function, found.own) == (End.GONE, SERVE, 0.8)


def test_who_is_called_less_holds_no_more_than_it_has() -> None:
    """0.45 of 0.8, of which callees had nearly all: not the 0.36 of that which it lost."""
    found = chain(0.8, 0.45, 0.24, 0.2)
    assert found.end is End.SPREAD
    assert found.own == pytest.approx(0.01)


def test_what_callees_had_it_had_itself() -> None:
    """What was under way when the window began may end at any time, and counts for less."""
    found = chain(0.8, 0.1, 0.24, 0.24)
    assert (found.end, found.own) == (End.SPREAD, 0.0)


def test_where_its_own_calls_could_not_be_timed_it_is_as_it_was_found() -> None:
    found = chain(0.8, None, 0.2)
    assert found.end is End.ITSELF
    assert found.own == pytest.approx(0.6)


def test_callees_with_enough_lead_further_down() -> None:
    """Also from who is called less than before."""
    found = chain(0.8, 0.35, 0.3)
    assert [step.function for step in found.steps] == [MAIN, SERVE, FETCH]
    assert found.end is End.ITSELF
