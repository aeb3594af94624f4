"""What ``catch_clock.py`` prints of each late call, in the debugger, for ``waits.py``."""

from __future__ import annotations

from enum import Enum


class LateCall(str, Enum):
    """Whether the program stood in it when it had stopped."""

    CAUGHT = "caught"
    MISSED = "missed"
