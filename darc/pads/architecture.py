"""What darc asks of a processor's pads, and the values that it speaks of.

See :mod:`darc.code.architecture` for all that a second architecture brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from darc.code.architecture import Own_contra, Prologue, Site
from darc.code.relays import Relay
from darc.model.errors import DarcError
from darc.model.ftree import CallKind


class OutOfReachError(DarcError):
    """A jump or a memory operand does not reach its target from the pad's place."""


TARGET = "target"
"""The name of a pad's constant that has the address of what it calls."""


@dataclass(frozen=True)
class Pad:
    """Finished bytes. ``back`` is the offset of the return point, or of where the landing leads on
    to, ``body`` of where f0's pad goes on with it, ``cells`` the offsets of 8-byte constants by
    name, ``frames`` (offset, bytes from the stack pointer up to the slot) for unwinding, ``moved``
    the offsets of displaced instructions by their own addresses."""

    code: bytes
    back: int | None
    cells: dict[str, int]
    frames: tuple[tuple[int, int], ...]
    moved: dict[int, int]
    body: int | None = None

    @property
    def target(self) -> int:
        """The offset of the constant that has the address of what it calls; 0 where it has none."""
        return self.cells.get(TARGET, 0)


@dataclass(frozen=True)
class Stubs:
    """Absolute addresses of the agent's stubs."""

    call: int
    indirect: int
    returned: int
    tail: int
    entry: int
    leave: int
    landed: int


@dataclass(frozen=True)
class Sieve:
    """At the entry of a function that releases the object that is its first argument: where the
    agent counts who waits for objects of one hash. Where that is 0 it is not called."""

    counts: int
    """The address of the counts, 32 bits each."""
    factor: int
    shift: int
    """A hash is ``object * factor >> shift``, in 64 bits."""


@dataclass(frozen=True)
class F0Code:
    """The agent's code that stands in f0's own pad, before and after the call, and the addresses
    that constants in it stand for."""

    enter: bytes
    leave: bytes
    addresses: Mapping[int, int]


class PadWriter(Protocol[Own_contra]):
    """Writes the code of pads, landings and patches of one architecture."""

    SECTOR: int
    """Pads live in one aligned sector of this many bytes each."""
    NEAR: int
    """How far a jump reaches, in bytes, with room for the instruction itself."""
    NO_ROOM: str
    """Why there is no pad for a place where no memory is that near, for the user."""

    def call_pad(
        self,
        site: Site[Own_contra],
        site_data: int,
        sectors: Sequence[int],
        *,
        stubs: Stubs,
        origin: int,
        landing: int | None = None,
    ) -> Pad:
        """The pad of a call site, to stand at ``origin``; one that ``is_jumped_from`` jumps to it.
        ``landing`` is where the call of a landing comes back to, which is made there then
        (:meth:`landing_call`): the pad leads to that call's first byte.

        Raises:
            OutOfReachError: the program's code or data is too far from ``origin``.
        """

    def tail_pad(
        self,
        site: Site[Own_contra],
        site_data: int,
        sectors: Sequence[int],
        *,
        stubs: Stubs,
        origin: int,
    ) -> Pad:
        """The pad of a tail jump: the agent is told, the stack is not touched, not even the red
        zone, which a function that makes no calls may have in use up to here."""

    def entry_pad(
        self,
        prologue: Prologue[Own_contra],
        site_data: int,
        stubs: Stubs,
        *,
        origin: int,
        lands: bool = False,
        sieve: Sieve | None = None,
    ) -> Pad:
        """The pad at a function's entry that tells the agent, unless the ``sieve`` finds that there
        is nothing to tell, and may call the rest of the function.

        Raises:
            OutOfReachError: the program's code or data is too far from ``origin``.
        """

    def f0_pad(self, prologue: Prologue[Own_contra], code: F0Code, origin: int) -> Pad:
        """The pad at f0's entry, which does itself what is done for most calls; else as
        :func:`entry_pad`."""

    def relay_pad(self, relay: Relay[Own_contra], origin: int) -> Pad:
        """Runs the instructions that stood where a relay is, and goes on behind them.

        Raises:
            OutOfReachError: the program's data is too far from ``origin``.
        """

    def landing_call(self, site: Site[Own_contra], back: int, constant: int) -> bytes:
        """The call of ``site`` that ends at ``back``, in a landing. What is out of its reach stands
        at ``constant``, the ``target`` of the site's pad. How long it is does not depend on that.

        Raises:
            OutOfReachError: the program's data is too far away.
        """

    def landed(self, control: int, stub: int, origin: int) -> bytes:
        """What f0's landings lead to, at ``origin``: the agent is told that a call has returned."""

    def patch_bytes(self, kind: CallKind | None, address: int, length: int, target: int) -> bytes:
        """One instruction of exactly ``length`` bytes at ``address`` that calls (or, for a tail
        jump or a function's entry, jumps to) ``target``.

        Raises:
            OutOfReachError: ``target`` is too far away.
        """

    def measured_call(self, kind: CallKind, address: int, target: int) -> bytes:
        """The call at ``address`` in whose place ``darc_calibrate_once`` of the agent calls a pad:
        of ``target``, or through the register in which it has that."""

    def patch_short_site(self, site: Site[Own_contra], target: int) -> bytes:
        """The patch of a site that has no room for a long jump.

        Raises:
            OutOfReachError: ``target`` is too far away for a short jump.
        """

    def patch_short(self, address: int, target: int) -> bytes:
        """The shortest jump (``SHORT_JUMP``), at ``address``.

        Raises:
            OutOfReachError: ``target`` is too far away for a short jump.
        """

    def patch_relay(self, relay: Relay[Own_contra], target: int, displaced: int | None) -> bytes:
        """What a relay is made of: a jump to ``target``, behind one to ``displaced`` if any."""

    def patch_tail(self, site: Site[Own_contra], target: int) -> bytes:
        """The patch of a tail jump, conditional or not.

        Raises:
            OutOfReachError: ``target`` is too far away.
        """


