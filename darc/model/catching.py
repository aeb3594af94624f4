"""What ``darc catch`` waits for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from darc.model.part import Part


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
