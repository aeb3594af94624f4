"""What pads cost in this program on this machine, measured once as a foothold begins.

Their own cost is taken out of every latency. It is measured at calls that the agent makes of a
function that does nothing (``darc/agent/calibrate.c``), through pads that are made for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from darc.agent.compiled import AgentSymbol, Blob
from darc.agent.memory import AgentMemory
from darc.agent.rows import Node, Route
from darc.code.architecture import Prologue, Site
from darc.code.processor import FRAME_AT_ENTRY, PATCH_LENGTH, RETURN, decode
from darc.model.ftree import CallKind
from darc.pads import processor as pads
from darc.pads.areas import Area
from darc.pads.placing import Placing


class _Cost(NamedTuple):
    """Cycles of a call's pad, least of many."""

    full: int
    """All of it, as its caller sees it."""
    slow: int
    """What is added to that where the stub leaves its begin to C."""
    first: int
    """What is added to that where it is the op's first one."""
    inner: int
    """Between two reads of the counter."""
    doubt: int = 0
    """By how many more cycles than ``full`` it may be at another time."""


class Calibrated(Protocol):
    """What is asked of the foothold: see :class:`~darc.pads.foothold.Foothold`."""

    tables: AgentMemory
    placing: Placing

    def symbol(self, name: AgentSymbol) -> int: ...
    def call(self, address: int, arguments: Sequence[int]) -> int: ...


class _Costs(NamedTuple):
    """Those of all kinds of calls that are measured."""

    path: _Cost
    """A call on the path that is not timed;"""
    timed: _Cost
    kept: _Cost
    """one that is, and one that is kept besides;"""
    indirect: _Cost
    indirect_kept: _Cost
    """the same of indirect ones;"""
    passed: _Cost
    """one that is not its caller's;"""
    once: _Cost
    target: _Cost
    both: _Cost
    """one that a tail call follows: timed, that alone, and kept;"""
    twice: _Cost
    """and one that two follow."""

    def write(self, tables: AgentMemory) -> None:
        """Tells the agent what follows from them."""
        timed, kept, once = self.timed, self.kept, self.once
        span_cost = max(0, self.both.full - once.full) // 2
        return_cost = max(0, self.indirect_kept.full - self.indirect.full - span_cost)
        first_cost = kept.first + kept.full - timed.first - timed.full - return_cost - span_cost
        tail_cost = max(0, once.inner - timed.inner)
        target_cost = max(0, self.twice.full - once.full - tail_cost)
        tails = once.full - timed.full - return_cost - tail_cost
        tables.set(
            inner_cost=timed.inner,
            full_cost=timed.full,
            path_cost=self.path.full,
            pass_cost=self.passed.full,
            slow_cost=timed.slow,
            indirect_cost=max(0, self.indirect.full - timed.full),
            kept_cost=kept.full,
            return_cost=return_cost,
            span_cost=span_cost,
            first_cost=max(0, first_cost),
            closing_cost=max(0, tails - target_cost),
            target_cost=target_cost,
            tail_cost=tail_cost,
            tail_inner=self.target.inner,
            cost_doubt=timed.doubt,
            is_measured=1,
        )


class _Calls:
    """Calls of ``nothing`` that are measured, below one and the same caller; those through the site
    ``direct`` are timed or not."""

    def __init__(
        self, foothold: Calibrated, blob: Blob, area: Area, *, nothing: int, direct: int
    ) -> None:
        self._foothold = foothold
        self._tables = foothold.tables
        self._limits = blob.constants
        self._nothing = nothing
        self._direct = direct
        self._parent = foothold.placing.new_index()
        self._tables.sites.write(self._parent, pad_back=area.sector, kind=self._limits.CALL)

    def cost(self, entry: int, node: int = 1, *, timed: bool = True) -> _Cost:
        """Of calls through the pad at ``entry``, as the caller is the ``node``."""
        tables = self._tables
        nodes = [Node(0, 1, 3, timed=True), *[Node(0, 0, 0, timed=timed)] * 3]
        routes = [Route(0, 1), Route(1, 2), Route(0, 3), Route(3, 1)]
        tables.sites.write_nodes(nodes, routes, [])
        tables.sites.set(self._direct, timed=int(timed))
        tables.sites.set(self._parent, first_child=node)
        parent = tables.sites.address(self._parent)
        arguments = (tables.control, parent, entry, self._nothing)
        self._foothold.call(self._foothold.symbol(AgentSymbol.CALIBRATE), arguments)
        return _Cost(
            tables.full_cost,
            tables.slow_cost,
            tables.first_cost,
            tables.inner_cost,
            tables.cost_doubt,
        )

    def cost_kept(self, entry: int) -> _Cost:
        """The same, of calls that are kept whole."""
        self._tables.set(least_span=0)
        cost = self.cost(entry)
        self._tables.set(least_span=self._limits.NEVER)
        self._tables.kept.forget()
        return cost


