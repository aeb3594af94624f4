"""Calls that were under way at the edges of a window, by the stacks there."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from darc.analyses.walkcode import WalkCode
from darc.analyses.walkgroups import WalkNode
from darc.code.program import Program
from darc.code.unwind import Frame
from darc.collectors.manyduties import Counted, ThreadStack
from darc.model.libraries import plain_name
from darc.model.waitcalls import EVENT_WAITS


class Edges:
    """Those of a window from ``start`` to ``end``, in cycles; ``entered`` are the slots of calls
    that began in it and have not ended, and ``root`` is the entry of the function that the walk
    begins with, where that is no thread's start."""

    def __init__(
        self,
        program: Program,
        code: WalkCode,
        *,
        start: int,
        end: int,
        entered: AbstractSet[int],
        root: int | None,
    ) -> None:
        self._program = program
        self._code = code
        self._start = start
        self._end = end
        self._entered = entered
        self._root = root

    def is_base(self, node: WalkNode, before: ThreadStack, after: ThreadStack | None) -> bool:
        """Whether a thread was in one call of ``node`` for all of the window. It is in the function
        that it began with, as far as the stacks do not tell another call of that."""
        key = before.key
        if node.above is not None and key not in node.base and node.calls.get(key, 0) != 1:
            return False
        place = self._code.place(node, before.frames)
        begins_here = node.above is None and key in node.base
        if (
            begins_here
            and after is not None
            and (place is None or self._code.place(node, after.frames) is None)
        ):
            return True
        return place is not None and self._is_still(place[0], before, after)

    def seeds(
        self, node: WalkNode, before: ThreadStack, after: ThreadStack | None, first: int
    ) -> Iterator[tuple[int, float, bool]]:
        """The calls that were under way when the window began: the entry of each function, for how
        many cycles of the window, and whether for all of it."""
        if (root := self._root) is not None:
            at = next((f for f in before.frames if self._code.entry(f) == root), None)
            if at is not None:
                yield (root, *self._lasts(at, before, after, first))
        place = self._code.place(node, before.frames)
        if place is None:
            return
        frame, called = place
        own = node.function.address
        if own != root:
            yield (own, *self._lasts(frame, before, after, first))
        if called is not None and (entry := self._code.entry(called)) != own:
            yield (entry, *self._lasts(called, before, after, first))

    def _lasts(
        self, frame: Frame, before: ThreadStack, after: ThreadStack | None, first: int
    ) -> tuple[float, bool]:
        """For how long a frame of ``before`` lasts, and whether to the end: where it is not there
        any more, up to its thread's first call that was timed; where none was, nobody knows."""
        length = float(self._end - self._start)
        if self._is_still(frame, before, after):
            return length, True
        if not first:
            return length, False
        return min(max(first - self._start, 0.0), length), False

    def _is_still(self, frame: Frame, before: ThreadStack, after: ThreadStack | None) -> bool:
        if after is None or frame.slot in self._entered:
            return False
        place = self._code.prefix(before, frame)
        return place is not None and place == self._code.prefix(after, frame)

    def event_wait(self, before: ThreadStack, after: ThreadStack | None, counted: Counted) -> float:
        """Cycles of an event wait that was under way when the window began."""
        for frame in before.frames:
            if plain_name(self._program.names.function_at(frame.at).symbol) in EVENT_WAITS:
                firsts = [time for time in (counted.first, counted.first_wait) if time]
                return self._lasts(frame, before, after, min(firsts, default=0))[0]
        return 0.0
