"""How far a session is."""

from __future__ import annotations

from enum import Enum


class Status(str, Enum):
    """How far a session is. The values are those of the report."""

    PENDING = "pending"
    PROFILING = "profiling"
    NO_PEAK = "peak not chosen"
    SEARCHING = "in progress"
    FOUND = "root cause found"
    MAX_DEPTH = "maximum depth reached"
    INCONCLUSIVE = "not conclusive"
    STOPPED = "stopped"
    DONE = "done"
    """Of an analysis that looks for no root cause."""
    ENDED = "program ended"

    @property
    def is_final(self) -> bool:
        """Whether nothing comes after it."""
        return self in _FINAL


class EndedBy(Enum):
    """What has ended an analysis before its end, where views tell that otherwise than by its
    status; in the words that its note has for it."""

    TIME = "the time is up"
    EXECUTED = "the program executed another file"


_FINAL = frozenset(
    {
        Status.FOUND,
        Status.MAX_DEPTH,
        Status.INCONCLUSIVE,
        Status.STOPPED,
        Status.DONE,
        Status.ENDED,
    }
)
