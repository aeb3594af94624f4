"""What is counted of a set of functions (``members.c``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.fieldnames import BlockField, ContextField, ControlField, Structure
from darc.agent.rows import Walker
from darc.agent.structures import BlockRow, ContextRow
from darc.model.membercounts import MemberCounts
from darc.target.memory import Read, Write


@guarded
class SetCounts:
    """That in the tables that ``control`` belongs to, whose ``contexts`` are at these addresses."""

    def __init__(
        self, control: Control, contexts: Callable[[], Sequence[int]], read: Read, write: Write
    ) -> None:
        self._control = control
        self._contexts = contexts
        self._blob = control.blob
        self._read = read
        self._write = write

    @property
    def most(self) -> int:
        """How many functions a set can have here."""
        return (self._control.layout.context_size - self._blob.offset(ContextField.SUMS)) // 8

    def forget(self) -> None:
        """No thread has a block of a set any more, and nobody is in the agent."""
        sums = self._blob.offset(ContextField.SUMS)
        for context in self._contexts():
            self._write(context + sums, bytes(self._control.layout.context_size - sums))
        size, count = (
            self._blob.sizes[Structure.BLOCK],
            min(self._control.block_next, self._control.layout.room.blocks),
        )
        self._write(self._control.base + self._control.layout.blocks, bytes(size * count))
        self._control.set(block_next=0, lost_blocks=0, lost_moved=0, lost_tails=0)

    def forget_open(self) -> None:
        """The records of calls are about to go: no block is to lead there. The program stands
        still."""
        size, at = self._blob.sizes[Structure.BLOCK], self._blob.offset(BlockField.OPEN)
        first = self._control.base + self._control.layout.blocks + at
        for number in range(min(self._control.block_next, self._control.layout.room.blocks)):
            self._write(first + number * size, bytes(8))

    def counts(self) -> dict[int, MemberCounts]:
        """What was counted of each function of the set, by its number, over all threads. May be
        asked while the program runs: a call that just ends may be counted in part."""
        blob, size = self._blob, self._blob.sizes[Structure.BLOCK]
        count = min(self._control.block_next, self._control.layout.room.blocks)
        raw = (
            self._read(self._control.base + self._control.layout.blocks, size * count)
            if count
            else b""
        )
        first, length = blob.fields[BlockField.BINS]
        found: dict[int, MemberCounts] = {}
        for start in range(0, len(raw), size):
            row = blob.unpack(BlockRow, raw[start : start + size])
            if not row.member:
                continue  # just claimed
            at = start + first
            own = struct.unpack(f"<{length // 4}I", raw[at : at + length])
            bins = {number: calls for number, calls in enumerate(own) if calls}
            counts = MemberCounts(
                calls=row.calls,
                sum=row.sum,
                max=row.max,
                left=row.left,
                dropped=row.dropped,
                lost=row.lost,
                foreign=row.foreign,
                jumps=row.jumps,
                recursions=row.recursions,
                bins=bins,
            )
            known = found.get(row.member - 1)
            found[row.member - 1] = counts if known is None else known.merged(counts)
        return found

    def walk_from(
        self, stretches: Sequence[range], free: int, idle: int, member: int | None = None
    ) -> None:
        """From now on only calls count that come from code in these ``stretches``, or by a tail
        jump in a frame of ``member``, but for members below ``free``; what calls of those below
        ``idle`` take is taken out of all that they are in. No stretch: no other call counts. The
        program stands still."""
        kept = stretches[: self._blob.constants.MAX_FROM] or [range(0)]
        raw = b"".join(struct.pack("<QQ", one.start, one.stop) for one in kept)
        self._write(self._control.field(ControlField.FROM)[0], raw)
        self._control.set(
            from_count=len(kept),
            from_member=0 if member is None else member + 1,
            free_members=free,
            idle_members=idle,
        )

    def walkers(self, epoch: int) -> dict[int, Walker]:
        """What was counted in each thread, by its key; the first calls are those of ``epoch``. The
        program stands still."""
        found: dict[int, Walker] = {}
        sums, blob = self._blob.offset(ContextField.SUMS), self._blob
        words = self._control.layout.context_size - sums
        size, first = blob.sizes[Structure.BLOCK], self._control.base + self._control.layout.blocks
        raw = self._read(
            first, size * min(self._control.block_next, self._control.layout.room.blocks)
        )
        calls_at, sum_at = blob.offset(BlockField.CALLS), blob.offset(BlockField.SUM)
        for context in self._contexts():
            own = self._read(context, blob.offset(ContextField.BINS))
            values = blob.unpack(ContextRow, own)
            counted = {}
            pointers = self._read(context + sums, words)
            for number, place in enumerate(
                struct.unpack(f"<{words // 8}Q", pointers[: words & ~7])
            ):
                at = place - first
                if 0 <= at < len(raw) and not at % size:
                    (calls,) = struct.unpack_from("<Q", raw, at + calls_at)
                    (total,) = struct.unpack_from("<Q", raw, at + sum_at)
                    counted[number] = calls, total
            firsts = struct.unpack("<4Q", self._read(context + blob.offset(ContextField.FIRST), 32))
            begun = tuple(
                time if of == epoch else 0 for time, of in zip(firsts[:2], firsts[2:], strict=True)
            )
            found[values.thread - 1] = Walker(context, values.spent, begun, counted)
        return found
