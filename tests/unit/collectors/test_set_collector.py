"""What the collector of a set shares out among functions, and says of those without calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.agent import compiled
from darc.collectors.losses import Losses, Unmeasured
from darc.collectors.memberpads import Pools
from darc.collectors.setcount import SetCounting
from darc.model.ftree import Function
from darc.model.membercounts import MemberCounts

MODULE_SIZE = 0x10000


@dataclass(frozen=True)
class Module:
    start: int

    @property
    def end(self) -> int:
        return self.start + MODULE_SIZE


class ProgramOfModules:
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


def made(functions: list[Function], most: int = 16) -> Counter[int]:
    """How many of the functions share a pool, where there are at most so many."""
    pools, area = (
        Pools(cast(Any, ProgramOfModules()), cast(Any, Foothold(most))),
        cast(Any, Based(0)),
    )
    found = (pools.one_for(area, one.address, functions) for one in functions)
    return Counter(pool.base for pool in found if pool is not None)


def function(address: int) -> Function:
    return Function(
        name=f"f{address:x}", symbol=f"f{address:x}", module="prog", address=address, offset=address
    )


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
    found = made(functions)
    assert found.total() == len(functions)
    limits = compiled.load().constants
    room = limits.LANDINGS - limits.LANDING_CALLERS
    assert max(found.values()) * 8 <= room


def test_where_there_are_no_more_pools_all_of_them_are_shared() -> None:
    functions = [function((1 + n) * MODULE_SIZE) for n in range(1000)]
    found = made(functions, most=4)
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
    losses = Losses({Unmeasured.BLOCKS: "", Unmeasured.CONTEXTS: ""})
    pads = SimpleNamespace(functions=functions)
    counting = SetCounting(cast(Any, None), cast(Any, None), cast(Any, pads), losses)
    assert counting.unmeasured(known) == {
        unplaced: "no landing was left for its calls (docs/pad.md)",
        generated: "its calls came from code that was generated",
        label: "code jumped there: no call stands before the address on top of the stack",
        endless: "it was called, and no call of it was measured to its end",
    }
    for loss in (Unmeasured.BLOCKS, Unmeasured.CONTEXTS):
        losses._counts[loss] = 1
        assert "darc cannot tell whose" in counting.unmeasured(known)[idle]
        losses._counts[loss] = 0
