"""Where pads are placed in a kernel: how far its memory is used is told there, for whoever comes
after this debugger, and the pads of earlier sets are used again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darc.agent.compiled import AgentSymbol
from darc.agent.fieldnames import Structure
from darc.agent.memory import AgentMemory
from darc.agent.structures import SiteRow
from darc.code.architecture import Prologue, Site
from darc.pads import processor as pads
from darc.pads.areas import Area, Areas, PlacedPads
from darc.pads.placing import Placing
from darc.pads.waypoints import Waypoints
from darc.target.memory import Memory
from kgdb.leftbehind import header

_CHUNK = 4096
_SITE_CHUNK = 64
"""What is in use is told in steps of so many bytes, and so many sites."""


@dataclass
class Told:
    """How far a foothold is used, as it stands at its begin."""

    memory: Memory
    control: int
    """The address of the control structure."""
    waypoints: Waypoints | None
    used: int = 0
    """Bytes of its area,"""
    sites: int = 0
    """and rows of sites."""

    def write(self, area: Area) -> None:
        """At the begin of ``area``."""
        known = self.waypoints
        waypoints = range(0) if known is None else range(known.base, known.base + known.size)
        raw = header(self.control, self.used, self.sites, size=area.size, waypoints=waypoints)
        self.memory.write(area.base, raw)

    def grow(self, area: Area, sites: int) -> None:
        """So many rows of sites are used now, and what is used of ``area``."""
        if area.used > self.used or sites > self.sites:
            self.used = min((area.used // _CHUNK + 1) * _CHUNK, area.size)
            self.sites = (sites // _SITE_CHUNK + 1) * _SITE_CHUNK
            self.write(area)


class KernelPlacing(Placing):
    """In one kernel's foothold; what is used of it is ``told``."""

    def __init__(
        self,
        memory: Memory,
        areas: Areas,
        placed: PlacedPads,
        *,
        tables: AgentMemory,
        stubs: pads.Stubs,
        told: Told,
    ) -> None:
        super().__init__(memory, areas, placed, tables=tables, stubs=stubs)
        self._told = told
        self._blob = tables.blob
        self._entries: dict[int, tuple[int, int]] = {}
        """Where functions of sets are entered: the number of the site whose pad is there, and where
        that is returned to."""

    def begin(self) -> None:
        self._entries = self._known_entries()

    def _known_entries(self) -> dict[int, tuple[int, int]]:
        """Of earlier sets, also those of other debuggers."""
        blob, size = self._blob, self._blob.sizes[Structure.SITE]
        kind = blob.constants.MEMBER
        if not self._tables.room.blocks or not self._placed.numbers:
            return {}
        raw = self._tables.raw(self._tables.sites.address(0), size * self._placed.numbers)
        rows = (raw[at : at + size] for at in range(0, len(raw), size))
        found = {}
        for index, row in enumerate(rows):
            values = blob.unpack(SiteRow, row)
            if values.kind == kind and values.address:
                found[values.address] = index, values.pad_back
        return found

    def entered_before(self, prologue: Prologue) -> tuple[int, int, pads.Pad] | None:
        known = self._entries.get(prologue.entry)
        if known is None:
            return None
        index, back = known
        data, read = self._tables.sites.address(index), self._memory.read
        somewhere = pads.entry_pad(prologue, data, self.stubs, origin=back)
        if somewhere.back is None:
            return None
        origin = back - somewhere.back
        pad = pads.entry_pad(prologue, data, self.stubs, origin=origin)
        if not self._areas.holds(origin) or read(origin, len(pad.code)) != pad.code:
            return None
        return index, origin, pad

    def place(
        self,
        area: Area,
        index: int | None,
        back: int | None,
        make: Callable[[int], pads.Pad],
    ) -> tuple[int, pads.Pad]:
        placed = super().place(area, index, back, make)
        self._told.grow(area, self._placed.numbers)
        return placed

    def f0_code(self, index: int) -> pads.F0Code:
        blob, tables = self._blob, self._tables
        enter, leave = blob.symbols[AgentSymbol.ENTER_F0], blob.symbols[AgentSymbol.LEAVE_F0]
        end = blob.symbols[AgentSymbol.END_F0]
        addresses = {
            blob.constants.THE_SITE: tables.sites.address(index),
            blob.constants.THE_CONTROL: tables.control,
            blob.constants.THE_RECORDS: tables.base + tables.layout.records,
        }
        return pads.F0Code(blob.code[enter:leave], blob.code[leave:end], addresses)

    def lead(self, site: Site, pad: int) -> bytes | None:
        waypoints = self._told.waypoints
        return None if waypoints is None else waypoints.lead(site, pad)
