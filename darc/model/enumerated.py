"""Names in sentences: some of many, and the ends of a way."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: not more than ``most`` of them."""
    more = len(names) - most
    text = ", ".join(names[:most])
    return f"{text} and {more} more" if more > 0 else text


def ends(names: Sequence[str]) -> list[str]:
    """Of the functions on a path from f0, that which f0 calls and the last one: ``flush``, ``…``,
    ``write``; f0 itself where it is alone."""
    first, *others = names[1:] or names
    between = ["…"] if len(others) > 1 else []
    return [first, *between, *others[-1:]]
