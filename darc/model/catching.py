"""What ``darc catch`` waits for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from darc.model.ops import ObjectKind, OffReason
from darc.model.part import Part


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


@dataclass(frozen=True)
class CaughtCall:
    """The call that the program stands in, as it was caught."""

    seconds: float
    """For how long it had been under way when its thread was stopped; earlier stops are in it."""
    where: ThreadStanding
    """Its thread."""
    off: Mapping[OffReason, float] | None
    """Why that had no processor, for which parts of that time; ``None`` where that is not known,
    and no stop may be in it then."""
    by_quota: float
    """For which part of the time its CPU quota was used up, at most."""
    wait: OpenWait | None
    """What it waits for, if that is seen."""
    show: str | None
    """What to type to see the thread; ``None``: the debugger shows it."""
    described: tuple[str, ...] = ()
    """Calls that no signal could stop, since the last time."""


@dataclass(frozen=True)
class Catching(Part):
    """The part of ``darc catch``."""

    key: ClassVar[str] = "catch"

    seconds: float
    """From when on a call is late."""
    caught: int
    """Late calls that the program was stopped in."""
    missed: int
    """Calls that were late when they were looked at, and had ended when the program stood."""
    place: CaughtCall | None = None
    """Where the program stands, while it does in a late call."""
