"""What a killed debugger has left: taken out where it is there, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from darc.agent import compiled
from darc.agent.memory import AgentMemory
from darc.agent.rows import PatchedSite
from darc.agent.sites import Sites as AgentSites
from darc.model.errors import TargetError
from darc.pads.processor import patch_bytes, patch_short
from darc.pads.restoring import clean_up, still_hooked, taken_out
from darc.target.companions import NOBODY
from darc.target.target import Target
from tests.fake_target import FakeTarget

SITE, CAVE, PADS = 0x40_1000, 0x40_1020, 0x50_0000
ORIGINAL = bytes.fromhex("e811223344")


class Memory:
    """That of a target, with these bytes."""

    def __init__(self, **live: bytes) -> None:
        self.places = {{"site": SITE, "cave": CAVE}[name]: data for name, data in live.items()}
        self.written: list[int] = []

    def read(self, address: int, size: int) -> bytes:
        if address not in self.places:
            raise TargetError("gdb: Cannot access memory")
        return self.places[address][:size]

    def write(self, address: int, data: bytes) -> None:
        self.places[address] = data + self.places[address][len(data) :]
        self.written.append(address)

    def flush(self) -> None:
        """Nothing waits."""


class Stopped:
    """A target with this memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.frames = FakeTarget().frames
        self.companions = NOBODY


class Sites:
    """Both places are patched."""

    def __init__(self, length: int) -> None:
        kind = compiled.load().constants.F0
        self.rows = [
            PatchedSite(0, kind, SITE, ORIGINAL[:length]),
            PatchedSite(1, kind, CAVE, b"\x90" * 5),
        ]

    def patched(self) -> list[PatchedSite]:
        return self.rows

    @property
    def any_patched(self) -> bool:
        return bool(self.rows)

    def set(self, index: int, **values: int) -> None:
        assert values == {"patched": 0}
        self.rows = [site for site in self.rows if site.index != index]


class Records:
    """No call is open."""

    def open(self) -> list[dict[str, int]]:
        return []


class Tables:
    """Those of a debugger that is gone."""

    enabled = True

    def __init__(self, length: int = 5) -> None:
        self.blob = compiled.load()
        self.sites = Sites(length)
        self.records = Records()


def cleaned(memory: Memory, tables: Tables, retire: Callable[[], None] = lambda: None) -> int:
    return clean_up(
        cast(Target, Stopped(memory)),
        cast(AgentMemory, cast(Any, tables)),
        is_pad=lambda address: PADS <= address < PADS + 0x1000,
        own_back=None,
        retire=retire,
    )


@pytest.mark.parametrize("kind", ["call", "jump"])
def test_a_patch_is_taken_out(kind: str) -> None:
    from darc.model.ftree import CallKind

    patch = patch_bytes(CallKind.DIRECT if kind == "call" else None, SITE, 5, PADS + 64)
    memory, tables = Memory(site=patch), Tables()
    assert cleaned(memory, tables) == 1
    assert memory.places[SITE] == ORIGINAL
    assert not tables.enabled


def test_a_short_jump_through_padding_is_taken_out_with_the_padding() -> None:
    memory = Memory(site=patch_short(SITE, CAVE), cave=patch_bytes(None, CAVE, 5, PADS + 64))
    assert cleaned(memory, Tables(length=2)) == 2
    assert memory.places == {SITE: ORIGINAL[:2], CAVE: b"\x90" * 5}


def test_guards_are_taken_out_behind_all_others() -> None:
    """Who cleans up may be killed as well, and an exception is to find a guard until nobody is on
    its way into a call any more that would come back to a landing."""
    patch = patch_bytes(None, SITE, 5, PADS + 64)
    memory, tables = Memory(site=patch, cave=patch_bytes(None, CAVE, 5, PADS + 128)), Tables()
    hide = tables.blob.constants.HIDE
    tables.sites.rows[0] = replace(tables.sites.rows[0], kind=hide)
    assert cleaned(memory, tables, lambda: memory.written.append(0)) == 2
    assert memory.written == [CAVE, 0, SITE]


@pytest.mark.parametrize(
    "live",
    [ORIGINAL, bytes.fromhex("e800000000"), bytes.fromhex("c3cccccccc"), b"\xff" * 5],
    ids=["not yet written", "another call", "another function", "no code"],
)
def test_what_is_no_patch_stays(live: bytes) -> None:
    """The debugger was killed before it wrote the patch, or another file is there by now."""
    memory, tables = Memory(site=live), Tables()
    assert cleaned(memory, tables) == 0
    assert memory.places[SITE] == live
    assert [site.address for site in tables.sites.rows] == [CAVE]  # its file is gone


def test_a_hook_may_write_the_patch_back_and_its_pad_stays() -> None:
    """So the tables say of its site that it is patched."""
    hook = bytes.fromhex("e900000000")
    memory, tables = Memory(site=hook), Tables()
    assert cleaned(memory, tables) == 0
    assert memory.places[SITE] == hook
    assert SITE in [site.address for site in tables.sites.rows]


@pytest.mark.parametrize(
    ("live", "are_left"),
    [(ORIGINAL, []), (bytes.fromhex("e900000000"), [SITE]), (None, [])],
    ids=["unhooked", "hooked", "unloaded"],
)
def test_what_was_written_over_is_waited_for_until_it_is_no_more(
    live: bytes | None, are_left: list[int]
) -> None:
    memory, tables = Memory() if live is None else Memory(site=live), Tables()
    stopped = cast(Target, Stopped(memory))
    assert still_hooked(stopped, cast(AgentSites, cast(Any, tables.sites))) == bool(are_left)
    assert [site.address for site in tables.sites.rows] == are_left


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "an earlier debugger had left 1 probe in the kernel: it was taken out"),
        (7, "an earlier debugger had left 7 probes in the kernel: they were taken out"),
    ],
)
def test_what_is_told_of_it(count: int, told: str) -> None:
    assert taken_out(count, "kernel") == told
