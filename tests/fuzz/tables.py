"""The agent's tables with any numbers in them, read as at a stop."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable
from typing import Any

from darc.agent import compiled
from darc.agent.fieldnames import ContextsField, ControlField, Structure
from darc.agent.layout import Layout, layout_in, plan, room_for
from darc.agent.memory import AgentMemory
from darc.model.errors import TargetError
from darc.pads.restoring import clean_up, restore_stacks
from darc.target.ownthread import Turn
from tests.fake_target import FakeMemory, FakeTarget

BASE = 0x7F00_0000_0000
STACK = 0x7FFD_0000_0000
ODD = (0, 1, 2, 3, 0xFF, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 56, 1 << 63, (1 << 64) - 1, BASE,
       BASE + 8, STACK + 64, 4096)  # fmt: skip


class _Memory(FakeMemory):
    """That of a process with tables and a stack."""

    def __init__(self, turn: Turn, tables: bytearray) -> None:
        super().__init__(turn)
        self.tables = tables
        self.stack = bytearray(4096)

    def _place(self, address: int, size: int) -> tuple[bytearray, int]:
        for base, content in ((BASE, self.tables), (STACK, self.stack)):
            if base <= address and address + size <= base + len(content):
                return content, address - base
        raise TargetError("cannot read memory")

    def read(self, address: int, size: int) -> bytes:
        content, at = self._place(address, size)
        return bytes(content[at : at + size])

    def write(self, address: int, data: bytes) -> None:
        content, at = self._place(address, len(data))
        content[at : at + len(data)] = data


@functools.cache
def _filled() -> bytes:
    """Tables in the middle of an analysis."""
    blob = compiled.load()
    layout = plan(blob, room_for(8, 2))
    memory = _Memory(Turn(), bytearray(layout.size))
    tables = AgentMemory(blob=blob, base=BASE, layout=layout, read=memory.read, write=memory.write)
    arguments: dict[str, Any] = {"life_at": 0} if ControlField.LIFE_AT in blob.fields else {}
    tables.write_control(1, 1, **arguments)
    for index in range(3):
        tables.sites.write(index, address=STACK + 16 * index, length=5, patched=1, back=7)
    tables.set(record_count=3)
    memory.tables[layout.contexts + blob.offset(ContextsField.COUNT)] = 2
    struct.pack_into("<2I", memory.tables, _numbers(blob, layout), 0, 1)
    struct.pack_into("<3I", memory.tables, layout.record_list, 0, 1, 2)
    return bytes(memory.tables)


def _numbers(blob: compiled.Blob, layout: Layout) -> int:
    contexts = layout.context_size * layout.room.contexts
    return layout.contexts + blob.sizes[Structure.CONTEXTS] + contexts


def trial(chance: random.Random) -> None:
    """Some words are written over; everything that reads them is called."""
    blob = compiled.load()
    layout = plan(blob, room_for(8, 2))
    program = FakeTarget()
    program.process = 1
    memory = program.memory = _Memory(program.turn, bytearray(_filled()))
    tables = AgentMemory(blob=blob, base=BASE, layout=layout, read=memory.read, write=memory.write)
    hot = (
        layout.control, layout.sites, layout.record_list, layout.records, layout.contexts,
        _numbers(blob, layout),
    )  # fmt: skip
    for _ in range(chance.choice((1, 2, 5, 40))):
        area = chance.choice(hot)
        size = chance.choice((8, 4))
        at = (area + chance.randrange(chance.choice((64, 512, 4096)))) // size * size
        value = chance.choice(ODD) if chance.random() < 0.7 else chance.getrandbits(64)
        memory.tables[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    actions: tuple[Callable[[], object], ...] = (
        tables.check,
        tables.begin_epoch,
        tables.contexts.addresses,
        lambda: tables.contexts.profile(10**9),
        lambda: tables.contexts.totals(layout.room.nodes),
        lambda: tables.ops.watch_stale(frozenset()),
        lambda: tables.ops.watch_stale(tables.ops.watch_stale(frozenset())),
        tables.records.used,
        tables.records.open,
        tables.records.compact,
        tables.sites.patched,
        lambda: tables.sites.learned(1),
        lambda: tables.sites.overflow(1),
        lambda: tables.set(last_beat=tables.last_beat + 1),
        lambda: tables.reset(1),
        lambda: restore_stacks(program, tables, lambda word: word // 3 or None),
        lambda: clean_up(
            program,
            tables,
            lambda address: address % 3 == 0,
            own_back=lambda word: word // 3 or None,
        ),
        lambda: layout_in(blob, BASE, _control(memory, blob), memory.read),
        lambda: tables.mappings,
        lambda: tables.contexts.taken,
    )
    refused: TargetError | None = None
    for action in chance.sample(actions, 6):
        try:
            action()
        except TargetError as error:
            refused = error
    if refused is not None:
        raise refused


def _control(memory: _Memory, blob: compiled.Blob) -> bytes:
    return memory.read(BASE, blob.sizes[Structure.CONTROL])
