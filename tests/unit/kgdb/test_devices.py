"""Which vector leads to which device's handler, by a kernel's memory."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from kgdb.devices import Devices, TtyLayout
from tests.unit.kernel import Memory

PLACES = TtyLayout(table=0x100, action=8, handler=0, name=16, following=24)
DISK, NETWORK = 0xFFFFFFFFC0001000, 0xFFFFFFFFC0002000
OFFSETS, COUNT, NAMES = (0xFFFF888000000000 + n * 0x1000 for n in range(3))
BASES = 0xFFFF888010000000, 0xFFFF888020000000
LINES = {"disk": 0xFFFF888030000000, "shared": 0xFFFF888030001000, "none": 0xFFFF888030002000}
SHUT_DOWN = (1 << 64) - 1  # VECTOR_SHUTDOWN


def table(lines: dict[int, int]) -> bytes:
    return b"".join(struct.pack("<Q", lines.get(vector, 0)) for vector in range(256))


def devices() -> Devices:
    first, second, third = (0xFFFF888040000000 + n * 0x100 for n in range(3))
    memory = Memory(
        (COUNT, struct.pack("<I", 2)),
        (OFFSETS, struct.pack("<2Q", *BASES)),
        (BASES[0] + 0x100, table({0x26: LINES["disk"], 0x27: SHUT_DOWN, 0x28: LINES["none"]})),
        (BASES[1] + 0x100, table({0x26: LINES["disk"], 0x30: LINES["shared"]})),
        (LINES["disk"], struct.pack("<2Q", 0, first)),
        (LINES["shared"], struct.pack("<2Q", 0, second)),
        (LINES["none"], struct.pack("<2Q", 0, 0)),
        (first, struct.pack("<4Q", DISK, 0, NAMES, 0)),
        (second, struct.pack("<4Q", NETWORK, 0, NAMES + 64, third)),
        (third, struct.pack("<4Q", DISK, 0, NAMES + 128, 0)),
        (NAMES, b"disk0".ljust(64, b"\0") + b"net0".ljust(64, b"\0") + b"disk1".ljust(64, b"\0")),
    )
    symbols = {"__per_cpu_offset": OFFSETS, "nr_cpu_ids": COUNT}
    return Devices(memory.read, symbols.get, PLACES)


@pytest.mark.parametrize(
    ("handler", "note"),
    [
        (DISK, "vector 0x26 of disk0, vector 0x30 of disk1"),
        (NETWORK, "vector 0x30 of net0"),
        (NETWORK + 1, None),
    ],
)
def test_a_handler_is_told_by_its_vectors(handler: int, note: str | None) -> None:
    assert devices().note(handler) == note


def test_a_kernel_that_does_not_tell() -> None:
    assert Devices(Memory().read, dict[str, int]().get, PLACES).note(DISK) is None
    symbols = {"__per_cpu_offset": OFFSETS, "nr_cpu_ids": COUNT}
    assert Devices(Memory().read, symbols.get, PLACES).note(DISK) is None


def test_variables_of_a_processor_in_newer_kernels() -> None:
    """From Linux 6.15 on their symbols are addresses; gs tells how far its copy of them is."""
    table, moved = 0xFFFFFFFF83400100, 0x2B000000
    base = (BASES[0] - (table - 0x100 + moved)) & (1 << 64) - 1
    known = devices()
    places = dataclasses.replace(PLACES, table=table)
    memory = Memory((OFFSETS, struct.pack("<Q", base)), (COUNT, struct.pack("<I", 1)))

    def read(address: int, size: int) -> bytes:
        return (
            memory.read(address, size)
            if address in (OFFSETS, COUNT)
            else known._read(address, size)
        )

    symbols = {"__per_cpu_offset": OFFSETS, "nr_cpu_ids": COUNT}
    assert Devices(read, symbols.get, places, moved).note(DISK) == "vector 0x26 of disk0"
