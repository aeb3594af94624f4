"""Which processor's pads they are: who answers what :mod:`darc.pads.architecture` asks for."""

from __future__ import annotations

from typing import cast

from darc.code.x86_64 import Instruction
from darc.pads import x86_64, x86_64_cells, x86_64_waypoints
from darc.pads.architecture import CellWriter, PadWriter, WaypointWriter
from darc.pads.architecture import F0Code as F0Code
from darc.pads.architecture import OutOfReachError as OutOfReachError
from darc.pads.architecture import Pad as Pad
from darc.pads.architecture import Sieve as Sieve
from darc.pads.architecture import Stubs as Stubs

_OWN: PadWriter[Instruction] = x86_64

WRITER = cast("PadWriter", _OWN)
"""It is given the instructions of the same processor's reader alone."""
CELLS: CellWriter = x86_64_cells
WAYPOINTS: WaypointWriter = x86_64_waypoints

SECTOR, NEAR, NO_ROOM = WRITER.SECTOR, WRITER.NEAR, WRITER.NO_ROOM
call_pad = WRITER.call_pad
tail_pad = WRITER.tail_pad
entry_pad = WRITER.entry_pad
f0_pad = WRITER.f0_pad
relay_pad = WRITER.relay_pad
landing_call = WRITER.landing_call
landed = WRITER.landed
patch_bytes = WRITER.patch_bytes
measured_call = WRITER.measured_call
patch_short_site = WRITER.patch_short_site
patch_short = WRITER.patch_short
patch_relay = WRITER.patch_relay
patch_tail = WRITER.patch_tail
