"""The calls of f0 that are under way, by the agent's tables."""

from __future__ import annotations

import struct
from collections.abc import Callable

from darc.agent.contexts import STATE, ThreadContexts
from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.fieldnames import ContextField, RecordField, Structure
from darc.agent.keptops import KeptOpTables
from darc.agent.layout import words
from darc.agent.records import Records
from darc.agent.rows import KeptEvent, OpenRecord, Operation, RunningOp, Stale
from darc.agent.structures import ContextRow, KeptRow, RecordRow
from darc.target.memory import Read, Write


@guarded
class OpenOps:
    """Those in the tables that ``control`` belongs to."""

    def __init__(
        self,
        control: Control,
        contexts: ThreadContexts,
        records: Records,
        *,
        kept: KeptOpTables,
        read: Read,
        write: Write,
    ) -> None:
        self._control = control
        self._contexts = contexts
        self._records = records
        self._kept = kept
        self._blob = control.blob
        self._read = read
        self._write = write
        self._head = control.blob.offset(ContextField.BINS)

    def count(self) -> int:
        """How many calls of f0 are being measured now. The program stands still."""
        now, first = self._control.epoch, self._contexts.state_at
        epoch_at, size = self._blob.fields[ContextField.EPOCH]
        count = 0
        for context in self._contexts.addresses():
            raw = self._read(context + first, epoch_at + size - first)
            op, _, serial, _ = STATE.unpack(raw[: STATE.size])
            if op and int.from_bytes(raw[-size:], "little") == now:
                record = self._records.call(op)
                count += record is not None and record.serial == serial and record.comes_back
        return count

    def operations(self) -> list[Operation]:
        """The calls of f0 that are being measured now, with all that is open in them. The program
        stands still."""
        now = self._control.epoch
        contexts = {
            c: raw
            for c in self._contexts.addresses()
            if (raw := self._blob.unpack(ContextRow, self._read(c, self._head))).op
            and raw.epoch == now
        }
        if not contexts:
            return []
        records: dict[int, list[RecordRow]] = {c: [] for c in contexts}
        for record in self._records.open():
            context = contexts.get(record.context)
            if context is not None and record.serial == context.serial:
                records[record.context].append(record)
        found = []
        for address, context in contexts.items():
            own = records[address]
            first = next((r for r in own if r.at == context.op), None)
            if first is None or first.open != 1 or self._records.is_stale(context.op):
                continue
            is_sure = bool(context.idle) and all(r.open == 1 for r in own)
            found.append(
                Operation(
                    context=address,
                    thread=context.thread,
                    serial=context.serial,
                    is_sure=is_sure,
                    began=first.start,
                    jump_time=context.jump_time,
                    records=tuple(map(self._open_record, own)),
                )
            )
        return found

    def running(self) -> list[RunningOp]:
        """The calls of f0 that are under way, whatever has stopped meanwhile. May be asked while
        the program runs: what is told of a call that is just ending may be over."""
        found = []
        at, size = self._blob.fields[ContextField.LIFE]
        start = self._blob.offset(RecordField.START)
        for context in self._contexts.addresses():
            raw = self._read(context, at + size)
            op, _, serial, idle = STATE.unpack_from(raw, self._contexts.state_at)
            if not op or idle == self._blob.constants.FREE:
                continue
            record = self._records.call(op)
            if record is None or record.serial != serial or not record.comes_back:
                continue
            began = words(self._read(op + start, 8))[0]
            life = int.from_bytes(raw[at:], "little") if self._control.knows_lives else 0
            found.append(RunningOp(context, serial, life, began))
        return found

    def wait_of(self, op: RunningOp) -> KeptEvent | None:
        """What a call that is under way began to wait for last, where that was written down, and
        its thread has not released it since. The program stands still."""
        at = self._blob.offset(ContextField.KEPT)
        entry = words(self._read(op.context + at, 8))[0]
        size, layout = self._blob.sizes[Structure.KEPT], self._control.layout
        number, rest = divmod(entry - self._control.base - layout.kept, size)
        if rest or not 0 <= number < layout.room.kept:
            return None
        values = self._blob.unpack(KeptRow, self._read(entry, 128))
        if values.owner != op.context or values.serial != op.serial:
            return None
        events = self._kept.events(entry, values.event_count, range(op.start, 1 << 63))
        own = (e for e in reversed(events) if not e.is_release or (op.life and e.life == op.life))
        last = next(own, None)
        return None if last is None or last.is_release else last

    def _open_record(self, record: RecordRow) -> OpenRecord:
        count = record.tail_count & ~self._blob.constants.LEFT
        count = min(count, self._blob.constants.MAX_TAILS)
        at = record.at + self._blob.offset(RecordField.TAILS)
        tails = words(self._read(at, 8 * count)) if count else ()
        return OpenRecord(record.at, record.slot, record.start, tuple(tails))

    def delay(self, operation: Operation, cycles: int) -> None:
        """All of it began so much later."""
        never = self._blob.constants.NEVER
        for record in operation.records:
            if record.start != never:
                at = record.address + self._blob.offset(RecordField.START)
                self._write(at, struct.pack("<Q", record.start + cycles))
            for number, began in enumerate(record.tails):
                at = record.address + self._blob.offset(RecordField.TAILS) + 8 * number
                self._write(at, struct.pack("<Q", began + cycles))
        self._write(
            operation.context + self._blob.offset(ContextField.NOT_KEPT),
            struct.pack("<I", operation.serial),
        )
        if operation.jump_time:
            at = operation.context + self._blob.offset(ContextField.JUMP_TIME)
            self._write(at, struct.pack("<Q", operation.jump_time + cycles))

    def drop(self, operation: Operation) -> None:
        """It is not measured: of an epoch that is never again."""
        at = operation.context + self._blob.offset(ContextField.EPOCH)
        self._write(at, struct.pack("<Q", 0))

    def watch_stale(self, seen: frozenset[Stale]) -> frozenset[Stale]:
        """Tells the agent of ops that were left by a longjmp, and of calls into the agent that
        were: it may not read another frame's stack word itself, which may be unmapped.

        Takes and returns what looked stale, for the next look: what does so both times, a second
        apart and in the same op, is stale. Any live op looks so for a moment. The agent is only
        given the op's serial: its next op is another one.
        """
        found: set[Stale] = set()
        for context in self._contexts.addresses():
            op, _, serial, idle = self._contexts.state(context)
            if not idle:
                found.add(Stale(context, serial, ContextField.STUCK))
            if op and self._records.is_stale(op):
                found.add(Stale(context, serial, ContextField.STALE))
        for one in found & seen:
            offset = self._blob.offset(one.mark)
            self._write(one.context + offset, struct.pack("<I", one.serial))
        return frozenset(found)

    def free_stuck(self, is_inside: Callable[[int], bool]) -> int:
        """Lets threads be seen again whose contexts stand inside the agent, and tells how many of
        them are not really there: ``is_inside`` is asked about a context's key. The program stands
        still. A thread that is there goes on as if nothing had been done.
        """
        freed = 0
        offset = self._blob.offset(ContextField.STUCK)
        for context in self._contexts.addresses():
            _, _, serial, idle = self._contexts.state(context)
            if not idle and self._contexts.number(context, ContextField.STUCK) != serial:
                freed += not is_inside(self._contexts.number(context, ContextField.THREAD))
                self._write(context + offset, struct.pack("<I", serial))
        return freed
