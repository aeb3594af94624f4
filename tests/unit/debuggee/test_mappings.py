"""Memory that a process maps for darc: a made-up one, which makes system calls as it is told."""

from __future__ import annotations

import os
from typing import Any

import pytest

from darc.code.system_calls import SystemCall
from darc.debuggee.mappings import Mappings
from darc.model.errors import PadsImpossibleError

PLACE, SIZE = 0x7F00_0000_0000, 8192
_EEXIST, _ENOMEM = -17, -12


class MappingProgram:
    """As a target, its journal and its memory."""

    def __init__(self, **answers: int) -> None:
        self.answers = answers
        self.made: list[tuple[str, int, int]] = []
        self.noted: list[tuple[str, range]] = []
        self.unmapped_places: list[range] = []
        self.written: dict[int, int] = {}
        self.journal = self

    def system_call(self, number: SystemCall, arguments: tuple[int, ...]) -> int:
        first, second, *_ = arguments
        self.made.append((number.name, first, second))
        usual = arguments[0] or PLACE if number is SystemCall.MMAP else 0
        return self.answers.get(number.name, usual) & (1 << 64) - 1

    def maps(self, place: range) -> None:
        self.noted.append(("maps", place))

    def unmaps(self, place: range) -> None:
        self.noted.append(("unmaps", place))

    def unmapped(self, place: range) -> None:
        assert self.made[-1][0] == "MUNMAP"
        self.unmapped_places.append(place)

    def write(self, address: int, data: bytes) -> None:
        self.written[address] = len(data)


def mappings(program: Any) -> Mappings:
    return Mappings(program, lambda: program, os.getpid(), program)


def test_what_is_mapped_is_noted_and_given_back_but_for_what_stays() -> None:
    program = MappingProgram()
    mapped = mappings(program)
    place = mapped.map_tables(SIZE)
    assert mapped.map_code(place + SIZE, SIZE)
    assert (mapped.size, mapped.holds(place), mapped.holds(place + 2 * SIZE)) == (
        *(2 * SIZE, True, False),
    )
    assert mapped.begins(range(place, place + 1))
    program.made.clear()
    mapped.unmap_all([range(place, place + 4096)])
    assert program.made == [
        ("MUNMAP", place + 4096, 4096),
        ("MUNMAP", place + SIZE, SIZE),
    ]
    assert [kind for kind, _ in program.noted] == ["maps", "maps", "unmaps", "unmaps"]
    assert program.unmapped_places == [place for _, place in program.noted[2:]]
    assert mapped.size == 0


def test_what_the_program_has_sealed_stays() -> None:
    program = MappingProgram(MUNMAP=-1)
    mapped = mappings(program)
    place = mapped.map_tables(SIZE)
    mapped.unmap_all([range(place, place + 4096)])
    assert mapped.size == SIZE - 4096
    assert mapped.holds(place + 4096)


@pytest.mark.parametrize("is_free", [True, False])
def test_tables_are_where_nothing_grows_or_else_where_the_kernel_has_room(
    is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = PLACE + (1 << 40)
    monkeypatch.setattr("darc.debuggee.mappings.far_from_all", lambda mapped, size: far)

    class Taken(MappingProgram):
        def system_call(self, number: SystemCall, arguments: tuple[int, ...]) -> int:
            if number is SystemCall.MMAP and arguments[0] == far:
                return _EEXIST & (1 << 64) - 1
            return super().system_call(number, arguments)

    program = MappingProgram() if is_free else Taken()
    assert mappings(program).map_tables(SIZE) == (far if is_free else PLACE)


def test_what_the_program_writes_is_touched_at_once() -> None:
    program = MappingProgram()
    assert mappings(program).map_words(PLACE, SIZE)
    assert program.written == {PLACE: SIZE}


def test_a_place_that_is_taken() -> None:
    assert not mappings(MappingProgram(MMAP=_EEXIST)).map_code(PLACE, SIZE)


def test_a_kernel_that_maps_elsewhere() -> None:
    """One that does not know the flag takes the place for a wish."""
    program = MappingProgram(MMAP=PLACE + SIZE)
    mapped = mappings(program)
    assert not mapped.map_code(PLACE, SIZE)
    assert program.made[-1] == ("MUNMAP", PLACE + SIZE, SIZE)
    assert mapped.size == 0


@pytest.mark.parametrize("call", ["MMAP", "MPROTECT"])
def test_memory_that_is_refused(call: str) -> None:
    """Nothing stays of it."""
    mapped = mappings(MappingProgram(**{call: _ENOMEM}))
    with pytest.raises(PadsImpossibleError):
        mapped.map_tables(SIZE)
    assert mapped.size == 0
