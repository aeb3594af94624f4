"""Which addresses hold code, and what may be done to the memory that it is in."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence

from darc.target.target import Region


class CodeRegions:
    """The executable mappings of a program, as they were when they were looked at."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._regions = sorted((r for r in regions if "x" in r.permissions), key=_start)
        self._starts = [r.start for r in self._regions]
        self.size = sum(r.end - r.start for r in self._regions)
        """In bytes."""

    def has(self, address: int) -> bool:
        """Whether ``address`` lies in one."""
        return self._at(address) is not None

    def among(self, addresses: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Which of ``addresses``, that ascend, lie in one: from which number up to which."""
        return among(addresses, ((r.start, r.end) for r in self._regions))

    def is_shared(self, address: int) -> bool:
        """Whether the code at ``address`` is in memory that other processes may see as well: what
        is written there is in their code, too."""
        region = self._at(address)
        return region is not None and "s" in region.permissions

    def may_be_read(self, address: int) -> bool:
        """Whether the program itself can read the code there."""
        region = self._at(address)
        return region is None or "r" in region.permissions

    def _at(self, address: int) -> Region | None:
        at = bisect.bisect_right(self._starts, address) - 1
        return self._regions[at] if at >= 0 and address < self._regions[at].end else None


def region_at(regions: Iterable[Region], address: int) -> Region | None:
    """The one of ``regions`` that an address lies in."""
    return next((r for r in regions if r.start <= address < r.end), None)


def among(
    addresses: Sequence[int], stretches: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """From which number of ``addresses``, that ascend, up to which others lie in the same stretch,
    with their starts and ends in ascending order."""
    for start, end in stretches:
        low, high = (bisect.bisect_left(addresses, at) for at in (start, end))
        if low < high:
            yield low, high


def _start(region: Region) -> int:
    return region.start
