"""The agent's memory in the program: where its tables are, and reading and writing them."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from darc.agent import Blob, words
from darc.errors import TargetError
from darc.profile import Profile, thresholds

_PAGE = 4096
_FREED = 1  # a record's slot that was used once; DARC_FREED
Read = Callable[[int, int], bytes]
Write = Callable[[int, bytes], None]


def _pages(size: int) -> int:
    return (size + _PAGE - 1) // _PAGE * _PAGE


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes of the tables in one mapping, and the size of all."""

    control: int
    live: int
    doorbell: int
    sites: int
    nodes: int
    routes: int
    analysis: int
    records: int
    contexts: int
    size: int
    context_count: int


def plan(blob: Blob, context_count: int) -> Layout:
    """Lays the tables out one behind the other, each on pages of its own."""
    limits, sizes = blob.constants, blob.sizes
    at = 0
    places = []
    for size in (
        sizes["darc_control"],
        sizes["darc_live"],
        sizes["darc_doorbell"],
        sizes["darc_site"] * limits["DARC_MAX_SITES"],
        sizes["darc_node"] * limits["DARC_MAX_NODES"],
        sizes["darc_route"] * limits["DARC_MAX_ROUTES"],
        4 * limits["DARC_MAX_NODES"],
        sizes["darc_record"] * limits["DARC_MAX_RECORDS"],
        sizes["darc_context"] * context_count,
    ):
        places.append(at)
        at += _pages(size)
    control, live, doorbell, sites, nodes, routes, analysis, records, contexts = places
    return Layout(
        *(control, live, doorbell, sites, nodes, routes, analysis, records, contexts),
        size=at,
        context_count=context_count,
    )


@dataclass(frozen=True)
class NodeTotal:
    """What the agent counted of one node over all threads since the last decision."""

    own: int
    votes: int
    ops: int
    calls: int
    sum: int
    max_sum: int


@dataclass(frozen=True)
class Node:
    """One row of the node table."""

    parent: int
    first_child: int
    child_count: int
    timed: bool


@dataclass(frozen=True)
class PatchedSite:
    """A place whose bytes were replaced, and what stood there."""

    index: int
    address: int
    original: bytes


@dataclass(frozen=True)
class Stale:
    """Something in a context that looks as if a longjmp had left it behind."""

    context: int
    serial: int
    what: str


