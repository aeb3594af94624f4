"""The code of a detour: it fits its place, whatever the thread has in its registers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import Decoder, FlowControl, Mnemonic, Register

from darc.code.architecture import Call, Ringer
from darc.code.processor import system_call_function
from darc.code.system_calls import SystemCall
from darc.code.x86_64_detour import LENGTH, REGISTERS, stack_needed
from darc.debuggee.detour import find_place, plan
from darc.model.errors import TargetError
from darc.target.target import Region

PLACE = 0x7F00_0000_1000
words = st.integers(0, (1 << 64) - 1)
registers = st.fixed_dictionaries(dict.fromkeys(REGISTERS, words))
calls = st.builds(
    Call, words, st.lists(words, min_size=6, max_size=6), st.sampled_from([0, PLACE - 4096])
)


@given(registers, calls, st.none() | words)
def test_it_fits_and_ends_where_the_thread_was(
    thread: dict[str, int], call: Call, mask: int | None
) -> None:
    way = plan(thread, PLACE, ringer=Ringer(1 << 30, 1 << 30, 23), call=call, mask=mask)
    assert len(way.code) <= LENGTH
    decoded = []
    for instruction in Decoder(64, way.code, ip=PLACE):
        decoded.append(instruction)
        if instruction.flow_control is FlowControl.INDIRECT_BRANCH:
            break
    kinds = [instruction.mnemonic for instruction in decoded]
    assert Mnemonic.INVALID not in kinds
    assert kinds.count(Mnemonic.SYSCALL) == 4 - bool(call.stack) + (mask is None)
    assert {*way.rungs, way.leave, way.entry} <= {instruction.ip for instruction in decoded}
    (back,) = struct.unpack_from("<Q", way.code, decoded[-1].next_ip - PLACE)
    assert back == way.registers["rip"]


@given(registers)
def test_a_system_call_needs_little_of_the_stack(thread: dict[str, int]) -> None:
    assert len(stack_needed({**thread, "rsp": 1 << 40})) <= 208


@pytest.mark.parametrize("number", [SystemCall.MMAP, SystemCall.CLONE3])
def test_a_function_that_makes_a_system_call(number: int) -> None:
    """The kernel takes the fourth argument elsewhere than a function does."""
    decoded = list(Decoder(64, system_call_function(number), ip=PLACE))
    kinds = [instruction.mnemonic for instruction in decoded]
    assert kinds == [Mnemonic.MOV, Mnemonic.MOV, Mnemonic.SYSCALL, Mnemonic.RET]
    assert decoded[0].immediate32 == number
    assert (decoded[1].op0_register, decoded[1].op1_register) == (Register.R10, Register.RCX)


def test_where_it_may_stand() -> None:
    def region(permissions: str, path: str, start: int = 0x1000) -> Region:
        return Region(start=start, end=start + 0x1000, permissions=permissions, offset=0, path=path)

    def read(address: int, size: int) -> bytes:
        if address < 0x3000:
            raise TargetError("not readable")
        return bytes(size)

    assert find_place([region("r-xp", "/a")], read) is None
    assert find_place([region("r-xs", "/a", 0x4000)], read) is None  # the file's own bytes
    assert find_place([region("rw-p", "/a", 0x4000)], read) is None
    assert find_place([region("r-xp", "", 0x4000)], read) is None
    assert find_place([region("r-xp", "[vdso]", 0x4000)], read) == 0x5000 - LENGTH
    assert find_place([region("r-xp", "/a", 0x4000)], lambda _, size: b"\1" * size) is None
