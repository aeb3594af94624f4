"""Where a thread stands, and what it waits for, as that is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from darc.model.ops import ObjectKind


@dataclass(frozen=True)
class ThreadStanding:
    """The standing of a thread of the program, as it is told."""

    thread: int
    """Its id, as the program knows it."""
    name: str | None
    functions: tuple[str, ...]
    """Innermost first; none: that is not known."""
    is_whole: bool
    """Whether these are all, up to the one that was asked for."""


class HolderTold(Enum):
    """When it was that a lock had its holder, as a wait tells."""

    NOW = "now"
    AS_IT_BEGAN = "when the wait began"


@dataclass(frozen=True)
class LockHolder:
    """Who has a lock that a call waits for."""

    thread: int
    """The id of the thread; 0: the lock tells of none."""
    told: HolderTold
    where: ThreadStanding | None = None
    """Where it stands, if it is of the program and has the lock now."""
    is_outside: bool = False
    """Whether it is no thread of the program: the lock is in memory that processes share."""
    is_free: bool = False
    """Whether nobody has the lock at this moment."""


@dataclass(frozen=True)
class OpenWait:
    """A wait that is not over."""

    kind: ObjectKind
    address: int
    """Of the object that is waited for."""
    holder: LockHolder | None
    """``None``: it has none, by its kind."""
    name: str = ""
    """What the object is called."""
