"""The table by which a dynamic linker finds a symbol (``.gnu.hash``; glibc, ``dl-lookup.c``)."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator

_HEADER = struct.Struct("<IIII")


class GnuHash:
    """Raises struct.error where the table is damaged, here and in :meth:`look_up`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bucket_count, self._first, self._words, self._shift = _HEADER.unpack_from(data)
        self._buckets_at = _HEADER.size + 8 * self._words
        self._chains_at = self._buckets_at + 4 * self._bucket_count

    def look_up(self, name: bytes) -> Iterator[int]:
        """The numbers of symbols that may be called so: their names are to be compared."""
        if not (self._words and self._bucket_count):
            return
        wanted = _hash(name)
        (word,) = struct.unpack_from(
            "<Q", self._data, _HEADER.size + 8 * (wanted // 64 % self._words)
        )
        if not (word >> wanted % 64 & word >> (wanted >> self._shift % 32) % 64 & 1):
            return
        at = self._buckets_at + 4 * (wanted % self._bucket_count)
        (number,) = struct.unpack_from("<I", self._data, at)
        if number < self._first:
            return
        while True:
            at = self._chains_at + 4 * (number - self._first)
            (found,) = struct.unpack_from("<I", self._data, at)
            if found | 1 == wanted | 1:
                yield number
            if found & 1:  # the last of its chain
                return
            number += 1


@functools.lru_cache(maxsize=4096)
def _hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