class Calibration:
    """Of a ``foothold`` whose agent is there; its pads are in ``area``."""

    def __init__(self, foothold: Calibrated, blob: Blob, area: Area) -> None:
        self._foothold = foothold
        self._tables = foothold.tables
        self._blob = blob
        self._area = area

    def measure(self) -> None:
        """Measures the pads' own cost in this program on this machine: at a call of what does
        nothing; at one that is not its caller's; at one of a tail call of that; and at one of a
        tail call of that tail call."""
        nothing = self._foothold.symbol(AgentSymbol.NOTHING)
        direct, pad = self._site(CallKind.DIRECT, nothing, 0)
        calls = _Calls(self._foothold, self._blob, self._area, nothing=nothing, direct=direct)
        path = calls.cost(pad, timed=False)
        timed, kept = calls.cost(pad), calls.cost_kept(pad)
        used = [direct]
        # One after the other, as all of these calls come back through one landing.
        index, pad = self._site(CallKind.INDIRECT, nothing, 0)
        indirect, indirect_kept = calls.cost(pad), calls.cost_kept(pad)
        used.append(index)
        index, pad = self._site(CallKind.DIRECT, nothing, 1)
        passed = calls.cost(pad)
        used.append(index)
        index, tail = self._site(CallKind.TAIL, nothing, 1)
        used.append(index)
        index, pad = self._site(CallKind.DIRECT, tail, 0)
        used.append(index)
        once, target, both = calls.cost(pad), calls.cost(pad, 2), calls.cost_kept(pad)
        index, tail = self._site(CallKind.TAIL, tail, 3)
        used.append(index)
        index, pad = self._site(CallKind.DIRECT, tail, 2)
        twice = calls.cost(pad)
        used.append(index)
        for index in used:
            self._tables.sites.set(index, route_count=0)
        costs = _Costs(
            *(path, timed, kept, indirect, indirect_kept, passed, once, target, both, twice)
        )
        costs.write(self._tables)

    def _site(self, kind: CallKind, target: int, route: int) -> tuple[int, int]:
        """The number and the pad of a site that calls, or jumps to, ``target``, as if it were the
        one in ``darc_calibrate_once``; ``route`` is its only one."""
        area, back = self._area, self._foothold.symbol(AgentSymbol.CALIBRATE_BACK)
        code = pads.measured_call(kind, area.base, target)
        site = Site(
            address=area.base,
            kind=kind,
            patch=area.base,
            length=PATCH_LENGTH,
            back=back,
            target=None if kind is CallKind.INDIRECT else target,
            pointer=None,
            instruction=decode(code, area.base)[0],
            slot=FRAME_AT_ENTRY,
            thunk=target,
        )
        index = self._foothold.placing.new_index()
        pad_back, sectors, stubs = 0, (area.sector,), self._foothold.placing.stubs
        if kind.is_tail:
            data = self._tables.sites.address(index)
            origin, _ = self._foothold.placing.place(
                area,
                index,
                None,
                lambda at: pads.tail_pad(site, data, sectors=sectors, stubs=stubs, origin=at),
            )
        else:
            origin, _, pad_back = self._foothold.placing.place_call(area, site, index, sectors)
        self._tables.sites.write(
            index,
            back=back,
            pad_back=pad_back,
            kind=self._blob.constants.TAIL if kind.is_tail else self._blob.constants.CALL,
            indirect=self._blob.constants.MAX_TARGETS * (kind is CallKind.INDIRECT),
            timed=1,
            route_first=route,
            route_count=1,
        )
        return index, origin

    def measure_member(self) -> None:
        """See :meth:`~darc.pads.foothold.Foothold.calibrate_members`."""
        tables = self._tables
        nothing, index = (
            self._foothold.symbol(AgentSymbol.NOTHING),
            self._foothold.placing.new_index(),
        )
        (back,) = decode(RETURN, nothing)
        prologue = Prologue(nothing, (back,), len(RETURN), RETURN)
        area, data = self._area, tables.sites.address(index)
        lands, stubs = area.landings is not None, self._foothold.placing.stubs
        origin, pad = self._foothold.placing.place(
            area,
            index,
            0,
            lambda at: pads.entry_pad(prologue, data, stubs=stubs, origin=at, lands=lands),
        )
        kind = self._blob.constants.MEMBER
        if area.landings is None:
            assert pad.back is not None
            tables.sites.write(index, pad_back=origin + pad.back, kind=kind, timed=1)
            self._call_member(origin, nothing)
            return
        assert pad.body is not None
        body = origin + pad.body
        tables.sites.write(
            index,
            pad_back=area.landings.callers,
            kind=kind,
            timed=1,
            landings=area.landings.base,
            body=body,
        )
        with area.landings.lend(0, self._foothold.symbol(AgentSymbol.CALIBRATE_BACK), body):
            self._call_member(origin, nothing)

    def _call_member(self, pad: int, bare: int) -> None:
        tables = self._tables
        tables.enabled = True
        try:
            arguments = (tables.control, pad, bare)
            self._foothold.call(self._foothold.symbol(AgentSymbol.CALIBRATE_MEMBERS), arguments)
        finally:
            tables.enabled = False
