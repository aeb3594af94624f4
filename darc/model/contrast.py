"""What slow ops do that fast ones do not: kept ops of two sides, call by call.

Each row is a call on the tree, or a reason for which the thread was off the processor, with its
mean time and its calls in one op of either side. Within one session calls are the same where they
are the same fnode; in two sessions, whose programs may have been built apart, where the same
functions lead to them. All times are in cycles of the first side's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from darc.model.errors import UsageError
from darc.model.ftree import Fnode
from darc.model.ops import KeptOps, OffReason, Op, OpClass


@dataclass(frozen=True)
class Side:
    """The ops of one side."""

    name: str
    """What users call it, as ``peak 3`` or a file."""
    ops: tuple[Op, ...]
    kept: KeptOps
    """Those that they are of."""

    @classmethod
    def of(cls, name: str, kept: KeptOps, kept_as: OpClass) -> Side:
        """One class of kept ops, without the one that is kept for being the slowest."""
        return cls(name, kept.sample(kept_as), kept)


@dataclass(frozen=True)
class Figures:
    """Of one row, in one side: means over its ops."""

    time: float
    """Cycles in an op."""
    calls: float
    """How many there are in an op."""


@dataclass(frozen=True)
class CallRow:
    """One call on the tree; ``None`` for the side in which it was not timed."""

    node: Fnode
    """The call in the first side where it is there, else in the second."""
    is_own: bool
    """Whether it is the own time of f0, and no call."""
    first: Figures | None
    second: Figures | None

    @property
    def difference(self) -> float | None:
        """Cycles in an op that the first side has more."""
        if self.first is None or self.second is None:
            return None
        return self.first.time - self.second.time


@dataclass(frozen=True)
class OffRow:
    """Time off the processor for one reason, in cycles in an op."""

    reason: OffReason
    first: float
    second: float


@dataclass(frozen=True)
class Contrast:
    """Two sides held against each other."""

    first: Side
    second: Side
    hz: int
    latency: tuple[float, float]
    """Mean latency of an op of each."""
    calls: tuple[CallRow, ...]
    """What the first side spends more time in comes first; what cannot be told, last."""
    off: tuple[OffRow, ...] | None
    """``None`` where it was not watched in both."""


_OWN = "itself"

_Key = Callable[[Fnode], Hashable]


def contrast(first: Side, second: Side) -> Contrast:
    """Holds the two sides against each other.

    Raises:
        UsageError: one of them has no op.
    """
    for side in (first, second):
        if not side.ops:
            raise UsageError(
                f"no op of {side.name} is kept: let more of them come, or name a saved session"
            )
    is_one = first.kept is second.kept
    key: _Key = (lambda node: node) if is_one else _functions
    scale = first.kept.hz / second.kept.hz
    sums = _Sums(first, key, 1.0, is_one), _Sums(second, key, scale, is_one)
    nodes = {**sums[1].nodes, **sums[0].nodes}
    rows = [
        CallRow(
            node,
            place[0] == _OWN,
            sums[0].figures(place, node),
            sums[1].figures(place, node),
        )
        for place, node in nodes.items()
    ]
    rows.sort(key=_rank)
    latency = (_mean(o.latency for o in first.ops), _mean(o.latency for o in second.ops) * scale)
    return Contrast(
        first=first,
        second=second,
        hz=first.kept.hz,
        latency=latency,
        calls=tuple(rows),
        off=_off(sums),
    )


def _rank(row: CallRow) -> tuple[bool, float, int]:
    difference = row.difference
    return difference is None, -(difference or 0.0), row.node.depth


def _functions(node: Fnode) -> Hashable:
    return tuple(above.function.symbol for above in node.route())


_Place = tuple[str, Hashable]
"""A row: of calls, by key, or of own time."""


class _Sums:
    """One side's sums by row."""

    def __init__(self, side: Side, key: _Key, scale: float, is_one: bool) -> None:
        self._side, self._scale, self._is_one = side, scale, is_one
        self.nodes: dict[_Place, Fnode] = {}
        self._sums: dict[_Place, tuple[int, int]] = {}
        self._compared = {key(node) for node in side.kept.compared}
        self._key = key
        for op in side.ops:
            for total in op.sums:
                self._add(("", key(total.node)), total.node, total.sum, total.calls)
        roots = [node for node in side.kept.compared if node.parent is None]
        for root in roots:
            own = sum(op.own_time_of(root) for op in side.ops)
            self._add((_OWN, key(root)), root, own, len(side.ops))

    def _add(self, place: _Place, node: Fnode, time: int, calls: int) -> None:
        before = self._sums.get(place, (0, 0))
        self.nodes.setdefault(place, node)
        self._sums[place] = before[0] + time, before[1] + calls

    def figures(self, place: _Place, node: Fnode) -> Figures | None:
        """``None`` where calls as ``node`` were not timed; zeros where there were none."""
        caller = node.parent
        is_known = self._is_one or place in self._sums  # one round has timed the same calls in all
        if not is_known and (caller is None or self._key(caller) not in self._compared):
            return None
        time, calls = self._sums.get(place, (0, 0))
        count = len(self._side.ops)
        return Figures(time * self._scale / count, calls / count)

    def off(self, reason: OffReason) -> float:
        """Mean cycles off the processor in an op."""
        return _mean(op.off_time(reason) for op in self._side.ops) * self._scale

    @property
    def is_watched(self) -> bool:
        """Whether it is known of every op."""
        return all(op.off is not None for op in self._side.ops)


def _off(sums: Sequence[_Sums]) -> tuple[OffRow, ...] | None:
    if not all(side.is_watched for side in sums):
        return None
    rows = (OffRow(reason, sums[0].off(reason), sums[1].off(reason)) for reason in OffReason)
    shown = (row for row in rows if row.first or row.second)
    return tuple(sorted(shown, key=lambda row: row.second - row.first))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
