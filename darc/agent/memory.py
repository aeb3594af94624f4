"""The agent's memory in the program: reading and writing its tables."""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from darc.agent import Blob, words
from darc.agent.control import Control
from darc.agent.damage import DamagedError, guarded
from darc.agent.keptops import KeptOps
from darc.agent.layout import Layout, Read, Room, Write, contexts_size, records_size
from darc.agent.rows import (
    KeptEvent,
    Node,
    NodeTotal,
    OpenCall,
    OpenRecord,
    Operation,
    PatchedSite,
    RunningOp,
    Stale,
)
from darc.agent.sets import SetCounts
from darc.model.errors import TargetError
from darc.model.profile import Profile, thresholds

_FREED = 1  # a record's slot that was used once; DARC_FREED
_ENDED = 2  # a context's thread that has ended; DARC_ENDED
_SHORT = 0.5  # more of the contexts than that are taken: room gets short
_STATE = struct.Struct("<QQII")  # of a context: op, top, serial, idle
_ROUTES = struct.Struct("<5I")  # of a site: timed, route_first, route_count, first_parent, _child

_CONSTANT = (
    "magic version live sites nodes routes records contexts analysis record_list code "
    "older_count node_mask record_mask context_size totals_at site_room route_room tables_size "
    "life_at thread_key kept kept_room sheets sheet_room blocks block_room"
).split()
"""Fields of the control structure that nobody but :class:`AgentMemory` writes to any more."""

_MOST = {"bell": 15, "bell_signal": 64, "mode": 2, "loops": 1, "resolution": 8, "epoch": 1 << 62,
         "heartbeat": 1 << 62, "round": 1 << 62, "record_count": 1 << 62}  # fmt: skip
"""What others can be at most."""
_MOST_CALLS = 1 << 56
"""Calls that no program makes."""


