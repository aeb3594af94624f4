"""The ops that the agent has kept (``ops.c``)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darc.agent.control import Control
from darc.agent.damage import DamagedError, guarded
from darc.agent.fieldnames import ClassField, ControlField, EventField, KeptField, Structure
from darc.agent.layout import words
from darc.agent.rows import KeptEvent, KeptOp, KeptSpan, KeptSum, KeptSwitch, task_name
from darc.agent.structures import EventRow, KeptRow
from darc.target.memory import Read, Write


@guarded
class KeptOpTables:
    """Those of the tables that ``control`` belongs to."""

    def __init__(self, control: Control, read: Read, write: Write) -> None:
        self._control = control
        self._blob = control.blob
        self._read = read
        self._write = write
        self._fast_high = 0
        """What :meth:`keep` has set: the agent sets it to 0 when it has seen enough."""

    def keep(self, least_span: int, fast: tuple[int, int]) -> None:
        """From now on ops are kept, of the peak and of those with a latency from ``fast[0]`` to
        below ``fast[1]``; calls of at least ``least_span`` have spans. All in cycles."""
        self._control.set(fast_low=fast[0], fast_high=fast[1], least_span=least_span)
        self._fast_high = fast[1]

    def forget(self) -> None:
        """Those that were kept are not needed any more: room for others. The program stands still.
        What an op that is under way has had so far is lost."""
        at, size = self._control.field(ControlField.CLASSES)
        self._write(at, bytes(size))
        entry, owner = self._blob.sizes[Structure.KEPT], self._blob.offset(KeptField.OWNER)
        at, size = self._blob.fields[KeptField.SHEETS]
        for number in range(min(self._control.kept_next, self._control.layout.room.kept)):
            place = self._control.base + self._control.layout.kept + number * entry
            self._write(place + owner, bytes(8))
            self._write(place + at, bytes(size))
        for at, size in (
            self._control.field(ControlField.WAITERS),
            self._control.field(ControlField.WAITING),
        ):
            self._write(at, bytes(size))
        self._control.set(
            kept_next=0,
            sheet_next=0,
            moment_next=0,
            not_kept=0,
            not_followed=0,
            fast_high=self._fast_high,
        )

    def ops(self) -> list[KeptOp]:
        """Those of this round. The program stands still, or has ended here."""
        at, size = self._control.field(ControlField.CLASSES)
        raw, found = self._read(at, size), []
        step = self._blob.sizes[Structure.CLASS]
        slowest = self._blob.offset(ClassField.SLOWEST)
        first, length = self._blob.fields[ClassField.KEPT]
        for number in range(self._blob.constants.KEPT_CLASSES):
            row = raw[number * step : (number + 1) * step]
            entries = [(words(row[slowest : slowest + 8])[0], True)]
            entries += [(entry, False) for entry in words(row[first : first + length])]
            for entry, is_slowest in entries:
                op = self._kept_op(entry, bool(number), is_slowest) if entry else None
                if op is not None:
                    found.append(op)
        return found

    def _kept_op(self, entry: int, is_fast: bool, is_slowest: bool) -> KeptOp | None:
        blob, first = self._blob, self._control.base + self._control.layout.kept
        size, head = blob.sizes[Structure.KEPT], blob.offset(KeptField.SPANS)
        if (entry - first) % size or not 0 <= (
            entry - first
        ) // size < self._control.layout.room.kept:
            raise DamagedError
        values = blob.unpack(KeptRow, self._read(entry, head))
        limits = blob.constants
        if values.span_count > limits.MAX_SPANS or values.sum_count > limits.MAX_SUMS:
            raise DamagedError
        start, end = values.start, values.end
        spans = [KeptSpan(*row) for row in self._rows(entry + head, values.span_count)]
        rows = self._rows(entry + blob.offset(KeptField.SUMS), values.sum_count)
        sums = (KeptSum(node, calls, total, most) for total, most, calls, node in rows)
        if not start < end or not all(start <= span.end <= end for span in spans):
            return None  # an op that a stop has fallen into
        return KeptOp(
            is_fast=is_fast,
            is_slowest=is_slowest,
            life=values.life if self._control.knows_lives else 0,
            start=start,
            end=end,
            cost=values.cost,
            latency=values.latency,
            lost=values.lost,
            spans=tuple(spans),
            sums=tuple(sorted(sums, key=lambda one: one.node)),
            events=tuple(self.events(entry, values.event_count, range(start, end))),
            lost_events=values.lost_events,
            lost_waits=values.lost_waits,
            switches=tuple(self._switches(entry, values.switch_count, range(start, end + 1))),
            lost_switches=self._lost_switches(entry, values.switch_count),
        )

    def _sheets(self, entry: int) -> tuple[int, ...]:
        """The addresses of an op's sheets; 0 for those that it has not taken."""
        at, length = self._blob.fields[KeptField.SHEETS]
        numbers = struct.unpack(f"<{length // 4}I", self._read(entry + at, length))
        if any(number > self._control.layout.room.sheets for number in numbers):
            raise DamagedError
        first, size = (
            self._control.base + self._control.layout.sheets,
            self._blob.sizes[Structure.SHEET],
        )
        return tuple(first + (number - 1) * size if number else 0 for number in numbers)

    def _lost_switches(self, entry: int, count: int) -> int:
        has_sheet = count and self._sheets(entry)[-1]
        return max(0, count - self._blob.constants.MAX_SWITCHES) if has_sheet else count

    def _switches(self, entry: int, count: int, during: range) -> Iterator[KeptSwitch]:
        size, first = self._blob.sizes[Structure.SWITCH], self._sheets(entry)[-1] if count else 0
        count = min(count, self._blob.constants.MAX_SWITCHES)
        raw = self._read(first, size * count) if first else b""
        for out, back, is_ready, after, name in struct.iter_unpack("<2Q2I16s", raw):
            if out in during and back in during and out < back:
                yield KeptSwitch(
                    out=out, back=back, is_ready=bool(is_ready), next=after, name=task_name(name)
                )

    def events(self, entry: int, count: int, during: range) -> list[KeptEvent]:
        """Of the first ``count`` of an op whose entry is there those in the time ``during``."""
        blob, found = self._blob, []
        at, length = blob.fields[EventField.WORDS]
        named, _ = blob.fields[EventField.NAME]
        count = min(count, blob.constants.MAX_EVENTS)
        for row in self._event_rows(entry, count) if count else ():
            event = blob.unpack(EventRow, row)
            if event.time not in during:
                continue  # not written to its end, or another op's
            node = event.node
            found.append(
                KeptEvent(
                    time=event.time,
                    object=event.object,
                    is_release=event.kind == blob.constants.EVENT_RELEASE,
                    what=event.what,
                    life=event.life if self._control.knows_lives else 0,
                    node=None if node == blob.constants.NO_PARENT else node,
                    frame=event.frame,
                    stack=event.stack,
                    words=words(row[at : at + length]),
                    name=task_name(row[named : named + 16]),
                    is_followed=event.kind != blob.constants.EVENT_UNFOLLOWED,
                    first=event.first,
                    held=event.held,
                )
            )
        return sorted(found, key=lambda event: event.time)

    def _event_rows(self, entry: int, count: int) -> Iterator[bytes]:
        size, each = self._blob.sizes[Structure.EVENT], self._blob.constants.SHEET_EVENTS
        for number, sheet in enumerate(self._sheets(entry)[:-1]):
            rows = min(count - number * each, each)
            if sheet and rows > 0:
                raw = self._read(sheet, size * rows)
                yield from (raw[at : at + size] for at in range(0, len(raw), size))

    def _rows(self, address: int, count: int) -> list[tuple[int, int, int, int]]:
        raw = self._read(address, 24 * count) if count else b""
        return list(struct.iter_unpack("<2Q2I", raw))

    def seen(self) -> tuple[int, int, int, int]:
        """From how many ops of the peak, and of the fastest one, were chosen, how many found no
        room, and how many waits."""
        at, size = self._control.field(ControlField.CLASSES)
        raw, step = self._read(at, size), self._blob.sizes[Structure.CLASS]
        seen = [
            words(raw[n * step : n * step + 8])[0]
            + bool(words(raw[n * step + 8 : n * step + 16])[0])
            for n in range(self._blob.constants.KEPT_CLASSES)
        ]
        return seen[0], seen[1], self._control.not_kept, self._control.not_followed
