"""A call by hand: the stack is aligned as functions expect it, and its end is told from others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from darc.code.processor import (
    GENERAL,
    PROGRAM_COUNTER,
    RESULT,
    STACK_POINTER,
    free_slot,
)
from darc.code.x86_64_convention import ARGUMENTS, SystemVCall

words = st.integers(1 << 20, (1 << 64) - 1)


@given(words, st.integers(0, 4096))
def test_the_stack_is_aligned_where_the_call_was(stack_pointer: int, distance: int) -> None:
    slot = free_slot(stack_pointer, distance)
    assert (slot + 8) % 16 == 0
    assert distance < stack_pointer - slot <= distance + 24


@given(words, st.lists(st.integers(-1, 1 << 64), max_size=6), words)
def test_what_is_set(address: int, arguments: list[int], slot: int) -> None:
    call = SystemVCall(address, arguments, slot, back=0x1234)
    values = call.registers()
    assert [values[name] for name in ARGUMENTS[: len(arguments)]] == [
        argument % (1 << 64) for argument in arguments
    ]
    assert (values[STACK_POINTER], values[PROGRAM_COUNTER], values[RESULT]) == (slot, address, 0)
    assert set(values) <= set(GENERAL)
    assert list(values)[-1] == GENERAL[-1] == PROGRAM_COUNTER


def test_where_it_ends() -> None:
    call = SystemVCall(1, (), 0x8000, 0x1234)
    assert call.return_address() == bytes.fromhex("3412 0000 0000 0000")
    assert call.has_returned(0x1234, 0x8008)
    assert not call.has_returned(0x1234, 0x8000)  # another call's, further down
    assert not call.has_returned(0x1235, 0x8008)
