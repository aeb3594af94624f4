"""Processes that share the program's memory and are no threads of it: whoever writes there while
the program stands still has these stand still, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self


class Companions:
    """Of one program. As a context they stand still, where there are any; contexts may be within
    one another. By itself: there are none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def program_counters(self) -> Mapping[int, int]:
        """Within the context: where all of their threads stand, by their ids."""
        return {}

    def stack_pointers(self) -> Mapping[int, int]:
        """The same of their stack pointers."""
        return {}

    def lead(self, thread: int, place: int) -> None:
        """Within the context: a thread of theirs goes on at ``place``. Raises TargetError: it may
        not be led."""
        del thread, place


NOBODY = Companions()
"""There are none."""
