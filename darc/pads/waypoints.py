"""Waypoints: where a jump leads that shares its last bytes with what was there before.

A kernel writes a call of two bytes, through a register, and a nop of three where its compiler wrote
a call of five. A task may sleep in that call for days and then come back to the nop. So a jump of
five bytes may stand there only if its last three are an instruction as well, one that does no harm:
the jump's distance is chosen so. (*Punning*: Chamith, Svensson, Dalessandro, Newton, "Instruction
Punning", PLDI 2017.)

Such distances are rare, so the jump leads to a waypoint, five bytes at one of the addresses in
question, and that leads on to the pad.
"""

from __future__ import annotations

from darc.code.architecture import Site
from darc.pads.processor import WAYPOINTS
from darc.target.memory import Read, Write

SIZE = WAYPOINTS.SIZE
"""Bytes of memory in which sites find waypoints."""


class Waypoints:
    """Memory for waypoints. What was used once is never used for another jump, as a task may be
    about to go on there for a long time."""

    def __init__(
        self,
        base: int,
        size: int,
        read: Read,
        write: Write,
    ) -> None:
        """The memory may have any content."""
        self.base = base
        self.size = size
        self._read = read
        self._write = write

    def lead(self, site: Site, pad: int) -> bytes | None:
        """What to write over ``site`` (see :attr:`~darc.code.architecture.Site.nop`) and its nop,
        to lead to ``pad``; ``None`` where no waypoint is left for it."""
        end = site.address + site.length
        for address in WAYPOINTS.places(end, site.nop, self.base, self.size):
            if not WAYPOINTS.is_used(self._read(address, 1)):  # where something leads on, it does
                self._write(address, WAYPOINTS.waypoint(address, pad))
                return WAYPOINTS.punned(site.length, end, address)
        return None
