"""Where pads are placed: made-up areas of made-up memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from darc.agent import compiled
from darc.agent.fieldnames import Structure
from darc.code.architecture import Prologue, Site
from darc.code.frame_rule import FrameRule
from darc.code.processor import RETURN, decode
from darc.model.errors import TargetError
from darc.model.ftree import CallKind
from darc.pads import processor as pads
from darc.pads.areas import Area, Areas, PlacedPads
from darc.pads.placing import Placing
from darc.pads.waypoints import Waypoints
from kgdb.leftbehind import header
from kgdb.placing import KernelPlacing, Told
from tests.fake_target import FakeTarget

BASE, SIZE, FLOOR = 0x10000, 8192, 256
STACK = 0x7000
CODE = 0x30000
CONTROL = 0x50000
STUBS = pads.Stubs(*(CODE + 0x9000 + 16 * n for n in range(7)))
ROW = compiled.load().sizes[Structure.SITE]


def pad(size: int = 32) -> pads.Pad:
    """One whose slot is 24 bytes above the stack pointer from its ninth byte on."""
    return pads.Pad(bytes([size]) * size, 8, {}, ((0, 0), (8, 24)), {})


@dataclass
class Tables:
    """As far as pads are placed by them."""

    memory: Any
    sites_room: int = 8
    blob: Any = field(default_factory=compiled.load)
    control: int = CONTROL
    records_used: list[Any] = field(default_factory=list)

    @property
    def layout(self) -> Any:
        return SimpleNamespace(room=self.room)

    @property
    def room(self) -> Any:
        return SimpleNamespace(sites=self.sites_room, blocks=1)

    @property
    def sites(self) -> Any:
        return SimpleNamespace(address=lambda index: CONTROL + ROW * index)

    @property
    def records(self) -> Any:
        return SimpleNamespace(used=lambda: self.records_used)

    def raw(self, address: int, size: int) -> bytes:
        return bytes(self.memory.read(address, size))


class PlacedArea:
    """One area, a stack and room for rows of sites."""

    def __init__(self, size: int = SIZE) -> None:
        self.target = FakeTarget()
        for start, length in ((BASE, size), (STACK, 256), (CONTROL, 64 * ROW)):
            self.target.map(start, bytes(length))
        self.memory = self.target.memory
        self.area = Area(BASE, size, FLOOR)
        self.areas = Areas()
        self.areas.add(self.area)
        self.placed = PlacedPads()
        self.tables = Tables(self.memory)
        self.placing = Placing(
            self.memory, self.areas, self.placed, tables=self.tables_of(), stubs=STUBS
        )

    def tables_of(self) -> Any:
        return self.tables

    def push(self, word: int, distance: int = 24) -> None:
        """What stands so far above the stack pointer."""
        self.memory.write(STACK + distance, struct.pack("<Q", word))


@pytest.fixture
def world() -> PlacedArea:
    return PlacedArea()


def site(address: int = CODE) -> Site:
    call = decode(b"\xe8\0\x01\0\0", address)[0]
    return Site(
        address=address,
        kind=CallKind.DIRECT,
        patch=address,
        length=call.len,
        back=int(call.next_ip),
        target=address + 0x105,
        pointer=None,
        instruction=call,
        slot=FrameRule("rsp", 8),
    )


def test_pads_stand_one_after_the_other_and_have_their_rows(world: PlacedArea) -> None:
    first, own = world.placing.place(world.area, 3, 0, lambda at: pad())
    second, _ = world.placing.place(world.area, None, 0, lambda at: pad())
    assert (first, second) == (BASE + FLOOR, BASE + FLOOR + 32)
    assert world.memory.read(first, 32) == own.code
    assert [one.rows for one in world.placed] == [frozenset({3}), frozenset()]


def test_a_pad_that_is_longer_in_a_hole_is_put_where_it_has_room(world: PlacedArea) -> None:
    hole = range(BASE + FLOOR, BASE + FLOOR + 16)
    world.area.used, world.area.holes = FLOOR + 64, [hole]
    origin, own = world.placing.place(world.area, None, 0, lambda at: pad(32 if at in hole else 16))
    assert (origin, len(own.code)) == (BASE + FLOOR + 64, 16)
    origin, _ = world.placing.place(world.area, None, 0, lambda at: pad(16))
    assert origin == hole.start


def test_where_there_is_no_room_nothing_is_written_and_it_is_said_what_to_do(
    world: PlacedArea,
) -> None:
    world.area.used = SIZE - 16
    with pytest.raises(TargetError, match="max-probes"):
        world.placing.place(world.area, None, 0, lambda at: pad())
    assert not any(world.memory.read(BASE + SIZE - 16, 16))
    assert not list(world.placed)


def test_a_call_comes_back_to_its_pad_where_there_are_no_landings(world: PlacedArea) -> None:
    origin, own, back = world.placing.place_call(world.area, site(), 1, (world.area.sector,))
    assert back == origin + (own.back or 0)
    assert world.memory.read(origin, len(own.code)) == own.code
    found = world.placing.caller(back, STACK)
    assert found is not None
    assert found[1] == site().back


def test_the_caller_of_a_thread_in_a_pad_is_that_of_its_call(world: PlacedArea) -> None:
    """By the pad where it serves one site, else by the stack; where the pad of many calls has put a
    word of darc's there, by the call's record."""
    of_site, _ = world.placing.place(world.area, 1, CODE + 5, lambda at: pad())
    of_many, _ = world.placing.place(world.area, 2, 0, lambda at: pad())
    leaves_it, _ = world.placing.place(world.area, 3, None, lambda at: pad())
    slot = STACK + 24
    world.push(CODE + 99)
    assert world.placing.caller(of_site + 8, STACK) == (slot, CODE + 5)
    assert world.placing.caller(of_many + 8, STACK) == (slot, CODE + 99)
    assert world.placing.caller(leaves_it + 8, STACK) == (slot, CODE + 99)
    world.push(of_site + 8)
    assert world.placing.caller(of_many + 8, STACK) is None
    world.tables.records_used = [SimpleNamespace(slot=slot, back=CODE + 44)]
    assert world.placing.caller(of_many + 8, STACK) == (slot, CODE + 44)
    assert world.placing.caller(leaves_it + 8, STACK) == (slot, of_site + 8)
    assert world.placing.caller(CODE, STACK) is None


def test_half_of_the_room_is_for_another_analysis(world: PlacedArea) -> None:
    assert world.placing.has_room
    for _ in range(5):
        world.placing.place(world.area, world.placing.new_index(), 0, lambda at: pad())
    assert not world.placing.has_room, "rows"
    kept = world.placed.reached({BASE + FLOOR + 40})
    world.placing.keep(kept)
    assert world.placing.has_room
    assert list(world.placed) == kept
    assert world.area.holes == [range(BASE + FLOOR, BASE + FLOOR + 32)]
    world.area.used = SIZE
    assert not world.placing.has_room, "bytes"


def test_an_index_that_came_to_nothing_is_used_next(world: PlacedArea) -> None:
    assert [world.placing.new_index() for _ in range(3)] == [0, 1, 2]
    world.placing.free_index(1)
    assert world.placing.new_index() == 1


# ------------------------------------------------------------------------- a kernel's


class Kernel(PlacedArea):
    """The same of a kernel, which has no waypoints."""

    def __init__(self) -> None:
        super().__init__(1 << 14)
        self.told = Told(self.memory, CONTROL, None)
        self.placing = self.kernel = KernelPlacing(
            self.memory,
            self.areas,
            self.placed,
            tables=self.tables_of(),
            stubs=STUBS,
            told=self.told,
        )

    def header(self) -> bytes:
        return self.memory.read(BASE, len(header(0, 0, 0, size=0, waypoints=range(0))))


def test_what_is_used_is_told_in_steps_before_it_is() -> None:
    world = Kernel()
    world.told.write(world.area)
    assert world.header() == header(CONTROL, 0, 0, size=1 << 14, waypoints=range(0))
    world.placing.place(world.area, world.placing.new_index(), 0, lambda at: pad())
    told = header(CONTROL, 4096, 64, size=1 << 14, waypoints=range(0))
    assert world.header() == told
    world.placing.place(world.area, world.placing.new_index(), 0, lambda at: pad())
    assert world.header() == told
    world.area.used = 4096
    world.placing.place(world.area, None, 0, lambda at: pad())
    assert world.header() == header(CONTROL, 8192, 64, size=1 << 14, waypoints=range(0))


def test_no_more_is_told_to_be_used_than_there_is() -> None:
    world = Kernel()
    world.area.used = (1 << 14) - 32
    world.placing.place(world.area, None, 0, lambda at: pad())
    assert world.told.used == 1 << 14


def test_sites_are_led_through_waypoints_where_there_are_some() -> None:
    world = Kernel()
    assert world.placing.lead(site(), BASE) is None
    world.told.waypoints = Waypoints(BASE, 0, world.memory.read, world.memory.write)
    world.told.write(world.area)
    assert world.header() == header(CONTROL, 0, 0, size=1 << 14, waypoints=range(BASE, BASE))


def test_the_pad_of_an_earlier_sets_function_is_used_again() -> None:
    """As long as it stands there as it would be made."""
    world = Kernel()
    (back,) = decode(RETURN, CODE)
    prologue = Prologue(CODE, (back,), len(RETURN), RETURN)
    index = world.placing.new_index()
    row = world.tables.sites.address(index)
    origin, made = world.placing.place(
        world.area, index, 0, lambda at: pads.entry_pad(prologue, row, STUBS, origin=at)
    )
    assert made.back is not None
    blob = compiled.load()
    kind = blob.constants.MEMBER
    raw = blob.pack(Structure.SITE, kind=kind, address=CODE, pad_back=origin + made.back)
    world.memory.write(row, raw)
    assert world.placing.entered_before(prologue) is None, "it is not known yet"
    world.placing.begin()
    assert world.placing.entered_before(prologue) == (index, origin, made)
    world.memory.write(origin, b"\xcc")
    assert world.placing.entered_before(prologue) is None