class AgentMemory:
    """Typed access to the agent's tables at ``base``.

    ``read`` and ``write`` go to the program's memory; with a :class:`darc.procfs.Memory` behind
    them, counters can be read while the program runs.
    """

    def __init__(self, blob: Blob, base: int, layout: Layout, read: Read, write: Write) -> None:
        self.blob = blob
        self.base = base
        self.layout = layout
        self._read = read
        self._write = write
        self._first_routes: dict[int, int] = {}
        """Of the sites that have routes: the number of the first one."""

    def raw(self, address: int, size: int) -> bytes:
        """Memory as it is, with the debugger's breakpoints."""
        return self._read(address, size)

    # ------------------------------------------------------------------ control

    @property
    def control(self) -> int:
        """Address of the control structure."""
        return self.base + self.layout.control

    def field(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a field of the control structure."""
        offset, size = self.blob.fields[f"darc_control.{name}"]
        return self.base + self.layout.control + offset, size

    def get(self, name: str) -> int:
        """One field of the control structure."""
        return int.from_bytes(self._read(*self.field(name)), "little")

    def set(self, **values: int) -> None:
        """Sets fields of the control structure, one store each."""
        for name, value in values.items():
            address, size = self.field(name)
            self._write(address, value.to_bytes(size, "little"))

    def begin_epoch(self) -> None:
        """Calls that are under way now are dropped when they return: they span a stop, or a
        change of what is counted."""
        self.set(epoch=self.get("epoch") + 1)

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

    def write_control(self, resolution: int, thread_key: int, **functions: int) -> None:
        """Fills the control structure of a new agent; ``functions`` are the addresses of those
        that the pad of a kernel's f0 calls: ``enter`` and ``leave``."""
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
            **functions,
            node_count=1,
            resolution=resolution,
            context_mask=layout.context_count - 1,
            epoch=1,
            heartbeat=1,
            thread_key=thread_key,
            batch=1,
            patience=(1 << 63) - 1,
            thresholds=struct.pack(f"<{len(table)}Q", *table) + b"\xff" * 8 * (limit - len(table)),
        )
        self._write(base + layout.control, raw)

    def reset(self, resolution: int) -> None:
        """Begins another analysis with an agent that is there already: counts start anew, and what
        is still under way from before is told from the new by its epoch."""
        table = thresholds(resolution)
        self.set(
            mode=0,
            analysis_count=0,
            node_count=1,
            resolution=resolution,
            epoch=self.get("epoch") + 1,
            round=self.get("round") + 1,
            only_thread=0,
            seen=0,
            bell=0,
            exiting=0,
            lost_records=0,
            lost_contexts=0,
            lost_ops=0,
        )
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
        if not 0 <= index < self.blob.constants["DARC_MAX_SITES"]:
            raise TargetError("the agent's table of call sites is full: 'darc stop' and start anew")
        return self.base + self.layout.sites + index * self.blob.sizes["darc_site"]

    def write_site(self, index: int, **values: int | bytes) -> None:
        """Writes a whole site."""
        control = self.base + self.layout.control
        raw = self.blob.pack(
            "darc_site",
            control=control,
            records=self.base + self.layout.records,
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

    def _note_route(self, index: int, values: Mapping[str, int | bytes]) -> None:
        """A site's first route stands in the site as well: most have no other."""
        if values.get("route_count"):
            self._first_routes[index] = int(values.get("route_first", 0))
        elif self._first_routes.pop(index, None) is not None:
            self.set_site(index, first_parent=self.blob.constants["DARC_NO_PARENT"])

    def patched_sites(self) -> list[PatchedSite]:
        """The sites whose patches are in place, by what the table says."""
        size = self.blob.sizes["darc_site"]
        count = self.blob.constants["DARC_MAX_SITES"]
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
        if len(rows) > self.blob.constants["DARC_MAX_NODES"] or (
            len(pairs) > self.blob.constants["DARC_MAX_ROUTES"]
        ):
            raise TargetError("too many call sites at once: set a lower 'darc max-probes'")
        self.set(analysis_count=0)
        self._write(
            self.base + self.layout.nodes,
            b"".join(
                struct.pack("<4I", n.parent, n.first_child, n.child_count, n.timed) for n in rows
            ),
        )
        if pairs:
            raw = b"".join(struct.pack("<2I", *pair) for pair in pairs)
            self._write(self.base + self.layout.routes, raw)
        for index, first in self._first_routes.items():
            parent, child = pairs[first]
            untimed = 0 if rows[child].timed else self.blob.constants["DARC_UNTIMED"]
            self.set_site(index, first_parent=parent, first_child=child | untimed)
        if numbers:
            raw = struct.pack(f"<{len(numbers)}I", *numbers)
            self._write(self.base + self.layout.analysis, raw)
        self.set(node_count=len(rows), analysis_count=len(numbers))

    # ----------------------------------------------------------------- contexts

    def contexts(self) -> list[int]:
        """Addresses of the threads' contexts that are in use."""
        count = min(self.get("context_count"), self.layout.context_count)
        if not count:
            return []
        address, _ = self.field("context_list")
        numbers = struct.unpack(f"<{count}I", self._read(address, 4 * count))
        base, size = self.base + self.layout.contexts, self.blob.sizes["darc_context"]
        return [base + n * size for n in numbers if n < self.layout.context_count]

    def profile(self, hz: int) -> tuple[Profile, int]:
        """The profile of f0, merged over all threads, and how many calls were dropped as they
        spanned a stop."""
        fields = self.blob.fields
        resolution = self.get("resolution")
        offset, size = fields["darc_context.bins"]
        bins: dict[int, int] = {}
        count = total = dropped = 0
        for context in self.contexts():
            raw = self._read(context, offset + size)

            def value(name: str, raw: bytes = raw) -> int:
                at, length = fields[f"darc_context.{name}"]
                return int.from_bytes(raw[at : at + length], "little")

            own = words(raw[offset : offset + size])
            count += sum(own)
            total += value("sum")
            dropped += value("dropped")
            for number, calls in enumerate(own):
                if calls:
                    bins[number] = bins.get(number, 0) + calls
        return Profile(resolution, hz, bins, count, total), dropped

    def totals(self, count: int) -> dict[int, NodeTotal]:
        """What was counted of nodes 0 to ``count`` - 1 in this round; nodes never seen are left
        out."""
        now = self.get("round")
        round_offset = self.blob.offset("darc_context.round")
        offset = self.blob.offset("darc_context.totals")
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

    def watch_stale(self, seen: frozenset[Stale]) -> frozenset[Stale]:
        """Tells the agent of ops that were left by a longjmp, and of calls into the agent that
        were: it may not read another frame's stack word itself, which may be unmapped.

        Takes and returns what looked stale, for the next look: what does so both times, a second
        apart and in the same op, is stale. Any live op looks so for a moment. The agent is only
        given the op's serial: its next op is another one.
        """
        found: set[Stale] = set()
        for context in self.contexts():
            header = self.blob.unpack("darc_context", self._header(context))
            op, serial = header["op"], header["serial"]
            if not header["idle"]:
                found.add(Stale(context, serial, "stuck"))
            if op and self._is_stale(op):
                found.add(Stale(context, serial, "stale"))
        for mark in found & seen:
            offset = self.blob.offset(f"darc_context.{mark.what}")
            self._write(mark.context + offset, struct.pack("<I", mark.serial))
        return frozenset(found)

    def _header(self, context: int) -> bytes:
        return self._read(context, self.blob.offset("darc_context.bins"))

    def _is_stale(self, address: int) -> bool:
        record = self.blob.unpack(
            "darc_record", self._read(address, self.blob.sizes["darc_record"])
        )
        if record["open"] != 1:
            return False
        try:
            word = int.from_bytes(self._read(record["slot"], 8), "little")
        except TargetError:
            return True
        return word != self._returns(record["site"])[0]

    def _returns(self, site: int) -> tuple[int, int]:
        """Where a site's pad is returned to, and where the pad returns to: 0 where that differs."""
        raw = self._read(site, self.blob.sizes["darc_site"])
        values = self.blob.unpack("darc_site", raw)
        return values["pad_back"], values["back"]

    # ------------------------------------------------------------------ records

    def records(self) -> list[dict[str, int]]:
        """All records that were ever used."""
        return self._records("darc_record.slot")

    def open_records(self) -> list[dict[str, int]]:
        """The calls that a pad has open, as far as the agent knows."""
        return self._records("darc_record.open")

    def _records(self, mark: str) -> list[dict[str, int]]:
        size = self.blob.sizes["darc_record"]
        offset = self.blob.offset(mark)
        returns = functools.cache(self._returns)
        found = []
        for address, raw in self._claimed_records(size):
            if any(raw[offset : offset + 4]):
                record = self.blob.unpack("darc_record", raw)
                record["address"] = address
                if record["site"]:
                    record["pad_back"], back = returns(record["site"])
                    record["back"] = back or record["back"]
                found.append(record)
        return found

    def _claimed_records(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each record that was ever claimed; where they are few, without
        reading the whole table, as a kernel's memory is far away."""
        base, limit = self.base + self.layout.records, self.blob.constants["DARC_MAX_RECORDS"]
        count = self.get("record_count")
        if count <= limit // 16:
            place, _ = self.field("record_list")
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
        address, _ = self.field("record_list")
        if kept:
            self._write(address, struct.pack(f"<{len(kept)}I", *kept))
        self.set(record_count=len(kept), lost_records=0)

    def close_record(self, address: int) -> None:
        """Marks a record closed; its frame's return address stands on the stack again."""
        self._write(address + self.blob.offset("darc_record.open"), b"\0\0\0\0")
