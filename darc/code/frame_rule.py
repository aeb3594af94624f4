"""Where a frame lies, as frame information, or the code itself, says."""

from __future__ import annotations

from dataclasses import dataclass

WORD_SIZE = 8
"""Bytes of a return address on the stack, and of any other word."""

WORD = (1 << 8 * WORD_SIZE) - 1
"""The largest one: sums of addresses are taken modulo the next."""


@dataclass(frozen=True)
class FrameRule:
    """Where a frame's CFA is: ``[register] + offset``, or with ``through`` set
    ``*([register] + through) + offset`` (a frame that realigned its stack)."""

    register: str
    offset: int
    through: int | None = None
