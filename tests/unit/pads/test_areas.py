"""Memory for pads: what is used, what is free, and what is used anew."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from darc.pads.areas import Area, Areas, Placed, PlacedPads

BASE, SIZE, FLOOR = 0x10000, 4096, 256


def place(area: Area, size: int) -> range | None:
    found = range(start := area.free(size), start + size)
    return found if area.take(found) else None


def test_an_area_that_another_debugger_has_left_is_full_when_half_is_used() -> None:
    assert Area(BASE, SIZE, SIZE // 2 - 64, floor=64).has_room
    assert not Area(BASE, SIZE, SIZE // 2 + 64, floor=64).has_room


@dataclass
class Pool:
    """Landings, as far as it is asked who has which."""

    free_sites: int
    known: set[int] = field(default_factory=set)

    def knows(self, back: int) -> bool:
        return back in self.known


def test_a_call_site_has_a_landing_where_there_is_one() -> None:
    """Its own for ever; else one of the usual pool, and of another one where that has no room."""
    usual, full, roomy = Pool(0, {1}), Pool(0, {2}), Pool(5, {3})
    area: Any = Area(BASE, SIZE, pools=[usual, full, roomy])  # type: ignore[list-item]
    assert [area.landings_of(back, usual) for back in (1, 2, 3, 4)] == [usual, full, roomy, roomy]
    usual.free_sites = 1
    assert area.landings_of(4, usual) is usual
    usual.free_sites = roomy.free_sites = 0
    assert area.landings_of(4, usual) is usual  # which says that there is none


@given(
    st.lists(st.integers(1, 300), max_size=40),
    st.sets(st.integers(0, 39)),
    st.lists(st.integers(1, 300), max_size=60),
)
def test_nothing_that_is_kept_is_ever_taken(
    first: list[int], kept: set[int], then: list[int]
) -> None:
    area = Area(BASE, SIZE, FLOOR)
    placed = [found for size in first if (found := place(area, size)) is not None]
    in_use = [one for number, one in enumerate(placed) if number in kept]
    area.keep(in_use)
    for size in then:
        found = place(area, size)
        if found is not None:
            in_use.append(found)
    ends = sorted((one.start, one.stop) for one in in_use)
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(ends))
    assert all(start >= BASE + FLOOR and stop <= BASE + SIZE for start, stop in ends)


def test_an_area_is_empty_again_where_nothing_is_kept() -> None:
    area = Area(BASE, SIZE, FLOOR)
    while place(area, 100) is not None:
        pass
    assert not area.has_room
    area.keep([])
    assert area.has_room
    assert place(area, SIZE - FLOOR) == range(BASE + FLOOR, BASE + SIZE)


def pad(start: int, *rows: int) -> Placed:
    return Placed(range(start, start + 16), ((0, 0), (4, 8)), None, frozenset(rows))


def test_a_number_is_used_anew_when_its_pad_is_gone() -> None:
    pads = PlacedPads()
    assert [pads.new_number() for _ in range(3)] == [0, 1, 2]
    for number in (2, 0, 1):
        pads.add(pad(BASE + 64 * number, number))
    assert [one.place.start for one in pads] == [BASE, BASE + 64, BASE + 128]
    pads.keep(pads.reached({BASE + 70, BASE + 999}), [])
    assert (list(pads), pads.numbers, pads.used_numbers) == ([pad(BASE + 64, 1)], 2, 1)
    assert [pads.new_number() for _ in range(2)] == [0, 2]
    pads.free_number(0)
    assert pads.new_number() == 0


def test_what_is_below_an_areas_floor_stays() -> None:
    pads = PlacedPads()
    for start in (BASE, BASE + FLOOR):
        pads.add(pad(start))
    pads.keep([], [range(BASE, BASE + FLOOR)])
    assert list(pads) == [pad(BASE)]


def test_numbers_of_another_debugger_are_not_used() -> None:
    assert PlacedPads(64).new_number() == 64


def test_where_the_slot_is_within_a_pad() -> None:
    pads = PlacedPads()
    pads.add(pad(BASE))
    assert pads.before(BASE - 1) is None
    found = pads.before(BASE + 5)
    assert found is not None
    assert [found.distance(BASE + at) for at in (0, 3, 4, 15, 16)] == [0, 0, 8, 8, None]


@dataclass
class Landings:
    """Some, at a base."""

    base: int
    extent: int = 64


def test_what_areas_of_a_foothold_hold() -> None:
    """Landings that two have in common are there once."""
    shared, own = Landings(BASE + SIZE), Landings(BASE + SIZE + 64)
    areas = Areas()
    assert not areas
    assert areas.reaching(BASE, BASE + 1) is None
    areas.add(Area(BASE, SIZE, landings=shared))  # type: ignore[arg-type]
    areas.add(Area(4 * BASE, SIZE, landings=own, pools=[shared]))  # type: ignore[arg-type, list-item]
    assert [one.base for one in areas.landings] == [shared.base, own.base]
    inside = (BASE, BASE + SIZE - 1, shared.base, own.base + 63, 4 * BASE)
    assert all(map(areas.holds, inside))
    assert not any(map(areas.holds, (BASE - 1, own.base + 64, 5 * BASE)))
    assert areas.reaching(BASE, BASE + 1) is areas.first
    assert areas.reaching(BASE + (1 << 32), BASE + (1 << 32) + 1) is None
    areas.use([areas.first])
    assert (len(areas), areas.holds(4 * BASE)) == (1, False)
