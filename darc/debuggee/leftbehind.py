"""What is mapped for pads in a process, as the next debugger finds it.

Each area begins with a header; an agent whose debugger is gone has left its areas and tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from darc.agent import compiled
from darc.agent.fieldnames import Structure
from darc.agent.layout import layout_in
from darc.agent.memory import AgentMemory
from darc.agent.structures import ControlRow
from darc.code.program import Program
from darc.code.system_calls import SystemCall
from darc.debuggee.frameholes import FrameHoles
from darc.debuggee.gaps import without
from darc.debuggee.procfs import MemoryFile, regions
from darc.debuggee.references import (
    HEADER,
    SEARCHED,
    OwnPlaces,
    Wanted,
    extents,
    references,
    restore_copies,
    with_called,
)
from darc.debuggee.seccomp import may_forbid
from darc.debuggee.wordscan import own_pages
from darc.model.errors import DarcError, TargetError, UnsupportedError
from darc.pads import returns
from darc.pads.foothold import MARK
from darc.pads.restoring import still_hooked
from darc.pads.returns import ReturnLandings, own_back
from darc.target.memory import Read
from darc.target.target import Region, Target

NO_LANDINGS = b"no lands"
"""The kind where an area's pads use the landings of another one: what would be its own may not be
written by the program."""


def header(control: int, size: int, kind: bytes = returns.KIND) -> bytes:
    """That of an area of so many bytes, or of landings alone, whose agent is at ``control``: the
    mark; the address of the control structure, 0 where there is none any more; the kind of the
    landings; the size of all."""
    return HEADER.pack(MARK, control, kind, size)


@dataclass(frozen=True)
class _Area:
    """What is mapped for pads, or for landings, as its header tells."""

    region: Region
    control: int
    kind: bytes
    size: int


def _areas(read: Read, mapped: Sequence[Region]) -> Iterator[_Area]:
    """Of this and of earlier debuggers.

    Raises:
        TargetError: code that may be one cannot be read.
    """
    for region in mapped:
        if region.path or "x" not in region.permissions:
            continue
        mark, control, kind, size = HEADER.unpack(read(region.start, HEADER.size))
        if mark == MARK:
            yield _Area(region, control, kind, size)


def areas_of(target: Target, mapped: Sequence[Region]) -> list[tuple[int, int, int]]:
    """Base and size of each area that has landings and is mapped, of this and of earlier debuggers,
    and the address of its owner's control structure, 0 where only landings are left of it."""
    areas = _areas(target.memory.read, mapped)
    return [(one.region.start, one.size, one.control) for one in areas if one.kind == returns.KIND]


def keep_landings(target: Target, landings: Sequence[ReturnLandings]) -> list[range]:
    """The pages of the landings that stay. From now on they have no agent."""
    kept = [page for one in landings for page in one.kept()]
    for one in landings:
        target.memory.write(one.base, header(0, returns.SIZE))
    return kept


@dataclass(frozen=True)
class LeftBehind:
    """An agent that an earlier debugger left in the process."""

    tables: AgentMemory
    areas: list[range]
    """Where its pads are."""
    landings: list[ReturnLandings]
    """Those of all agents that were left."""

    @property
    def size(self) -> int:
        """Bytes of its memory."""
        return sum(map(len, [*self.areas, *self.tables.mappings]))

    def is_pad(self, address: int) -> bool:
        """Whether ``address`` is in one of its pads."""
        return any(address in area for area in self.areas)

    def own_back(self, word: int) -> int | None:
        """The program's own return address where ``word`` is one that leads to a landing."""
        return own_back(self.landings, word)

    def retire(self, target: Target, memory: MemoryFile, pid: int) -> None:
        """Lets its landings return by themselves, once patches and stacks are restored."""
        target.memory.flush()
        restore_copies(memory, pid, landings=self.landings, find=partial(own_places, memory))
        for landings in self.landings:
            landings.retire()

    def give_back(self, target: Target, pid: int) -> bool:
        """Unmaps its memory, once it is retired and nothing can need it."""
        try:
            if may_forbid(target, pid) or target.dispatches:
                return False
            for one in self.landings:
                one.forget(self.is_pad)
            mine = [one for one in self.landings if any(one.base in a for a in self.areas)]
            kept = keep_landings(target, mine)
            _let_go(target, [*self.areas, *self.tables.mappings], kept)
        except DarcError:
            return False
        return True

    def is_inside(self, pc: int) -> bool:
        """Whether a thread at ``pc`` needs it to go on."""
        for landings in self.landings:
            if landings.base <= pc < landings.base + landings.extent:
                return landings.is_calling(pc)
        return self.is_pad(pc)


Found = Mapping[int, frozenset[int] | None]
"""Of agents, by the addresses of their control structures: as
:meth:`darc.pads.foothold.Foothold.references` tells it."""


def references_of(
    agents: Sequence[LeftBehind],
    target: Target,
    memory: MemoryFile,
    *,
    program: Program,
    pid: int,
    most: int | None = SEARCHED,
) -> Found:
    """What leads to each of the agents of a ``program``, in one look through the memory for all.
    ``most`` is how many bytes are looked through for that; ``None``: all that there are."""
    if not agents:
        return {}
    own = [one for agent in agents for one in agent.landings]
    landings = extents(own)
    known = (place for agent in agents for place in agent.tables.mappings)
    found = references(
        target,
        memory,
        pid,
        besides=[*known, *own_places(memory, regions(pid)).tables, *landings],
        wanted=Wanted(
            [*(area for agent in agents for area in agent.areas), *landings],
            [lead for agent in agents for lead in agent.tables.sites.leads()],
        ),
        is_inside=lambda pc: any(agent.is_inside(pc) for agent in agents),
        left_over=FrameHoles(program, memory, own),
        most=most,
    )
    told = dict[int, frozenset[int] | None]()
    for one in agents:
        inside = None if found is None else frozenset(filter(one.is_inside, found))
        if inside is not None and still_hooked(target, one.tables.sites):
            inside |= one.tables.sites.awaited()
        told[one.tables.control] = with_called(inside, one.landings)
    return told


