"""Where pads are placed: which bytes of a foothold each gets, and what is known of it there.

What memory there is, and for how long, is :mod:`darc.pads.foothold`; what pads are made of, and
what leads to them, :mod:`darc.pads.padmaker`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.agent.memory import AgentMemory
from darc.code.architecture import Prologue, Site
from darc.model.errors import TargetError
from darc.pads import processor as pads
from darc.pads.areas import Area, Areas, Placed, PlacedPads
from darc.target.memory import Memory


class Placing:
    """Writes pads into ``areas`` of a foothold whose ``tables`` are there; they ask the agent by
    its ``stubs``. ``placed`` are those that there are."""

    def __init__(
        self,
        memory: Memory,
        areas: Areas,
        placed: PlacedPads,
        *,
        tables: AgentMemory,
        stubs: pads.Stubs,
    ) -> None:
        self._memory = memory
        self._areas = areas
        self._placed = placed
        self._tables = tables
        self.stubs = stubs

    def begin(self) -> None:
        """Another analysis begins, in a foothold where there were some."""

    # ------------------------------------------------------------------ room

    @property
    def has_room(self) -> bool:
        """Whether there is room for the pads of another analysis."""
        most = self._tables.layout.room.sites // 2
        return self._placed.used_numbers <= most and all(one.has_room for one in self._areas)

    def keep(self, kept: Sequence[Placed]) -> None:
        """All is free but what areas always keep, and these pads."""
        for area in self._areas:
            inside = range(area.base + area.floor, area.base + area.size)
            area.keep(sorted((p.place for p in kept if p.place.start in inside), key=_first))
        for landings in self._areas.landings:
            landings.forget(
                lambda at: self._areas.holds(at) and not any(at in p.place for p in kept)
            )
        self._placed.keep(kept, [range(one.base, one.base + one.floor) for one in self._areas])

    def new_index(self) -> int:
        """The number of a site that no pad uses."""
        return self._placed.new_number()

    def free_index(self, index: int) -> None:
        """No pad was made for the site with this number."""
        self._placed.free_number(index)

    # ------------------------------------------------------------------ pads

    def place(
        self,
        area: Area,
        index: int | None,
        back: int | None,
        make: Callable[[int], pads.Pad],
    ) -> tuple[int, pads.Pad]:
        """Writes the pad that ``make`` makes for an address; ``index`` is the number of the site
        whose row it reads, if any, ``back`` the return address of the site it serves, 0 where that
        differs from call to call, ``None`` where the pad leaves it on the stack.

        Raises:
            TargetError: there is no more room.
            OutOfReachError: the program's code or data is too far away.
        """
        origin, size = area.base + area.used, 0
        pad = make(origin)
        while len(pad.code) > size:  # it may be longer in another place
            size = len(pad.code)
            origin = area.free(size)
            pad = make(origin)
        place = range(origin, origin + len(pad.code))
        if not area.take(place):
            raise TargetError("no room for more pads: 'set darc max-probes' to a lower number")
        self._memory.write(origin, pad.code)
        rows = frozenset(() if index is None else (index,))
        self._placed.add(Placed(place, pad.frames, back, rows))
        return origin, pad

    def entered_before(self, prologue: Prologue) -> tuple[int, int, pads.Pad] | None:
        """The pad that an earlier set's function has at its entry, where that may be used again:
        the number of its site, where it is, and the pad."""
        del prologue
        return None

    def place_call(
        self, area: Area, site: Site, index: int, sectors: Sequence[int]
    ) -> tuple[int, pads.Pad, int]:
        """Writes the pad of a call site, which is number ``index``, and its landing; ``sectors``
        are those of its callers. Returns where it is, the pad, and the return address of its call.

        Raises:
            TargetError: there is no more room.
            OutOfReachError: the program's code or data is too far away, or no landing is left.
        """
        data, landings = self._tables.sites.address(index), area.landings
        if landings is None:
            origin, pad = self.place(
                area,
                index,
                site.back,
                lambda at: pads.call_pad(
                    site, site_data=data, sectors=sectors, stubs=self.stubs, origin=at
                ),
            )
            assert pad.back is not None
            return origin, pad, origin + pad.back
        landings = area.landings_of(site.back, landings)
        cell = landings.claim(site.back)
        back = landings.returns_to(cell)
        origin, pad = self.place(
            area,
            index,
            site.back,
            lambda at: pads.call_pad(
                site, site_data=data, sectors=sectors, stubs=self.stubs, origin=at, landing=back
            ),
        )
        assert pad.back is not None
        far = origin + pad.target
        landings.lead(cell, pads.landing_call(site, back, far), origin + pad.back)
        return origin, pad, back

    def lead(self, site: Site, pad: int) -> bytes | None:
        """What to write over a site that has a nop behind it, to lead to its pad; ``None`` where
        that cannot be."""
        del site, pad
        return None

    def f0_code(self, index: int) -> pads.F0Code | None:
        """What the pad of f0, which is site ``index``, does itself, where that is worth it."""
        del index
        return None

    # ------------------------------------------------------------- threads in them

    def caller(self, pc: int, stack: int) -> tuple[int, int] | None:
        """For unwinders: where ``pc`` is in a pad, the address of the stack word of the return
        address, and that address."""
        for landings in self._areas.landings:
            if (found := landings.caller(pc, stack)) is not None:
                return found
        pad = self._placed.before(pc)
        distance = None if pad is None else pad.distance(pc)
        if pad is None or distance is None:
            return None
        slot = stack + distance
        if pad.back:
            return slot, pad.back
        # Not by the tables: they are closed when the analysis is over, and threads may stand here.
        word = int.from_bytes(self._memory.read(slot, 8), "little")
        for landings in self._areas.landings:
            if (own := landings.gone_on_to(word)) is not None:
                return slot, own
        if pad.back is None or (distance >= 0 and not self._areas.holds(word)):
            return slot, word
        for record in self._tables.records.used():
            if record.slot == slot:
                return slot, record.back
        return None


def _first(place: range) -> int:
    return place.start
