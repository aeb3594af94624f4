"""What is returned in place of a value that there can be none of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """There is no such value, and why. It is for what is tried often and is no error: another place
    or another way may do, or the user is told of one of many. Where nothing but a reason is told,
    that is a string, or ``None``."""

    why: str
    """For the user."""
