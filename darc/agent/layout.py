"""Where the agent's tables are in the program: how much room they have, and in which order."""

from __future__ import annotations

import dataclasses
import struct
from dataclasses import dataclass

from darc.agent.compiled import Blob
from darc.agent.fieldnames import ContextField, ContextsField, ControlField, Structure
from darc.agent.structures import ControlRow
from darc.model.errors import TargetError
from darc.target.memory import PAGE, Read

_MOST_OF_ANY = 1 << 24  # entries of a table that could be
_MOST_BYTES = 1 << 36  # of what takes part of a mapping


def words(raw: bytes) -> tuple[int, ...]:
    """Little-endian 64-bit words."""
    return struct.unpack(f"<{len(raw) // 8}Q", raw)


def _pages(size: int) -> int:
    return (size + PAGE - 1) // PAGE * PAGE


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much each table holds. ``nodes``, ``records``, ``contexts`` and ``moments`` are powers of
    two; ``kept`` are ops with all their calls, ``sheets`` what these have for waits and switches,
    ``blocks`` what threads have of functions of a set, ``moments`` what a kernel's tasks did."""

    sites: int
    nodes: int
    routes: int
    records: int
    contexts: int
    kept: int = 128
    sheets: int = 512
    blocks: int = 0
    moments: int = 0

    def joined(self, other: Room) -> Room:
        """What holds both, one at a time."""
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return Room(**dict(zip(self.__dataclass_fields__, map(max, mine, others), strict=True)))

    def holds(self, other: Room) -> bool:
        """Whether what fits into ``other`` fits into this too."""
        mine, others = dataclasses.astuple(self), dataclasses.astuple(other)
        return all(own >= wanted for own, wanted in zip(mine, others, strict=True))


_LEAST_NODES = 256
_MOST_NODES = 4096
_MOST_SITES = 8192
MOST_CONTEXTS = 1 << 14
"""Of one table: room for some 8,000 threads at one time without much search."""

MOST_RECORDS = 1 << 18
"""Of all threads together: 64 MiB."""

_CONTEXT_BYTES, _BYTES_OF_EACH = 640 << 10, 40 << 10
"""What the contexts of all threads may take, and each of few, before each holds fewer nodes."""

SOON_USED = 4 << 20
"""So much of a large table is populated before it is used."""

_GUARDS = 384  # sites of guards, and of those that are made ahead of decisions
_BYTES_PER_NODE = 72  # darc_sum and darc_total
_KEPT = 68  # ops of both classes, and some that are under way
_LATER = 16  # threads that are still to come, of a program that has not run yet
_MORE_SHEETS = 16  # besides the one of each op, for those that wait often or for many
_SHEETS_OF_EACH = 8  # of threads beside the first: those are many that wait for each other
_SHEETS_OF_LATER = 48
_MOST_SHEETS = 320
_DEPTHS = 16  # at which calls of a thread are open, on average
_LEAST_RECORDS = 2048  # most threads may be made later
_RECORDS_OF_FEW, _FEW_THREADS = 1024, 32  # of a program that has all of its threads


_SMALL_CODE = 4 << 20  # bytes; more than the C library's and those of a small program
_CODE_OF_A_SITE = 4 << 10  # bytes, of what a search may go through
_MOST_TURNS = 4


