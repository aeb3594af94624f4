"""What of a process may still come to its pads: threads, stacks, and copies of stacks and jumps."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from darc.agent.rows import Lead
from darc.code.processor import FRAME_POINTER, STACK_POINTER, THREAD_POINTER
from darc.debuggee import procfs, stackcopies
from darc.debuggee.frameholes import FrameHoles
from darc.debuggee.gaps import without
from darc.debuggee.idleframes import forget_idle
from darc.debuggee.procfs import MemoryFile, regions
from darc.debuggee.wordscan import WordScan, own_pages, saved_counters
from darc.model.errors import TargetError
from darc.pads.returns import Replaced, ReturnLandings
from darc.target.target import Region, Target

_One = TypeVar("_One")

_SHARED = ("/dev/zero", "/memfd:", "/dev/shm/", "/SYSV")
"""How ``/proc/PID/maps`` calls memory that is shared, and no file's."""

_KERNELS = ("[vdso]", "[vsyscall]", "[uprobes]")
"""How it calls what the kernel has put there."""

HEADER = struct.Struct("<8sQ8sQ")
"""What an area of pads or landings begins with (see :mod:`darc.debuggee.leftbehind`): no code, so
nobody comes there. But pads compare return addresses with where their area begins."""

_FARTHEST = 8 << 20
"""Bytes from a signal's frame to where the stack was: the usual limit of a stack."""

_LIBRARYS = frozenset((32, 33))
"""Signals of which the C library has handlers of its own, which are short: for a thread's
cancelling, and for changes of all threads' user (``SIGCANCEL``, ``SIGSETXID``)."""

_SEARCHED_FOR_INTERRUPTED = 64 << 20
"""Bytes beside the threads' stacks: what is read in some 30 ms."""

_MOST_UNWOUND = 512
"""Threads, of whose frames the holes are told."""

SEARCHED = stackcopies.LIMIT
"""Bytes that are looked through for what leads to pads: as many as for copies of stacks."""


def _stacks_of(target: Target, pid: int) -> Iterator[_Stack]:
    """Those of all threads, the companions' first."""
    beside = target.companions
    pointers = beside.stack_pointers()
    for thread, pc in beside.program_counters().items():
        pointer = pointers.get(thread, 0)
        yield _Stack(thread, pc, pointer, 0, is_first=False, is_companions=True)
    for thread, pc in target.threads.program_counters().items():
        stack = target.threads.read_register(thread, STACK_POINTER)
        base = target.threads.read_register(thread, THREAD_POINTER)
        yield _Stack(thread, pc, stack, base, is_first=thread == pid)


@dataclass(frozen=True)
class _Parts:
    """Memory that words may lead from."""

    dead: Sequence[range]
    """Below the stack pointers of threads;"""
    private: Sequence[range]
    """the rest of what the process has alone,"""
    shared: Sequence[range]
    """and what it shares."""

    def touched(self, pid: int) -> Iterator[tuple[range, bool]]:
        """What of it there are pages of, and whether that is dead."""
        yield from ((one, True) for one in own_pages(pid, self.dead))
        yield from ((one, False) for one in own_pages(pid, self.private))
        yield from ((one, False) for one in own_pages(pid, self.shared, shared=True))

    def all(self, pid: int) -> Iterator[range]:
        """All of it that there are pages of."""
        return (part for part, _ in self.touched(pid))


def _parts_of(
    mapped: Iterable[Region], standing: Mapping[int, Sequence[_Stack]], besides: Sequence[range]
) -> _Parts | None:
    """Those of what is ``mapped``, with the stacks that are ``standing`` in each region; ``None``:
    one is too large."""
    dead, private, shared = list[range](), list[range](), list[range]()
    for region in mapped:
        live = _live_part(region, standing.get(region.start, ()))
        parts = without(range(live, region.end), besides)
        if any(len(part) > stackcopies.LARGEST for part in parts):
            return None
        if "p" in region.permissions:
            private += parts
            dead += without(range(region.start, live), besides)
        else:
            shared += parts
    return _Parts(dead, private, shared)


@dataclass(frozen=True)
class Wanted:
    """What is looked for."""

    areas: Sequence[range]
    """Where agents, pads and landings are: words that lead there;"""
    leads: Sequence[Lead] = ()
    """copies of these, wherever they begin; and in code that is no file's, what leads to the same
    pads (see :class:`~darc.debuggee.wordscan.WordScan`)."""

    def is_in_header(self, word: int) -> bool:
        """Whether ``word`` is where one of the areas begins, and has no code yet."""
        return any(one.start <= word < one.start + HEADER.size for one in self.areas)


