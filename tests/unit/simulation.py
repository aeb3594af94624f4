"""A program to search in, without a program.

It runs a tree of routines, times the calls that the orders name, and votes as the paper says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from darc.model.ftree import CallKind, CallSite, Fnode, Function, Totals
from darc.model.parameters import Loops, Parameters
from darc.model.profile import bin_of
from darc.search.descent import Descent, Orders, Vote

PROBE_COST = 60
"""Cycles, of a timed call."""


@dataclass(eq=False)
class Routine:
    """What a function does in each call of f0; sequences repeat when there are more calls."""

    name: str
    own: int | Sequence[int] = 10
    """Cycles of its own in one call of it."""
    calls: list[Call] = field(default_factory=list)

    def call(
        self,
        routine: Routine,
        times: int | Sequence[int] = 1,
        *,
        learned: bool = False,
        interrupt: bool = False,
    ) -> Routine:
        """Add a call site; returns this routine."""
        kind = CallKind.INTERRUPT if interrupt else CallKind.DIRECT
        self.calls.append(Call(routine, times, CallKind.INDIRECT if learned else kind))
        return self


@dataclass
class Call:
    routine: Routine
    times: int | Sequence[int]
    """How often it is called in one call of the caller."""
    kind: CallKind

    @property
    def learned(self) -> bool:
        """Nobody knows of it before it happens."""
        return self.kind is not CallKind.DIRECT


def at(value: int | Sequence[int], op: int) -> int:
    return value if isinstance(value, int) else value[op % len(value)]


class Simulation:
    """A program, the agent in it, and the session that drives a descent."""

    def __init__(
        self,
        f0: Routine,
        parameters: Parameters,
        *,
        replay: bool = False,
        deepest: int = 50,
        root: Fnode | None = None,
        least: int = 0,
    ) -> None:
        """With ``replay`` each decision sees the same calls of f0; no call is made below
        ``deepest`` frames, so routines may call each other in circles. The fastest call inside the
        peak takes ``least`` cycles."""
        self.f0 = f0
        self.parameters = parameters
        self.replay = replay
        self.deepest = deepest
        self.routines: dict[Fnode, Routine] = {}
        self.calls: dict[Fnode, Call] = {}
        self.addresses: dict[int, int] = {}
        self.expanded: list[Fnode] = []
        self.history: list[Orders] = []
        self.op = 0
        self.root = root or Fnode(self.function(f0))
        self.bind(self.root, f0)
        self.descent = Descent(
            self.root, parameters, self.expand, probe_cost=lambda: PROBE_COST, least=least
        )

    def function(self, routine: Routine) -> Function:
        address = self.address(routine)
        return Function(
            name=routine.name, symbol=routine.name, module="prog", address=address, offset=address
        )

    def address(self, thing: object) -> int:
        return self.addresses.setdefault(id(thing), 0x1000 + 0x10 * len(self.addresses))

    def bind(self, node: Fnode, routine: Routine) -> None:
        """Take over a tree that another simulation of the same program made."""
        self.routines[node] = routine
        for child, call in zip(node.children, routine.calls, strict=False):
            self.calls[child] = call
            self.bind(child, call.routine)

    def add(self, node: Fnode, call: Call) -> None:
        address = self.address(call)
        site = CallSite(address, call.kind, "prog", address)
        child = node.add_child(self.function(call.routine), site)
        self.routines[child] = call.routine
        self.calls[child] = call

    def expand(self, node: Fnode) -> None:
        self.expanded.append(node)
        calls = self.routines[node].calls
        node.has_unknown_callees = any(call.learned for call in calls)
        for call in calls:
            if not call.learned:
                self.add(node, call)

    def latency(self, routine: Routine, depth: int) -> int:
        below = 0
        if depth < self.deepest:
            below = sum(
                at(call.times, self.op) * self.latency(call.routine, depth + 1)
                for call in routine.calls
            )
        return at(routine.own, self.op) + below

    def count(self, node: Fnode) -> int:
        """How often a node is called in this call of f0."""
        if node.parent is None:
            return 1
        if node.depth > self.deepest:
            return 0
        return at(self.calls[node].times, self.op) * self.count(node.parent)

    def learn(self, orders: Orders) -> None:
        for node in orders.analyse:
            known = {id(self.calls[child]) for child in node.children}
            for call in self.routines[node].calls:
                happens = at(call.times, self.op) * self.count(node)
                if call.learned and happens and id(call) not in known:
                    self.add(node, call)

    def is_learned(self, node: Fnode) -> bool:
        return node.parent is not None and self.calls[node].learned

    def totals(self, node: Fnode) -> Totals:
        calls = self.count(node)
        if not calls:
            return Totals()
        latency = self.latency(self.routines[node], node.depth)
        return Totals(1, calls, calls * latency, latency)

    def vote(self, orders: Orders) -> dict[Fnode, Vote]:
        """The votes of one call of f0 (the paper's figure 3, and loops as docs/method.md has
        them)."""
        self.learn(orders)
        own: set[Fnode] = set()
        won: set[Fnode] = set()
        timed: dict[Fnode, Totals] = {}
        for node in orders.analyse:
            timed[node] = self.totals(node)
            children = {c: self.totals(c) for c in orders.batches.get(node, node.children)}
            timed.update(children)
            if not timed[node].calls:
                continue
            called = {c: t for c, t in children.items() if t.calls}
            rest, maxima = self.contestants(timed[node], called)
            highest = bin_of(max([rest, *maxima.values()]), 1)
            if bin_of(rest, 1) == highest:
                own.add(node)
            won.update(c for c, cycles in maxima.items() if bin_of(cycles, 1) == highest)
        self.op += 1
        return {
            node: Vote(int(node in own), totals.ops, int(node in won), totals)
            for node, totals in timed.items()
        }

    def contestants(
        self, whole: Totals, called: dict[Fnode, Totals]
    ) -> tuple[int, dict[Fnode, int]]:
        """What a node itself and its callees are compared by."""
        if self.parameters.loops is Loops.PAPER:
            maxima = {c: t.max_sum for c, t in called.items()}
            return max(0, whole.max_sum - sum(maxima.values())), maxima
        own = max(0, whole.sum - sum(t.sum for t in called.values()))
        if again_and_again(whole):
            return own, {c: t.sum for c, t in called.items()}
        part = whole.max_sum, whole.sum
        return own * part[0] // part[1], {
            c: t.sum * part[0] // part[1] if again_and_again(t) else t.max_sum
            for c, t in called.items()
        }

    def collect(self, orders: Orders) -> dict[Fnode, Vote]:
        """The votes of as many in-peak calls as the descent asks for."""
        if self.replay:
            self.op = 0
        votes: dict[Fnode, Vote] = {}
        for _ in range(self.descent.in_peak_needed()):
            for node, vote in self.vote(orders).items():
                votes[node] = added(votes.get(node, Vote()), vote)
        return votes

    def step(self, orders: Orders) -> Orders:
        needed = self.descent.in_peak_needed()
        return self.note(self.descent.decide(self.collect(orders), needed))

    def note(self, orders: Orders) -> Orders:
        self.history.append(orders)
        return orders

    def run(self, orders: Orders | None = None) -> Simulation:
        """Search, from these orders or from the first ones on, until the descent is finished."""
        orders = self.note(orders or self.descent.begin())
        while not orders.finished:
            orders = self.step(orders)
        return self

    def paths(self) -> list[list[str]]:
        return [names(path.nodes) for path in self.descent.paths()]


def again_and_again(totals: Totals) -> bool:
    """Whether the calls in one call of f0 count together."""
    return totals.calls >= 8 and 2 * totals.max_sum < totals.sum


def added(a: Vote, b: Vote) -> Vote:
    return Vote(a.own + b.own, a.ops + b.ops, a.votes + b.votes, a.totals + b.totals)


def names(nodes: Iterable[Fnode]) -> list[str]:
    return [node.function.name for node in nodes]


def chain(*routines: Routine) -> Routine:
    """Make each routine call the next one; the first is returned."""
    for caller, callee in pairwise(routines):
        caller.call(callee)
    return routines[0]
