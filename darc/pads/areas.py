"""The memory that pads are in: which of it is free, and which has a pad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from darc.pads import processor as pads
from darc.pads.returns import ReturnLandings


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
    def block(self) -> int:
        """That of the return addresses of its pads' calls."""
        base = self.base if self.landings is None else self.landings.base
        return base // pads.BLOCK * pads.BLOCK


@dataclass(frozen=True)
class Placed:
    """A pad in its place."""

    place: range
    frames: tuple[tuple[int, int], ...]
    back: int | None
    rows: frozenset[int]
    """The numbers of the sites whose rows it reads."""
