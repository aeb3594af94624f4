"""What the collector of a set shares out among functions, and says of those without calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from darc import agent
from darc.agent.rows import MemberCounts
from darc.collectors.collector import Assignment
from darc.collectors.set_collector import SetCollector
from darc.model.ftree import Fnode, Function
from darc.model.parameters import Parameters
from tests.fake_target import FakeTarget

MODULE_SIZE = 0x10000


@dataclass(frozen=True)
class Module:
    start: int

    @property
    def end(self) -> int:
        return self.start + MODULE_SIZE


class Program:
    def module_at(self, address: int) -> Module:
        return Module(address // MODULE_SIZE * MODULE_SIZE)


@dataclass(frozen=True)
class Based:
    """An area, or a pool of landings."""

    base: int


class Foothold:
    """All modules are in reach of one area, which may have so many pools."""

    def __init__(self, most: int) -> None:
        self.pools: list[Based] = []
        self._most = most

    def more_landings(self, area: Based, low: int, high: int, pools: int) -> list[Based]:
        while len(self.pools) < min(pools, self._most):
            self.pools.append(Based(len(self.pools)))
        return list(self.pools)


class Debuggee:
    pads = None


def made(functions: list[Function], most: int = 16) -> SetCollector:
    return SetCollector(
        Assignment(
            target=FakeTarget(),
            program=cast(Any, Program()),
            debuggee=cast(Any, Debuggee()),
            root=Fnode(functions[0]),
            spec="*",
            parameters=Parameters(),
            listener=cast(Any, None),
            note=lambda text: None,
            foothold=cast(Any, Foothold(most)),
        ),
        functions,
    )


def function(address: int) -> Function:
    return Function(f"f{address:x}", f"f{address:x}", "prog", address, address)


@pytest.mark.parametrize(("modules", "each"), [(1, 1000), (250, 4), (7, 150), (2, 100)])
def test_hundred_functions_share_landings_whatever_files_they_are_in(
    modules: int, each: int
) -> None:
    """Each may be called from eight places, in the mean."""
    functions = [
        function((1 + module) * MODULE_SIZE + 16 * n)
        for module in range(modules)
        for n in range(each)
    ]
    collector, area = made(functions), cast(Any, Based(0))
    found = Counter(collector._pool_for(area, one.address) for one in functions)
    limits = agent.load().constants
    room = limits["DARC_LANDINGS"] - limits["DARC_LANDING_CALLERS"]
    assert max(found.values()) * 8 <= room


def test_where_there_are_no_more_pools_all_of_them_are_shared() -> None:
    functions = [function((1 + n) * MODULE_SIZE) for n in range(1000)]
    collector, area = made(functions, most=4), cast(Any, Based(0))
    found = Counter(collector._pool_for(area, one.address) for one in functions)
    assert len(found) == 4
    assert max(found.values()) < 400


def counts(**figures: int) -> MemberCounts:
    names = ("calls", "sum", "max", "left", "dropped", "lost", "foreign", "jumps")
    none = dict.fromkeys(names, 0)
    return MemberCounts(**{**none, **figures}, bins={})


def test_what_was_called_is_not_said_to_be_uncalled() -> None:
    functions = [function(16 * n) for n in range(1, 7)]
    timed, unplaced, generated, label, endless, idle = functions
    known: Mapping[Function, MemberCounts] = {
        timed: counts(calls=3, lost=4),
        unplaced: counts(lost=5),
        generated: counts(foreign=6),
        label: counts(jumps=7),
        endless: counts(),
    }
    collector = made(functions)
    assert collector.unmeasured(known) == {
        unplaced: "no landing was left for its calls (docs/pad.md)",
        generated: "its calls came from code that was generated",
        label: "code jumped there: no call stands before the address on top of the stack",
        endless: "it was called, and no call of it was measured to its end",
    }
    for name in ("lost_blocks", "lost_contexts"):
        collector._losses._counts[name] = 1
        assert "darc cannot tell whose" in collector.unmeasured(known)[idle]
        collector._losses._counts[name] = 0
