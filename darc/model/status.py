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


EXECUTED = "the program executed another file"
"""The note of an analysis that has ended for that."""

TIME_IS_UP = "the time is up"
"""How the note begins of an analysis that has ended for that."""

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