@guarded
class AgentMemory(Control):
    """Typed access to the agent's tables at ``base``.

    ``read`` and ``write`` go to the program's memory; with a :class:`darc.debuggee.procfs.Memory`
    behind them, counters can be read while the program runs.
    """

    def __init__(self, blob: Blob, base: int, layout: Layout, read: Read, write: Write) -> None:
        super().__init__(blob, base, layout, read, write)
        self.kept = KeptOps(self, read, write)
        self.members = SetCounts(self, self.contexts, read, write)
        self._constant: dict[str, int] = {}
        self._resolution: int | None = None
        """What :meth:`write_control` and :meth:`reset` have written."""
        self._state_at = blob.offset("darc_context.op")
        names = ("slot", "serial", "open", "pad_back")
        places = [blob.fields[f"darc_record.{name}"] for name in names]
        self._call_parts = [(offset, offset + size) for offset, size in places]
        self._call_size = max(end for _, end in self._call_parts)
        self._head = blob.offset("darc_context.bins")
        self._first_routes: dict[int, int] = {}
        """Of the sites that have routes: the number of the first one."""
        self._new_routes: dict[int, tuple[int, bool]] = {}
        """How many they have, and whether they are timed."""

    # ------------------------------------------------------------------ control

    def set_landings(self, areas: Sequence[int]) -> None:
        """Tells where areas with landings begin."""
        limit = self.blob.constants["DARC_MAX_AREAS"]
        if len(areas) > limit:
            raise TargetError(f"the program's code is in more than {limit} far places")
        self._write(self.field("landings")[0], struct.pack(f"<{len(areas)}Q", *areas))
        self.set(landing_count=len(areas))

    def set_code(self, stretches: Sequence[range]) -> int:
        """Tells whose calls of f0 are timed: those of code in these stretches, by address, as far
        as there is room. How many there was none for."""
        limit = self.blob.constants["DARC_MAX_CODE"]
        kept = stretches[:limit]
        raw = b"".join(struct.pack("<QQ", one.start, one.stop) for one in kept)
        self.set(code_count=0)
        self._write(self.base + self.layout.code, raw)
        self.set(code_count=len(kept))
        return len(stretches) - len(kept)

    def begin_epoch(self) -> None:
        """Calls that are under way now are dropped when they return: they span a stop, or a
        change of what is counted."""
        self.set(epoch=self.epoch + 1)

    def beat(self, now: int, wake: int, deadline: int) -> None:
        """The debugger lives at ``now`` (TSC). The agent is to look whether it still does after
        ``wake``, and to ring after ``deadline`` in any case."""
        self._write(self.field("heartbeat")[0], struct.pack("<3Q", now, deadline, wake))

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

    @property
    def _record_mask(self) -> int:
        return (self.layout.room.records - 1) << 6

    def write_control(
        self, resolution: int, thread_key: int, life_at: int, **functions: int
    ) -> None:
        """Fills the control structure of a new agent; ``life_at`` is where threads have the ids of
        their own, ``functions`` are the addresses of those that the pad of a kernel's f0 calls:
        ``enter`` and ``leave``."""
        layout, base, table = self.layout, self.base, thresholds(resolution)
        limit = self.blob.constants["DARC_MAX_BINS"]
        raw = self.blob.pack(
            "darc_control",
            magic=self.blob.constants["DARC_MAGIC"],
            version=self.blob.constants["DARC_ABI_VERSION"],
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
            blocks=base + layout.blocks,
            block_room=layout.room.blocks,
            least_span=self.blob.constants["DARC_NEVER"],
            node_mask=layout.room.nodes - 1,
            record_mask=self._record_mask,
            context_size=layout.context_size,
            totals_at=layout.totals_at,
            site_room=layout.room.sites,
            route_room=layout.room.routes,
            tables_size=layout.size,
            life_at=life_at,
            **functions,
            node_count=1,
            resolution=resolution,
            epoch=1,
            deadline=self.blob.constants["DARC_NEVER"],
            wake=self.blob.constants["DARC_NEVER"],
            thread_key=thread_key,
            batch=1,
            patience=(1 << 63) - 1,
            thresholds=struct.pack(f"<{len(table)}Q", *table) + b"\xff" * 8 * (limit - len(table)),
        )
        self._write_contexts(base + layout.contexts, layout.room.contexts)
        self._write(base + layout.control, raw)
        values = self.blob.unpack("darc_control", raw)
        self._constant = {name: values[name] for name in _CONSTANT if name in values}
        self._resolution = resolution

    def adopt(self, life: Callable[[int], bool]) -> None:
        """They are another debugger's, which has ended: from now on they are this one's. ``life``
        tells numbers of sites that pads may still read; no other is used."""
        raw = self._read(self.base + self.layout.control, self.blob.sizes["darc_control"])
        values = self.blob.unpack("darc_control", raw)
        self._constant = {name: values[name] for name in _CONSTANT if name in values}
        size = self.blob.sizes["darc_site"]
        for index in range(self.layout.room.sites):
            if life(index):
                self.set_site(
                    index, route_count=0, first_parent=self.blob.constants["DARC_NO_PARENT"]
                )
            else:
                self._write(self.site(index), bytes(size))

    def check(self) -> None:
        """Looks whether the control structure can still be what darc and the agent made of it.

        Raises:
            DamagedError: it is not.
            TargetError: it cannot be read.
        """
        size = self.blob.offset("darc_control.thresholds")
        raw = self._read(self.base + self.layout.control, size)
        values = self.blob.unpack("darc_control", raw.ljust(self.blob.sizes["darc_control"], b"\0"))
        for name, value in self._constant.items():
            if values[name] != value:
                raise DamagedError
        for name, most in _MOST.items():
            if values[name] > most:
                raise DamagedError
        room = self.layout.room
        if values["node_count"] > room.nodes or values["analysis_count"] > room.nodes:
            raise DamagedError
        if self._resolution is not None and values["resolution"] != self._resolution:
            raise DamagedError

    def reset(self, resolution: int) -> None:
        """Begins another analysis with an agent that is there already: counts start anew, and what
        is still under way from before is told from the new by its epoch."""
        table = thresholds(resolution)
        self._resolution = resolution
        if self.block_next:
            self.members.forget()
        self.set(
            from_count=0,
            free_members=0,
            idle_members=0,
            mode=0,
            analysis_count=0,
            node_count=1,
            resolution=resolution,
            epoch=self.epoch + 1,
            round=self.round + 1,
            only_thread=0,
            seen=0,
            bell=0,
            deadline=self.blob.constants["DARC_NEVER"],
            wake=self.blob.constants["DARC_NEVER"],
            exiting=0,
            lost_records=0,
            lost_contexts=0,
            lost_ops=0,
            lost_callers=0,
            lost_foreign=0,
            short_of=0,
            least_span=self.blob.constants["DARC_NEVER"],
            fast_high=0,
        )
        self.kept.forget()
        self._write(self.field("thresholds")[0], struct.pack(f"<{len(table)}Q", *table))
        for index in list(self._first_routes):
            self.set_site(index, route_count=0)
        first = self.blob.offset("darc_context.sum")
        last = self.blob.fields["darc_context.in_peak"]
        bins, size = self.blob.fields["darc_context.bins"]
        for context in self.contexts():
            self._write(context + first, bytes(sum(last) - first))
            self._write(context + bins, bytes(size))

    # -------------------------------------------------------------------- sites

    def site(self, index: int) -> int:
        """Address of one ``struct darc_site``."""
        if not 0 <= index < self.layout.room.sites:
            raise TargetError("the agent's table of call sites is full: 'darc stop' and start anew")
        return self.base + self.layout.sites + index * self.blob.sizes["darc_site"]

    def write_site(self, index: int, **values: int | bytes) -> None:
        """Writes a whole site."""
        control = self.base + self.layout.control
        raw = self.blob.pack(
            "darc_site",
            control=control,
            records=self.base + self.layout.records,
            record_mask=self._record_mask,
            first_parent=self.blob.constants["DARC_NO_PARENT"],
            **values,
        )
        self._write(self.site(index), raw)
        self._note_route(index, values)

    def set_site(self, index: int, **values: int) -> None:
        """Sets fields of a site."""
        for name, value in values.items():
            offset, size = self.blob.fields[f"darc_site.{name}"]
            self._write(self.site(index) + offset, value.to_bytes(size, "little"))
        if "route_count" in values:
            self._note_route(index, values)

    def set_routes(self, index: int, first: int, count: int, timed: bool) -> None:
        """Which routes of the next :meth:`write_nodes` are those of a site, one or more, and
        whether any is timed."""
        self._first_routes[index] = first
        self._new_routes[index] = count, timed

    def _note_route(self, index: int, values: Mapping[str, int | bytes]) -> None:
        """A site's first route stands in the site as well: most have no other."""
        if values.get("route_count"):
            first, count = int(values.get("route_first", 0)), int(values["route_count"])
            self.set_routes(index, first, count, bool(values.get("timed", 1)))
        elif self._first_routes.pop(index, None) is not None:
            self.set_site(index, first_parent=self.blob.constants["DARC_NO_PARENT"])

    def patched_sites(self) -> list[PatchedSite]:
        """The sites whose patches are in place, by what the table says."""
        size = self.blob.sizes["darc_site"]
        count = self.layout.room.sites
        raw = self._read(self.site(0), size * count)
        offset, _ = self.blob.fields["darc_site.original"]
        found = []
        for index in range(count):
            row = raw[index * size : (index + 1) * size]
            values = self.blob.unpack("darc_site", row)
            if values["patched"]:
                original = row[offset : offset + values["length"]]
                found.append(PatchedSite(index, values["address"], original))
        return found

    def learned_targets(self, index: int) -> tuple[int, ...]:
        """The callees that an indirect site has had, in the order of their first calls."""
        offset, size = self.blob.fields["darc_site.targets"]
        targets = words(self._read(self.site(index) + offset, size))
        count_offset, count_size = self.blob.fields["darc_site.target_count"]
        count = int.from_bytes(self._read(self.site(index) + count_offset, count_size), "little")
        return tuple(t for t in targets[:count] if t)

    def teach_targets(self, index: int, targets: Sequence[int]) -> None:
        """Lets an indirect site know these callees alone, in this order. Their numbers are those of
        the lanes: the routes through it are to be written anew."""
        offset, size = self.blob.fields["darc_site.targets"]
        raw = struct.pack(f"<{len(targets)}Q", *targets)
        self._write(self.site(index) + offset, raw.ljust(size, b"\0"))
        self.set_site(index, target_count=len(targets))

    def overflow(self, index: int) -> int:
        """Calls of an indirect site whose targets were not told apart, for want of room."""
        offset, size = self.blob.fields["darc_site.overflow"]
        return int.from_bytes(self._read(self.site(index) + offset, size), "little")

    def keep_targets(self, index: int, targets: Sequence[int]) -> None:
        """Makes an indirect site forget all learned targets but these, in this order."""
        self.teach_targets(index, targets)
        self.set_site(index, overflow=0)

    # -------------------------------------------------------------------- nodes

    def write_nodes(
        self, nodes: Iterable[Node], routes: Iterable[tuple[int, int]], analysis: Iterable[int]
    ) -> None:
        """Writes the ftree as the agent sees it. The caller advances epoch and round."""
        rows = list(nodes)
        pairs = list(routes)
        numbers = list(analysis)
        room = self.layout.room
        if len(rows) > room.nodes or len(pairs) > room.routes:
            raise TargetError("too many call sites at once: set a lower 'darc max-probes'")
        self.set(analysis_count=0)
        self._write(self.base + self.layout.nodes, b"".join(map(self._node_row, rows)))
        if pairs:
            raw = b"".join(struct.pack("<2I", *pair) for pair in pairs)
            self._write(self.base + self.layout.routes, raw)
        at, _ = self.blob.fields["darc_site.timed"]
        for index, first in self._first_routes.items():
            parent, child = pairs[first]
            untimed = 0 if rows[child].timed else self.blob.constants["DARC_UNTIMED"]
            count, timed = self._new_routes[index]
            row = _ROUTES.pack(timed, first, count, parent, child | untimed)
            self._write(self.site(index) + at, row)
        if numbers:
            raw = struct.pack(f"<{len(numbers)}I", *numbers)
            self._write(self.base + self.layout.analysis, raw)
        self.set(node_count=len(rows), analysis_count=len(numbers))

    def _node_row(self, node: Node) -> bytes:
        first, timed = node.first_child, int(node.timed)
        if node.passes:
            timed = self.blob.constants["DARC_PASSES"]
        elif node.timed and node.others_of is not None:
            first, timed = node.others_of, self.blob.constants["DARC_OTHERS"]
        return struct.pack("<4I", node.parent, first, node.child_count, timed)

    # ----------------------------------------------------------------- contexts

    @property
    def room(self) -> Room:
        """What there is room for now."""
        _, contexts = self._context_tables()[-1]
        return dataclasses.replace(self.layout.room, contexts=contexts)

    def _context_tables(self) -> list[tuple[int, int]]:
        """Where each table of contexts is and how many it has; threads find room in the last."""
        first, size = self.field("older")
        count = self.older_count
        found = words(self._read(first, size))[:count] if count else ()
        mask = self.blob.offset("darc_contexts.mask")
        tables = (*found, self.get("contexts"))
        return [(table, words(self._read(table + mask, 8))[0] + 1) for table in tables]

    def _used(self, table: int) -> int:
        """How many contexts of a table were ever used."""
        return words(self._read(table + self.blob.offset("darc_contexts.count"), 8))[0]

    def _write_contexts(self, table: int, room: int) -> None:
        """Makes a table of contexts of memory that is all zero."""
        header = self.blob.sizes["darc_contexts"]
        numbers = table + header + self.layout.context_size * room
        self._write(table, self.blob.pack("darc_contexts", mask=room - 1, numbers=numbers))

    def contexts(self) -> list[int]:
        """Addresses of the threads' contexts that are in use."""
        size, found = self.layout.context_size, []
        for table, room in self._context_tables():
            count = min(self._used(table), room)
            if count:
                base = table + self.blob.sizes["darc_contexts"]
                raw = self._read(base + size * room, 4 * count)
                found += [base + n * size for n in struct.unpack(f"<{count}I", raw) if n < room]
        return found

    @property
    def contexts_taken(self) -> float:
        """Which part of the contexts that threads could have was ever used."""
        table, room = self._context_tables()[-1]
        return self._used(table) / room

    def contexts_held(self) -> int:
        """How many contexts of the last table are those of threads that are not known to have
        ended."""
        table, room = self._context_tables()[-1]
        end = table + contexts_size(self.blob, self.layout.context_size, room)
        own = (context for context in self.contexts() if table < context < end)
        return sum(self._number(context, "thread") != _ENDED for context in own)

    @property
    def may_have_more_contexts(self) -> bool:
        """Whether another table could be told to the agent."""
        return self.older_count < self.blob.constants["DARC_MAX_OLDER"]

    def add_contexts(self, base: int, room: int) -> None:
        """From now on threads find contexts in the table at ``base``, which is all zero. Those that
        have one stay where they are until no call of f0 is under way. Threads may stand anywhere.
        """
        count = self.older_count
        now = self.get("contexts")
        self._write_contexts(base, room)
        self._write(self.field("older")[0] + 8 * count, struct.pack("<Q", now))
        self.set(older_count=count + 1)
        self.set(contexts=base)
        self._constant.update(older_count=count + 1, contexts=base)

    def use_records(self, base: int, room: int) -> None:
        """From now on calls are recorded in the table at ``base``, which is all zero, with its list
        in front of it. No call is open any more, and no thread is in the agent or a pad, but the
        one that rang."""
        list_size, _ = records_size(self.blob, room)
        for context in self.contexts():
            at = context + self._state_at
            op, _, serial, _ = _STATE.unpack(self._read(at, _STATE.size))
            if op:
                free = self.blob.constants["DARC_FREE"]
                self._write(at, _STATE.pack(0, 0, (serial + 1) & 0xFFFF_FFFF, free))
        self.layout = dataclasses.replace(
            self.layout,
            room=dataclasses.replace(self.layout.room, records=room),
            record_list=base - self.base,
            records=base + list_size - self.base,
        )
        records, mask = base + list_size, self._record_mask
        self.set(record_list=base, records=records, record_mask=mask, record_count=0)
        self._constant.update(record_list=base, records=records, record_mask=mask)
        for index in range(self.layout.room.sites):
            if int.from_bytes(self._read(self.site(index), 8), "little"):
                self.set_site(index, records=records, record_mask=mask)

    @property
    def mappings(self) -> list[range]:
        """The memory that the tables take."""
        size = self.layout.context_size
        found = [range(self.base, self.base + self.layout.size)]
        for table, room in self._context_tables()[1:]:
            found.append(range(table, table + contexts_size(self.blob, size, room)))
        first = self.base + self.layout.record_list
        if first not in found[0]:
            sizes = records_size(self.blob, self.layout.room.records)
            found.append(range(first, first + sum(sizes)))
        return found

    def profile(self, hz: int) -> tuple[Profile, int]:
        """The profile of f0, merged over all threads, and how many calls were dropped as they
        spanned a stop."""
        fields = self.blob.fields
        resolution = self._resolution or self.resolution
        offset, _ = fields["darc_context.bins"]
        size = 8 * min(64 * resolution + 1, self.blob.constants["DARC_MAX_BINS"])
        bins: dict[int, int] = {}
        count = total = dropped = 0
        for context in self.contexts():
            raw = self._read(context, offset + size)

            def value(name: str, raw: bytes = raw) -> int:
                at, length = fields[f"darc_context.{name}"]
                return int.from_bytes(raw[at : at + length], "little")

            own = words(raw[offset : offset + size])
            count += sum(own)
            if count > _MOST_CALLS:
                raise DamagedError
            total += value("sum")
            dropped += value("dropped")
            for number, calls in enumerate(own):
                if calls:
                    bins[number] = bins.get(number, 0) + calls
        return Profile(resolution, hz, bins, count, total), dropped

    def totals(self, count: int) -> dict[int, NodeTotal]:
        """What was counted of nodes 0 to ``count`` - 1 in this round; nodes never seen are left
        out."""
        now = self.round
        round_offset = self.blob.offset("darc_context.round")
        offset = self.layout.totals_at
        sums: dict[int, list[int]] = {}
        for context in self.contexts():
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
        now, first = self.round, self.blob.offset("darc_context.in_peak")
        last, size = self.blob.fields["darc_context.round"]
        count = 0
        for context in self.contexts():
            raw = self._read(context + first, last + size - first)
            if int.from_bytes(raw[-size:], "little") == now:
                count += words(raw[:8])[0]
        return count

    def open_ops(self) -> int:
        """How many calls of f0 are being measured now. The program stands still."""
        now, first = self.epoch, self._state_at
        epoch_at, size = self.blob.fields["darc_context.epoch"]
        count = 0
        for context in self.contexts():
            raw = self._read(context + first, epoch_at + size - first)
            op, _, serial, _ = _STATE.unpack(raw[: _STATE.size])
            if op and int.from_bytes(raw[-size:], "little") == now:
                record = self._open_call(op)
                count += record is not None and record.serial == serial and record.stands
        return count

    def operations(self) -> list[Operation]:
        """The calls of f0 that are being measured now, with all that is open in them. The program
        stands still."""
        now = self.epoch
        contexts = {
            c: raw
            for c in self.contexts()
            if (raw := self.blob.unpack("darc_context", self._read(c, self._head)))["op"]
            and raw["epoch"] == now
        }
        if not contexts:
            return []
        records: dict[int, list[dict[str, int]]] = {c: [] for c in contexts}
        for record in self.open_records():
            context = contexts.get(record["context"])
            if context is not None and record["serial"] == context["serial"]:
                records[record["context"]].append(record)
        found = []
        for address, context in contexts.items():
            own = records[address]
            first = next((r for r in own if r["address"] == context["op"]), None)
            if first is None or first["open"] != 1 or self._is_stale(context["op"]):
                continue
            is_sure = bool(context["idle"]) and all(r["open"] == 1 for r in own)
            found.append(
                Operation(
                    address,
                    context["thread"],
                    context["serial"],
                    is_sure,
                    first["start"],
                    context["jump_time"],
                    tuple(map(self._open_record, own)),
                )
            )
        return found

    def running(self) -> list[RunningOp]:
        """The calls of f0 that are under way, whatever has stopped meanwhile. May be asked while
        the program runs: what is told of a call that is just ending may be over."""
        found = []
        at, size = self.blob.fields["darc_context.life"]
        start = self.blob.offset("darc_record.start")
        for context in self.contexts():
            raw = self._read(context, at + size)
            op, _, serial, idle = _STATE.unpack_from(raw, self._state_at)
            if not op or idle == self.blob.constants["DARC_FREE"]:
                continue
            record = self._open_call(op)
            if record is None or record.serial != serial or not record.stands:
                continue
            began = words(self._read(op + start, 8))[0]
            life = int.from_bytes(raw[at:], "little") if self.knows_lives else 0
            found.append(RunningOp(context, serial, life, began))
        return found

    def wait_of(self, op: RunningOp) -> KeptEvent | None:
        """What a call that is under way began to wait for last, where that was written down. The
        program stands still."""
        at = self.blob.offset("darc_context.kept")
        entry = words(self._read(op.context + at, 8))[0]
        size, first = self.blob.sizes["darc_kept"], self.base + self.layout.kept
        if (entry - first) % size or not 0 <= (entry - first) // size < self.layout.room.kept:
            return None
        values = self.blob.unpack("darc_kept", self._read(entry, 128).ljust(size, b"\0"))
        if values["owner"] != op.context or values["serial"] != op.serial:
            return None
        events = self.kept.events(entry, values["event_count"], range(op.start, 1 << 63))
        return next((event for event in reversed(events) if not event.is_release), None)

    def _open_record(self, record: dict[str, int]) -> OpenRecord:
        count = record["tail_count"] & ~self.blob.constants["DARC_LEFT"]
        count = min(count, self.blob.constants["DARC_MAX_TAILS"])
        at = record["address"] + self.blob.offset("darc_record.tails")
        tails = words(self._read(at, 8 * count)) if count else ()
        return OpenRecord(record["address"], record["slot"], record["start"], tuple(tails))

    def open_states(self) -> dict[int, int]:
        """What the open records have in ``open``, by their addresses."""
        return {record["address"]: record["open"] for record in self.open_records()}

    def reopen(self, states: Mapping[int, int]) -> None:
        """Undoes :meth:`close_record`, as nothing has run since: what :meth:`open_states` was."""
        for address, state in states.items():
            at = address + self.blob.offset("darc_record.open")
            self._write(at, struct.pack("<I", state))

    def delay(self, operation: Operation, cycles: int) -> None:
        """All of it began so much later."""
        never = self.blob.constants["DARC_NEVER"]
        for record in operation.records:
            if record.start != never:
                at = record.address + self.blob.offset("darc_record.start")
                self._write(at, struct.pack("<Q", record.start + cycles))
            for number, began in enumerate(record.tails):
                at = record.address + self.blob.offset("darc_record.tails") + 8 * number
                self._write(at, struct.pack("<Q", began + cycles))
        self._write(
            operation.context + self.blob.offset("darc_context.not_kept"),
            struct.pack("<I", operation.serial),
        )
        if operation.jump_time:
            at = operation.context + self.blob.offset("darc_context.jump_time")
            self._write(at, struct.pack("<Q", operation.jump_time + cycles))

    def drop(self, operation: Operation) -> None:
        """It is not measured: of an epoch that is never again."""
        at = operation.context + self.blob.offset("darc_context.epoch")
        self._write(at, struct.pack("<Q", 0))

    def watch_stale(self, seen: frozenset[Stale]) -> frozenset[Stale]:
        """Tells the agent of ops that were left by a longjmp, and of calls into the agent that
        were: it may not read another frame's stack word itself, which may be unmapped.

        Takes and returns what looked stale, for the next look: what does so both times, a second
        apart and in the same op, is stale. Any live op looks so for a moment. The agent is only
        given the op's serial: its next op is another one.
        """
        found: set[Stale] = set()
        for context in self.contexts():
            op, _, serial, idle = _STATE.unpack(self._read(context + self._state_at, _STATE.size))
            if not idle:
                found.add(Stale(context, serial, "stuck"))
            if op and self._is_stale(op):
                found.add(Stale(context, serial, "stale"))
        for mark in found & seen:
            offset = self.blob.offset(f"darc_context.{mark.what}")
            self._write(mark.context + offset, struct.pack("<I", mark.serial))
        return frozenset(found)

    def free_stuck(self, is_inside: Callable[[int], bool]) -> int:
        """Lets threads be seen again whose contexts stand inside the agent, and tells how many of
        them are not really there: ``is_inside`` is asked about a context's key. The program stands
        still. A thread that is there goes on as if nothing had been done.
        """
        freed = 0
        offset = self.blob.offset("darc_context.stuck")
        for context in self.contexts():
            serial, idle = _STATE.unpack(self._read(context + self._state_at, _STATE.size))[2:]
            if not idle and self._number(context, "stuck") != serial:
                freed += not is_inside(self._number(context, "thread"))
                self._write(context + offset, struct.pack("<I", serial))
        return freed

    def free_contexts(self, living: Callable[[], AbstractSet[int]]) -> None:
        """Lets other threads have the contexts of those that have ended, with all that was counted
        there, where room gets short. ``living`` tells the ids of all that have not. May be done
        while the program runs: a thread that has just begun to use one loses a measurement.
        """
        if not self.life_at or self.contexts_taken <= _SHORT:
            return
        alive = None
        for context in self.contexts():
            thread, life = (self._number(context, name) for name in ("thread", "life"))
            if life and thread != _ENDED:
                alive = living() if alive is None else alive  # after its id was there
                if life not in alive:
                    self._write(context, struct.pack("<Q", _ENDED))

    def _number(self, context: int, name: str) -> int:
        offset, size = self.blob.fields[f"darc_context.{name}"]
        return int.from_bytes(self._read(context + offset, size), "little")

    def _is_stale(self, address: int) -> bool:
        record = self._open_call(address)
        return record is not None and not record.stands

    def _open_call(self, address: int) -> OpenCall | None:
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
            return OpenCall(serial, False)
        return OpenCall(serial, word == pad_back)

    def _back(self, site: int) -> int:
        """Where a site's pad returns to: 0 where that differs."""
        raw = self._read(site, self.blob.sizes["darc_site"])
        return self.blob.unpack("darc_site", raw)["back"]

    # ------------------------------------------------------------------ records

    def begin_set(self) -> None:
        """From now on entries of a set's functions are timed. The program stands still, and no
        record is open."""
        self.members.forget()
        for record in self.open_records():
            self.close_record(record["address"])
        self.set(mode=self.blob.constants["DARC_SET"])

    def records(self) -> list[dict[str, int]]:
        """All records that were ever used."""
        return self._records("darc_record.slot")

    def open_records(self) -> list[dict[str, int]]:
        """The calls that a pad has open, as far as the agent knows."""
        return self._records("darc_record.open")

    def open_calls(self) -> list[dict[str, int]]:
        """:meth:`open_records` of calls that are under way in the threads' latest calls of f0,
        found from there: where threads are told apart by their stacks there are no others. The
        table of records is large, and a kernel's memory far away."""
        size, back = self.blob.sizes["darc_record"], functools.cache(self._back)
        found = []
        for context in self.contexts():
            op, at = struct.unpack("<QQ", self._read(context + self._state_at, 16))
            for _ in range(self.blob.constants["DARC_MAX_DEPTH"] if op else 0):
                if not at:
                    break
                raw = self._read(at, size)
                record = self._record(at, raw, back)
                if record["open"]:
                    found.append(record)
                at = record["parent"]
        return found

    def _records(self, mark: str) -> list[dict[str, int]]:
        size = self.blob.sizes["darc_record"]
        offset = self.blob.offset(mark)
        back = functools.cache(self._back)
        return [
            self._record(address, raw, back)
            for address, raw in self._claimed_records(size)
            if any(raw[offset : offset + 4])
        ]

    def _record(self, address: int, raw: bytes, back: Callable[[int], int]) -> dict[str, int]:
        record = self.blob.unpack("darc_record", raw)
        record["address"] = address
        if record["site"]:
            try:
                record["back"] = back(record["site"]) or record["back"]
            except TargetError:
                record["back"] = 0  # a pointer that the program has written
        return record

    def _claimed_records(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each record that was ever claimed; where they are few, without
        reading the whole table, as a kernel's memory is far away."""
        base, limit = self.base + self.layout.records, self.layout.room.records
        count = self.record_count
        if count <= limit // 16:
            place = self.base + self.layout.record_list
            for number in sorted(set(struct.unpack(f"<{count}I", self._read(place, 4 * count)))):
                address = base + (number & (limit - 1)) * size
                yield address, self._read(address, size)
            return
        raw = self._read(base, size * limit)
        for at in range(0, len(raw), size):
            yield base + at, raw[at : at + size]

    def compact(self) -> None:
        """Makes room in the table of records. No thread may be in the agent or a pad but the one
        that rang.

        A closed record leaves a mark, not a hole, as others are found by walking over it.
        """
        size = self.blob.sizes["darc_record"]
        kept = []
        for record in self.records():
            number = (record["address"] - self.base - self.layout.records) // size
            if record["open"]:
                kept.append(number)
            else:
                self._write(record["address"], struct.pack("<Q", _FREED))
        if kept:
            raw = struct.pack(f"<{len(kept)}I", *kept)
            self._write(self.base + self.layout.record_list, raw)
        self.set(record_count=len(kept), lost_records=0)

    def close_record(self, address: int) -> None:
        """Marks a record closed; its frame's return address stands on the stack again."""
        self._write(address + self.blob.offset("darc_record.open"), b"\0\0\0\0")
