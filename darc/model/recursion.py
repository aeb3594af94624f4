"""Trees are as deep as a search may descend, and Python's recursion is not."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from darc.model.parameters import MAX_DEPTH


@contextlib.contextmanager
def deep() -> Iterator[None]:
    """Recursion over a tree of :data:`~darc.model.parameters.MAX_DEPTH` levels fits in."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 12 * MAX_DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
