"""Lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: not more than ``most`` of them."""
    more = len(names) - most
    text = ", ".join(names[:most])
    return f"{text} and {more} more" if more > 0 else text
