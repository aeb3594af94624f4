"""The program's own bytes where darc has written over them."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, MutableMapping


class Overlay(MutableMapping[int, bytes]):
    """Original bytes by the address where they stood, sorted: thousands of places are patched, and
    code is read thousands of times."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._bytes: dict[int, bytes] = {}
        self._longest = 0

    def __getitem__(self, address: int) -> bytes:
        return self._bytes[address]

    def __setitem__(self, address: int, original: bytes) -> None:
        if address not in self._bytes:
            bisect.insort(self._starts, address)
        self._bytes[address] = original
        self._longest = max(self._longest, len(original))

    def __delitem__(self, address: int) -> None:
        del self._bytes[address]
        del self._starts[bisect.bisect_left(self._starts, address)]

    def __iter__(self) -> Iterator[int]:
        return iter(self._starts)

    def __len__(self) -> int:
        return len(self._starts)

    def over(self, address: int, data: bytes) -> bytes:
        """``data`` as it would have been read at ``address`` from the program without darc."""
        end = address + len(data)
        first = bisect.bisect_left(self._starts, address - self._longest + 1)
        last = bisect.bisect_left(self._starts, end, first)
        if first == last:
            return data
        changed = bytearray(data)
        for start in self._starts[first:last]:
            original = self._bytes[start]
            low, high = max(start, address), min(start + len(original), end)
            if low < high:
                changed[low - address : high - address] = original[low - start : high - start]
        return bytes(changed)
