"""Which way to collect is taken where the first one cannot be."""

from __future__ import annotations

from typing import Any, cast

import pytest

from darc.collectors.collector import Way
from darc.collectors.ways import kind_after, way_instead, ways_of
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import UnsupportedError
from darc.model.parameters import Probes

PADS, BREAKPOINTS = ways_of(Probes.AUTO, None)
WHY = "it forbids code"


def debuggee(danger: str | None = None) -> Debuggee:
    class Answers:
        def danger_of_breakpoints(self) -> str | None:
            return danger

    return cast(Debuggee, cast(Any, Answers()))


def test_breakpoints_take_the_place_of_pads() -> None:
    assert (PADS.collector.kind, BREAKPOINTS.collector.kind) == (Probes.PAD, Probes.BREAKPOINT)
    assert kind_after(Probes.PAD) is Probes.BREAKPOINT
    found = way_instead(PADS, [BREAKPOINTS], WHY, debuggee(), "serve")
    assert found == (BREAKPOINTS, "no pads, but breakpoints: it forbids code")


def test_not_where_they_do_harm() -> None:
    with pytest.raises(UnsupportedError) as raised:
        way_instead(PADS, [BREAKPOINTS], WHY, debuggee("they would stop a machine"), "serve")
    assert str(raised.value) == (
        "cannot time serve with pads: it forbids code; '--probes breakpoint' can, but "
        "they would stop a machine"
    )


def test_an_analysis_with_one_way_has_no_other() -> None:
    own = Way(PADS.collector)
    assert ways_of(Probes.AUTO, own) == (own,)
    with pytest.raises(UnsupportedError, match="cannot time serve: only pads can, and it forbids"):
        way_instead(own, [], WHY, debuggee(), "serve")