def _code_of(pid: int, mapped: Iterable[Region], besides: Sequence[range]) -> Iterator[range]:
    """What of a process's executable memory it has made itself, or written to: compilers put code
    there, and whoever hooks functions copies of their first instructions, moved to where they
    are."""
    for region in mapped:
        is_shared = "p" not in region.permissions
        if "x" not in region.permissions or region.path.startswith(_KERNELS):
            continue
        if region.end - region.start <= stackcopies.LARGEST and _may_have_stacks(region):
            parts = without(range(region.start, region.end), besides)
            yield from own_pages(pid, parts, shared=is_shared)


def _left_there(
    target: Target, one: _Stack, left_over: FrameHoles, places: Sequence[int]
) -> Iterator[int]:
    """Those of the ``places``, in their order, that frames on that stack have left over."""
    frame = target.threads.read_register(one.thread, FRAME_POINTER)
    for hole in left_over.of(one.pc, one.pointer, frame):
        first, end = (bisect.bisect_left(places, at) for at in (hole.start, hole.stop))
        yield from places[first:end]


def _forget_left_over(
    target: Target,
    left_over: FrameHoles,
    *,
    mapped: Sequence[Region],
    standing: Mapping[int, Sequence[_Stack]],
    leading: dict[int, int],
) -> None:
    """Of the places that are ``leading`` to pads those go that frames on stacks have left over."""
    places = sorted(leading)
    for one in itertools.islice(_leading(mapped, standing, places), _MOST_UNWOUND):
        for place in _left_there(target, one, left_over, places):
            leading.pop(place, None)


def _may_need(wanted: Wanted, is_inside: Callable[[int], bool], word: int) -> bool:
    return is_inside(word) and not wanted.is_in_header(word)


def _words(
    scan: WordScan, memory: MemoryFile, part: range, *, is_dead: bool
) -> Iterator[tuple[int, int]]:
    # Aligned ones, as on a stack, in its copy and in what the kernel saves for a signal's
    # handler: elsewhere two bytes of a compressor's tables look like them by the thousand.
    return saved_counters(memory, part) if is_dead else scan.words(memory, part)


def references(
    target: Target,
    memory: MemoryFile,
    pid: int,
    *,
    besides: Sequence[range],
    wanted: Wanted,
    is_inside: Callable[[int], bool],
    left_over: FrameHoles,
    most: int | None = SEARCHED,
) -> frozenset[int] | None:
    """Where in an agent or a pad of what is ``wanted`` a thread stands, or may come back to: a word
    leads there from a stack, or from memory where the stack of a coroutine may be, but for darc's
    own (``besides``) and what is ``left_over``; or a copy of what leads there from the program's
    code, which may be written back. Words that lead to landings may be anywhere: those stay.
    ``None``: there is more memory than the ``most`` bytes that are looked through."""
    stacks = list(_stacks_of(target, pid))
    found = {one.pc for one in stacks if is_inside(one.pc)}
    leading: dict[int, int] = {}
    may_need = partial(_may_need, wanted, is_inside)
    left_over.look(all_mapped := regions(pid))
    mapped = [one for one in all_mapped if "w" in one.permissions and _may_have_stacks(one)]
    standing = _by_region(mapped, [(one.pointer, one) for one in stacks])
    parts = _parts_of(mapped, standing, besides)
    if parts is None:
        return None
    searched, scan = 0, WordScan(wanted.areas, wanted.leads)
    for part, is_dead in parts.touched(pid):
        searched += len(part)
        if most is not None and searched > most:
            return None
        words = _words(scan, memory, part, is_dead=is_dead)
        leading.update(one for one in words if may_need(one[1]))
    code = list(_code_of(pid, all_mapped, [*besides, *wanted.areas]))
    if most is not None and searched + sum(map(len, code)) > most:
        return None
    found.update(pad for part in code for _, pad in scan.jumps(memory, part) if may_need(pad))
    _forget_left_over(target, left_over, mapped=mapped, standing=standing, leading=leading)
    forget_idle(target, memory, mapped=mapped, parts=parts.all(pid), leading=leading)
    return frozenset({*found, *leading.values()})


