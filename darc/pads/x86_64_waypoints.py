"""Punned jumps on x86-64, and the waypoints that they lead to (see :mod:`darc.pads.waypoints`).

A kernel writes ``call *%rax`` and a nop of three bytes where its compiler wrote a call of five. A
jump of five bytes may stand there if its last three are an instruction as well, one that does no
harm: the jump's distance is chosen so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from darc.code.x86_64 import PATCH_LENGTH

_PERIOD = 1 << 24
"""The last byte of the distance may be any."""

_TEST_AL, _COMPARE_AL = 0xA8, 0x3C
_HARMLESS: dict[int, tuple[bytes, ...]] = {
    2: (bytes([_TEST_AL]), bytes([_COMPARE_AL])),
    3: (
        *(bytes([rex, code]) for code in (_TEST_AL, _COMPARE_AL) for rex in range(0x40, 0x50)),
        *(bytes([0x83, register]) for register in range(0xF8, 0x100)),  # compare with a constant
        *(bytes([0x80, register]) for register in range(0xF8, 0x100)),
        *(bytes([0xF6, register]) for register in range(0xC0, 0xC8)),  # test a constant
        b"\xeb\x01",  # jump over the last byte
    ),
}
"""By the length of the nop: how instructions of that length begin that change no more than flags,
which are dead where a call returns, whatever their last byte is."""

_SLOT = 8
_JUMP = b"\xe9"
_PREFIX = b"\x2e"  # means nothing before a jump

SIZE = 7 << 20
"""Every site with a nop of three bytes finds waypoints in so many: no two of the above are further
apart. One in seven of those with a nop of two finds none."""


def places(end: int, nop: int, base: int, size: int) -> Iterator[int]:
    """See :meth:`~darc.pads.architecture.WaypointWriter.places`."""
    free = PATCH_LENGTH - 1 - nop  # bytes of the distance, the least ones
    for beginning in _HARMLESS.get(nop, ()):
        distance = int.from_bytes(bytes(free) + beginning, "little")
        first = base + (end + distance - base) % _PERIOD
        for start in (first - _PERIOD, first):
            low, high = max(start, base), min(start + (1 << 8 * free), base + size - PATCH_LENGTH)
            yield from range(-(-low // _SLOT) * _SLOT, high, _SLOT)


def is_used(code: bytes) -> bool:
    """See :meth:`~darc.pads.architecture.WaypointWriter.is_used`."""
    return code[:1] == _JUMP


def waypoint(address: int, target: int) -> bytes:
    """See :meth:`~darc.pads.architecture.WaypointWriter.waypoint`."""
    return _jump(address + PATCH_LENGTH, target)


def punned(length: int, end: int, target: int) -> bytes:
    """See :meth:`~darc.pads.architecture.WaypointWriter.punned`."""
    return _PREFIX * (length - PATCH_LENGTH) + _jump(end, target)


def _jump(end: int, target: int) -> bytes:
    return _JUMP + struct.pack("<i", target - end)
