"""What the agent has counted in a window of a walk, and what was under way at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from darc.agent.fieldnames import BlockField, Structure
from darc.agent.memory import AgentMemory
from darc.agent.rows import Walker
from darc.agent.structures import RecordRow
from darc.collectors.manyduties import Counted, CountsWindows
from darc.collectors.memberpads import MemberPads
from darc.model.errors import TargetError
from darc.model.ftree import Function


class OpenMembers:
    """Calls of the timed functions that are under way, by the records of the agent."""

    def __init__(self, tables: AgentMemory, pads: MemberPads) -> None:
        self._tables = tables
        self._pads = pads

    def all(self) -> Sequence[RecordRow]:
        """The records of calls that still stand where they were made."""
        return [record for record in self._tables.records.open() if self.comes_back(record)]

    def number_of(self, record: RecordRow) -> int | None:
        """The number of the function that an open record's call is of."""
        tables = self._tables
        first = tables.base + tables.layout.blocks
        if not record.block or (record.block - first) % tables.blob.sizes[Structure.BLOCK]:
            return None
        at = record.block + tables.blob.offset(BlockField.MEMBER)
        number = int.from_bytes(tables.raw(at, 4), "little") - 1
        return number if 0 <= number < len(self._pads.functions) else None

    def comes_back(self, record: RecordRow) -> bool:
        """Whether its call returns to the agent yet."""
        try:
            word = int.from_bytes(self._tables.raw(record.slot, 8), "little")
        except TargetError:
            return False
        return word == record.pad_back

    def had(self, record: RecordRow) -> list[int]:
        """The functions that are known to have had the frame of an open call, the first one
        first, by their addresses."""
        number = self.number_of(record)
        if number is None:
            return []
        tails = [tail for tail, _ in self._tables.records.tails(record)]
        return [
            self._pads.functions[n].address
            for n in (number, *tails)
            if n < len(self._pads.functions)
        ]


class Windows(CountsWindows):
    """Those of one walk."""

    def __init__(self, tables: AgentMemory, pads: MemberPads, calls: OpenMembers) -> None:
        self._tables = tables
        self._pads = pads
        self._calls = calls
        self._idle = 0
        """Functions with numbers below that are those that threads wait in."""
        self._before: dict[tuple[int, int], tuple[int, int]] = {}
        self._epoch = 0
        self.entered = frozenset()

    def wait_below(self, idle: int) -> None:
        """Functions with numbers below ``idle`` are those that threads wait in."""
        self._idle = idle

    def begin(self) -> None:
        self._epoch = self._tables.epoch
        walkers = self._tables.members.walkers(self._epoch)
        self._before = {
            (key, number): counted
            for key, walker in walkers.items()
            for number, counted in walker.counted.items()
        }

    def counted(self, start: int, end: int) -> dict[int, Counted]:
        walkers = self._tables.members.walkers(self._epoch)
        contexts = {walker.context: key for key, walker in walkers.items()}
        calls: dict[int, dict[Function, int]] = {key: {} for key in walkers}
        cycles: dict[int, dict[Function, int]] = {key: {} for key in walkers}

        def add(key: int, number: int, many: int, long: int) -> None:
            function = self._pads.functions[number]
            calls[key][function] = calls[key].get(function, 0) + many
            cycles[key][function] = cycles[key].get(function, 0) + long

        for key, walker in walkers.items():
            for number, (many, total) in walker.counted.items():
                before = self._before.get((key, number), (0, 0))
                if many > before[0] and number < len(self._pads.functions):
                    add(key, number, many - before[0], total - before[1])
        for key, number, spent in self._under_way(contexts, walkers, start, end):
            add(key, number, 1, spent)
        return {
            key: Counted(calls[key], cycles[key], *walker.first) for key, walker in walkers.items()
        }

    def _under_way(
        self, contexts: Mapping[int, int], walkers: Mapping[int, Walker], start: int, end: int
    ) -> Iterator[tuple[int, int, int]]:
        """The calls of this window that have not ended: thread, member, and cycles."""
        found: list[tuple[int, int, RecordRow]] = []
        entered = set[int]()
        self.entered = entered
        for record in self._tables.records.open():
            key = contexts.get(record.context)
            if key is None or record.open != 1 or record.entered != self._epoch:
                continue
            number = self._calls.number_of(record)
            if number is None or not self._calls.comes_back(record):
                continue
            entered.add(record.slot)
            found.append((key, number, record))
        for key, number, record in found:
            waiting = sum(
                end - waits.start
                for other, idle, waits in found
                if other == key and idle < self._idle <= number and waits.slot < record.slot
            )
            spent = walkers[key].spent
            inner = max(spent - record.overhead + waiting, 0)
            yield key, number, max(end - max(record.start, start) - inner, 0)
            for tail, begun in self._tables.records.tails(record):
                if tail < len(self._pads.functions):
                    yield key, tail, max(end - spent - begun - waiting, 0)
