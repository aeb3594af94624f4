"""What could be a jump to somewhere in a piece of code."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from darc.code.jumps import jumps_between

BASE = 0x400000
JUMP = re.compile(
    rb"(?=\xe9(?P<near>.{4})|\x0f[\x80-\x8f](?P<far>.{4})|[\xeb\x70-\x7f\xe0-\xe3](?P<short>.))",
    re.DOTALL,
)
LENGTHS = {"near": 5, "far": 6, "short": 2}
PIECES = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([b"\xe9", b"\x0f\x84", b"\xeb", b"\x75", b"\xe3", b"\xe4", b"\x0f"]),
    st.integers(-64, 64).map(lambda far: far.to_bytes(4, "little", signed=True)),
)


def modelled(code: bytes, start: int, end: int) -> list[int]:
    found = []
    for match in JUMP.finditer(code):
        assert match.lastgroup is not None
        far = int.from_bytes(match[match.lastgroup], "little", signed=True)
        if start < BASE + match.start() + LENGTHS[match.lastgroup] + far < end:
            found.append(BASE + match.start())
    return found


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(0, 80), st.integers(0, 16))
def test_all_that_could_be_a_jump_to_there(code: bytes, at: int, size: int) -> None:
    start, end = BASE + at, BASE + at + size
    assert jumps_between(code, BASE, start, end) == modelled(code, start, end)


def test_too_many_are_none() -> None:
    assert jumps_between(b"\xeb\xfe" * 300, BASE, BASE - 1, BASE + 1000) is None
