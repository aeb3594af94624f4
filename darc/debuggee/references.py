"""What of a process may still come to its pads: threads, stacks, and copies of stacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from darc.code.processor import STACK_POINTER, THREAD_POINTER
from darc.debuggee import stackcopies
from darc.debuggee.gaps import without
from darc.debuggee.procfs import MemoryFile, regions
from darc.debuggee.wordscan import WordScan, own_pages
from darc.model.errors import TargetError
from darc.pads.returns import Replaced, ReturnLandings
from darc.target.target import Region, Target

SEARCHED = stackcopies.LIMIT
"""Bytes that are looked through for what leads to pads: as many as for copies of stacks."""


def references(
    target: Target,
    memory: MemoryFile,
    pid: int,
    *,
    besides: Sequence[range],
    areas: Sequence[range],
    is_inside: Callable[[int], bool],
    most: int | None = SEARCHED,
) -> frozenset[int] | None:
    """Where in an agent or a pad of the ``areas`` a thread stands, or may come back to: a word
    leads there from a stack, or from memory where the stack of a coroutine may be, but for darc's
    own (``besides``). Words that lead to landings may be anywhere: those stay. ``None``: there is
    more memory than the ``most`` bytes that are looked through."""
    found, stacks = set(), {}
    for thread, pc in target.threads.program_counters().items():
        if is_inside(pc):
            found.add(pc)
        stack = target.threads.read_register(thread, STACK_POINTER)
        stacks[stack] = target.threads.read_register(thread, THREAD_POINTER)
    live = list[range]()
    for region in regions(pid):
        if "w" not in region.permissions or "p" not in region.permissions:
            continue
        parts = without(range(_live_part(region, stacks), region.end), besides)
        if any(len(part) > stackcopies.LARGEST for part in parts):
            return None
        live += parts
    searched, scan = 0, WordScan(areas)
    for part in own_pages(pid, live):
        searched += len(part)
        if most is not None and searched > most:
            return None
        # Aligned ones, as on a stack, in its copy and in what the kernel saves for a signal's
        # handler: elsewhere two bytes of a compressor's tables look like them by the thousand.
        found |= {word for _, word in scan.words(memory, part) if is_inside(word)}
    return frozenset(found)


def extents(landings: Iterable[ReturnLandings]) -> list[range]:
    """Where these are."""
    return [range(one.base, one.base + one.extent) for one in landings]


def with_called(
    found: frozenset[int] | None, landings: Sequence[ReturnLandings]
) -> frozenset[int] | None:
    """With the places in pads that f0's cells call to which something leads."""
    if found is None:
        return None
    called = (one.calls(address) for address in found for one in landings)
    return found | {address for address in called if address is not None}


def restore_copies(
    memory: MemoryFile,
    pid: int,
    landings: Sequence[ReturnLandings],
    besides: Callable[[Sequence[Region]], Sequence[range]],
) -> list[Replaced]:
    """See :mod:`darc.debuggee.stackcopies`; ``besides`` tells of mappings where none are. What was
    replaced: nothing where the mappings cannot be read."""
    own: dict[int, int] = {}
    replaced = list[Replaced]()
    for one in landings:
        own.update(one.all_own())
    if own:
        with contextlib.suppress(TargetError, OSError):
            mapped = regions(pid)
            stackcopies.replace(
                memory,
                pid,
                mapped=mapped,
                own=own,
                besides=[*besides(mapped), *extents(landings)],
                replaced=replaced,
            )
    return replaced


def _live_part(region: Region, stacks: Mapping[int, int]) -> int:
    """Where what lives in a region begins: what is below the stack pointer of a
    thread is nobody's, on the main thread's stack and where the C library has put the thread's
    storage behind it. ``stacks`` tells each stack pointer's fs base."""
    for stack, base in stacks.items():
        if region.start <= stack < region.end and (
            region.path == "[stack]" or stack < base < region.end
        ):
            return stack // 8 * 8
    return region.start
