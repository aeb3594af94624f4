"""Copies of stacks: where coroutines share one, those that wait have theirs somewhere in memory.

Return addresses that lead to landings come back from there whenever it pleases the program, and
return, as landings stay. But an exception cannot go through such a frame once the unwinder has no
guard any more. So at a stop at which guards are taken out, memory is looked through, and such words
are replaced by the program's own return addresses. That is right, as both lead to the same place,
but for what a signal's handler that came upon the agent or a pad has in its frame: with such an
address in a register they may be about to work out another one from it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from darc.debuggee.gaps import without
from darc.debuggee.procfs import MemoryFile
from darc.debuggee.wordscan import WordScan, is_saved_register, own_pages
from darc.pads.returns import Replaced
from darc.target.target import Region

LIMIT = 1 << 30
"""Bytes that are looked through at most."""

LARGEST = 1 << 36
"""Bytes of a mapping that is looked through at most. What is larger was reserved, as sanitizers do
for terabytes of shadow memory: to ask which of its pages are there takes longer than the rest."""


def replace(
    memory: MemoryFile,
    pid: int,
    *,
    mapped: Sequence[Region],
    own: Mapping[int, int],
    besides: Sequence[range],
    code: Sequence[range],
    replaced: list[Replaced],
) -> bool:
    """Replaces each word in ``pid``'s writable memory that is a key of ``own``, the return
    addresses that lead to landings, but for those in ``besides`` and in registers that were saved
    as handlers of signals came upon darc's ``code``, and notes it in ``replaced``.
    ``False``: there is more memory than is looked through."""
    left = LIMIT
    scan = WordScan([range(address, address + 1) for address in own])
    for part in _resident(pid, mapped, besides):
        left -= len(part)
        if left < 0:
            return False
        for place, word in scan.words(memory, part, passes_over=True):
            if word in own and not is_saved_register(memory, place, code):
                replaced.append(Replaced(place, word, own[word]))
                memory.write(place, struct.pack("<Q", own[word]))
    return True


def _resident(pid: int, mapped: Sequence[Region], besides: Sequence[range]) -> Iterator[range]:
    """What the program has ever written to, of its private writable memory."""
    return own_pages(
        pid,
        (
            part
            for region in mapped
            if region.permissions.startswith("rw")
            and region.permissions.endswith("p")
            and region.end - region.start <= LARGEST
            for part in without(range(region.start, region.end), besides)
        ),
    )
