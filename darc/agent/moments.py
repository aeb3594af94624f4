"""What tasks of a kernel did while those of kept ops had no processor (``moments.c``)."""

from __future__ import annotations

from collections.abc import Iterable

from darc.agent import words
from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.layout import Read
from darc.agent.rows import KeptMoment, task_name


@guarded
class Moments:
    """Those in the tables that ``control`` belongs to."""

    def __init__(self, control: Control, read: Read) -> None:
        self._control = control
        self._read = read

    def during(self, times: Iterable[tuple[int, int]]) -> tuple[list[KeptMoment], int]:
        """Those in any of these stretches of the TSC, by time, with their stacks, and since when
        none is missing. The program stands still."""
        blob, room = self._control.blob, self._control.layout.room.moments
        wanted = sorted(times)
        written = self._control.moment_next if room else 0
        if not wanted or not written:
            return [], 0
        size, first = blob.sizes["darc_moment"], self._control.base + self._control.layout.moments
        raw = self._read(first, size * min(written, room))
        rows = [raw[at : at + size] for at in range(0, len(raw), size)]
        clock = [words(row[:8])[0] for row in rows]
        since = min(filter(None, clock), default=0) if written > room else 0
        kept = [n for n, time in enumerate(clock) if any(a <= time <= b for a, b in wanted)]
        stacks = self._stacks(kept, first + room * size)
        found = [self._moment(rows[number], stacks[number]) for number in kept]
        return sorted(found, key=lambda moment: moment.time), since

    def _stacks(self, numbers: list[int], first: int) -> dict[int, tuple[int, ...]]:
        """By the numbers, which are in order; those that stand together are read together."""
        size = self._control.blob.sizes["darc_words"]
        found: dict[int, tuple[int, ...]] = {}
        while numbers:
            count = 1
            while count < len(numbers) and numbers[count] <= numbers[count - 1] + _GAP:
                count += 1
            begin, end = numbers[0], numbers[count - 1] + 1
            raw = self._read(first + begin * size, (end - begin) * size)
            for number in numbers[:count]:
                at = (number - begin) * size
                found[number] = words(raw[at : at + size])
            numbers = numbers[count:]
        return found

    def _moment(self, row: bytes, stack: tuple[int, ...]) -> KeptMoment:
        blob = self._control.blob
        at, size = blob.fields["darc_moment.name"]
        values = blob.unpack("darc_moment", row)
        return KeptMoment(**values, words=stack, name=task_name(row[at : at + size]))


_GAP = 4
"""So many stacks are rather read than left out: a packet takes as long."""
