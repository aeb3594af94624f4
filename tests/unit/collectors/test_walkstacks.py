"""The words of a stack that ends anywhere, and the stack of a thread that stands in a pad."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.code.processor import PROGRAM_COUNTER, STACK_POINTER
from darc.code.program import Program
from darc.code.unwind import Frame
from darc.collectors import walkstacks
from darc.collectors.walkcount import OpenMembers
from darc.collectors.walkstacks import Stacks, StackWords
from darc.model.errors import TargetError
from darc.pads.foothold import Foothold
from darc.target.target import Target

_TOP = 0x7FFF0000


@given(words=st.integers(1, 40_000), asked=st.data())
def test_a_stack_is_read_to_its_end(words: int, asked: st.DataObject) -> None:
    """Every word that is there, and none behind: that of the first thread ends where nothing
    follows, and who began it stands last."""
    end = _TOP + 8 * words

    def read(address: int, size: int) -> bytes:
        if not _TOP <= address <= address + size <= end:
            raise TargetError("cannot read memory")
        return b"".join(at.to_bytes(8, "little") for at in range(address, address + size, 8))

    stack = StackWords(read, _TOP)
    numbers = asked.draw(st.lists(st.integers(0, words + 10_000), max_size=20))
    for number in (*numbers, words - 1):
        at = _TOP + 8 * number
        assert stack.at(at) == (at if number < words else None)


PAD, STACK = 0x999, 0x7000
"""Where a thread stands, and where its stack ends."""


def test_a_thread_in_a_pad_has_the_stack_that_leads_furthest_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the outermost function tells of a caller that is none, no stack is read to its end. An
    old return address in front of the pad's caller leads on for a frame or two."""
    stale, caller, outer = 0x111, 0x222, 0x333
    on_stack = {STACK: 0, STACK + 8: stale, STACK + 16: caller, STACK + 24: 7, STACK + 32: outer}
    leads = {
        stale: [Frame(stale, STACK + 24), Frame(7, STACK + 40)],
        caller: [Frame(caller, STACK + 32), Frame(outer, STACK + 800), Frame(0x444, STACK + 900)],
        outer: [Frame(outer, STACK + 800), Frame(0x444, STACK + 900)],
    }
    monkeypatch.setattr(walkstacks, "frames", lambda _program, pc, **_: leads[pc])
    program = SimpleNamespace(
        is_code=leads.__contains__, live=SimpleNamespace(is_returned_to=lambda _address: True)
    )
    foothold = SimpleNamespace(
        holds=lambda address: address == PAD,
        tables=SimpleNamespace(bell=0, bell_slot=0),
    )
    registers = {PROGRAM_COUNTER: PAD, STACK_POINTER: STACK}
    target = SimpleNamespace(
        threads=SimpleNamespace(
            ids=lambda: [1], read_register=lambda _thread, name: registers.get(name, 5)
        ),
        memory=SimpleNamespace(read=lambda at, size: memory(on_stack, at, size)),
    )
    stacks = Stacks(
        target=cast(Target, target),
        program=cast(Program, program),
        foothold=cast(Foothold, foothold),
        calls=cast(OpenMembers, SimpleNamespace(all=list)),
        tell=lambda: None,
    )
    monkeypatch.setattr(stacks, "_with_gone", lambda found, _had: found)
    assert [frame.at for frame in stacks.all()[1].frames] == [0x444, outer, caller]


def memory(words: dict[int, int], at: int, size: int) -> bytes:
    if at not in words or at + size > STACK + 0x10000:
        raise TargetError("not mapped")
    return b"".join(words.get(at + n, 0).to_bytes(8, "little") for n in range(0, size, 8))
