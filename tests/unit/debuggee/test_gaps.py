"""Where in a process there is room for pads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from darc.code.processor import PROGRAMS_END
from darc.debuggee.gaps import far_from_all, gaps
from darc.pads import processor as pads
from darc.target.memory import PAGE
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
        assert place + _SIZE <= PROGRAMS_END
        assert max(high, place + _SIZE) - min(low, place) < pads.NEAR
        assert all(place + _SIZE < one.start or one.end < place for one in mapped)


def test_stacks_of_the_programs_own_making_have_room_to_grow() -> None:
    """A mapping that may be one, just above the free place that is next to the code."""
    low, high = 0x7FFF_F7A1_E000, 0x7FFF_F7FF_F000
    stack = Region(start=low - 0x3000, end=low, permissions="rw-p", offset=0, path="")
    mapped = [stack, region(low, high, "/usr/lib/libc.so.6")]
    found = list(gaps(mapped, low, high, _SIZE))
    assert found
    assert all(place > high or place + _SIZE + (8 << 20) < stack.start for place in found)


@given(
    st.lists(st.tuples(st.integers(16, 1 << 35), st.integers(1, 1 << 20)), max_size=30),
    st.integers(1, 1 << 12),
)
def test_tables_are_far_from_all(placed: list[tuple[int, int]], pages: int) -> None:
    mapped, at = [], 0
    for start, count in sorted(placed):
        first = max(at, start)
        at = first + count
        mapped.append(region(first * PAGE, at * PAGE))
    size = pages * PAGE
    place = far_from_all(mapped, size)
    assert place is not None, "there is always room in 128 TiB"
    assert place % PAGE == 0
    assert place + size <= PROGRAMS_END
    far = 1 << 30
    assert all(place + size + far <= one.start or one.end + far <= place for one in mapped)


def test_no_room_for_tables() -> None:
    assert far_from_all([region(0, PROGRAMS_END)], PAGE) is None
