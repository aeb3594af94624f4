"""Which way to collect is taken where the first one cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.app.parameters import PROBES_MEAN
from darc.collectors.collector import Way
from darc.collectors.manyduties import TimesSets, Walks
from darc.collectors.pad_collector import PadCollector
from darc.collectors.set_collector import SetCollector
from darc.collectors.walk_collector import WalkCollector
from darc.collectors.ways import (
    WAYS,
    kind_for_the_rest,
    only_by,
    told_of_other,
    way_instead,
    ways_of,
)
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import UnsupportedError
from darc.model.parameters import Probes

PADS, BREAKPOINTS = WAYS[Probes.PAD], WAYS[Probes.BREAKPOINT]
WHY = "it forbids code"
ROOT = Path(__file__).resolve().parents[3]


def debuggee(danger: str | None = None) -> Debuggee:
    class Answers:
        def danger_of_breakpoints(self) -> str | None:
            return danger

    return cast(Debuggee, cast(Any, Answers()))


def test_every_kind_has_a_way_and_says_what_it_can() -> None:
    assert ways_of(Probes.AUTO, None) == tuple(WAYS.values())
    assert {*WAYS, Probes.AUTO} == {*Probes}
    for kind, way in WAYS.items():
        assert way.collector.kind is kind
        assert ways_of(kind, None) == (way,)
    assert all(kind.can for kind in Probes)


def test_every_kind_is_told_of() -> None:
    for kind in Probes:
        assert re.search(rf"\b{kind.value}s?\b", PROBES_MEAN), f"PROBES_MEAN has no {kind.value}"


def test_nobody_asks_which_kind_it_is() -> None:
    """But whether the user leaves it to darc: what a kind can is asked."""
    asking = re.compile(r"(is|is not|==|!=|in) \(?Probes\.(?!AUTO)")
    files = [file for file in (ROOT / "darc").rglob("*.py") if asking.search(file.read_text())]
    assert not files


def test_of_several_others_the_first_that_does_no_harm_is_taken() -> None:
    class Third(PadCollector):
        plural = "others"

        @staticmethod
        def risk(debuggee: Debuggee) -> str | None:
            return None

    third = Way(Third)
    found = way_instead(
        PADS, [BREAKPOINTS, third], why=WHY, debuggee=debuggee("they stop it"), spec="serve"
    )
    assert found == (third, "no pads, but others: it forbids code")


def test_breakpoints_take_the_place_of_pads() -> None:
    assert kind_for_the_rest(Probes.PAD) is Probes.BREAKPOINT
    assert kind_for_the_rest(Probes.BREAKPOINT) is None
    found = way_instead(PADS, [BREAKPOINTS], why=WHY, debuggee=debuggee(), spec="serve")
    assert found == (BREAKPOINTS, "no pads, but breakpoints: it forbids code")


def test_who_times_many_is_told_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only_by("darc walk", Walks) == (
        "'darc walk' times functions by pads alone: '--probes pad'"
    )
    monkeypatch.setattr(SetCollector, "plural", "others")
    assert only_by("darc profile", TimesSets) == (
        "'darc profile' times functions by others alone: '--probes pad'"
    )


def test_what_is_debugged_need_not_know_pads() -> None:
    none = cast(Debuggee, cast(Any, SimpleNamespace(pads=None)))
    for collector in (PadCollector, SetCollector, WalkCollector):
        assert collector.problem(none) is not None
    why = PADS.collector.risk(none)
    assert why is not None
    found = way_instead(PADS, [BREAKPOINTS], why=why, debuggee=debuggee(), spec="serve")
    assert found == (BREAKPOINTS, "no pads, but breakpoints: there can be none in what is debugged")


def test_what_can_time_a_function_that_takes_no_pad_is_told_with_its_price() -> None:
    told = "; '--probes breakpoint' can, but stops the program at every call"
    assert told_of_other(Probes.PAD, debuggee()) == told
    harm = told_of_other(Probes.PAD, debuggee("they would stop a machine"))
    assert harm == f"{told}, and they would stop a machine"
    assert not told_of_other(Probes.BREAKPOINT, debuggee()), "nothing does"


def test_not_where_they_do_harm() -> None:
    with pytest.raises(UnsupportedError) as raised:
        way_instead(
            PADS,
            [BREAKPOINTS],
            why=WHY,
            debuggee=debuggee("they would stop a machine"),
            spec="serve",
        )
    assert str(raised.value) == (
        "cannot time serve with pads: it forbids code; '--probes breakpoint' can, but "
        "they would stop a machine"
    )


def test_an_analysis_with_one_way_has_no_other() -> None:
    own = Way(PADS.collector)
    assert ways_of(Probes.AUTO, own) == (own,)
    with pytest.raises(UnsupportedError, match="cannot time serve: only pads can, and it forbids"):
        way_instead(own, [], why=WHY, debuggee=debuggee(), spec="serve")
