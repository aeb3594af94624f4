"""Threads that have rung come back into the program's own code."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.agent import compiled
from darc.agent.fieldnames import AgentField, ParkedField, Structure
from darc.debuggee import procfs
from darc.debuggee.process_pads import ProcessPads
from darc.pads.backend import BellOutcome
from darc.target.outcome import Outcome
from tests.fake_target import FakeTarget

PARKED, UNPARKED, HOME = 0x7000, 0x7100, 0x7200
BELL = 23
SYMBOLS = {
    "darc_parked": PARKED,
    "darc_unparked": UNPARKED,
    "darc_home": HOME,
    "darc_home_stack": HOME + 2,
    "darc_home_back": HOME + 16,
}
BACK = 0x4000
"""Where a thread goes on; each one at its own address."""


class ParkedThreads:
    """Some threads of a program, each parked with what it had in its registers on its stack."""

    def __init__(self, threads: int) -> None:
        self.target = FakeTarget()
        self.target.map(HOME, bytes(64))
        blob = compiled.load()
        size = blob.sizes[Structure.PARKED]
        for number in range(1, threads + 1):
            stack = 0x10000 * number
            words = bytearray(size)
            for field, value in (
                (ParkedField.STACK, stack + 0x800),
                (ParkedField.BACK, BACK + number),
                (cast(AgentField, "darc_parked.rax"), 42),
            ):
                struct.pack_into("<Q", words, blob.offset(field), value)
            self.target.map(stack, bytes(words))
            self.target.add_thread(number, rip=PARKED + 8, rsp=stack)
        self.foothold = cast(Any, SimpleNamespace(symbol=SYMBOLS.__getitem__))
        self.pads = ProcessPads(self.target, 7)
        self.pads._signal = BELL

    def stop(self, reply: BellOutcome) -> Outcome:
        """The bell is heard, and replied to so."""
        self.pads.arm_bell(self.foothold, lambda: reply)
        return self.target.ring(BELL)

    @property
    def where(self) -> dict[int, int]:
        return dict(self.target.threads.program_counters())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ParkedThreads:
    monkeypatch.setattr(procfs, "hears", lambda pid, thread, signal: thread != 3)
    return ParkedThreads(3)


def test_all_that_have_rung_go_home_where_the_user_gets_a_prompt(world: ParkedThreads) -> None:
    """The one that is heard may have rung for an earlier bell. One that blocks the bell's signal
    is about to let it through."""
    assert world.stop(BellOutcome(Outcome.STOP, BACK + 1, 0x10000 + 0x7F8)) is Outcome.STOP
    assert world.where == {1: BACK + 1, 2: BACK + 2, 3: PARKED + 8}
    assert world.target.threads.read_register(2, "rsp") == 0x20000 + 0x800
    assert world.target.threads.read_register(2, "rax") == 42


def test_the_one_that_rang_goes_home_whatever_it_blocks(world: ParkedThreads) -> None:
    world.stop(BellOutcome(Outcome.STOP, BACK + 3, 0x30000 + 0x7F8))
    assert world.where[3] == BACK + 3


def test_where_the_program_goes_on_they_go_on_by_themselves(world: ParkedThreads) -> None:
    assert world.stop(BellOutcome()) is Outcome.CONTINUE
    assert set(world.where.values()) == {PARKED + 8}