def give_back(agents: Sequence[LeftBehind], found: Found, target: Target, pid: int) -> Found:
    """Unmaps the memory of those agents, which are retired, that nothing leads to. What leads to
    the others, which stay."""
    kept = dict[int, frozenset[int] | None]()
    for one in agents:
        control = one.tables.control
        if found[control] != frozenset() or not one.give_back(target, pid):
            kept[control] = found[control]
    return kept


def left_behind(target: Target, memory: MemoryFile, mapped: Sequence[Region]) -> list[LeftBehind]:
    """The agents that an earlier debugger left in the process.

    Raises:
        UnsupportedError: one is of another version, which this one cannot take out.
    """
    found: dict[int, LeftBehind] = {}
    landings: list[ReturnLandings] = []  # one may use those of another
    for one in _areas(target.memory.read, mapped):
        if not one.control:
            continue
        area = range(one.region.start, one.region.end)
        if one.kind in (returns.KIND, NO_LANDINGS):
            area = range(one.region.start, one.region.start + one.size)
        if one.kind == returns.KIND:
            landings.append(ReturnLandings(target, one.region.start))
        if one.control in found:
            found[one.control].areas.append(area)
            continue
        if not any(region.start <= one.control < region.end for region in mapped):
            continue  # it was being made, or given back, as the debugger was told to leave it
        tables = _tables_at(one.control, memory)
        if tables is not None:
            found[one.control] = LeftBehind(tables, [area], landings)
    return list(found.values())


def _tables_at(control: int, memory: MemoryFile) -> AgentMemory | None:
    """Those whose control structure is there; ``None``: none is.

    Raises:
        UnsupportedError: they are another version's.
        TargetError: they cannot be read, or are damaged.
    """
    blob = compiled.load()
    raw = memory.read(control, blob.sizes[Structure.CONTROL])
    values = blob.unpack(ControlRow, raw)
    if values.magic != blob.constants.MAGIC:
        return None
    if values.version != blob.constants.ABI_VERSION:
        raise UnsupportedError(
            "another version of darc left its probes in the program: attach with that one and "
            "type 'darc stop'"
        )
    layout = layout_in(blob, control, raw, memory.read)
    base = control - layout.control
    return AgentMemory(blob=blob, base=base, layout=layout, read=memory.read, write=memory.write)


def own_places(memory: MemoryFile, mapped: Sequence[Region]) -> OwnPlaces:
    """Where the agents, the pads and the landings in the process are, and the tables of all agents,
    of this and of earlier debuggers."""
    code = list[range]()
    tables = dict[int, list[range]]()
    for region in mapped:
        with contextlib.suppress(TargetError):
            for one in _areas(memory.read, [region]):
                code.append(range(region.start, max(region.end, region.start + one.size)))
                if one.control and one.control not in tables:
                    with contextlib.suppress(TargetError, UnsupportedError):
                        found = _tables_at(one.control, memory)
                        tables[one.control] = [] if found is None else found.mappings
    return OwnPlaces(code, [place for own in tables.values() for place in own])


def _let_go(target: Target, places: Iterable[range], kept: Sequence[range]) -> bool:
    """``False``: the program may be killed for it."""
    for place in places:
        target.journal.unmaps(place)
        for part in without(place, kept):
            if target.system_call(SystemCall.MUNMAP, (part.start, len(part))) is None:
                return False
        target.journal.unmapped(place)
    return True


def give_back_noted(
    target: Target,
    memory: MemoryFile,
    program: Program,
    *,
    pid: int,
    noted: Iterable[range],
    leaving: AbstractSet[range] = frozenset(),
) -> int:
    """Unmaps what a debugger had mapped and not used yet, as its journal says, or was about to
    unmap (``leaving``). By now it may be something else: darc's is a mapping of its own, and there
    is nothing in it, or it bears the mark and nothing leads to it. Of what it was about to unmap
    the mark alone tells that it is darc's still. How many bytes were unmapped."""
    mapped, noted, unmapped = regions(pid), list(noted), 0
    for place in () if target.dispatches else noted:
        inside = [r for r in mapped if r.start < place.stop and place.start < r.end]
        if sum(r.end - r.start for r in inside) != len(place) or not inside:
            continue
        if inside[0].start != place.start or any(r.path or r.permissions[3] != "p" for r in inside):
            continue
        with contextlib.suppress(DarcError):
            used = list(own_pages(pid, [place]))
            is_empty = not any(any(memory.read(part.start, len(part))) for part in used)
            is_doubtful = not is_empty or place in leaving
            if is_doubtful and memory.read(place.start, len(MARK)) != MARK:
                continue
            found: frozenset[int] | None = frozenset()
            if not is_empty:  # a thread may be on its way there, behind a handler of a signal
                found = references(
                    target,
                    memory,
                    pid,
                    besides=noted,
                    wanted=Wanted([place]),
                    is_inside=place.__contains__,
                    left_over=FrameHoles(program, memory, []),
                    most=SEARCHED,
                )
            if (
                found == frozenset()
                and not any(pc in place for pc in target.threads.program_counters().values())
                and _let_go(target, [place], [])
            ):
                unmapped += len(place)
    return unmapped
