"""Where a frame lies, as frame information, or the code itself, says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrameRule:
    """Where a frame's CFA is: ``[register] + offset``, or with ``through`` set
    ``*([register] + through) + offset`` (a frame that realigned its stack)."""

    register: str
    offset: int
    through: int | None = None
