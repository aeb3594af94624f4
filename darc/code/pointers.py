"""Addresses of code that stand in a file's data.

Hand-written assembly may be entered there, besides where its functions begin: at a label whose
address is in a table. Compilers' own tables, of ``switch``, are read from the code that uses them.

Addresses are the file's own.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator, Sequence

from darc.code.damaged import where_damaged
from darc.code.headers import Headers, Section, Segment, segment_at
from darc.code.processor import RELOCATIONS

_SHT_RELA, _SHT_PROGBITS, _SHT_RELR = 4, 1, 19
_EXECUTABLE = 2
"""``e_type`` of a program that is loaded where it says (ELF gABI, ET_EXEC): nothing relocates what
is in its data."""

_MOST_DATA = 8 << 20
"""Bytes of such a program's data that are looked through."""


class CodePointers:
    """Those of one module's file."""

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    def lie_between(self, start: int, end: int) -> bool:
        """Whether one leads between ``start`` and ``end``, both excluded."""
        known = self._sorted
        at = bisect.bisect_right(known, start)
        return at < len(known) and known[at] < end

    @functools.cached_property
    @where_damaged(list)
    def _sorted(self) -> list[int]:
        code = [one for one in self._headers.segments if one.executable]
        found = set[int]()
        for section in self._headers.sections:
            if section.kind == _SHT_RELA:
                words = _words(self._headers.data(section))
                found.update(_relative(words))
            elif section.kind == _SHT_RELR:
                found.update(self._packed(_words(self._headers.data(section))))
            elif self._is_data(section):
                found.update(_words(self._headers.data(section)))
        return sorted(one for one in found if segment_at(code, one) is not None)

    def _is_data(self, section: Section) -> bool:
        if self._headers.kind != _EXECUTABLE or section.kind != _SHT_PROGBITS:
            return False
        return section.is_loaded and not section.is_code and section.size <= _MOST_DATA

    def _packed(self, words: Sequence[int]) -> Iterator[int]:
        """What stands at the places that ``SHT_RELR`` tells of: an address, and bits for the words
        behind it."""
        at = 0
        for word in words:
            if not word & 1:
                yield from self._at(word)
                at = word + 8
                continue
            for bit in range(63):
                if word >> (bit + 1) & 1:
                    yield from self._at(at + 8 * bit)
            at += 8 * 63

    def _at(self, place: int) -> Iterable[int]:
        segment: Segment | None = segment_at(self._headers.segments, place)
        if segment is not None:
            data = self._headers.content.read(segment.offset + place - segment.address, 8)
            yield from _words(data)


def _words(data: bytes) -> memoryview[int]:
    return memoryview(data)[: len(data) // 8 * 8].cast("Q")


def _relative(words: memoryview[int]) -> Iterator[int]:
    """The addends of relocations that only add where the file is loaded."""
    whole = words[: len(words) // 3 * 3].tolist()
    kinds, addends = whole[1::3], whole[2::3]
    relative = RELOCATIONS.relative
    return (addend for kind, addend in zip(kinds, addends, strict=True) if kind == relative)
