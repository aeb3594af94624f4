"""The agent's memory in the program: reading and writing its tables."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Sequence

from darc.agent.compiled import Blob
from darc.agent.contexts import ThreadContexts
from darc.agent.control import Control
from darc.agent.damage import DamagedError, guarded
from darc.agent.fieldnames import ControlField, Structure
from darc.agent.keptops import KeptOpTables
from darc.agent.layout import Layout, Room, records_size
from darc.agent.moments import Moments
from darc.agent.openops import OpenOps
from darc.agent.records import Records
from darc.agent.sets import SetCounts
from darc.agent.sites import Sites
from darc.agent.structures import ControlRow
from darc.model.errors import TargetError
from darc.model.profile import thresholds
from darc.target.memory import Read, Write

_CONSTANT = (
    ControlField.MAGIC,
    ControlField.VERSION,
    ControlField.LIVE,
    ControlField.SITES,
    ControlField.NODES,
    ControlField.ROUTES,
    ControlField.RECORDS,
    ControlField.CONTEXTS,
    ControlField.ANALYSIS,
    ControlField.RECORD_LIST,
    ControlField.CODE,
    ControlField.OLDER_COUNT,
    ControlField.NODE_MASK,
    ControlField.RECORD_MASK,
    ControlField.CONTEXT_SIZE,
    ControlField.TOTALS_AT,
    ControlField.SITE_ROOM,
    ControlField.ROUTE_ROOM,
    ControlField.TABLES_SIZE,
    ControlField.LIFE_AT,
    ControlField.THREAD_KEY,
    ControlField.KEPT,
    ControlField.KEPT_ROOM,
    ControlField.SHEETS,
    ControlField.SHEET_ROOM,
    ControlField.MOMENTS,
    ControlField.MOMENT_ROOM,
    ControlField.BLOCKS,
    ControlField.BLOCK_ROOM,
)
"""Fields of the control structure that nobody but :class:`AgentMemory` writes to any more."""

_MOST = {
    ControlField.BELL: 15,
    ControlField.BELL_SIGNAL: 64,
    ControlField.MODE: 2,
    ControlField.LOOPS: 1,
    ControlField.RESOLUTION: 8,
    ControlField.EPOCH: 1 << 62,
    ControlField.LAST_BEAT: 1 << 62,
    ControlField.ROUND: 1 << 62,
    ControlField.RECORD_COUNT: 1 << 62,
}
"""What others can be at most."""


@guarded
class AgentMemory(Control):
    """Typed access to the agent's tables at ``base``.

    ``read`` and ``write`` go to the program's memory; with a
    :class:`darc.debuggee.procfs.MemoryFile` behind them, counters can be read while the program
    runs.
    """

    def __init__(self, blob: Blob, base: int, layout: Layout, *, read: Read, write: Write) -> None:
        super().__init__(blob, base, layout, read=read, write=write)
        self.sites = Sites(self, read, write)
        self.contexts = ThreadContexts(self, read, write)
        self.records = Records(
            control=self, contexts=self.contexts, sites=self.sites, read=read, write=write
        )
        self.kept = KeptOpTables(self, read, write)
        self.moments = Moments(self, read)
        self.ops = OpenOps(
            control=self,
            contexts=self.contexts,
            records=self.records,
            kept=self.kept,
            read=read,
            write=write,
        )
        self.members = SetCounts(self, self.contexts.addresses, read, write)

    def set_landings(self, areas: Sequence[int]) -> None:
        """Tells where areas with landings begin. Raises TargetError: the agent has no room for so
        many."""
        limit = self.blob.constants.MAX_AREAS
        if len(areas) > limit:
            raise TargetError(f"the program's code is in more than {limit} far places")
        self._write(self.field(ControlField.LANDINGS)[0], struct.pack(f"<{len(areas)}Q", *areas))
        self.set(landing_count=len(areas))

    def set_code(self, stretches: Sequence[range], near: int = 0) -> int:
        """Tells whose calls of f0 are timed: those of code in these stretches, by address; where
        there is no room for all, of those that are next to ``near``. How many there was none
        for."""
        limit = self.blob.constants.MAX_CODE
        kept = sorted(stretches, key=lambda one: 0 if near in one else abs(one.start - near))
        kept = sorted(kept[:limit], key=lambda one: one.start)
        raw = b"".join(struct.pack("<QQ", one.start, one.stop) for one in kept)
        self.set(code_count=0)
        self._write(self.base + self.layout.code, raw)
        self.set(code_count=len(kept))
        return len(stretches) - len(kept)

    def handlers(self) -> Sequence[int]:
        """The handlers of signals that the program has set, each once, by address."""
        place, size = self.field(ControlField.HANDLERS)
        found = struct.unpack(f"<{size // 8}Q", self._read(place, size))
        return [handler for handler in found if handler]

    def begin_epoch(self) -> None:
        """Calls that are under way now are dropped when they return: they span a stop, or a
        change of what is counted."""
        self.set(epoch=self.epoch + 1)

    def beat(self, now: int, wake: int, deadline: int) -> None:
        """The debugger lives at ``now`` (TSC). The agent is to look whether it still does after
        ``wake``, and to ring after ``deadline`` in any case."""
        self._write(self.field(ControlField.LAST_BEAT)[0], struct.pack("<3Q", now, deadline, wake))

    @property
    def doorbell(self) -> int:
        """Address of the word that the agent writes to when it rings in a kernel."""
        return self.base + self.layout.doorbell

    @property
    def enabled(self) -> bool:
        """Whether f0 is watched. Off in a forked child and once the debugger counts as gone."""
        return bool(self._read(self.base + self.layout.live, 1)[0])

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._write(self.base + self.layout.live, struct.pack("<Q", value))

    def write_control(
        self,
        resolution: int,
        thread_key: int,
        life_at: int,
        *,
        may_read_pointer: bool = False,
        enter: int = 0,
        leave: int = 0,
    ) -> None:
        """Fills the control structure of a new agent; ``life_at`` is where threads have the ids of
        their own, ``may_read_pointer`` whether they may read where their storage is without asking
        for its first word, which may not be there; ``enter`` and ``leave`` are the addresses of
        what the pad of a kernel's f0 calls."""
        layout, base = self.layout, self.base
        raw = self.blob.pack(
            Structure.CONTROL,
            magic=self.blob.constants.MAGIC,
            version=self.blob.constants.ABI_VERSION,
            live=base + layout.live,
            doorbell=base + layout.doorbell,
            sites=base + layout.sites,
            nodes=base + layout.nodes,
            routes=base + layout.routes,
            records=base + layout.records,
            contexts=base + layout.contexts,
            analysis=base + layout.analysis,
            record_list=base + layout.record_list,
            code=base + layout.code,
            kept=base + layout.kept,
            kept_room=layout.room.kept,
            sheets=base + layout.sheets,
            sheet_room=layout.room.sheets,
            moments=base + layout.moments,
            moment_room=layout.room.moments,
            blocks=base + layout.blocks,
            block_room=layout.room.blocks,
            least_span=self.blob.constants.NEVER,
            node_mask=layout.room.nodes - 1,
            record_mask=layout.record_mask,
            context_size=layout.context_size,
            totals_at=layout.totals_at,
            site_room=layout.room.sites,
            route_room=layout.room.routes,
            tables_size=layout.size,
            life_at=life_at,
            may_read_pointer=int(may_read_pointer),
            enter=enter,
            leave=leave,
            node_count=1,
            resolution=resolution,
            epoch=1,
            rooms=1,
            deadline=self.blob.constants.NEVER,
            wake=self.blob.constants.NEVER,
            thread_key=thread_key,
            batch=1,
            patience=(1 << 63) - 1,
            thresholds=_filled(thresholds(resolution), self.blob.constants.MAX_BINS),
        )
        self.contexts.write_table(base + layout.contexts, layout.room.contexts)
        self._write(base + layout.control, raw)
        self.constant = self._constants_in(raw)
        self.written_resolution = resolution

    def _constants_in(self, raw: bytes) -> dict[ControlField, int]:
        """What fields have in ``raw`` that stay as they are."""
        row = self.blob.unpack(ControlRow, raw)
        return {field: _value(row, field) for field in _CONSTANT}

    def adopt(self, life: Callable[[int], bool]) -> None:
        """They are another debugger's, which has ended: from now on they are this one's. ``life``
        tells numbers of sites that pads may still read; no other is used."""
        raw = self._read(self.base + self.layout.control, self.blob.sizes[Structure.CONTROL])
        self.constant = self._constants_in(raw)
        place, size_of_handlers = self.field(ControlField.HANDLERS)
        self._write(place, bytes(size_of_handlers))  # are looked at anew
        self.sites.adopt(life)

    def check(self) -> None:
        """Looks whether the control structure can still be what darc and the agent made of it.

        Raises:
            DamagedError: it is not.
            TargetError: it cannot be read.
        """
        size = self.blob.offset(ControlField.THRESHOLDS)
        raw = self._read(self.base + self.layout.control, size)
        row = self.blob.unpack(ControlRow, raw)
        if any(_value(row, field) != value for field, value in self.constant.items()):
            raise DamagedError
        if any(_value(row, field) > most for field, most in _MOST.items()):
            raise DamagedError
        room = self.layout.room
        if row.node_count > room.nodes or row.analysis_count > room.nodes:
            raise DamagedError
        if self.written_resolution not in (None, row.resolution):
            raise DamagedError

    def reset(self, resolution: int) -> None:
        """Begins another analysis with an agent that is there already: counts start anew, and what
        is still under way from before is told from the new by its epoch."""
        table = thresholds(resolution)
        self.written_resolution = resolution
        if self.block_next:
            self.members.forget()
        self.set(
            from_count=0,
            from_member=0,
            free_members=0,
            idle_members=0,
            interrupt_members=0,
            mode=0,
            analysis_count=0,
            node_count=1,
            resolution=resolution,
            epoch=self.epoch + 1,
            round=self.round + 1,
            only_thread=0,
            seen=0,
            bell=0,
            deadline=self.blob.constants.NEVER,
            wake=self.blob.constants.NEVER,
            exiting=0,
            lost_records=0,
            lost_contexts=0,
            lost_ops=0,
            left_ops=0,
            interrupted_ops=0,
            least_op=0,
            overdrawn_ops=0,
            lost_callers=0,
            lost_foreign=0,
            lost_jumps=0,
            short_of=0,
            rooms=self.rooms + 1,
            least_span=self.blob.constants.NEVER,
            fast_high=0,
        )
        self.kept.forget()
        self._write(self.field(ControlField.THRESHOLDS)[0], struct.pack(f"<{len(table)}Q", *table))
        self.sites.forget_routes()
        self.contexts.forget_counts()

    @property
    def room(self) -> Room:
        """What there is room for now."""
        return dataclasses.replace(self.layout.room, contexts=self.contexts.room)

    @property
    def mappings(self) -> list[range]:
        """The memory that the tables take."""
        found = [range(self.base, self.base + self.layout.size), *self.contexts.added()]
        first = self.base + self.layout.record_list
        if first not in found[0]:
            sizes = records_size(self.blob, self.layout.room.records)
            found.append(range(first, first + sum(sizes)))
        return found

    def begin_set(self) -> None:
        """From now on entries of a set's functions are timed. The program stands still, and no
        record is open."""
        self.members.forget()
        for record in self.records.open():
            self.records.close(record.at)
        self.set(mode=self.blob.constants.SET)


def _filled(table: Sequence[int], limit: int) -> bytes:
    """A table of words with what is above all others where it has room for more."""
    return struct.pack(f"<{len(table)}Q", *table) + b"\xff" * 8 * (limit - len(table))


def _value(row: ControlRow, field: ControlField) -> int:
    value = getattr(row, field.name.lower())
    assert isinstance(value, int)
    return value
