"""Why a program runs without probes, though it is analysed."""

from __future__ import annotations

from enum import Enum


class Bare(Enum):
    """What the user has let it go on by."""

    STEPS = "steps"
    """By one that ends somewhere: probes come back with the next that does not."""
    LET_GO = "let go"
    """By one that does not end, and that may go on amid what is patched: they come back soon."""
    SIGNAL = "signal"
    """From a signal that may be its end: they come back when it has handled that."""
