"""What the user is to be told at a stop."""

from __future__ import annotations

from enum import Enum, auto


class Message(Enum):
    """That the session has something to say, or to ask."""

    CHOOSE_PEAK = auto()
    CHOOSE_NODES = auto()
    CAUGHT = auto()
    RESULT = auto()
    END = auto()
    """The program has ended, or is about to: the debugger may be asked for nothing."""
