"""Where a call or jump is about to lead, by the registers."""

from __future__ import annotations

import pytest

from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import decode
from darc.code.x86_64_branches import frame_slot, indirect_target, is_taken

REGISTERS = {"rax": 0x5000, "rbx": 0x6000, "rcx": 2, "rsp": 0x7000, "rbp": 0x7100, "eflags": 0}
CARRY, ZERO, SIGN, OVERFLOW = 1, 1 << 6, 1 << 7, 1 << 11


def word(address: int) -> int:
    """Every word of memory tells where it is."""
    return address + 1


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("ffd0", 0x5000),  # call rax
        ("ff5308", 0x6009),  # call [rbx+8]
        ("ff14cbcc", 0x6011),  # call [rbx+rcx*8]
        ("ff14cdf8ffffff", 0x9),  # call [rcx*8-8]
        ("ff1510000000", 0x1017),  # call [rip+0x10]
        ("65ff142528000000", None),  # call gs:[0x28]
    ],
)
def test_target_of_an_indirect_call(code: str, target: int | None) -> None:
    instruction = decode(bytes.fromhex(code), 0x1000)[0]
    assert indirect_target(instruction, REGISTERS.__getitem__, word) == target


@pytest.mark.parametrize(
    ("code", "flags", "taken"),
    [
        ("e900000000", 0, True),  # jmp
        ("0f8400000000", ZERO, True),  # je
        ("0f8400000000", 0, False),
        ("0f8500000000", ZERO, False),  # jne
        ("0f8700000000", CARRY, False),  # ja
        ("0f8700000000", 0, True),
        ("0f8c00000000", SIGN, True),  # jl
        ("0f8c00000000", SIGN | OVERFLOW, False),
        ("0f8f00000000", 0, True),  # jg
        ("0f8f00000000", ZERO, False),
        ("e300", 0, False),  # jrcxz: not looked at
    ],
)
def test_whether_a_jump_is_taken(code: str, flags: int, taken: bool) -> None:
    instruction = decode(bytes.fromhex(code), 0x1000)[0]
    registers = {**REGISTERS, "eflags": flags}
    assert is_taken(instruction, registers.__getitem__) is taken


def test_slot_of_a_frame() -> None:
    read = REGISTERS.__getitem__
    assert frame_slot(FrameRule("rsp", 8), read, word) == 0x7000
    assert frame_slot(FrameRule("rbp", 16), read, word) == 0x7108
    assert frame_slot(FrameRule("rbp", 16, -8), read, word) == 0x7101
