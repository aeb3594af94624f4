"""The agent's tables of call sites and of the fnodes that calls through them lead to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Unpack

from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.fieldnames import SiteField, Structure
from darc.agent.fieldvalues import SiteValues, SiteWords
from darc.agent.layout import words
from darc.agent.rows import Lead, Node, PatchedSite, Route
from darc.agent.structures import SiteRow
from darc.model.errors import TargetError
from darc.target.memory import Read, Write

_ROUTES = struct.Struct("<5I")  # of a site: timed, route_first, route_count, first_parent, _child


@guarded
class Sites:
    """The call sites in the tables that ``control`` belongs to, each by its number."""

    def __init__(self, control: Control, read: Read, write: Write) -> None:
        self._control = control
        self._blob = control.blob
        self._read = read
        self._write = write
        self._first_routes: dict[int, int] = {}
        """Of the sites that have routes: the number of the first one."""
        self._new_routes: dict[int, tuple[int, bool]] = {}
        """How many they have, and whether they are timed."""

    def address(self, index: int) -> int:
        """Address of one ``struct darc_site``. Raises TargetError: the table has no such row."""
        if not 0 <= index < self._control.layout.room.sites:
            raise TargetError("the agent's table of call sites is full: 'darc stop' and start anew")
        first = self._control.base + self._control.layout.sites
        return first + index * self._blob.sizes[Structure.SITE]

    def write(self, index: int, **values: Unpack[SiteValues]) -> None:
        """Writes a whole site."""
        control = self._control.base + self._control.layout.control
        whole: SiteValues = {
            "control": control,
            "records": self._control.base + self._control.layout.records,
            "record_mask": self._control.layout.record_mask,
            "first_parent": self._blob.constants.NO_PARENT,
            **values,
        }
        self._write(self.address(index), self._blob.pack(Structure.SITE, **whole))
        self._note_route(index, values)

    def set(self, index: int, **values: Unpack[SiteWords]) -> None:
        """Sets fields of a site."""
        for name, value in values.items():
            assert isinstance(value, int)
            offset, size = self._blob.fields[SiteField[name.upper()]]
            self._write(self.address(index) + offset, value.to_bytes(size, "little"))
        if "route_count" in values:
            self._note_route(index, values)

    def adopt(self, life: Callable[[int], bool]) -> None:
        """They are another debugger's, see :meth:`darc.agent.memory.AgentMemory.adopt`."""
        size = self._blob.sizes[Structure.SITE]
        for index in range(self._control.layout.room.sites):
            if life(index):
                self.set(index, route_count=0, first_parent=self._blob.constants.NO_PARENT)
            else:
                self._write(self.address(index), bytes(size))

    def pass_by_entries(self) -> None:
        """Those of earlier analyses are none any more: what leads to their pads still, or once
        more, just passes."""
        entries = (self._blob.constants.F0, self._blob.constants.MEMBER)
        for lead in self.leads():
            raw = self._read(self.address(lead.index), self._blob.sizes[Structure.SITE])
            site = self._blob.unpack(SiteRow, raw)
            if site.kind in entries and site.landings:
                self.set(lead.index, kind=self._blob.constants.PASSED)

    def move_records(self, records: int, mask: int) -> None:
        """Tells those that are in use where the table of records is now, and its mask."""
        for index in range(self._control.layout.room.sites):
            if int.from_bytes(self._read(self.address(index), 8), "little"):
                self.set(index, records=records, record_mask=mask)

    def forget_routes(self) -> None:
        """No call is timed until the next :meth:`write_nodes`."""
        for index in list(self._first_routes):
            self.set(index, route_count=0)

    def set_routes(self, index: int, first: int, count: int, timed: bool) -> None:
        """Which routes of the next :meth:`write_nodes` are those of a site, one or more, and
        whether any is timed."""
        self._first_routes[index] = first
        self._new_routes[index] = count, timed

    def _note_route(self, index: int, values: SiteWords) -> None:
        """A site's first route stands in the site as well: most have no other."""
        if values.get("route_count"):
            first, count = values.get("route_first", 0), values["route_count"]
            self.set_routes(index, first, count, bool(values.get("timed", 1)))
        elif self._first_routes.pop(index, None) is not None:
            self.set(index, first_parent=self._blob.constants.NO_PARENT)

    @property
    def any_patched(self) -> bool:
        """Whether a patch is in its place, by what the table says."""
        size, (offset, _) = self._blob.sizes[Structure.SITE], self._blob.fields[SiteField.PATCHED]
        raw = self._read(self.address(0), size * self._control.layout.room.sites)
        return any(raw[offset::size])

    def patched(self) -> list[PatchedSite]:
        """The sites whose patches are in place, by what the table says."""
        size = self._blob.sizes[Structure.SITE]
        count = self._control.layout.room.sites
        raw = self._read(self.address(0), size * count)
        offset, _ = self._blob.fields[SiteField.ORIGINAL]
        found = []
        for index in range(count):
            row = raw[index * size : (index + 1) * size]
            site = self._blob.unpack(SiteRow, row)
            if site.patched:
                original = row[offset : offset + site.length]
                found.append(PatchedSite(index, site.kind, site.address, original))
        return found

    def leads(self) -> list[Lead]:
        """What was ever written into the program's code for a site that is there still."""
        size, count = self._blob.sizes[Structure.SITE], self._control.layout.room.sites
        raw = self._read(self.address(0), size * count)
        offset, _ = self._blob.fields[SiteField.LEAD]
        found = []
        for index, (lead,) in enumerate(
            struct.iter_unpack(f"<{offset}xi{size - offset - 4}x", raw)
        ):
            if lead:
                site = self._blob.unpack(SiteRow, raw[index * size : (index + 1) * size])
                found.append(Lead(index, site.address, site.length, site.address + lead))
        return found

    def awaited(self) -> frozenset[int]:
        """The pads whose jumps may come back, by what the table says: the program has written over
        them, and may write back what it had found there."""
        patched = {site.index for site in self.patched()}
        return frozenset(lead.pad for lead in self.leads() if lead.index in patched)

    def learned(self, index: int) -> tuple[int, ...]:
        """The callees that an indirect site has had, in the order of their first calls."""
        offset, size = self._blob.fields[SiteField.TARGETS]
        targets = words(self._read(self.address(index) + offset, size))
        count_offset, count_size = self._blob.fields[SiteField.TARGET_COUNT]
        count = int.from_bytes(self._read(self.address(index) + count_offset, count_size), "little")
        return tuple(t for t in targets[:count] if t)

    def teach(self, index: int, targets: Sequence[int]) -> None:
        """Lets an indirect site know these callees alone, in this order. Their numbers are those of
        the lanes: the routes through it are to be written anew."""
        offset, size = self._blob.fields[SiteField.TARGETS]
        raw = struct.pack(f"<{len(targets)}Q", *targets)
        self._write(self.address(index) + offset, raw.ljust(size, b"\0"))
        self.set(index, target_count=len(targets))

    def overflow(self, index: int) -> int:
        """Calls of an indirect site whose targets were not told apart, for want of room."""
        offset, size = self._blob.fields[SiteField.OVERFLOW]
        return int.from_bytes(self._read(self.address(index) + offset, size), "little")

    def keep(self, index: int, targets: Sequence[int]) -> None:
        """Makes an indirect site forget all learned targets but these, in this order."""
        self.teach(index, targets)
        self.set(index, overflow=0)

    def write_nodes(
        self, nodes: Iterable[Node], routes: Iterable[Route], analysis: Iterable[int]
    ) -> None:
        """Writes the ftree as the agent sees it. The caller advances epoch and round. Raises
        TargetError: the tables have no room for so many nodes or routes."""
        rows = list(nodes)
        ways = list(routes)
        numbers = list(analysis)
        room = self._control.layout.room
        if len(rows) > room.nodes or len(ways) > room.routes:
            raise TargetError(
                "too many call sites at once: 'set darc max-probes' to a lower number"
            )
        self._control.set(analysis_count=0)
        raw = b"".join(map(self._node_row, rows))
        self._write(self._control.base + self._control.layout.nodes, raw)
        if ways:
            raw = b"".join(struct.pack("<3I", *route) for route in ways)
            self._write(self._control.base + self._control.layout.routes, raw)
        at, _ = self._blob.fields[SiteField.TIMED]
        for index, first in self._first_routes.items():
            parent, child, _ = ways[first]
            untimed = 0 if rows[child].timed else self._blob.constants.UNTIMED
            count, timed = self._new_routes[index]
            row = _ROUTES.pack(timed, first, count, parent, child | untimed)
            self._write(self.address(index) + at, row)
        if numbers:
            raw = struct.pack(f"<{len(numbers)}I", *numbers)
            self._write(self._control.base + self._control.layout.analysis, raw)
        self._control.set(node_count=len(rows), analysis_count=len(numbers))

    def _node_row(self, node: Node) -> bytes:
        first, timed = node.first_child, int(node.timed)
        if node.passes:
            timed = self._blob.constants.PASSES
        elif node.timed and node.others_of is not None:
            first, timed = node.others_of, self._blob.constants.OTHERS
        return struct.pack("<4I", node.parent, first, node.child_count, timed)
