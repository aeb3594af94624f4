"""Waypoints: where a jump leads that shares its last bytes with what was there before.

A kernel writes ``call *%rax`` and a nop of three bytes where its compiler wrote a call of five. A
task may sleep in that call for days and then come back to the nop. So a jump of five bytes may
stand there only if its last three are an instruction as well, one that does no harm: the jump's
distance is chosen so. (*Punning*: Chamith, Svensson, Dalessandro, Newton, "Instruction Punning",
PLDI 2017.)

Such distances are rare, so the jump leads to a waypoint, five bytes at one of the addresses in
question, and that leads on to the pad.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from darc.code.architecture import Site
from darc.code.processor import PATCH_LENGTH

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
_JUMP = 0xE9
_PREFIX = b"\x2e"  # means nothing before a jump

SIZE = 7 << 20
"""Bytes in which every site with a nop of three bytes finds waypoints: no two of the above are
further apart. One in seven of those with a nop of two finds none."""


class Waypoints:
    """Memory for waypoints. What was used once is never used for another jump, as a task may be
    about to go on there for a long time."""

    def __init__(
        self,
        base: int,
        size: int,
        read: Callable[[int, int], bytes],
        write: Callable[[int, bytes], None],
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
        for address in places(end, site.nop, self.base, self.size):
            if self._read(address, 1)[0] != _JUMP:  # where something leads on from, it does
                self._write(address, _jump(address + PATCH_LENGTH, pad))
                return _PREFIX * (site.length - PATCH_LENGTH) + _jump(end, address)
        return None


def places(end: int, nop: int, base: int, size: int) -> Iterator[int]:
    """Where a jump that ends at ``end`` may lead, in the memory from ``base`` on, if its last
    ``nop`` bytes are to do no harm."""
    free = PATCH_LENGTH - 1 - nop  # bytes of the distance, the least ones
    for beginning in _HARMLESS.get(nop, ()):
        distance = int.from_bytes(bytes(free) + beginning, "little")
        first = base + (end + distance - base) % _PERIOD
        for start in (first - _PERIOD, first):
            low, high = max(start, base), min(start + (1 << 8 * free), base + size - PATCH_LENGTH)
            yield from range(-(-low // _SLOT) * _SLOT, high, _SLOT)


def _jump(end: int, target: int) -> bytes:
    return bytes([_JUMP]) + struct.pack("<i", target - end)
