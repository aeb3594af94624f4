"""What the agent has counted of a set's functions, each for itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from darc.agent.memory import AgentMemory
from darc.collectors.losses import Losses, Unmeasured
from darc.collectors.manyduties import MemberCounting
from darc.collectors.memberpads import MemberPads
from darc.collectors.padcount import PadCounting
from darc.debuggee.duties import Clocked
from darc.model.ftree import Function
from darc.model.membercounts import MemberCounts
from darc.model.profile import Profile

_UNMEASURED = "it was called, and no call of it was measured to its end"
_UNPLACED = "no landing was left for its calls (docs/pad.md)"
_FOREIGN = "its calls came from code that was generated"
_JUMPED_TO = "code jumped there: no call stands before the address on top of the stack"
_UNKNOWN = "no call of it is known, and calls were lost of which darc cannot tell whose they were"


class SetCounting(PadCounting, MemberCounting):
    """By the ``tables`` of one analysis, of the functions that ``pads`` are at."""

    def __init__(
        self, tables: AgentMemory, debuggee: Clocked, pads: MemberPads, losses: Losses
    ) -> None:
        super().__init__(tables, debuggee)
        self._pads = pads
        self._losses = losses
        self._in_interrupts: tuple[Function, ...] = ()
        """Where these are told apart: the same functions, as interrupts call them."""

    def tell_interrupts_apart(self) -> None:
        """From now on calls by interrupts are counted for themselves."""
        functions = self._pads.functions
        self._in_interrupts = tuple(map(_in_interrupts, functions))
        self._tables.set(interrupt_members=len(functions))

    def counts(self) -> Mapping[Function, MemberCounts]:
        """What was counted of each function that was called. Any thread."""
        found = self._tables.members.counts()
        functions = self._pads.functions + self._in_interrupts
        return {
            functions[number]: counts for number, counts in found.items() if number < len(functions)
        }

    def unmeasured(self, counts: Mapping[Function, MemberCounts]) -> dict[Function, str]:
        """Functions of which ``counts`` has no call, though they were called, or may have been; and
        why. Any thread."""
        found = {function: _why(one) for function, one in counts.items() if not one.calls}
        if self._losses.has(Unmeasured.BLOCKS, Unmeasured.CONTEXTS):
            seen = {function.address for function in counts}
            found |= {f: _UNKNOWN for f in self._pads.functions if f.address not in seen}
        return found

    @property
    def call_cost(self) -> int:
        """Cycles that a call of a function takes more."""
        return self._tables.member_cost

    @property
    def seen(self) -> int:
        return sum(counts.calls for counts in self._tables.members.counts().values())

    def profile(self) -> Profile:
        """The calls of all functions together."""
        bins: dict[int, int] = {}
        calls = total = 0
        for counts in self._tables.members.counts().values():
            calls, total = calls + counts.calls, total + counts.sum
            for number, count in counts.bins.items():
                bins[number] = bins.get(number, 0) + count
        return Profile(resolution=1, hz=self.hz, bins=bins, count=calls, total=total)


def _why(counts: MemberCounts) -> str:
    """Why no call was measured."""
    if counts.lost:
        return _UNPLACED
    if counts.foreign:
        return _FOREIGN
    return _JUMPED_TO if counts.jumps else _UNMEASURED


def _in_interrupts(function: Function) -> Function:
    return dataclasses.replace(
        function,
        name=f"{function.name} (interrupt)",
        symbol=f"{function.symbol} (interrupt)",
    )
