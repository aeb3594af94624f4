"""Code that nobody compiled: random bytes, and functions of libc with some bytes changed.

Whatever stands there, reading it ends in an answer, and what is said to be patchable is whole
instructions into which nothing leads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import FlowControl, Instruction

from darc.code.architecture import FunctionCode, Site
from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import PATCH_LENGTH, decode, read_function, read_prologue
from darc.code.x86_64_depth import frame_rules
from darc.model.errors import DarcError, TargetError
from darc.model.refusal import Refusal
from darc.pads import processor as pads

BASE = 0x5555_5555_0000
AREA = BASE - 0x100000
STUBS = pads.Stubs(*(AREA + 0x9000 + 16 * n for n in range(7)))
TABLES = 0x7FFF_0000_0000


@dataclass(frozen=True)
class Code:
    """One function of these bytes, with other code behind it and nothing else in memory."""

    data: bytes
    size: int
    has_rules: bool

    def read(self, address: int, size: int) -> bytes:
        if not BASE <= address <= address + size <= BASE + len(self.data):
            raise TargetError("gdb: Cannot access memory")
        return self.data[address - BASE : address - BASE + size]

    @property
    def outlines(self) -> Code:
        return self

    def extent(self, address: int) -> tuple[int, int] | None:
        return (BASE, BASE + self.size) if BASE <= address < BASE + self.size else None

    def frame_rule(self, address: int) -> FrameRule | None:
        return FrameRule("rsp", 8 + address % 5 * 8) if self.has_rules else None

    def landing_pads(self, _address: int) -> frozenset[int]:
        return frozenset()

    def is_function_start(self, address: int) -> bool:
        return address in (BASE, BASE + self.size)

    def is_cold_part(self, address: int) -> bool:
        return address % 16 == 3

    def is_jumped_into(self, start: int, end: int) -> bool:
        return False

    def is_code(self, address: int) -> bool:
        return BASE <= address < BASE + len(self.data)


def of_libc() -> list[bytes]:
    """The first bytes of some functions as they are compiled here."""
    libc = ctypes.CDLL(None)
    names = "qsort printf strtol getenv fopen fread malloc free bsearch usleep system popen"
    pointers = (ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in names.split())
    return [ctypes.string_at(pointer, 400) for pointer in pointers if pointer]


FUNCTIONS = of_libc()


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(FUNCTIONS)))
    for _ in range(draw(st.integers(0, 12))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


code = st.builds(
    Code, st.binary(min_size=64, max_size=400) | mutated(), st.integers(1, 64), st.booleans()
) | st.builds(Code, mutated(), st.integers(200, 400), st.booleans())


def covered(function: FunctionCode[Instruction], start: int, end: int) -> list[Instruction]:
    """The instructions that a patch of these bytes replaces: whole ones."""
    found = []
    while start < end:
        found.append(function.instructions[start])
        start = int(found[-1].next_ip)
    assert start == end
    return found


def check_untouched_inside(function: FunctionCode[Instruction], start: int, end: int) -> None:
    """Neither a jump nor a call's return leads between the bytes."""
    assert not any(start < target < end for target in function.targets)
    for instruction in function.instructions.values():
        if instruction.flow_control in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
            assert not start < instruction.next_ip < end


def check_pad(pad: pads.Pad, origin: int) -> None:
    end = min(pad.cells.values(), default=len(pad.code))
    assert not any(i.is_invalid for i in decode(pad.code[:end], origin))


def check_site(function: FunctionCode[Instruction], site: Site[Instruction]) -> None:
    covered(function, site.patch, site.back)
    assert site.length >= PATCH_LENGTH
    check_untouched_inside(function, site.patch, site.patch + site.length)
    if site.displaced:
        assert function.complete
    tail = site.kind.is_tail
    make = pads.tail_pad if tail else pads.call_pad
    with contextlib.suppress(DarcError):  # out of reach: refused in words
        check_pad(make(site, TABLES, (AREA & ~(pads.SECTOR - 1),), stubs=STUBS, origin=AREA), AREA)
        leaves = decode(patch_of(site, tail), site.patch)[0]
        assert (leaves.ip, leaves.near_branch_target) == (site.patch, AREA)
        if not tail:
            assert leaves.next_ip == site.back


def patch_of(site: Site[Instruction], tail: bool) -> bytes:
    patch = pads.patch_tail(site, AREA) if tail else None
    patch = patch or pads.patch_bytes(site.kind, site.patch, site.length, AREA)
    assert len(patch) == site.length
    return patch


@given(code)
def test_any_code_is_read_and_patched_whole_or_not_at_all(code: Code) -> None:
    function = read_function(BASE, code)
    frame_rules(BASE, function.instructions)
    for site in function.sites:
        if site.problem is None:
            check_site(function, site)
        else:
            assert "\n" not in site.problem
    for room in (2, PATCH_LENGTH):
        prologue = read_prologue(function, code, room)
        if isinstance(prologue, Refusal):
            continue
        assert prologue.length >= room
        assert BASE + prologue.length <= BASE + len(code.data)
        check_untouched_inside(function, BASE, BASE + prologue.length)
        try:
            pad = pads.entry_pad(prologue, TABLES, STUBS, origin=AREA)
        except DarcError:
            continue
        check_pad(pad, AREA)
        assert set(pad.moved) <= {int(i.ip) for i in prologue.instructions}


@pytest.mark.parametrize("seed", range(int(os.environ.get("DARC_FUZZ_SEEDS", "2"))))
def test_many_more(seed: int) -> None:
    """Faster than hypothesis's own search; ``DARC_FUZZ_SEEDS=1000`` for a long one."""
    source = random.Random(seed)
    given_any: Any = test_any_code_is_read_and_patched_whole_or_not_at_all
    for _ in range(150):
        data = bytearray(source.choice(FUNCTIONS))
        for _ in range(source.randrange(20)):
            data[source.randrange(len(data))] = source.randrange(256)
        test = Code(bytes(data), source.randrange(1, 400), source.random() < 0.5)
        given_any.hypothesis.inner_test(test)
