"""The words of a stack that ends anywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from darc.collectors.walkstacks import StackWords
from darc.model.errors import TargetError

_TOP = 0x7FFF0000


@given(words=st.integers(1, 40_000), asked=st.data())
def test_a_stack_is_read_to_its_end(words: int, asked: st.DataObject) -> None:
    """Every word that is there, and none behind: that of the first thread ends where nothing
    follows, and who began it stands last."""
    end = _TOP + 8 * words

    def read(address: int, size: int) -> bytes:
        if not _TOP <= address <= address + size <= end:
            raise TargetError("cannot read memory")
        return b"".join(at.to_bytes(8, "little") for at in range(address, address + size, 8))

    stack = StackWords(read, _TOP)
    numbers = asked.draw(st.lists(st.integers(0, words + 10_000), max_size=20))
    for number in (*numbers, words - 1):
        at = _TOP + 8 * number
        assert stack.at(at) == (at if number < words else None)
