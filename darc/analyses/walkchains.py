"""The chains of calls that hold a group's time: what a walk has found."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from darc.analyses.walkcode import WalkCode
from darc.analyses.walkgroups import ThreadGroup, WalkNode
from darc.code.processor import is_system_call
from darc.code.program import Program
from darc.model.ftree import Function
from darc.model.walk import Chain, ChainStep, End, WalkGroup

_NOTHING = 0.0005
"""Of a group's time: less is not told."""


class Chains:
    """Those that hold ``threshold`` of their group's time; the functions ``left_out`` took no
    pad."""

    def __init__(
        self,
        program: Program,
        code: WalkCode,
        threshold: float,
        left_out: AbstractSet[Function],
    ) -> None:
        self._program = program
        self._code = code
        self._threshold = threshold
        self._left_out = left_out

    def told(self, group: ThreadGroup) -> WalkGroup:
        """What is told of a group."""
        if not group.root.is_done:
            return WalkGroup(group.name, len(group.threads), (), (), is_known=False)
        whole = max(len(group.members), 1)
        chains: list[Chain] = []
        if group.busy(group.root.share) > _NOTHING * whole:
            chains = sorted(self._chains(group, group.root), key=lambda c: -c.steps[-1].share)
        waits = {name: part / whole for name, part in group.waits_told().items()}
        if group.event_waits:
            waits["epoll_wait"] = sum(group.event_waits.values()) / whole
        longest = sorted(waits.items(), key=lambda one: -one[1])
        idle = tuple((name, part) for name, part in longest if part > _NOTHING)
        return WalkGroup(
            name=group.name,
            threads=len(group.members),
            idle=idle,
            chains=tuple(chains),
            ran=group.ran,
            ready=group.ready,
            is_of_callers=group.is_of_callers,
        )

    def _chains(self, group: ThreadGroup, node: WalkNode) -> Iterator[Chain]:
        further = [one for one in node.below if group.share(one) >= self._threshold]
        for one in further:
            yield from self._chains(group, one)
        if further:
            return
        steps: list[ChainStep] = []
        share = 1.0
        for one in node.path:
            # Each level has a window of its own: what a callee had in a later one may be more than
            # its caller had in the one before.
            share = share if one.above is None else min(share, group.share(one))
            steps.append(ChainStep(one.function, share))
        if node.is_done and group.is_over(node):
            yield Chain(tuple(steps), End.GONE, share)
            return
        below = [ChainStep(one.function, group.share(one)) for one in node.below]
        now = group.share_now(node)
        held = share if now is None else min(share, now)
        own = max(held - sum(one.share for one in below), 0.0)
        if node.is_done and 2 * own < held:
            told = (one for one in below if one.share > _NOTHING)
            spread = tuple(sorted(told, key=lambda one: -one.share))
            yield Chain(tuple(steps), End.SPREAD, own, spread=spread)
            return
        end = self._end_of(node)
        untimed = self._untimed(node) if end is End.UNTIMED else ()
        yield Chain(tuple(steps), end, own, untimed)

    def _untimed(self, node: WalkNode) -> tuple[str, ...]:
        callees = self._code.callees(node)
        return tuple(dict.fromkeys(one.name for one in callees if one in self._left_out))

    def _end_of(self, node: WalkNode) -> End:
        if not node.is_done:
            return End.CUT_SHORT
        code = self._program.function(node.function.address)
        if any(map(is_system_call, code.instructions.values())):
            return End.SYSTEM_CALL
        if any(callee in self._left_out for callee in self._code.callees(node)):
            return End.UNTIMED
        if node.is_jumper:
            return End.TAIL
        return End.INDIRECT if self._code.has_unknown(node) else End.ITSELF
