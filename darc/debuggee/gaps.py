"""What is left between mappings: room for an area of pads, in reach of a module's code; and for
tables, far from all else.

The kernel itself would place each new mapping just below the lowest one. Where that is a stack that
grows down (mmap(2), ``MAP_GROWSDOWN``), or where the program makes one later in the little room
above, it could not grow any more: the kernel keeps a gap below it (``expand_downwards`` in
mm/mmap.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darc.code.processor import PROGRAMS_END
from darc.pads import processor as pads
from darc.target.memory import PAGE
from darc.target.target import Region

_LOWEST = 1 << 16
_GROWTH = 1 << 30
"""Bytes that the heap and the stack are left to grow."""
_STACK_GROWTH = 1 << 24
"""The same for memory that may be a stack of the program's own making. The kernel lets each grow to
RLIMIT_STACK, 8 MiB mostly."""


def gaps(mapped: Sequence[Region], low: int, high: int, size: int) -> Iterable[int]:
    """Free places for an area in reach of all of [low, high): sectors of their own before shared
    ones, near before far. The heap and stacks keep room to grow."""
    found: list[tuple[bool, int, int]] = []
    for start, end in _free(mapped):
        for candidate in _candidates(start, end, low, size):
            if max(high, candidate + size) - min(low, candidate) < pads.NEAR:
                shared = not start <= candidate // pads.SECTOR * pads.SECTOR <= end - pads.SECTOR
                found.append((shared, abs(candidate - low), candidate))
    return [candidate for _, _, candidate in sorted(found)[:64]]


def far_from_all(mapped: Sequence[Region], size: int) -> int | None:
    """A free place for ``size`` bytes in the middle of the widest gap; ``None``: there is none."""
    start, end = max(_free(mapped), key=lambda gap: gap[1] - gap[0], default=(0, 0))
    return (start + end - size) // 2 // PAGE * PAGE if end - start >= size else None


def _free(mapped: Sequence[Region]) -> Iterable[tuple[int, int]]:
    """From where to where nothing is mapped, nor will be as the heap and stacks grow. A page is
    left out at both ends: adjacent mappings are one to the kernel, and areas are found by where
    they begin."""
    previous, path = _LOWEST, ""
    for region in (
        *(one for one in mapped if one.start < PROGRAMS_END),  # [vsyscall] is beyond
        Region(start=PROGRAMS_END, end=PROGRAMS_END, permissions="", offset=0, path=""),
    ):
        start, end = previous, region.start
        if region.start > region.end or end <= start:
            previous, path = max(previous, region.end), region.path
            continue
        if path == "[heap]" or (
            path.startswith("/") and not path.endswith(".so") and ".so." not in path
        ):
            start += _GROWTH
        end -= _growth(region)
        previous, path = max(previous, region.end), region.path
        if start + PAGE < end - PAGE:
            yield start + PAGE, end - PAGE


def _growth(region: Region) -> int:
    """How far down it may grow. Of anonymous memory only /proc/PID/smaps says whether it may at
    all, which takes long where mappings are large."""
    if region.path == "[stack]":
        return _GROWTH
    is_anonymous = not region.path or region.path.startswith("[anon")
    return _STACK_GROWTH if is_anonymous and region.permissions.startswith("rw") else 0


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
