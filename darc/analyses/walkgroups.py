"""Groups of threads, and what share of their time the functions on their way have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from darc.model.ftree import Function

_MOST_LEVELS = 48

_LEFT = 0.5
"""Of its share: who has less than that a while later tells nothing of where the time went."""


@dataclass
class WalkNode:
    """A function on the way, in one group of threads."""

    function: Function
    above: WalkNode | None
    share: dict[int, float]
    """Of each thread's time, by the thread's key, without event waits."""
    whole: Mapping[int, float] = field(default_factory=dict)
    """What there was of each thread's time in the same window, without event waits."""
    base: frozenset[int] = frozenset()
    """The threads that are in it all the time."""
    below: list[WalkNode] = field(default_factory=list)
    idle: dict[int, float] = field(default_factory=dict)
    """Of each thread: waits for work that it calls itself."""
    lends: frozenset[int] = frozenset()
    """The threads whose loop calls it, or something that does, and it is of C++'s library: where it
    waits, the loop does."""
    waited: dict[str, float] = field(default_factory=dict)
    """Thread-windows of such waits that it calls itself, by the function."""
    idling: dict[str, float] = field(default_factory=dict)
    """The same, and those of the library's functions below, as parts of its time."""
    is_done: bool = False
    calls: dict[int, int] = field(default_factory=dict)
    """In each thread, while the function above was looked into."""
    learned: set[int] = field(default_factory=set)
    is_timed: bool = False
    """Whether its own calls are timed while it is looked into: programs do other things after a
    while."""
    now: Mapping[int, float] = field(default_factory=dict)
    """Of each thread's time in that window,"""
    whole_now: Mapping[int, float] = field(default_factory=dict)
    """and what there was of it, as ``share`` and ``whole``."""
    is_jumper: bool = False
    """Whether it hands its frame on by tail jumps, and nothing tells where: it cannot be timed."""
    is_looked_at: bool = False
    """Whether the stacks are looked at now for its indirect callees,"""
    looks: int = 0
    """and how often they were."""
    again: int = 0

    @property
    def repeats(self) -> bool:
        """Whether its chain has come by there before, or is too long."""
        path = self.path
        above = [one.function.address for one in path[:-1]]
        return self.function.address in above or len(path) > _MOST_LEVELS

    def had(self, now: Mapping[int, float], whole: Mapping[int, float]) -> None:
        """The window in which it was looked into has shown this of its own calls."""
        self.now, self.whole_now = dict(now), dict(whole)

    @property
    def path(self) -> list[WalkNode]:
        """From the start down to it."""
        return [*(() if self.above is None else self.above.path), self]

    @property
    def lends_on(self) -> frozenset[int]:
        """The threads that a function of C++'s library below it is lent to: also such as were not
        in that while it was found."""
        return self.base | self.lends

    def is_lent(self, key: int) -> bool:
        """Whether what it waits is the wait of the thread's loop, which it returns to."""
        return key in self.lends and key not in self.base

    def is_outermost(self, key: int) -> bool:
        """Of what is lent to a thread's loop."""
        return self.is_lent(key) and (self.above is None or not self.above.is_lent(key))

    def lent(self) -> float:
        """In threads."""
        return sum(share for key, share in self.share.items() if self.is_lent(key))

    def tell_idling(self) -> None:
        """The window tells parts, not times: that of its own callers has its share, and others may
        call it as well. Only threads that it is lent to tell which part."""
        found = dict(self.waited)
        further = (
            part for one in self.below for key, part in one.share.items() if self.is_lent(key)
        )
        held = sum(found.values()) + sum(further)
        for one in self.below:
            for name, part in one.idling.items():
                found[name] = found.get(name, 0.0) + part * one.lent()
        own = self.lent()
        whole = held if 2 * held > own else own  # else most is its own, or not known
        self.idling = {name: part / whole for name, part in found.items()} if whole else {}


@dataclass
class ThreadGroup:
    """Threads that have begun with the same function, and the functions on their way from there."""

    name: str
    threads: set[int]
    root: WalkNode
    waits: dict[str, float] = field(default_factory=dict)
    """Thread-windows by the function that was waited in."""
    event_waits: dict[int, float] = field(default_factory=dict)
    ran: float | None = None
    ready: float | None = None
    is_done: bool = False
    is_of_callers: bool = False
    """Whether the walk began with a function that any thread may call: then those of ``threads``
    are the group that did."""

    def had_processors(self, ran: float, ready: float) -> None:
        """Which parts of their time these threads ran, and were ready to."""
        self.ran, self.ready = min(ran, 1.0), min(ready, 1.0)

    @property
    def members(self) -> set[int]:
        """The threads that are told of."""
        callers = {key for key, share in self.root.share.items() if share > 0}
        return callers if self.is_of_callers else self.threads

    def nodes(self) -> Iterator[WalkNode]:
        """All functions that were seen on the way."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack += node.below

    def idle_of(self, key: int) -> float:
        """Which part of a thread's time is waits for work that functions call which it never
        leaves."""
        idle = 0.0
        for node in self.nodes():
            idle += node.idle.get(key, 0.0)
            if node.idling and node.is_outermost(key):
                idle += node.share.get(key, 0.0) * sum(node.idling.values())
        return min(idle, 1.0)

    def busy(self, whole: Mapping[int, float]) -> float:
        """Of the threads' ``whole`` time, in threads, what is not idle."""
        return sum(max(whole.get(key, 0.0) - self.idle_of(key), 0.0) for key in self.threads)

    def share(self, node: WalkNode) -> float:
        """Of the group's time that is not idle."""
        return min(self._part(node, node.share, node.whole) or 0.0, 1.0)

    def share_now(self, node: WalkNode) -> float | None:
        """The same in the window in which ``node`` was looked into; ``None``: it is not known."""
        part = self._part(node, node.now, node.whole_now) if node.is_timed else None
        return None if part is None else min(max(part, sum(map(self.share, node.below))), 1.0)

    def is_over(self, node: WalkNode) -> bool:
        """Whether ``node`` had far less of the time as it was looked into than as it was found."""
        now = self.share_now(node)
        return now is not None and now < _LEFT * self.share(node)

    def _part(
        self, node: WalkNode, shares: Mapping[int, float], whole: Mapping[int, float]
    ) -> float | None:
        """What these shares of the threads are of their ``whole`` time that is not idle; ``None``:
        all of it is."""
        busy = self.busy(whole)
        held = sum(self._held(node, key, share) for key, share in shares.items())
        return held / busy if busy > 0 else None

    def _held(self, node: WalkNode, key: int, share: float) -> float:
        if key in node.base:
            return max(share - self.idle_of(key), 0.0)
        return share * (1.0 - sum(node.idling.values())) if node.is_lent(key) else share

    def waits_told(self) -> dict[str, float]:
        """All of its waits for work, in threads, by the function that was waited in."""
        waits = dict(self.waits)
        for node in self.nodes():
            share = sum(part for key, part in node.share.items() if node.is_outermost(key))
            for name, part in node.idling.items():
                waits[name] = waits.get(name, 0.0) + part * share
        return waits
