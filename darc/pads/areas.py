"""The memory that pads are in: which of it is free, and which pads are there."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from darc.pads import processor as pads
from darc.pads.returns import ReturnLandings

_LINE = 64
"""Bytes."""


@dataclass
class Area:
    """Executable memory for pads."""

    base: int
    size: int
    used: int = 0
    """Nothing is behind so many bytes."""
    landings: ReturnLandings | None = None
    """What its pads' calls come back to: in a process; perhaps those of another area."""
    pools: list[ReturnLandings] = field(default_factory=list)
    """All in its reach, where call sites of earlier analyses have theirs."""
    holes: list[range] = field(default_factory=list)
    """What is free before that: pads of earlier analyses were there."""
    floor: int = -1
    """What is in the first so many bytes stays: landings, the agent. Else what is used at first."""

    def __post_init__(self) -> None:
        if self.floor < 0:
            self.floor = self.used

    @property
    def has_room(self) -> bool:
        """Whether half of what pads may take is free."""
        taken = self.used - sum(map(len, self.holes))
        return taken - self.floor <= (self.size - self.floor) // 2

    def use(self, pools: Sequence[ReturnLandings]) -> None:
        """These are in its reach: the first that has room is its own, else the one that has
        most."""
        self.pools = list(pools)
        roomy = (one for one in pools if one.has_room)
        self.landings = next(roomy, None) or max(pools, key=lambda one: one.free)

    def add(self, pools: Sequence[ReturnLandings]) -> None:
        """There are these as well, for whoever finds no room in its own."""
        self.pools = [*self.pools, *pools]

    def fill(self, size: int) -> None:
        """So many bytes more are in use at its end, and what is up to the next line of the
        processor's cache."""
        self.used += -(-size // _LINE) * _LINE

    def keep_what_is_in(self) -> None:
        """What is there by now stays."""
        self.floor = self.used

    def landings_of(self, back: int, usual: ReturnLandings) -> ReturnLandings:
        """Where the call site with this return address has its landing, or is to get one: among the
        ``usual`` ones, where these have room."""
        known = next((one for one in self.pools if one.knows(back)), None)
        if known is not None or usual.free_sites:
            return known or usual
        return next((one for one in self.pools if one.free_sites), usual)

    def free(self, size: int) -> int:
        """Where so many bytes are free, or none at all, at the end."""
        wanted = (hole.start for hole in self.holes if len(hole) >= size)
        return next(wanted, self.base + self.used)

    def take(self, place: range) -> bool:
        """Takes bytes that are free; ``False``: there are not so many."""
        for number, hole in enumerate(self.holes):
            if hole.start == place.start and place.stop <= hole.stop:
                self.holes[number] = range(place.stop, hole.stop)
                return True
        if place.start != self.base + self.used or place.stop > self.base + self.size:
            return False
        self.used += len(place)
        return True

    def keep(self, places: Sequence[range]) -> None:
        """All is free behind the floor but these ``places``, which are in order."""
        at, self.holes = self.base + self.floor, []
        for place in places:
            if place.start > at:
                self.holes.append(range(at, place.start))
            at = place.stop
        self.used = at - self.base

    @property
    def sector(self) -> int:
        """That of the return addresses of its pads' calls."""
        base = self.base if self.landings is None else self.landings.base
        return base // pads.SECTOR * pads.SECTOR


class Areas:
    """Those of a foothold; the agent is in the first one."""

    def __init__(self) -> None:
        self._areas: list[Area] = []

    def __iter__(self) -> Iterator[Area]:
        return iter(self._areas)

    def __len__(self) -> int:
        return len(self._areas)

    @property
    def first(self) -> Area:
        """There are some."""
        return self._areas[0]

    def add(self, area: Area) -> None:
        """One more."""
        self._areas.append(area)

    def use(self, areas: Iterable[Area]) -> None:
        """There are these, and no others any more."""
        self._areas = list(areas)

    @property
    def landings(self) -> list[ReturnLandings]:
        """Those that calls come back to: see :mod:`darc.pads.returns`."""
        pools = [(*area.pools, area.landings) for area in self._areas]
        found = {one.base: one for own in pools for one in own if one is not None}
        return list(found.values())

    def holds(self, address: int) -> bool:
        """Whether ``address`` is in one of them, or in a landing."""
        return any(a.base <= address < a.base + a.size for a in self._areas) or any(
            one.base <= address < one.base + one.extent for one in self.landings
        )

    def reaching(self, low: int, high: int) -> Area | None:
        """One from which all of [low, high) is in reach, if there is one."""
        for area in self._areas:
            if max(high, area.base + area.size) - min(low, area.base) < pads.NEAR:
                return area
        return None


@dataclass(frozen=True)
class Placed:
    """A pad in its place."""

    place: range
    frames: tuple[tuple[int, int], ...]
    back: int | None
    rows: frozenset[int]
    """The numbers of the sites whose rows it reads."""

    def distance(self, pc: int) -> int | None:
        """How far above the stack pointer the slot is where a thread stands in it; ``None``: no
        call is made there."""
        if pc not in self.place or not self.frames:
            return None
        distance = 0
        for offset, known in self.frames:
            if self.place.start + offset > pc:
                break
            distance = known
        return distance


class PlacedPads:
    """The pads of a foothold, and the numbers of the sites whose rows they read."""

    def __init__(self, numbers: int = 0) -> None:
        """So many ``numbers`` are another debugger's."""
        self.numbers = numbers
        """Rows from that number on were never used."""
        self._pads: list[Placed] = []
        """By their addresses."""
        self._free: list[int] = []

    def __iter__(self) -> Iterator[Placed]:
        return iter(self._pads)

    @property
    def used_numbers(self) -> int:
        """How many numbers are used."""
        return self.numbers - len(self._free)

    def new_number(self) -> int:
        """One that no pad uses."""
        if self._free:
            return self._free.pop()
        self.numbers += 1
        return self.numbers - 1

    def free_number(self, number: int) -> None:
        """No pad was made for the site with this number."""
        self._free.append(number)

    def add(self, pad: Placed) -> None:
        """One more."""
        bisect.insort(self._pads, pad, key=_start)

    def before(self, pc: int) -> Placed | None:
        """The one that a thread at ``pc`` may be in, which is the last that begins before that."""
        number = bisect.bisect_right(self._pads, pc, key=_start)
        return self._pads[number - 1] if number else None

    def reached(self, addresses: AbstractSet[int]) -> list[Placed]:
        """Those that one of these addresses is in."""
        return [pad for pad in self._pads if not addresses.isdisjoint(pad.place)]

    def keep(self, kept: Sequence[Placed], floors: Sequence[range]) -> None:
        """There are no others any more than these and those in the ``floors`` of areas."""
        lasting = [p for p in self._pads if any(p.place.start in floor for floor in floors)]
        self._pads = sorted({*lasting, *kept}, key=_start)
        used = {number for pad in self._pads for number in pad.rows}
        self.numbers = max(used, default=-1) + 1
        self._free = sorted(set(range(self.numbers)) - used, reverse=True)


def _start(pad: Placed) -> int:
    return pad.place.start