class CellWriter(Protocol):
    """Writes the cells of return landings (see :mod:`darc.pads.returns`). ``code`` is that of a
    whole one, which stands at ``cell``."""

    UNUSED: bytes
    """One that nothing leads to."""
    RETIRED: bytes
    """What retired cells call: it puts the program's own return address in the place of the cell's,
    and goes on to what stands behind the return there."""

    def of_site(self, call: bytes, cell: int, word: int, pad: int) -> bytes:
        """A site's: ``call`` ends where is returned to; then what stands at ``word`` is where the
        caller goes on, and ``pad`` is next."""

    def of_caller(self, cell: int, word: int, body: int, common: int) -> bytes:
        """One of f0's callers: what stands at ``body`` is called; then as above, and ``common`` is
        next. It may be moved together with all of these."""

    def returning(self, code: bytes) -> bytes:
        """The same cell, which goes nowhere any more, but returns."""

    def returning_with(self, code: bytes, cell: int, called: int) -> bytes | None:
        """The same, with what it ``called`` behind the return; ``None``: that is too far away."""

    def called_behind(self, code: bytes, cell: int) -> int:
        """What stands there behind the return."""

    def called(self, code: bytes, cell: int) -> int | None:
        """What a site's cell calls directly; ``None``: it does not."""

    def calling(self, code: bytes, cell: int, target: int) -> bytes:
        """The same of one that does, which calls ``target``."""

    def slot_in_cell(self, part: int, stack: int, *, is_callers: bool) -> int:
        """The slot of the call that a thread makes or has made in a cell, so many bytes from its
        begin, where its stack pointer is ``stack``; ``is_callers``: it is one of f0's callers."""

    def slot_in_retired(self, part: int, stack: int) -> int:
        """The same within :attr:`RETIRED`."""

    def slot_in_common(self, part: int, stack: int) -> int:
        """The same within what f0's cells lead to (:meth:`PadWriter.landed`)."""


class WaypointWriter(Protocol):
    """Writes jumps that share their last bytes with what was there before, and the waypoints that
    these lead to (see :mod:`darc.pads.waypoints`)."""

    SIZE: int
    """Bytes of memory in which sites find waypoints."""

    def places(self, end: int, nop: int, base: int, size: int) -> Iterator[int]:
        """Where a jump that ends at ``end`` may lead, in the memory from ``base`` on, if its last
        ``nop`` bytes are to do no harm."""

    def is_used(self, code: bytes) -> bool:
        """Whether a waypoint begins with ``code``, a single byte."""

    def waypoint(self, address: int, target: int) -> bytes:
        """The one at ``address`` that leads on to ``target``."""

    def punned(self, length: int, end: int, target: int) -> bytes:
        """What is written over a site and its nop, ``length`` bytes up to ``end``, to lead to
        ``target``, one of the :meth:`places`."""
