"""What the log of a run has lines of: the gdbs write it, and the run that is over reads it."""

from __future__ import annotations

from enum import Enum


class Event(Enum):
    """What has happened, by the word that a line has for it."""

    BEGIN = "begin"
    """A process is attended to."""
    ANALYSIS = "analysis"
    REFUSED = "refused"
    """An analysis could not begin."""
    ALTERED = "altered"
    """Code was not what the files hold, when all of darc's was out."""
    FAULT = "fault"
    """The program was sent a signal that tells of a mistake."""
    TROUBLE = "trouble"
    """gdb has refused something in the middle."""
    END = "end"
    """The process is gone."""
    GDB = "gdb"
    """Its gdb has ended (written by ``attend.py``, which imports nothing)."""
