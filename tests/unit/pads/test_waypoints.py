"""Jumps over a call and the nop behind it, to which threads come back."""

from __future__ import annotations

import random

import pytest
from iced_x86 import FlowControl, Instruction, InstructionInfoFactory, OpAccess

from darc.code.architecture import Site
from darc.code.frame_rule import FrameRule
from darc.code.x86_64 import decode
from darc.model.ftree import CallKind
from darc.pads.waypoints import SIZE, Waypoints

TEXT, MODULES = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000000
_WRITES = (OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE)


def site(address: int, call: str, nop: str) -> Site:
    instruction, *_ = decode(bytes.fromhex(call), address)
    back = int(instruction.next_ip)
    length = instruction.len + len(bytes.fromhex(nop))
    rule = FrameRule("rsp", 8)
    return Site(
        address=address,
        kind=CallKind.INDIRECT,
        patch=address,
        length=length,
        back=back,
        target=None,
        pointer=None,
        instruction=instruction,
        slot=rule,
        nop=len(bytes.fromhex(nop)),
    )


class Memory:
    """Where waypoints are."""

    def __init__(self, size: int = SIZE, seed: int = 1) -> None:
        self.base = MODULES + random.Random(seed).randrange(1 << 12) * 4096
        self.content = bytearray(size)
        self.written: list[range] = []
        self.waypoints = Waypoints(self.base, size, self.read, self.write)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.content[address - self.base :][:size])

    def write(self, address: int, data: bytes) -> None:
        self.content[address - self.base : address - self.base + len(data)] = data
        self.written.append(range(address, address + len(data)))


def does_no_harm(behind: Instruction, end: int) -> bool:
    if behind.flow_control == FlowControl.UNCONDITIONAL_BRANCH:
        return behind.near_branch_target == end
    info = InstructionInfoFactory().info(behind)
    changed = [one for one in info.used_registers() if one.access in _WRITES]
    return behind.next_ip == end and not changed and not info.used_memory()


@pytest.mark.parametrize(
    ("call", "nop"), [("ffd0", "0f1f00"), ("41ffd3", "0f1f00"), ("41ffd3", "6690")]
)
def test_who_comes_back_finds_what_does_no_harm(call: str, nop: str) -> None:
    """At every place of a kernel's code."""
    found = 0
    for number in range(200):
        memory = Memory(seed=number)
        wanted = site(TEXT + 73_819 * number, call, nop)
        pad = memory.base - 4096 - number
        patch = memory.waypoints.lead(wanted, pad)
        if patch is None:
            assert nop == "6690"
            continue
        found += 1
        end = wanted.address + wanted.length
        assert len(patch) == wanted.length
        jump, *_ = decode(patch, wanted.address)
        (waypoint,) = memory.written
        assert (jump.next_ip, jump.near_branch_target) == (end, waypoint.start)
        on, *_ = decode(memory.read(waypoint.start, len(waypoint)), waypoint.start)
        assert on.near_branch_target == pad
        behind, *_ = decode(patch[-wanted.nop :], wanted.back)
        assert does_no_harm(behind, end), f"{behind}"
    assert found > 150


def test_no_landing_is_used_for_two_jumps() -> None:
    """Also not by the next debugger, which knows of them by the memory alone."""
    memory = Memory()
    wanted = site(TEXT, "ffd0", "0f1f00")
    for number in range(50):
        if number == 25:
            memory.waypoints = Waypoints(memory.base, SIZE, memory.read, memory.write)
        assert memory.waypoints.lead(wanted, memory.base - 8 * number)
    used = [at for waypoint in memory.written for at in waypoint]
    assert len(used) == len(set(used)) == 50 * 5


def test_where_no_landing_is_left() -> None:
    memory = Memory(size=4096)
    results = {
        memory.waypoints.lead(site(TEXT + 5000 * n, "ffd0", "0f1f00"), TEXT) for n in range(99)
    }
    assert None in results
