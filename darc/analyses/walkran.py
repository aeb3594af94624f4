"""For how long threads had a processor in the windows of a walk, and what has kept them waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from darc.analyses.walkgroups import ThreadGroup
from darc.collectors.manyduties import ThreadStack, Walks


class RanTimes:
    """Of the program that ``walks`` times."""

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._ran: dict[int, tuple[int, int]] = {}
        self._used_up = 0
        """When the window began, how long the quota had kept threads waiting, in ns;"""
        self._by_quota = self._ready = 0
        """over all windows, for how long it did, and how long they were ready."""

    def begin(self, threads: Iterable[int]) -> None:
        """A window begins, with these."""
        self._ran = {t: ran for t in threads if (ran := self._walks.ran(t)) is not None}
        self._used_up = self._walks.quota_used_up

    def end(self, group: ThreadGroup, stacks: Mapping[int, ThreadStack], seconds: float) -> None:
        """It has ended, after so long: tells it of the ``group``, of the threads that had these
        ``stacks``."""
        ran = ready = whole = 0.0
        members = group.members
        self._by_quota += max(self._walks.quota_used_up - self._used_up, 0)
        for thread, stack in stacks.items():
            now, then = self._walks.ran(thread), self._ran.get(thread)
            if now is None or then is None:
                continue
            self._ready += now[1] - then[1]
            if stack.key in members:
                ran += now[0] - then[0]
                ready += now[1] - then[1]
                whole += seconds * 1e9
        if whole:
            group.had_processors(ran / whole, ready / whole)

    @property
    def by_quota(self) -> float:
        """Which part of the time that threads were ready the quota has kept them waiting for."""
        return min(self._by_quota / self._ready, 1.0) if self._ready else 0.0
