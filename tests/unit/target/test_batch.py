"""Memory read and written in large pieces is the memory that small reads and writes make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.model.errors import TargetError
from darc.target.batch import Batch

SIZE = 6000
TABLE = range(2000, 5000)
places = st.integers(0, SIZE - 1)


class Memory:
    """Bytes from address 0 on, and how often they were asked for."""

    def __init__(self) -> None:
        self.bytes = bytearray(n * 7 % 251 for n in range(SIZE))
        self.reads = 0
        self.writes: list[tuple[int, bytes]] = []

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        if address + size > SIZE:
            raise TargetError(f"nothing at {address:#x}")
        return bytes(self.bytes[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.writes.append((address, data))
        self.bytes[address : address + len(data)] = data


def clipped(address: int, data: bytes) -> bytes:
    return data[: SIZE - address]


@given(
    st.lists(st.tuples(st.sampled_from("rwcf"), places, st.binary(min_size=1, max_size=300))),
)
def test_reads_and_writes_in_any_order(steps: list[tuple[str, int, bytes]]) -> None:
    """Data and code do not overlap, as in a program."""
    far, near = Memory(), Memory()
    batch = Batch(far.read, far.write, TABLE)
    for what, address, data in steps:
        data = clipped(address, data)
        if what == "w" and address + len(data) <= TABLE.stop:
            batch.write(address, data)
            near.write(address, data)
        elif what == "c" and address >= TABLE.stop:
            batch.write_code(address, data)
            near.write(address, data)
        elif what == "f":
            batch.flush()
            assert far.bytes == near.bytes
        else:
            assert batch.read(address, len(data)) == near.read(address, len(data))
    batch.flush()
    assert far.bytes == near.bytes


def test_rows_of_a_table_are_one_write_and_code_comes_behind_them() -> None:
    memory = Memory()
    batch = Batch(memory.read, memory.write, TABLE)
    batch.write_code(100, b"code")
    for row in range(10):
        batch.write(TABLE.start + 200 * row, b"row")
    batch.write(500, b"outside")
    batch.write(600, b"outside")
    batch.flush()
    assert [(at, len(data)) for at, data in memory.writes] == [
        (500, 7),
        (600, 7),
        (TABLE.start, 1803),
        (100, 4),
    ]


def test_what_was_read_is_not_read_again() -> None:
    memory = Memory()
    batch = Batch(memory.read, memory.write, TABLE)
    assert [batch.read(at, 4) for at in range(0, 1000, 4)]
    assert memory.reads == 1


def test_what_others_have_changed_is_read_again() -> None:
    memory = Memory()
    batch = Batch(memory.read, memory.write, TABLE)
    batch.read(0, 4)
    memory.bytes[0:4] = b"call"
    batch.forget()
    assert batch.read(0, 4) == b"call"


def test_what_cannot_be_read_raises_as_without_a_batch() -> None:
    batch = Batch(Memory().read, Memory().write)
    assert len(batch.read(SIZE - 4, 4)) == 4  # though not all of its line is there
    with pytest.raises(TargetError):
        batch.read(SIZE - 4, 8)
