"""What the user is to be told at a stop."""

from __future__ import annotations

from enum import Enum, auto


class Message(Enum):
    """That the session has something to say, or to ask."""

    QUESTION = auto()
    """The user is to answer :attr:`darc.analyses.analysis.Analysis.question`."""
    PLACE = auto()
    """Where the program stands."""
    RESULT = auto()
    END = auto()
    """The program has ended, or is about to: the debugger may be asked for nothing."""
