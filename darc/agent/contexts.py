"""The agent's tables of contexts: each thread that has called f0 has one, where it counts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from collections.abc import Set as AbstractSet

from darc.agent.control import Control
from darc.agent.damage import DamagedError, guarded
from darc.agent.fieldnames import AgentField, ContextField, ContextsField, ControlField, Structure
from darc.agent.layout import contexts_size, words
from darc.agent.rows import NodeTotal
from darc.model.profile import Profile
from darc.target.memory import Read, Write

STATE = struct.Struct("<QQII")
"""Of a context at :attr:`ThreadContexts.state_at`: op, top, serial, idle."""
_ENDED = 2  # a context's thread that has ended; DARC_ENDED
_SHORT = 0.5  # more of the contexts than that are taken: room gets short
_MOST_CALLS = 1 << 56
"""Calls that no program makes."""


@guarded
class ThreadContexts:
    """Those in the tables that ``control`` belongs to, each by its address."""

    def __init__(self, control: Control, read: Read, write: Write) -> None:
        self._control = control
        self._blob = control.blob
        self._read = read
        self._write = write
        self.state_at = control.blob.offset(ContextField.OP)
        """Offset of its :data:`STATE` in a context."""

    @property
    def room(self) -> int:
        """How many the last table has: threads find room there."""
        return self._tables()[-1][1]

    def _tables(self) -> list[tuple[int, int]]:
        """Where each table of contexts is and how many it has; threads find room in the last."""
        first, size = self._control.field(ControlField.OLDER)
        count = self._control.older_count
        found = words(self._read(first, size))[:count] if count else ()
        mask = self._blob.offset(ContextsField.MASK)
        tables = (*found, self._control.contexts_at)
        return [(table, words(self._read(table + mask, 8))[0] + 1) for table in tables]

    def _used(self, table: int) -> int:
        """How many contexts of a table were ever used."""
        return words(self._read(table + self._blob.offset(ContextsField.COUNT), 8))[0]

    def write_table(self, table: int, room: int) -> None:
        """Makes a table of contexts of memory that is all zero."""
        header = self._blob.sizes[Structure.CONTEXTS]
        numbers = table + header + self._control.layout.context_size * room
        self._write(table, self._blob.pack(Structure.CONTEXTS, mask=room - 1, numbers=numbers))

    def addresses(self) -> list[int]:
        """Addresses of the threads' contexts that are in use."""
        return [context for table, room in self._tables() for context in self._within(table, room)]

    def _within(self, table: int, room: int) -> list[int]:
        size = self._control.layout.context_size
        count = min(self._used(table), room)
        if not count:
            return []
        base = table + self._blob.sizes[Structure.CONTEXTS]
        raw = self._read(base + size * room, 4 * count)
        return [base + n * size for n in struct.unpack(f"<{count}I", raw) if n < room]

    @property
    def taken(self) -> float:
        """Which part of the contexts that threads could have was ever used."""
        table, room = self._tables()[-1]
        return self._used(table) / room

    def held(self) -> int:
        """How many contexts of the last table are those of threads that are not known to have
        ended."""
        own = self._within(*self._tables()[-1])
        return sum(self.number(context, ContextField.THREAD) != _ENDED for context in own)

    @property
    def may_grow(self) -> bool:
        """Whether another table could be told to the agent."""
        return self._control.older_count < self._blob.constants.MAX_OLDER

    def add(self, base: int, room: int) -> None:
        """From now on threads find contexts in the table at ``base``, which is all zero. Those that
        have one stay where they are until no call of f0 is under way. Threads may stand anywhere.
        """
        count = self._control.older_count
        now = self._control.contexts_at
        self.write_table(base, room)
        self._write(self._control.field(ControlField.OLDER)[0] + 8 * count, struct.pack("<Q", now))
        self._control.move(older_count=count + 1)
        self._control.move(contexts=base)

    def free_ended(self, living: Callable[[], AbstractSet[int]]) -> None:
        """Lets other threads have the contexts of those that have ended, with all that was counted
        there, where room gets short. ``living`` tells the ids of all that have not. May be done
        while the program runs: a thread that has just begun to use one loses a measurement.
        """
        if not self._control.life_at or self.taken <= _SHORT:
            return
        alive = None
        for context in self.addresses():
            thread = self.number(context, ContextField.THREAD)
            life = self.number(context, ContextField.LIFE)
            if life and thread != _ENDED:
                alive = living() if alive is None else alive  # after its id was there
                if life not in alive:
                    self._write(context, struct.pack("<Q", _ENDED))

    def state(self, context: int) -> tuple[int, int, int, int]:
        """Op, top, serial and idle of a context, read at once."""
        op, top, serial, idle = STATE.unpack(self._read(context + self.state_at, STATE.size))
        return op, top, serial, idle

    def number(self, context: int, field: AgentField) -> int:
        """Another field of a context."""
        offset, size = self._blob.fields[field]
        return int.from_bytes(self._read(context + offset, size), "little")

    def added(self) -> list[range]:
        """The memory of tables beyond the first."""
        size = self._control.layout.context_size
        return [
            range(table, table + contexts_size(self._blob, size, room))
            for table, room in self._tables()[1:]
        ]

    def forget_counts(self) -> None:
        """Nothing was counted yet."""
        first = self._blob.offset(ContextField.SUM)
        last = self._blob.fields[ContextField.IN_PEAK]
        bins, size = self._blob.fields[ContextField.BINS]
        interrupted = self._blob.offset(ContextField.INTERRUPTED_OPS)
        for context in self.addresses():
            self._write(context + first, bytes(sum(last) - first))
            self._write(context + bins, bytes(size))
            self._write(context + interrupted, bytes(8))

    def profile(self, hz: int) -> tuple[Profile, int]:
        """The profile of f0, merged over all threads, and how many calls were dropped as they
        spanned a stop. Raises :class:`DamagedError`: it counts more calls than there can be."""
        fields = self._blob.fields
        resolution = self._control.written_resolution or self._control.resolution
        offset, _ = fields[ContextField.BINS]
        size = 8 * min(64 * resolution + 1, self._blob.constants.MAX_BINS)
        bins: dict[int, int] = {}
        count = total = dropped = 0
        for context in self.addresses():
            raw = self._read(context, offset + size)

            def value(field: AgentField, raw: bytes = raw) -> int:
                at, length = fields[field]
                return int.from_bytes(raw[at : at + length], "little")

            own = words(raw[offset : offset + size])
            count += sum(own)
            if count > _MOST_CALLS:
                raise DamagedError
            total += value(ContextField.SUM)
            dropped += value(ContextField.DROPPED)
            for number, calls in enumerate(own):
                if calls:
                    bins[number] = bins.get(number, 0) + calls
        return Profile(resolution=resolution, hz=hz, bins=bins, count=count, total=total), dropped

    def totals(self, count: int) -> dict[int, NodeTotal]:
        """What was counted of nodes 0 to ``count`` - 1 in this round; nodes never seen are left
        out."""
        now = self._control.round
        round_offset = self._blob.offset(ContextField.ROUND)
        offset = self._control.layout.totals_at
        sums: dict[int, list[int]] = {}
        for context in self.addresses():
            if words(self._read(context + round_offset, 8))[0] != now:
                continue
            row = words(self._read(context + offset, 48 * count))
            for number in range(count):
                part = row[6 * number : 6 * number + 6]
                if any(part):
                    known = sums.setdefault(number, [0] * 6)
                    for index, value in enumerate(part):
                        known[index] += value
        return {number: NodeTotal(*values) for number, values in sums.items()}

    def voted(self) -> int:
        """In how many in-peak calls of this round all votes were counted."""
        now, first = self._control.round, self._blob.offset(ContextField.IN_PEAK)
        last, size = self._blob.fields[ContextField.ROUND]
        count = 0
        for context in self.addresses():
            raw = self._read(context + first, last + size - first)
            if int.from_bytes(raw[-size:], "little") == now:
                count += words(raw[:8])[0]
        return count
