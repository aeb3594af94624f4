"""What becomes of a program that stopped, and who decides that."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Outcome(Enum):
    """What becomes of a program that stopped for the engine alone: it goes on, or stays stopped
    for the user."""

    CONTINUE = "continue"
    STOP = "stop"


OnHit = Callable[[int], Callable[[], Outcome] | None]
"""What is called with the thread that came to a breakpoint of darc's. It only reads: memory, and
the registers of that thread. ``None``: the program goes on. Else what it returns is called with all
threads stopped; that may write, set and take back breaks, but call nothing in the program."""
