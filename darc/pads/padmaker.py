"""Pads and relays, made in the program's memory: nothing of its code leads to them yet.

What is made is a :class:`~darc.pads.patching.Patch`, which whoever has asked for it owns: it says
where a jump to the pad is to stand, and what stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from darc.agent import compiled
from darc.agent.fieldnames import ControlField
from darc.agent.fieldvalues import SiteValues
from darc.code.architecture import FunctionCode, Prologue, Site
from darc.code.processor import PATCH_LENGTH, SHORT_JUMP
from darc.code.program import Program
from darc.code.relays import Relay, relays
from darc.model.refusal import Refusal
from darc.pads import processor as pads
from darc.pads import returns
from darc.pads.areas import Area
from darc.pads.displacing import Displacing
from darc.pads.foothold import Foothold
from darc.pads.patching import Patch
from darc.pads.returns import ReturnLandings

_HALF_WORD = (1 << 32) - 1


def _comes_back(
    prologue: Prologue, origin: int, pad: pads.Pad, landings: ReturnLandings | None
) -> tuple[int, SiteValues]:
    """Where calls of a function come back to whose entry has the ``pad`` at ``origin``, and what
    the agent knows of its ``landings``, which lead there from now on."""
    if landings is None:
        assert pad.back is not None
        return origin + pad.back, {}
    assert pad.body is not None
    body = origin + pad.body
    landings.bind(prologue.entry, body)
    return landings.callers, {"landings": landings.base, "body": body}


def _jump_in(prologue: Prologue, relay: Relay | None, origin: int) -> bytes:
    """What is to stand at the entry: a jump to the pad at ``origin``, or a short one to a relay."""
    if relay is None:
        return pads.patch_bytes(None, prologue.entry, PATCH_LENGTH, origin)
    return pads.patch_short(prologue.entry, relay.address)


def _lead(made: Patch) -> int:
    """How a table has it where the bytes of a patch lead: to its pad, as seen from its address; 0
    where they do not, as it is led to by a relay, or has none."""
    if made.through is not None or not made.bytes:
        return 0
    return (made.pad - made.address) & _HALF_WORD


class PadMaker:
    """In the ``foothold`` of one analysis. ``taken`` tells which patches there are, made or in the
    code: no relay leads through their bytes."""

    def __init__(
        self,
        program: Program,
        foothold: Foothold,
        displacing: Displacing,
        taken: Callable[[], Iterable[Patch]],
    ) -> None:
        self._program = program
        self._foothold = foothold
        self._displacing = displacing
        self._taken = taken
        self._blob = compiled.load()
        self._tables = foothold.tables
        self._placing = foothold.placing

    # ------------------------------------------------------------- at an entry

    def entry(
        self,
        code: FunctionCode,
        kind: int,
        timed: int,
        *,
        landings: ReturnLandings | None = None,
        number: int = 0,
    ) -> Patch | Refusal:
        """A pad at a function's entry, of that ``kind`` for the agent, whose calls come back
        through ``landings``; of a set's the ``number``."""
        found = self._way_in(code, is_timed=bool(timed))
        if isinstance(found, Refusal):
            return found
        prologue, relay = found
        area = self._foothold.area_for(prologue.entry, prologue.entry + prologue.length)
        if area is None:
            return Refusal(pads.NO_ROOM)
        if kind == self._blob.constants.F0:
            landings = area.landings
        try:
            index, origin, pad = self._place_entry(
                prologue, area, kind, is_through=relay is not None, landings=landings
            )
        except pads.OutOfReachError as error:
            return Refusal(str(error))
        pad_back, lands = _comes_back(prologue, origin, pad, landings)
        through = None if relay is None else self._lead_through(relay, area, origin, kind)
        patch = _jump_in(prologue, relay, origin)
        made = Patch(
            address=prologue.entry,
            original=prologue.original[: len(patch)],
            bytes=patch,
            index=index,
            pad=origin,
            pad_back=pad_back,
            moved={at: origin + offset for at, offset in pad.moved.items()},
            displaced=prologue.instructions,
            cells={name: origin + offset for name, offset in pad.cells.items()},
            through=through,
        )
        self._write_site(made, {"kind": kind, "timed": timed, "route_first": number, **lands})
        return made

    def _way_in(
        self, code: FunctionCode, *, is_timed: bool
    ) -> tuple[Prologue, Relay | None] | Refusal:
        """What a jump at the entry displaces, and through which relay it leads where only a short
        one has room."""
        code = replace(code, entry=self._program.way_in(code.entry))
        code, prologue = self._displacing.entry(code, is_timed=is_timed)
        if not isinstance(prologue, Refusal):
            return prologue, None
        why = prologue
        relay = self.relay(code.entry)
        prologue = self._displacing.prologue(code, SHORT_JUMP, is_guard=not is_timed)
        return why if relay is None or isinstance(prologue, Refusal) else (prologue, relay)

    def _place_entry(
        self,
        prologue: Prologue,
        area: Area,
        kind: int,
        *,
        is_through: bool,
        landings: ReturnLandings | None,
    ) -> tuple[int, int, pads.Pad]:
        """The pad itself: its index, its place and its code. Raises OutOfReachError."""
        placing, constants = self._placing, self._blob.constants
        is_member = kind == constants.MEMBER
        before = placing.entered_before(prologue) if is_member and is_through else None
        index = placing.new_index() if before is None else before[0]
        address = self._tables.sites.address(index)
        own_code = placing.f0_code(index) if kind == constants.F0 else None
        sieve = self._sieve() if kind == constants.UNLOCK else None

        def make(at: int) -> pads.Pad:
            if own_code is not None:
                return pads.f0_pad(prologue, own_code, at)
            return pads.entry_pad(
                *(prologue, address, placing.stubs),
                origin=at,
                lands=landings is not None,
                sieve=sieve,
            )

        back = 0 if landings is None else None
        origin, pad = before[1:] if before else placing.place(area, index, back, make)
        return index, origin, pad

    def _sieve(self) -> pads.Sieve:
        constants = self._blob.constants
        return pads.Sieve(
            counts=self._tables.field(ControlField.WAITING)[0],
            factor=constants.THREAD_HASH,
            shift=constants.WAIT_SHIFT,
        )

    # ---------------------------------------------------------------- at a call

    def site(
        self,
        site: Site,
        *,
        sectors: tuple[int, ...],
        known: Patch | None,
        cell: int | None,
        is_ahead: bool,
    ) -> Patch | Refusal:
        """A pad of a call site, for frames that were entered through pads in these ``sectors``, in
        place of the one that is ``known``. One among what f0 has displaced has no bytes of its own,
        but a ``cell`` in f0's pad."""
        area = self._foothold.area_for(site.patch, site.back)
        if area is None:
            return Refusal(pads.NO_ROOM)
        index = self._placing.new_index()
        relay = self.relay(site.address, known) if site.is_short else None
        kind = self._kind_of(site)
        try:
            origin, pad, back = self._place_site(area, site, index, sectors, is_ahead=is_ahead)
            patch, through = b"", None
            if relay is not None:
                through = self._lead_through(relay, area, origin, kind)
                patch = pads.patch_short_site(site, relay.address)
            elif site.nop or cell is None:
                patch = self._jump(site, origin)
        except returns.NoLandingError as error:  # each decision asks again
            self._placing.free_index(index)
            return Refusal(str(error))
        except pads.OutOfReachError as error:
            return Refusal(str(error))
        if site.nop and relay is None and not patch:
            return Refusal("the call is shorter than a jump")
        made = Patch(
            address=site.patch,
            original=self._program.read(site.patch, len(patch) or site.length),
            bytes=patch,
            index=index,
            pad=origin,
            pad_back=back,
            site=site,
            sectors=sectors,
            moved={at: origin + offset for at, offset in pad.moved.items()},
            cell=cell,
            through=through,
        )
        self._write_call(made, site)
        return made

    def _kind_of(self, site: Site) -> int:
        """What the agent calls it."""
        constants = self._blob.constants
        return constants.TAIL if site.kind.is_tail else constants.CALL

    def _write_call(self, made: Patch, site: Site) -> None:
        """Tells the agent of the pad of a call site."""
        self._tables.sites.write(
            made.index,
            back=site.back,
            pad_back=made.pad_back,
            kind=self._kind_of(site),
            timed=1,
            indirect=0 if site.target is not None else self._blob.constants.MAX_TARGETS,
            address=site.patch,
            original=made.original[:16],
            length=len(made.original),
            lead=_lead(made),
        )

    def _jump(self, site: Site, origin: int) -> bytes:
        """What is written at the site itself; nothing where that has no room, and no other way."""
        if site.nop:
            return self._placing.lead(site, origin) or b""
        if site.kind.is_tail:
            return pads.patch_tail(site, origin)
        return pads.patch_bytes(site.kind, site.patch, site.length, origin)

    def _place_site(
        self, area: Area, site: Site, index: int, sectors: tuple[int, ...], *, is_ahead: bool
    ) -> tuple[int, pads.Pad, int]:
        """The pad itself: its place, its code, and where its call returns to."""
        if not site.kind.is_tail:
            return self._place_call(area, site, index=index, sectors=sectors, is_ahead=is_ahead)
        data, stubs = self._tables.sites.address(index), self._placing.stubs
        origin, pad = self._placing.place(
            area,
            index,
            None,
            lambda at: pads.tail_pad(site, data, sectors=sectors, stubs=stubs, origin=at),
        )
        return origin, pad, 0

    def _place_call(
        self, area: Area, site: Site, index: int, *, sectors: Sequence[int], is_ahead: bool
    ) -> tuple[int, pads.Pad, int]:
        """As :meth:`Placing.place_call`; at a stop there may be more landings than are left."""
        try:
            return self._placing.place_call(area, site, index, sectors)
        except returns.NoLandingError:
            if is_ahead or not self._foothold.more_for_sites(area, site.address):
                raise
            return self._placing.place_call(area, site, index, sectors)

    # ------------------------------------------------------------ through relays

    def relay(self, address: int, instead_of: Patch | None = None) -> Relay | None:
        """Where a short jump at ``address`` can go through. The relay of the patch that is to be
        replaced is free."""
        taken = [p for p in self._taken() if p is not instead_of]
        taken += [p.through for p in taken if p.through is not None]
        for relay in relays(self._program, address):
            is_free = all(relay.end <= p.address or relay.start >= p.end for p in taken)
            if is_free and not self._displacing.user_stands_in(relay.start, relay.end):
                return relay
        return None

    def _lead_through(self, relay: Relay, area: Area, pad: int, kind: int) -> Patch:
        """Lets ``relay`` lead to ``pad``; ``kind`` is that of the patch that jumps there.

        Raises:
            OutOfReachError: what stood there cannot be run elsewhere.
        """
        origin: int | None = None
        moved: dict[int, int] = {}
        if relay.displaced:
            origin, own = self._placing.place(
                area, None, None, lambda at: pads.relay_pad(relay, at)
            )
            moved = {at: origin + offset for at, offset in own.moved.items()}
        patch = pads.patch_relay(relay, pad, origin)
        made = Patch(
            address=relay.start,
            original=self._program.read(relay.start, len(patch)),
            bytes=patch,
            index=self._placing.new_index(),
            pad=pad,
            pad_back=0,
            moved=moved,
            displaced=relay.displaced,
            is_relay=True,
        )
        self._write_site(made, {"kind": kind, "timed": 0})
        return made

    def _write_site(self, made: Patch, more: SiteValues) -> None:
        """Tells the agent of a pad that is at an entry."""
        row: SiteValues = {
            "pad_back": made.pad_back,
            "address": made.address,
            "original": made.original,
            "length": len(made.original),
            "lead": _lead(made),
            **more,
        }
        self._tables.sites.write(made.index, **row)
