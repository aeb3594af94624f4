"""Looks for words that lead into given ranges, in a program's memory, as fast as that can be read,
for copies of darc's jumps, and for the pages that may have such.

``libwordscan.so`` is made of ``wordscan.c`` when the package is built.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path

from darc.agent.rows import Lead
from darc.code.processor import GUARD_TURN, LONGEST_JUMP, PATCH_LENGTH, SIGNAL_FRAME
from darc.debuggee.procfs import MemoryFile, why
from darc.model.errors import TargetError
from darc.target import living
from darc.target.memory import PAGE

_BLOCK = 1 << 16
_FARTHEST = 1 << 32
"""Bytes between two ranges that share a cluster, at most: a table has a byte for each block."""

_CHUNK = 1 << 18
"""Bytes that are read at a time: they are looked through while the processor has them near."""

_ROOM = 4096

_CARRIED = 8
"""Bytes of the chunk before that are looked at once more: what leads somewhere may begin there."""

_DISTANCE = 4
"""Bytes of a direct jump's or call's distance, which are its last ones."""

_DISTANCES = (1 << 8 * _DISTANCE) - 1
_TELLING = 40
"""Bits of an address below those that tell it from most other numbers."""

_BEHIND = 16
"""Bytes behind what is in the buffer that may be read, and mean nothing."""

_SIGN = 1 << 8 * _DISTANCE - 1
_KEYS = 1 << 16

_AROUND_SAVED = 24
"""Bytes before and behind a saved program counter by which it is told."""

_STACKS = 8 << 20
"""Bytes from a signal's frame to where the stack was: the usual limit of a stack."""

_ANYWHERE = (1 << 64) - 1

_ENTRY = 8
_PAGES_ASKED = 1 << 13


class _Cluster(ctypes.Structure):
    _fields_ = (
        ("low", ctypes.c_uint64),
        ("span", ctypes.c_uint64),
        ("blocks", ctypes.c_char_p),
    )


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(Path(__file__).with_name("libwordscan.so")))
    library.wordscan.restype = ctypes.c_size_t
    library.wordscan.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Cluster), ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
    )
    library.hiddenscan.restype = ctypes.c_size_t
    library.hiddenscan.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64),
        *(ctypes.POINTER(_Cluster), ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
    )
    library.oddscan.restype = ctypes.c_size_t
    library.oddscan.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Cluster), ctypes.c_size_t),
        *(ctypes.c_uint8, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
    )
    library.distancescan.restype = ctypes.c_size_t
    library.distancescan.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
    )
    library.savedscan.restype = ctypes.c_size_t
    library.savedscan.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint64),
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)),
    )
    library.ownpages.restype = ctypes.c_size_t
    library.ownpages.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.c_int),
    )
    return library


def own_pages(pid: int, parts: Iterable[range], *, shared: bool = False) -> Iterator[range]:
    """What of ``parts``, ranges of addresses of private memory, is in pages that a process has
    written to. Reading others would take memory for them, or finds a file's bytes. Of ``shared``
    memory: in pages that it has used.

    Raises:
        TargetError: the kernel does not tell.
    """
    try:
        with living.look(pid, _page_map, FileIO.close) as file:
            for part in parts:
                yield from _own(file.fileno(), part, shared)
    except OSError as error:
        raise TargetError(f"cannot read the page map of process {pid}: {why(error)}") from None


def _page_map(its: Path) -> FileIO:
    return (its / "pagemap").open("rb", buffering=0)


