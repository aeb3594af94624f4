"""Names of the functions in which a thread waits, from its return addresses."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import cast

import pytest

from darc.analyses import waitnames
from darc.analyses.waitnames import ProgramNames
from darc.code.program import Program
from darc.model.ops import ObjectKind, Stack
from darc.target.target import Region

START, SIZE = 0x1000, 0x1000
FUNCTIONS = {
    0x1000: "main",
    0x1100: "handle",
    0x1200: "put",
    0x1300: "put_slowly",
    0x1400: "indirect_thunk_rax",
}
IN_MAIN, IN_PUT, BEHIND_THUNK = 0x1010, 0x1210, 0x1230
"""Behind calls there."""

INLINED = {IN_MAIN - 1: ("serve", "std::lock_guard<std::mutex>::~lock_guard", "__gthread_unlock")}
"""The functions of which the code there is, outermost first."""


class Code:
    """Of a program in which main calls handle, and put calls put_slowly."""

    def __init__(self) -> None:
        self.code = bytearray(b"\x90" * SIZE)
        for back, target in ((IN_MAIN, 0x1100), (IN_PUT, 0x1300), (BEHIND_THUNK, 0x1400)):
            self.code[back - 5 - START : back - START] = b"\xe8" + struct.pack("<i", target - back)

    def in_file(self, address: int, size: int) -> bytes:
        return bytes(self.code[address - START : address - START + size])

    def inlined_at(self, address: int) -> tuple[str, ...]:
        return INLINED.get(address, ())

    def is_thunk(self, address: int) -> bool:
        return address == 0x1400

    def module_at(self, address: int) -> object:
        inside = START <= address < START + SIZE
        return SimpleNamespace(start=START, end=START + SIZE) if inside else None

    @property
    def live(self) -> Code:
        return self

    @property
    def names(self) -> Code:
        return self

    def function_at(self, address: int) -> object:
        return SimpleNamespace(name=FUNCTIONS[max(at for at in FUNCTIONS if at <= address)])


@pytest.mark.parametrize(
    ("backs", "within", "path"),
    [
        # The C library's function was called by put_slowly itself.
        ((0x1310, IN_PUT, IN_MAIN), None, ("put_slowly", "put", "handle", "serve", "main")),
        # put_slowly jumped to it; handle, which is f0, has jumped to put.
        ((IN_PUT, IN_MAIN), "handle", ("put_slowly", "put", "handle")),
        # Without the library's own functions that only pass on what is waited for.
        ((IN_MAIN,), None, ("handle", "serve", "main")),
        # Whom a register named has jumped to it.
        ((BEHIND_THUNK, IN_MAIN), "handle", ("put", "handle")),
    ],
)
def test_who_has_handed_its_frame_on_is_told(
    monkeypatch: pytest.MonkeyPatch,
    backs: tuple[int, ...],
    within: str | None,
    path: tuple[str, ...],
) -> None:
    monkeypatch.setattr(waitnames, "callers", lambda *_: backs)
    program = cast(Program, Code())
    assert ProgramNames(program, {}).path(Stack(0x7000, 0, (backs[0],)), within) == path


ARENA, STACK, MAIN, HEAP, SHARED, PLAIN, FILE = (
    Region(
        start=start, end=start + 0x10000, permissions=permissions, offset=0, path=path, inode=inode
    )
    for start, permissions, path, inode in (
        (0x7F0014000000, "rw-p", "", 0),
        (0x7F0011230000, "rw-p", "", 0),
        (0x7FFC12300000, "rw-p", "[stack]", 0),
        (0x55827FD00000, "rw-p", "[heap]", 0),
        (0x7F0019990000, "rw-s", "/dev/zero (deleted)", 7),
        (0x7F0018880000, "rw-p", "", 0),
        (0x7F0017770000, "rw-p", "/var/lib/data", 8),
    )
)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (STACK.start + 0x8040, "0x7f0011238040 on thread 8's stack"),
        (STACK.start + 0x9040, "0x7f0011239040 on thread 9's stack"),  # adjacent, and merged
        (STACK.start + 0x7040, "0x7f0011237040 in anonymous memory"),  # below what it reaches
        (MAIN.start + 0x40, "0x7ffc12300040 on a stack"),
        (MAIN.start + 0x9040, "0x7ffc12309040 on thread 7's stack"),
        (HEAP.start + 0x40, "0x55827fd00040 on the heap"),
        (ARENA.start + 0x40, "0x7f0014000040 on the heap"),
        (SHARED.start + 0x40, "0x7f0019990040 in shared memory"),
        (PLAIN.start + 0x40, "0x7f0018880040 in anonymous memory"),
        (FILE.start + 0x40, "0x7f0017770040"),
        (0x40, "0x40"),  # where nothing is by now
    ],
)
def test_what_has_no_symbol_is_told_by_the_memory_that_it_is_in(address: int, told: str) -> None:
    """Stacks of threads are memory like any other, but for what points into them."""
    program = SimpleNamespace(modules=[], regions=(ARENA, STACK, MAIN, HEAP, SHARED, PLAIN, FILE))
    stacks = {7: MAIN.start + 0x8000, 8: STACK.start + 0x8000, 9: STACK.start + 0x9000}
    names = ProgramNames(cast(Program, program), {}, stacks=stacks)
    assert names.object(ObjectKind.CONDITION, address) == told
