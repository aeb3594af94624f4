"""The windows of a walk: for how long the program runs between two of its stops."""

from __future__ import annotations

import time

from darc.analyses.walkpace import Pace
from darc.collectors.manyduties import Walks

_TRY_SECONDS = 0.2
"""What the program runs before stacks are looked at alone."""

_ENOUGH = 0.9
"""Of its length a window lasts at least that is not to go on."""


class WalkWindow:
    """One after the other. Each is to last for ``seconds``, and longer where stops take long."""

    def __init__(self, walks: Walks, pace: Pace, seconds: float) -> None:
        self._walk = walks
        self._pace = pace
        self._seconds = seconds
        self._length = seconds
        self._since: float | None = None
        """When the one began that lasts, on the monotonic clock."""
        self.start = self.end = 0
        """Of the latest one, in cycles."""
        self.took = 0.0
        """The same: how long it was, in seconds."""
        self.count = 0
        """How many told something,"""
        self.longest = 0.0
        """and how long the longest of them was, in seconds."""

    @property
    def is_open(self) -> bool:
        """Whether one lasts."""
        return self._since is not None

    def begins(self, *, times_calls: bool) -> None:
        """The program is about to go on; without calls that are timed, for a moment."""
        self._length = max(self._seconds if times_calls else _TRY_SECONDS, self._pace.runs_at_least)
        self._since, self.start = time.monotonic(), self._walk.now

    def ends(self) -> None:
        """The program has stopped."""
        if self._since is not None:
            self.end = self._walk.now
            self.took, self._since = time.monotonic() - self._since, None

    @property
    def seconds_left(self) -> float:
        """Any thread."""
        since = self._since
        return self._length if since is None else self._length - (time.monotonic() - since)

    @property
    def was_long_enough(self) -> bool:
        """Whether the latest one tells something."""
        return self.took >= self._length * _ENOUGH

    def is_measured(self) -> None:
        """The latest one is taken for what it tells."""
        self.count += 1
        self.longest = max(self.longest, self.took)
