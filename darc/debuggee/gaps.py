"""What is left between mappings: room for an area of pads, in reach of a module's code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darc.pads import processor as pads
from darc.target.memory import PAGE
from darc.target.target import Region

_LOWEST = 1 << 16
_HIGHEST = 0x7FFF_FFFF_0000
_GROWTH = 1 << 30
"""Bytes that the heap and the stack are left to grow."""


def gaps(mapped: Sequence[Region], low: int, high: int, size: int) -> Iterable[int]:
    """Free places for an area in reach of all of [low, high): sectors of their own before shared
    ones, near before far. The heap and the stack keep room to grow."""
    found: list[tuple[bool, int, int]] = []
    previous, path = _LOWEST, ""
    for region in (
        *(one for one in mapped if one.start < _HIGHEST),  # [vsyscall] is beyond
        Region(start=_HIGHEST, end=_HIGHEST, permissions="", offset=0, path=""),
    ):
        start, end = previous, region.start
        if region.start > region.end or end <= start:
            previous, path = max(previous, region.end), region.path
            continue
        if path == "[heap]" or (
            path.startswith("/") and not path.endswith(".so") and ".so." not in path
        ):
            start += _GROWTH
        if region.path == "[stack]":
            end -= _GROWTH
        previous, path = max(previous, region.end), region.path
        # A page between: adjacent mappings are one to the kernel, and areas are found by where they
        # begin.
        for candidate in _candidates(start + PAGE, end - PAGE, low, size):
            if max(high, candidate + size) - min(low, candidate) < pads.NEAR:
                shared = not start <= candidate // pads.SECTOR * pads.SECTOR <= end - pads.SECTOR
                found.append((shared, abs(candidate - low), candidate))
    return [candidate for _, _, candidate in sorted(found)[:64]]


def without(whole: range, parts: Iterable[range]) -> list[range]:
    """What is left of a range of addresses."""
    left, at = [], whole.start
    for part in sorted(parts, key=lambda one: one.start):
        if part.stop <= at or part.start >= whole.stop:
            continue
        if part.start > at:
            left.append(range(at, part.start))
        at = part.stop
    if at < whole.stop:
        left.append(range(at, whole.stop))
    return left


def _candidates(start: int, end: int, low: int, size: int) -> Iterable[int]:
    """Sectors of their own at the gap's two ends and nearest to ``low``, then the gap's ends."""
    sector = pads.SECTOR
    first = (start + sector - 1) // sector * sector
    last = (end - sector) // sector * sector
    if first <= last:
        yield from (first, last, min(max(first, (low - sector) // sector * sector), last))
    for place in (start, (end - size) // PAGE * PAGE):
        if start <= place <= end - size and place // sector == (place + size - 1) // sector:
            yield place