def room_for(probes: int, threads: int, code: int = 0, *, is_settled: bool = False) -> Room:
    """What an analysis needs that times ``probes`` call sites at once at most, in a program that
    has ``threads`` now, and perhaps some more later. Where there are many, each holds fewer nodes,
    and callees are timed in turns. A search through a large program goes by more sites than it
    times at once, each of which keeps its row: ``code`` is how many bytes of code there are. A
    program that ``is_settled`` has run for a while, and has its threads by now."""
    sites = probes + max(0, code - _SMALL_CODE) // _CODE_OF_A_SITE
    contexts = min(_power_of_two(max(threads * 5 // 4 + 1, 4)), MOST_CONTEXTS)
    is_small = is_settled and threads <= _FEW_THREADS
    allowed = min(_CONTEXT_BYTES, contexts * _BYTES_OF_EACH)
    later, more = (0, 0) if is_settled else (_LATER, _SHEETS_OF_LATER)
    kept = min(_KEPT + threads + later, Room.kept)
    nodes = _power_of_two(min(max(2 * probes, 32), _MOST_NODES))
    while nodes > _LEAST_NODES and contexts * nodes * _BYTES_PER_NODE > allowed:
        nodes //= 2
    return Room(
        sites=min(min(sites, _MOST_TURNS * probes) + _GUARDS, _MOST_SITES),
        nodes=nodes,
        routes=2 * nodes,
        records=max(_RECORDS_OF_FEW if is_small else _LEAST_RECORDS, records_for_threads(threads)),
        contexts=contexts,
        kept=kept,
        sheets=min(kept + _MORE_SHEETS + more + _SHEETS_OF_EACH * (threads - 1), _MOST_SHEETS),
    )


_MOST_BLOCKS = 1 << 18
"""Of functions of a set in all threads: 64 MiB."""


def room_for_set(functions: int, threads: int) -> Room:
    """What a set of so many functions needs. Its pads take a row each, and one more for a relay; a
    context has a word for each function where others have its nodes."""
    room = room_for(0, threads)
    return dataclasses.replace(
        room,
        sites=min(2 * functions + _GUARDS, _MOST_SITES),
        nodes=_power_of_two(max(room.nodes, functions * 8 // _BYTES_PER_NODE + 1)),
        records=max(room.records, _power_of_two(4 * _DEPTHS * threads)),
        contexts=max(room.contexts, 8),  # every call counts, those of the first new threads too
        blocks=min(functions * (threads + 8), _MOST_BLOCKS),
    )


def room_for_threads(threads: int) -> int:
    """How many contexts a table has that is found to be too small for so many threads."""
    return min(_power_of_two(2 * threads), MOST_CONTEXTS)


def records_for_threads(threads: int) -> int:
    """How many records so many threads need, as a rule."""
    return min(_power_of_two(_DEPTHS * threads), MOST_RECORDS)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Offsets in bytes of the agent's tables in one mapping, and the size of all."""

    room: Room
    control: int
    live: int
    doorbell: int
    sites: int
    nodes: int
    routes: int
    analysis: int
    record_list: int
    code: int
    records: int
    kept: int
    sheets: int
    moments: int
    blocks: int
    contexts: int
    size: int
    context_size: int
    totals_at: int

    @property
    def record_mask(self) -> int:
        """What of a hash is a record's place, in bytes."""
        return (self.room.records - 1) << 8

    @property
    def soon_used(self) -> list[range]:
        """Offsets of what calls come to sooner or later: where a page of it were not there yet, one
        of them would take some microseconds longer. Of the largest tables, the front."""
        ends = {self.blocks: self.contexts, self.contexts: self.size}
        large = [range(start, min(end, start + SOON_USED)) for start, end in ends.items()]
        return [range(self.blocks), *large]


def plan(blob: Blob, room: Room) -> Layout:
    """Lays the tables out one behind the other, each on pages of its own."""
    sizes = blob.sizes
    totals_at = blob.offset(ContextField.SUMS) + sizes[Structure.SUM] * room.nodes
    context_size = (
        -(-(totals_at + sizes[Structure.TOTAL] * room.nodes) // _CACHE_LINES) * _CACHE_LINES
    )
    sizes_of = {
        "control": sizes[Structure.CONTROL],
        "live": sizes[Structure.LIVE],
        "doorbell": sizes[Structure.DOORBELL],
        "sites": sizes[Structure.SITE] * room.sites,
        "nodes": sizes[Structure.NODE] * room.nodes,
        "routes": sizes[Structure.ROUTE] * room.routes,
        "analysis": 4 * room.nodes,
        "record_list": 4 * room.records,
        "code": sizes[Structure.CODE] * blob.constants.MAX_CODE,
        "records": sizes[Structure.RECORD] * room.records,
        "kept": sizes[Structure.KEPT] * room.kept,
        "sheets": sizes[Structure.SHEET] * room.sheets,
        "moments": moments_size(blob, room.moments),
        "blocks": sizes[Structure.BLOCK] * room.blocks,
        "contexts": contexts_size(blob, context_size, room.contexts),
    }
    at = 0
    places: dict[str, int] = {}
    for table, size in sizes_of.items():
        places[table] = at
        at += _pages(size)
    return Layout(room=room, **places, size=at, context_size=context_size, totals_at=totals_at)


_CACHE_LINES = 128  # bytes: what one thread writes, processors fetch for no other


def contexts_size(blob: Blob, context_size: int, contexts: int) -> int:
    """Bytes of a table of contexts."""
    return _pages(blob.sizes[Structure.CONTEXTS] + (context_size + 4) * contexts)


def moments_size(blob: Blob, moments: int) -> int:
    """Bytes of so many moments, their stacks, and the requests that are under way."""
    each = blob.sizes[Structure.MOMENT] + blob.sizes[Structure.WORDS]
    requests = blob.sizes[Structure.REQUEST] * blob.constants.REQUESTS
    return moments * each + requests if moments else 0


def records_size(blob: Blob, records: int) -> tuple[int, int]:
    """Bytes of the list of records in use, and of the records behind it."""
    return _pages(4 * records), _pages(blob.sizes[Structure.RECORD] * records)


_NAMED = (
    *("live", "doorbell", "sites", "nodes", "routes", "analysis", "record_list", "code"),
    *("records", "kept", "sheets", "moments", "blocks"),
)
"""Tables whose addresses the control structure has under the same names."""


def layout_in(blob: Blob, address: int, raw: bytes, read: Read) -> Layout:
    """The layout of the tables whose control structure, at ``address``, is ``raw``.

    Raises:
        TargetError: it is damaged.
    """
    values = blob.unpack(ControlRow, raw)
    at, size = blob.fields[ControlField.OLDER]
    older = words(raw[at : at + size])
    first = older[0] if values.older_count else values.contexts
    room = Room(
        sites=values.site_room,
        nodes=values.node_mask + 1,
        routes=values.route_room,
        records=(values.record_mask >> 8) + 1,
        contexts=words(read(first + blob.offset(ContextsField.MASK), 8))[0] + 1,
        kept=values.kept_room,
        sheets=values.sheet_room,
        blocks=values.block_room,
        moments=values.moment_room,
    )
    sizes = (values.tables_size, values.context_size, values.totals_at)
    if (
        not all(0 < size <= _MOST_OF_ANY for size in dataclasses.astuple(room)[:-2])
        or not 0 <= room.blocks <= _MOST_OF_ANY
        or not 0 <= room.moments <= _MOST_OF_ANY
        or not all(0 < size <= _MOST_BYTES for size in sizes)
        or values.older_count > len(older)
    ):
        raise TargetError("darc's tables in the program are damaged")
    return Layout(
        room=room,
        control=0,
        **{table: getattr(values, table) - address for table in _NAMED},
        contexts=first - address,
        size=values.tables_size,
        context_size=values.context_size,
        totals_at=values.totals_at,
    )
