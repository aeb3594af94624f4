"""The agent's table of records: the calls that pads have open."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator, Mapping

from darc.agent.contexts import STATE, ThreadContexts
from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.fieldnames import AgentField, ContextField, RecordField, Structure
from darc.agent.layout import records_size
from darc.agent.rows import OpenSlot
from darc.agent.sites import Sites
from darc.agent.structures import RecordRow, SiteRow
from darc.model.errors import TargetError
from darc.target.memory import Read, Write

_FREED = 1  # a slot that was used once; DARC_FREED


@guarded
class Records:
    """Those in the tables that ``control`` belongs to, each by its address."""

    def __init__(
        self, control: Control, contexts: ThreadContexts, sites: Sites, *, read: Read, write: Write
    ) -> None:
        self._control = control
        self._contexts = contexts
        self._sites = sites
        self._blob = control.blob
        self._read = read
        self._write = write
        fields = (
            *(RecordField.SLOT, RecordField.SERIAL),
            *(RecordField.OPEN, RecordField.PAD_BACK),
        )
        places = [control.blob.fields[field] for field in fields]
        self._call_parts = [(offset, offset + size) for offset, size in places]
        self._call_size = max(end for _, end in self._call_parts)

    def used(self) -> list[RecordRow]:
        """All records that were ever used."""
        return self._records(RecordField.SLOT)

    def open(self) -> list[RecordRow]:
        """The calls that a pad has open, as far as the agent knows."""
        return self._records(RecordField.OPEN)

    def tails(self, record: RecordRow) -> list[tuple[int, int]]:
        """The tail calls in the frame of an open record: each one's node, or the number of its
        member, and when it began, less what was overhead by then."""
        count = record.tail_count & ~self._blob.constants.LEFT
        count = min(count, self._blob.constants.MAX_TAILS)
        nodes = record.at + self._blob.offset(RecordField.TAIL_NODES)
        times = record.at + self._blob.offset(RecordField.TAILS)
        if not count:
            return []
        return list(
            zip(
                struct.unpack(f"<{count}I", self._read(nodes, 4 * count)),
                struct.unpack(f"<{count}Q", self._read(times, 8 * count)),
                strict=True,
            )
        )

    def open_calls(self) -> list[RecordRow]:
        """:meth:`open` of calls that are under way in the threads' latest calls of f0,
        found from there: where threads are told apart by their stacks there are no others, but
        those of a set. The table of records is large, and a kernel's memory far away."""
        if self._control.mode == self._blob.constants.SET:
            return self.open()
        size, back = self._blob.sizes[Structure.RECORD], functools.cache(self._back)
        found = []
        for context in self._contexts.addresses():
            op, at, _, _ = self._contexts.state(context)
            aside = self._contexts.number(context, ContextField.ASIDE) if op else 0
            if aside and self._record(aside, self._read(aside, size), back).open:
                at = aside
            for _ in range(self._blob.constants.MAX_DEPTH if op else 0):
                if not at:
                    break
                raw = self._read(at, size)
                record = self._record(at, raw, back)
                if record.open:
                    found.append(record)
                at = record.parent
        return found

    def call(self, address: int) -> OpenSlot | None:
        """What is needed of a record, where a call is open: there may be one for each thread."""
        raw = self._read(address, self._call_size)
        slot, serial, is_open, pad_back = (
            int.from_bytes(raw[at:end], "little") for at, end in self._call_parts
        )
        if is_open != 1:
            return None
        try:
            word = int.from_bytes(self._read(slot, 8), "little")
        except TargetError:
            return OpenSlot(serial, comes_back=False)
        return OpenSlot(serial, comes_back=word == pad_back)

    def is_stale(self, address: int) -> bool:
        """Whether the call is open whose pad's return address is no longer in its slot."""
        record = self.call(address)
        return record is not None and not record.comes_back

    def close(self, address: int) -> None:
        """Marks a record closed; its frame's return address stands on the stack again."""
        self._write(address + self._blob.offset(RecordField.OPEN), b"\0\0\0\0")

    def states(self) -> dict[int, int]:
        """What the open records have in ``open``, by their addresses."""
        return {record.at: record.open for record in self.open()}

    def reopen(self, states: Mapping[int, int]) -> None:
        """Undoes :meth:`close`, as nothing has run since: what :meth:`states` was."""
        for address, state in states.items():
            at = address + self._blob.offset(RecordField.OPEN)
            self._write(at, struct.pack("<I", state))

    def compact(self) -> None:
        """Makes room in the table of records. No thread may be in the agent or a pad but the one
        that rang.

        A closed record leaves a mark, not a hole, as others are found by walking over it.
        """
        size = self._blob.sizes[Structure.RECORD]
        kept = []
        for record in self.used():
            number = (record.at - self._control.base - self._control.layout.records) // size
            if record.open:
                kept.append(number)
            else:
                self._write(record.at, struct.pack("<Q", _FREED))
        if kept:
            raw = struct.pack(f"<{len(kept)}I", *kept)
            self._write(self._control.base + self._control.layout.record_list, raw)
        self._control.set(record_count=len(kept), lost_records=0, rooms=self._control.rooms + 1)

    def use(self, base: int, room: int) -> None:
        """From now on calls are recorded in the table at ``base``, which is all zero, with its list
        in front of it. No call is open any more, and no thread is in the agent or a pad, but the
        one that rang."""
        list_size, _ = records_size(self._blob, room)
        for context in self._contexts.addresses():
            op, _, serial, _ = self._contexts.state(context)
            if op:
                free = self._blob.constants.FREE
                state = STATE.pack(0, 0, (serial + 1) & 0xFFFF_FFFF, free)
                self._write(context + self._contexts.state_at, state)
        records = base + list_size
        self._control.move_records(base, records, room)
        self._control.set(record_count=0)
        self._sites.move_records(records, self._control.layout.record_mask)

    def _records(self, mark: AgentField) -> list[RecordRow]:
        size = self._blob.sizes[Structure.RECORD]
        offset = self._blob.offset(mark)
        back = functools.cache(self._back)
        return [
            self._record(address, raw, back)
            for address, raw in self._claimed_records(size)
            if any(raw[offset : offset + 4])
        ]

    def _record(self, address: int, raw: bytes, back: Callable[[int], int]) -> RecordRow:
        record = self._blob.unpack(RecordRow, raw, address)
        if not record.site:
            return record
        try:
            return record._replace(back=back(record.site) or record.back)
        except TargetError:
            return record._replace(back=0)  # a pointer that the program has written

    def _claimed_records(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each record that was ever claimed; where they are few, without
        reading the whole table, as a kernel's memory is far away."""
        layout = self._control.layout
        base, limit = self._control.base + layout.records, layout.room.records
        count = self._control.record_count
        if count <= limit // 16:
            place = self._control.base + layout.record_list
            for number in sorted(set(struct.unpack(f"<{count}I", self._read(place, 4 * count)))):
                address = base + (number & (limit - 1)) * size
                yield address, self._read(address, size)
            return
        raw = self._read(base, size * limit)
        for at in range(0, len(raw), size):
            yield base + at, raw[at : at + size]

    def _back(self, site: int) -> int:
        """Where a site's pad returns to: 0 where that differs."""
        raw = self._read(site, self._blob.sizes[Structure.SITE])
        return self._blob.unpack(SiteRow, raw).back
