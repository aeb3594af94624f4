"""What tasks of a kernel did while those of kept ops had no processor (``moments.c``)."""

from __future__ import annotations

import bisect
import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from darc.agent.control import Control
from darc.agent.damage import guarded
from darc.agent.fieldnames import Structure
from darc.agent.layout import words
from darc.agent.rows import KeptMoment, task_name
from darc.target.memory import Read


@guarded
class Moments:
    """Those in the tables that ``control`` belongs to."""

    def __init__(self, control: Control, read: Read) -> None:
        self._control = control
        self._read = read

    def during(
        self, times: Iterable[tuple[int, int]], tasks: Iterable[int]
    ) -> tuple[list[KeptMoment], int]:
        """Those in any of these stretches of the TSC, by time, and since when none is missing; with
        the stacks of those who wake ``tasks``, of who wakes these, and so on. The program stands
        still, for as long as this takes."""
        blob, room = self._control.blob, self._control.layout.room.moments
        wanted = _merged(times)
        written = self._control.moment_next if room else 0
        if not wanted or not written:
            return [], 0
        size, first = (
            blob.sizes[Structure.MOMENT],
            self._control.base + self._control.layout.moments,
        )
        raw = self._read(first, size * min(written, room))
        rows = list(_ROW.iter_unpack(raw))
        since = min(filter(None, (row[0] for row in rows)), default=0) if written > room else 0
        kept = [n for n, row in enumerate(rows) if _is_in(row[0], wanted)]
        asked = self._with_wakers([rows[number] for number in kept], set(tasks))
        of_kinds = {
            blob.constants.named(kind) for kind in ("DARC_MOMENT_SWITCH", "DARC_MOMENT_WAKE")
        }
        has_stack = [n for n in kept if rows[n][1] in of_kinds and rows[n][3] in asked]
        stacks = self._stacks(has_stack, first + room * size)
        found = [_moment(rows[n], stacks.get(n, ())) for n in kept]
        return sorted(found, key=lambda moment: moment.time), since

    def _with_wakers(self, rows: list[tuple[Any, ...]], tasks: set[int]) -> set[int]:
        wake, wakers = self._control.blob.constants.MOMENT_WAKE, defaultdict(set)
        for row in rows:
            if row[1] == wake:
                wakers[row[3]].add(row[4])
        fresh = tasks
        while fresh := set().union(*(wakers[task] for task in fresh)) - tasks:
            tasks = tasks | fresh
        return tasks

    def _stacks(self, numbers: list[int], first: int) -> dict[int, tuple[int, ...]]:
        """By the numbers, which are in order; those that stand together are read together."""
        size = self._control.blob.sizes[Structure.WORDS]
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


_ROW = struct.Struct("<Q4I5Q16s")
"""``struct darc_moment``, whose fields are those of :class:`KeptMoment`."""

_GAP = 4
"""So many stacks are rather read than left out: a packet takes as long."""


def _moment(row: tuple[Any, ...], stack: tuple[int, ...]) -> KeptMoment:
    return KeptMoment(*(*row[:-1], task_name(row[-1]), stack))


def _merged(times: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same stretches, by time, none of which touches another one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(times):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _is_in(time: int, stretches: list[tuple[int, int]]) -> bool:
    place = bisect.bisect_right(stretches, (time, 1 << 64)) - 1
    return place >= 0 and stretches[place][0] <= time <= stretches[place][1]
