"""The agents of earlier footholds in a process: those that nothing needs are given back, and one
that has room may be used once more."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from darc.agent import compiled
from darc.agent.compiled import AgentSymbol
from darc.agent.fieldnames import Structure
from darc.agent.layout import Room
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.debuggee.leftbehind import Found, LeftBehind, give_back, left_behind, references_of
from darc.debuggee.mappings import Mappings
from darc.debuggee.procfs import MemoryFile, regions
from darc.debuggee.references import SEARCHED
from darc.model.errors import DarcError, TargetError
from darc.pads import returns
from darc.pads.areas import Area, Placed
from darc.target.memory import Read
from darc.target.target import Target

_LONGEST_PAD = 1024


@dataclass(frozen=True)
class UsableAgent:
    """One that is this very agent, and of which it is known what leads to its pads."""

    left: LeftBehind
    wide: Sequence[range]
    """Its areas that have room for pads; in the first one, behind landings, is the agent."""
    found: frozenset[int]
    """What leads to its pads."""

    @property
    def tables(self) -> AgentMemory:
        """Its own."""
        return self.left.tables

    @property
    def places(self) -> list[range]:
        """All that is mapped for it."""
        return [*self.left.areas, *self.tables.mappings]

    def pads_in(self, areas: Iterable[Area], read: Read) -> list[Placed]:
        """The pads in these ``areas`` of its that something leads to, and what is about them:
        nobody knows where they begin and end."""
        return [
            Placed(place, (), None, self._rows_in(place, read))
            for area in areas
            for place in self._around_found(area)
        ]

    def _around_found(self, area: Area) -> Iterator[range]:
        low, high = area.base + area.floor, area.base + area.size
        at = low
        for address in sorted(one for one in self.found if low <= one < high):
            place = range(max(at, address - _LONGEST_PAD), min(high, address + _LONGEST_PAD))
            yield place
            at = place.stop

    def _rows_in(self, place: range, read: Read) -> frozenset[int]:
        """The numbers of the sites whose rows the pads there read: they have their addresses."""
        raw, first = read(place.start, len(place)), self.tables.sites.address(0)
        size, sites = compiled.load().sizes[Structure.SITE], self.tables.layout.room.sites
        words = (struct.unpack_from("<Q", raw, at)[0] for at in range(max(0, len(raw) - 7)))
        offsets = (word - first for word in words if first <= word < first + size * sites)
        return frozenset(offset // size for offset in offsets)


class EarlierAgents:
    """Those in the process ``pid`` that are not of the foothold which has these ``mappings``.
    ``program`` gives what is known of it at the time."""

    def __init__(
        self,
        target: Target,
        program: Callable[[], Program],
        pid: int,
        *,
        memory: MemoryFile,
        mappings: Mappings,
    ) -> None:
        self._target = target
        self._program = program
        self._pid = pid
        self._memory = memory
        self._mappings = mappings
        self._found: Found | None = None
        """What leads to those that stay, where that was just looked for."""

    def look(self, after: EarlierAgents | None = None, most: int | None = SEARCHED) -> int:
        """Gives back what nothing needs, as :meth:`darc.pads.foothold.Foothold.earlier` says; of
        the memory that may lead to them ``most`` bytes are looked through, ``None``: all."""
        if after is not None and after._found is not None:
            self._found, after._found = after._found, None
            return len(self._found)
        with self._target.companions:
            others = self._others()
            return len(self.give_back(others, self.references_of(others, most)))

    def forget(self) -> None:
        """The program has run since they were looked for, or is about to."""
        self._found = None

    def if_known(self) -> list[LeftBehind] | None:
        """Those that are there; ``None``: what they are cannot be told."""
        try:
            return self._others()
        except DarcError:
            return None

    def _others(self) -> list[LeftBehind]:
        return [one for one in self._all() if not any(map(self._mappings.begins, one.areas))]

    def _all(self) -> list[LeftBehind]:
        return left_behind(self._target, self._memory, regions(self._pid))

    def references_of(self, agents: Sequence[LeftBehind], most: int | None = SEARCHED) -> Found:
        """What leads to each of these, of whichever foothold."""
        return references_of(
            agents,
            self._target,
            memory=self._memory,
            program=self._program(),
            pid=self._pid,
            most=most,
        )

    def give_back(self, agents: Sequence[LeftBehind], found: Found) -> Found:
        """Unmaps those of these that nothing leads to, by what was ``found``. What leads to the
        others, which is known from now on."""
        self._found = give_back(agents, found, self._target, self._pid)
        return self._found

    def usable(self, room: Room) -> Iterator[UsableAgent]:
        """Those that were measured, and have at least so much ``room``. One whose debugger was
        killed before it had measured what pads cost has left nothing that can be used."""
        agents = [
            one for one in self._all() if one.tables.is_measured and one.tables.room.holds(room)
        ]
        known, self._found = self._found, None
        if known is None or any(one.tables.control not in known for one in agents):
            with self._target.companions:
                known = self.references_of(agents)
        for left in agents:
            found = known[left.tables.control]
            wide = [] if found is None else self._wide(left)
            if found is not None and wide:
                yield UsableAgent(left, wide, found)

    def _wide(self, left: LeftBehind) -> list[range]:
        """None where it was killed before it had written its code."""
        length = len(compiled.load().code)
        wide = [area for area in left.areas if len(area) > returns.SIZE + length]
        starts = enumerate(area.start + returns.SIZE for area in wide)
        first = next((number for number, place in starts if self._has_agent(place)), None)
        if first is None:
            return []
        return [wide.pop(first), *wide]

    def _has_agent(self, place: int) -> bool:
        """Whether this very agent is there; two words of it are a thread's that went home."""
        blob = compiled.load()
        code, read = bytearray(blob.code), self._target.memory.read
        try:
            for one in (AgentSymbol.HOME_STACK, AgentSymbol.HOME_BACK):
                at = blob.symbols[one]
                code[at : at + 8] = read(place + at, 8)
            return read(place, len(code)) == bytes(code)
        except TargetError:
            return False