def interrupted(target: Target, memory: MemoryFile, pid: int) -> dict[int, int]:
    """Program counters that the kernel has saved for handlers of signals which have not come back
    yet, by where they are, and what looks like some: on the threads' stacks, and wherever else a
    fiber may rest whose handler has changed to another one, as far as that is little memory.

    Raises:
        TargetError: memory cannot be looked at.
    """
    if not procfs.caught(pid) - _LIBRARYS:
        return {}
    mapped = [one for one in regions(pid) if "w" in one.permissions and _may_have_stacks(one)]
    stacks, private, shared = list[range](), list[range](), list[range]()
    pointers = list[int]()
    for thread in target.threads.ids():
        pointer = procfs.stack_pointer(thread)
        if pointer is None:
            pointer = target.threads.read_register(thread, STACK_POINTER)
        pointers.append(pointer)
    standing = _by_region(mapped, [(pointer, pointer) for pointer in pointers])
    for region in mapped:
        own = [
            range(pointer // 8 * 8, min(region.end, pointer + _FARTHEST))
            for pointer in standing.get(region.start, ())
        ]
        stacks += own
        if region.end - region.start <= stackcopies.LARGEST:
            parts = without(range(region.start, region.end), own)
            (private if "p" in region.permissions else shared).extend(parts)
    rest = [*own_pages(pid, private), *own_pages(pid, shared, shared=True)]
    if sum(map(len, rest)) > _SEARCHED_FOR_INTERRUPTED:
        rest = []
    return {
        at: pc
        for part in (*stacks, *rest)
        for at, pc in saved_counters(memory, part, passes_over=True)
    }


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


@dataclass(frozen=True)
class OwnPlaces:
    """Where darc's own memory is."""

    code: Sequence[range]
    """Agents, pads and landings."""
    tables: Sequence[range]
    """Their records know calls by words that lead to landings: where coroutines' stacks may be
    copied to, such words are looked for and replaced, but not there."""


def restore_copies(
    memory: MemoryFile,
    pid: int,
    landings: Sequence[ReturnLandings],
    *,
    find: Callable[[Sequence[Region]], OwnPlaces],
    besides: Sequence[range] = (),
) -> list[Replaced]:
    """See :mod:`darc.debuggee.stackcopies`; ``find`` tells of darc's own mappings, ``besides`` are
    others where no copies are. What was replaced: nothing where the mappings cannot be read."""
    own: dict[int, int] = {}
    replaced = list[Replaced]()
    for one in landings:
        own.update(one.all_own())
    if own:
        with contextlib.suppress(TargetError, OSError):
            mapped = regions(pid)
            places = find(mapped)
            stackcopies.replace(
                memory,
                pid,
                mapped=mapped,
                own=own,
                besides=[*besides, *places.tables, *extents(landings)],
                code=places.code,
                replaced=replaced,
            )
    return replaced


@dataclass(frozen=True)
class _Stack:
    """Where a thread stands, its stack pointer and its thread pointer; ``is_first``: it is the
    first thread, ``is_companions``: it is none of the program's, and what is below its stack may be
    another one's (a child of vfork lives there)."""

    thread: int
    pc: int
    pointer: int
    base: int
    is_first: bool
    is_companions: bool = False


def _may_have_stacks(region: Region) -> bool:
    """Private memory, and what is shared without a file that has it: files and devices are not what
    stacks are made in."""
    return "p" in region.permissions or region.path.startswith(_SHARED)


def _by_region(
    mapped: Sequence[Region], stacks: Iterable[tuple[int, _One]]
) -> dict[int, list[_One]]:
    """Those whose stack pointers are in a region of memory, by where that begins: of both there may
    be thousands."""
    starts, found = [one.start for one in mapped], dict[int, list[_One]]()
    for pointer, stack in stacks:
        at = bisect.bisect_right(starts, pointer) - 1
        if at >= 0 and pointer < mapped[at].end:
            found.setdefault(starts[at], []).append(stack)
    return found


def _leading(
    mapped: Sequence[Region], standing: Mapping[int, Sequence[_Stack]], places: Sequence[int]
) -> Iterator[_Stack]:
    """Those above whose pointer such ``places``, in their order, are."""
    for region in mapped:
        for stack in standing.get(region.start, ()):
            if stack.is_companions:  # its frame pointer is not told
                continue
            at = bisect.bisect_left(places, stack.pointer)
            if at < len(places) and places[at] < region.end:
                yield stack


def _live_part(region: Region, stacks: Iterable[_Stack]) -> int:
    """Where what lives in a region with these stacks begins: what is below the stack pointer of a
    thread is nobody's as a rule, on the first thread's stack, and where the C library has put
    another one's storage behind it. The stacks of fibers may lie there as well, in a frame's array:
    see :func:`~darc.debuggee.wordscan.saved_counters`."""
    for stack in stacks:
        if stack.is_companions:
            return region.start
        if region.path == "[stack]" if stack.is_first else stack.pointer < stack.base < region.end:
            return stack.pointer // 8 * 8
    return region.start
