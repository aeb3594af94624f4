"""What becomes of a program that stopped, and who decides that."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeVar


class Outcome(Enum):
    """What becomes of a program that stopped for the engine alone: it goes on, or stays stopped
    for the user."""

    CONTINUE = "continue"
    STOP = "stop"


_T = TypeVar("_T")


def carry_out(work: Callable[[], _T], *, failed: Callable[[Exception], None], instead: _T) -> _T:
    """What comes of some ``work`` that is done as the debugger asks for it, where nobody would see
    its exception: ``failed`` tells the user of that, in one place, and ``instead`` comes of it."""
    try:
        return work()
    except Exception as error:
        failed(error)
        return instead


OnHit = Callable[[int], Callable[[], Outcome] | None]
"""What is called with the thread that came to a breakpoint of darc's. It only reads: memory, and
the registers of that thread. ``None``: the program goes on. Else what it returns is called with all
threads stopped; that may write, set and take back breaks, but call nothing in the program."""