def _own(pagemap: int, part: range, shared: bool) -> list[range]:
    found: list[range] = []
    entries = bytearray(_PAGES_ASKED * _ENTRY)
    raw = (ctypes.c_char * len(entries)).from_buffer(entries)
    bounds = (ctypes.c_uint32 * (_PAGES_ASKED + 1))()
    end = part.stop // PAGE
    for first in range(part.start // PAGE, end, _PAGES_ASKED):
        count = min(end - first, _PAGES_ASKED)
        with memoryview(entries)[: count * _ENTRY] as wanted:
            count = os.preadv(pagemap, [wanted], first * _ENTRY) // _ENTRY
        noted = _library().ownpages(raw, count, bounds, shared)
        for begin, stop in zip(bounds[0:noted:2], bounds[1:noted:2], strict=True):
            at = (first + begin) * PAGE
            if found and found[-1].stop == at:
                at = found.pop().start
            found.append(range(at, (first + stop) * PAGE))
    if found:
        found[0] = range(max(found[0].start, part.start), found[0].stop)
    return found


def saved_counters(
    memory: MemoryFile, part: range, *, passes_over: bool = False, farthest: int = _STACKS
) -> Iterator[tuple[int, int]]:
    """Where in ``part`` of the memory, whose bounds are multiples of 8, what looks like a program
    counter is that the kernel has saved for a signal's handler (``struct sigcontext``), and which.
    The stack that the handler came upon is up to ``farthest`` bytes further up. ``passes_over`` as
    :meth:`WordScan.words`."""
    buffer, found = ctypes.create_string_buffer(_CHUNK), (ctypes.c_uint32 * _ROOM)()
    view = memoryview(buffer)
    for at in range(part.start, part.stop - _AROUND_SAVED, _CHUNK - _AROUND_SAVED):
        size = min(_CHUNK, part.stop - at)
        try:
            memory.read_into(at, view[:size])
        except TargetError:
            if not passes_over:
                raise
            continue
        next_word, count = ctypes.c_size_t(1), size // 8
        while next_word.value < count:
            noted = _library().savedscan(
                *(buffer, count, at, farthest, found, _ROOM, ctypes.byref(next_word))
            )
            for number in found[:noted]:
                place = number * 8
                yield at + place, int.from_bytes(view[place : place + 8], "little")


def _shown(word: int, guard: int) -> int:
    turned = (word >> GUARD_TURN | word << 64 - GUARD_TURN) & _ANYWHERE
    return turned ^ guard


def is_saved_counter(memory: MemoryFile, place: int) -> bool:
    """Whether at ``place`` is what looks like a program counter that the kernel has saved for a
    signal's handler, wherever the stack was."""
    part = range(place - 8, place + _AROUND_SAVED)
    saved = saved_counters(memory, part, passes_over=True, farthest=_ANYWHERE)
    return any(at == place for at, _ in saved)


def is_saved_register(memory: MemoryFile, place: int, code: Sequence[range]) -> bool:
    """Whether at ``place`` is what a register had when a signal's handler came upon ``code``,
    wherever the stack was."""
    before = 8 * SIGNAL_FRAME.registers_before
    part = range(place, place + before + 8 + _AROUND_SAVED)
    saved = saved_counters(memory, part, passes_over=True, farthest=_ANYWHERE)
    return any(at - place <= before and any(pc in one for one in code) for at, pc in saved)


class WordScan:
    """Looks for words that lead into one of ``wanted``, ranges of addresses in bytes, or close to
    it: what is found is to be looked at again. Besides for copies of what darc has written into the
    program's code, which ``leads`` to pads: whoever hooks functions saves their first bytes, and
    writes them back one day."""

    def __init__(self, wanted: Sequence[range], leads: Iterable[Lead] = ()) -> None:
        groups: list[list[range]] = []
        for one in sorted(wanted, key=lambda one: one.start):
            if not len(one):
                continue
            if groups and one.stop - groups[-1][0].start <= _FARTHEST:
                groups[-1].append(one)
            else:
                groups.append([one])
        self._clusters = (_Cluster * max(len(groups), 1))(*map(_cluster, groups))
        self._number = len(groups)
        self._distances = {
            (lead.pad - behind) & _DISTANCES: lead.pad
            for lead in leads
            # A jump may have nops behind it, a call prefixes before it.
            for behind in (lead.address + PATCH_LENGTH, lead.address + lead.length)
        }
        self._pads = frozenset(self._distances.values())
        self._by_distance, self._by_pad = _keys(self._distances), _keys(self._pads)
        ends = [one.start for one in wanted] + [one.stop - 1 for one in wanted]
        self._telling = {end >> _TELLING & 0xFF for end in ends}
        self._buffer = ctypes.create_string_buffer(_CARRIED + _CHUNK + _BEHIND)
        self._found = (ctypes.c_uint32 * _ROOM)()

    def words(
        self, memory: MemoryFile, part: range, *, passes_over: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Where in ``part`` of the memory, whose bounds are multiples of 8, such aligned words are,
        and which; and where such copies have their distances, wherever they begin, and to which
        pad they lead. ``passes_over`` what cannot be read, or raises TargetError there: what the
        program alone may read can lead anywhere."""
        for at, size, carried in self._chunks(memory, part, passes_over=passes_over):
            yield from ((at + place, word) for place, word in self._in_buffer(size))
            for place, distance in self._jumps(size, carried, 0, self._by_distance):
                if distance in self._distances:
                    yield at + place, self._distances[distance]

    def pointers(
        self, memory: MemoryFile, part: range, guards: Iterable[int]
    ) -> Iterator[tuple[int, int]]:
        """Where in ``part`` of the memory such aligned words are, and which, as they are or as
        glibc hides stack pointers with one of the ``guards``, turned back.

        Raises:
            TargetError: it cannot be read.
        """
        ways = [None, *guards]
        for at, size, _ in self._chunks(memory, part, passes_over=False):
            for guard in ways:
                yield from ((at + place, word) for place, word in self._in_buffer(size, guard))

    def jumps(self, memory: MemoryFile, part: range) -> Iterator[tuple[int, int]]:
        """The same in memory with code, which may have been moved there: where direct jumps and
        calls have their distances that lead to one of these pads from where they are, and such
        words, wherever they begin. What cannot be read is passed over: nobody writes there what a
        hook is to call."""
        for at, size, carried in self._chunks(memory, part, passes_over=True):
            yield from ((at + place, word) for place, word in self._odd_words(size, carried))
            for place, distance in self._jumps(size, carried, at, self._by_pad):
                behind = at + place + _DISTANCE
                pad = behind + (distance ^ _SIGN) - _SIGN
                if pad in self._pads:
                    yield at + place, pad

    def _chunks(
        self, memory: MemoryFile, part: range, *, passes_over: bool
    ) -> Iterator[tuple[int, int, int]]:
        """Reads ``part`` into the buffer, behind what is carried over: the address and the size of
        each piece, and how many bytes of what is before it are in the buffer."""
        carried, view = 0, memoryview(self._buffer).cast("B")
        for at in range(part.start, part.stop, _CHUNK):
            size = min(_CHUNK, part.stop - at)
            try:
                memory.read_into(at, view[_CARRIED : _CARRIED + size])
            except TargetError:
                if not passes_over:
                    raise
                carried = 0
                continue
            yield at, size, carried
            carried = _CARRIED
            view[:_CARRIED] = view[size : _CARRIED + size]

    def _in_buffer(self, size: int, guard: int | None = None) -> Iterator[tuple[int, int]]:
        """Such words; with a ``guard`` those that glibc has hidden with that, turned back."""
        view, first = memoryview(self._buffer)[_CARRIED:], ctypes.addressof(self._buffer)
        next_word, count = ctypes.c_size_t(0), size // 8
        where = (self._clusters, self._number, self._found, _ROOM, ctypes.byref(next_word))
        while next_word.value < count:
            if guard is None:
                noted = _library().wordscan(first + _CARRIED, count, *where)
            else:
                noted = _library().hiddenscan(first + _CARRIED, count, guard, *where)
            for number in self._found[:noted]:
                place = number * 8
                word = int.from_bytes(view[place : place + 8], "little")
                yield place, word if guard is None else _shown(word, guard)

    def _odd_words(self, size: int, carried: int) -> Iterator[tuple[int, int]]:
        """As :meth:`_in_buffer`, of words that begin anywhere, and seen from behind what is
        ``carried``, in which they may begin."""
        view, end = memoryview(self._buffer), _CARRIED + size
        for telling in self._telling:
            next_byte = ctypes.c_size_t(_CARRIED - carried)
            while next_byte.value < end:
                noted = _library().oddscan(
                    *(self._buffer, end, self._clusters, self._number, telling),
                    *(self._found, _ROOM, ctypes.byref(next_byte)),
                )
                for place in self._found[:noted]:
                    yield place - _CARRIED, int.from_bytes(view[place : place + 8], "little")

    def _jumps(self, size: int, carried: int, at: int, wanted: bytes) -> Iterator[tuple[int, int]]:
        """Where in the buffer, seen from behind what is ``carried``, jumps and calls have distances
        that may be ``wanted``, and which; the buffer's bytes are ``at`` an address, 0: that is no
        matter."""
        if not self._pads:
            return
        view, end = memoryview(self._buffer), _CARRIED + size
        # No more of what was looked at before than may be part of one that is not at its end yet.
        next_byte = ctypes.c_size_t(_CARRIED - min(carried, LONGEST_JUMP - 1))
        while next_byte.value < end:
            noted = _library().distancescan(
                *(self._buffer, end, at and at - _CARRIED, wanted),
                *(self._found, _ROOM, ctypes.byref(next_byte)),
            )
            for place in self._found[:noted]:
                yield place - _CARRIED, int.from_bytes(view[place : place + _DISTANCE], "little")


def _keys(numbers: Iterable[int]) -> bytes:
    """A bit for each of the lower 16 bits that these have."""
    bits = bytearray(_KEYS // 8)
    for number in numbers:
        bits[number % _KEYS // 8] |= 1 << number % 8
    return bytes(bits)


def _cluster(ranges: Sequence[range]) -> _Cluster:
    low = ranges[0].start // _BLOCK * _BLOCK
    blocks = bytearray((max(one.stop for one in ranges) - 1 - low) // _BLOCK + 1)
    for one in ranges:
        first, last = (one.start - low) // _BLOCK, (one.stop - 1 - low) // _BLOCK
        blocks[first : last + 1] = b"\1" * (last + 1 - first)
    return _Cluster(low, len(blocks) * _BLOCK, bytes(blocks))
