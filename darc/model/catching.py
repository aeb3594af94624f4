"""What ``darc catch`` waits for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from darc.model.ops import OffReason
from darc.model.part import Part
from darc.model.standing import OpenWait, ThreadStanding


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
