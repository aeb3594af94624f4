"""Where in a process there is room for pads."""

from __future__ import annotations

from darc.debuggee.gaps import _HIGHEST, gaps
from darc.pads import processor as pads
from darc.target.target import Region

_SIZE = 1 << 18


def region(start: int, end: int, path: str = "") -> Region:
    return Region(start=start, end=end, permissions="r-xp", offset=0, path=path)


def test_nothing_is_offered_beyond_what_a_program_may_have() -> None:
    """Where gdb starts a program, its libraries are just below the stack, which is at the top."""
    low, high = 0x7FFF_F7A1_E000, 0x7FFF_F7FF_F000
    mapped = [
        region(low, high, "/usr/lib/libc.so.6"),
        region(0x7FFF_FFFD_E000, 0x7FFF_FFFF_F000, "[stack]"),
        region(0xFFFF_FFFF_FF60_0000, 0xFFFF_FFFF_FF60_1000, "[vsyscall]"),
    ]
    found = list(gaps(mapped, low, high, _SIZE))
    assert found
    for place in found:
        assert place + _SIZE <= _HIGHEST
        assert max(high, place + _SIZE) - min(low, place) < pads.NEAR
        assert all(place + _SIZE < one.start or one.end < place for one in mapped)
