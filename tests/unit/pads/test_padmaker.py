"""How a pad is made, before anybody owns it: where there is room, and through what it is led to."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from darc.code.architecture import FunctionCode
from darc.code.processor import PATCH_LENGTH, decode
from darc.code.relays import Relay
from darc.model.refusal import Refusal
from darc.pads import padmaker
from darc.pads.displacing import Displacing
from darc.pads.padmaker import PadMaker
from darc.pads.patching import Patch
from darc.pads.processor import NO_ROOM
from tests.unit.onefunction import ENTRY, OneFunction

CODE = bytes.fromhex("b801000000c3")  # mov eax, 1; ret
NEAR, FAR = ENTRY + 64, ENTRY + 96


class PadMaking:
    """A foothold that has no area near the function, breakpoints of a user's, and patches."""

    def __init__(self) -> None:
        self.taken: list[Patch] = []
        self.breaks: list[int] = []
        self.indices = 0
        foothold: Any = SimpleNamespace(
            area_for=lambda low, high: None,
            placing=SimpleNamespace(new_index=self.new_index),
            tables=None,
        )
        target: Any = SimpleNamespace(
            user_breaks=SimpleNamespace(addresses=lambda: tuple(self.breaks))
        )
        program: Any = OneFunction(CODE)
        self.maker = PadMaker(
            program, foothold, Displacing(target, program), lambda: iter(self.taken)
        )

    def new_index(self) -> int:
        self.indices += 1
        return self.indices


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> PadMaking:
    def relays(_program: object, _address: int) -> Iterator[Relay]:
        return (Relay(at, at, at + PATCH_LENGTH) for at in (NEAR, FAR))

    monkeypatch.setattr(padmaker, "relays", relays)
    return PadMaking()


def patch_at(address: int, through: Patch | None = None) -> Patch:
    return Patch(
        address=address,
        original=bytes(PATCH_LENGTH),
        bytes=bytes(PATCH_LENGTH),
        index=1,
        pad=0x9000,
        pad_back=0,
        through=through,
    )


def test_where_no_memory_is_in_reach_there_is_none(world: PadMaking) -> None:
    """And nothing is taken for it."""
    code = FunctionCode(
        ENTRY,
        [(ENTRY, ENTRY + len(CODE))],
        {int(one.ip): one for one in decode(CODE, ENTRY)},
    )
    assert world.maker.entry(code, 1, 1) == Refusal(NO_ROOM)
    assert world.indices == 0


def test_a_relay_is_where_no_patch_is(world: PadMaking) -> None:
    def found(instead_of: Patch | None = None) -> int | None:
        relay = world.maker.relay(ENTRY, instead_of)
        return None if relay is None else relay.address

    assert found() == NEAR
    near = patch_at(NEAR + 2)
    world.taken = [near]
    assert found() == FAR
    assert found(near) == NEAR, "the one that is to be replaced makes room"
    world.taken = [patch_at(ENTRY, through=patch_at(NEAR)), patch_at(FAR)]
    assert found() is None, "others' relays are no place either"


def test_nor_where_the_user_has_a_breakpoint(world: PadMaking) -> None:
    world.breaks = [NEAR + 1]
    relay = world.maker.relay(ENTRY)
    assert relay is not None
    assert relay.address == FAR
