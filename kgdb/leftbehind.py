"""The footholds that other debuggers have left in a kernel, as their memory tells of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from darc.agent import compiled
from darc.agent.fieldnames import Structure
from darc.agent.layout import layout_in, plan
from darc.agent.memory import AgentMemory
from darc.agent.structures import ControlRow
from darc.model.errors import TargetError
from darc.pads import processor as pads
from darc.pads.foothold import MARK
from darc.target.target import Target
from kgdb.rooms import ROOMS

AREA_SIZE = 1 << 20
"""Bytes of memory for agent and pads."""

_HEADER = struct.Struct("<8s6Q")
"""The mark, the address of the control structure, bytes and sites in use, bytes in all; where
waypoints are, and how many bytes."""


def header(control: int, used: int, sites: int, *, size: int, waypoints: range) -> bytes:
    """What such an area of ``size`` bytes begins with, whose agent is at ``control``."""
    return _HEADER.pack(MARK, control, used, sites, size, waypoints.start, len(waypoints))


@dataclass(frozen=True)
class LeftFoothold:
    """A foothold that another debugger has left."""

    base: int
    used: int
    sites: int
    size: int
    waypoints: range
    tables: AgentMemory

    @property
    def version(self) -> int:
        """Of the agent, and of its tables."""
        return self.tables.version

    def is_pad(self, address: int) -> bool:
        """Whether a patch leads there."""
        return self.base <= address < self.base + self.size or address in self.waypoints


def left_behind(target: Target, areas: Iterator[int]) -> Iterator[LeftFoothold]:
    """The footholds among ``areas``, where executable memory begins. The mark may stand at a later
    page, where the first ones are of another sector of pads."""
    blob = compiled.load()
    seen: set[int] = set()
    for first in areas:
        border = (first // pads.SECTOR + 1) * pads.SECTOR
        for base in (first, border) if border < first + AREA_SIZE else (first,):
            if base in seen:
                continue
            seen.add(base)
            try:
                raw = target.memory.read(base, _HEADER.size)
                mark, control, used, sites, size, waypoints, extent = _HEADER.unpack(raw)
                if mark != MARK or target.memory.read(control, 8) != _magic(blob):
                    continue
                raw = target.memory.read(control, blob.sizes[Structure.CONTROL])
            except TargetError:
                continue
            layout = plan(blob, ROOMS[0])
            if blob.unpack(ControlRow, raw).version == compiled.ABI_VERSION:
                layout = layout_in(blob, control, raw, target.memory.read)
            tables = AgentMemory(
                blob=blob,
                base=control - layout.control,
                layout=layout,
                read=target.memory.read,
                write=target.memory.write,
            )
            memory = range(waypoints, waypoints + extent)
            yield LeftFoothold(
                base=base, used=used, sites=sites, size=size, waypoints=memory, tables=tables
            )


def _magic(blob: compiled.Blob) -> bytes:
    return blob.constants.MAGIC.to_bytes(8, "little")
