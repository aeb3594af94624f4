"""What functions took, inferred from the stacks of events (IntroPerf 3.3, Algorithm 2).

Each event of a thread, as a system call, is a time and the functions on its stack. A function
lasts as long as its context does: from the first event that has it to the last one in a row. So one
that only one event has seen took 0, two calls with no event between them are one instance, and what
took no event at all is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darc.model.contexts import NOTHING, Context, Cost, FunctionName


@dataclass(frozen=True)
class Instance:
    """One call, or several that no event parts. Times are those of events, in ns."""

    context: Context
    first: int
    last: int
    """Of the last event that has it,"""
    next: int
    """and of the first that does not; at the thread's end its last one's."""

    @property
    def conservative(self) -> int:
        """What it took at least, were it one call."""
        return self.last - self.first

    @property
    def aggressive(self) -> int:
        """What it took at most, from its first event on."""
        return self.next - self.first


@dataclass(frozen=True)
class Trace:
    """What a text tells."""

    tree: Context
    """Of all threads, inferred."""
    events: int
    """With a stack that was used,"""
    threads: int
    """of so many threads."""
    seconds: float
    """From the first event to the last one."""
    cut: int = 0
    """Stacks that do not lead to where their thread began: left out."""
    bare: int = 0
    """Events without a stack."""
    lost: int = 0
    """Events that perf had no room for, where the text says so."""


class Inference:
    """Takes the events of one thread, and adds what they tell to a tree."""

    def __init__(self, tree: Context, keep: Callable[[Instance], None] | None = None) -> None:
        """``keep`` is given each instance when it is over (the paper's list)."""
        self._tree = tree
        self._keep = keep
        self._open: list[tuple[Context, int]] = []
        """The paper's Register: by depth, the context and its first event."""
        self._last = 0

    def event(self, time: int, stack: Sequence[FunctionName]) -> None:
        """An event, none before the one before; ``stack`` has where the thread began first.

        A frame is new where its function is another one than at this depth before (the listing has
        ``==``, but Table 1 shows that ``≠`` is meant), and so are all that it calls.
        """
        same = 0
        for function, (context, _) in zip(stack, self._open, strict=False):
            if context.function != function:
                break
            same += 1
        self._close(same, time)
        at = self._open[-1][0] if self._open else self._tree
        for function in stack[same:]:
            at = at.child(function)
            self._open.append((at, time))
        self._last = time

    def finish(self) -> None:
        """The thread has no more events: what is open ends with its last one."""
        self._close(0, self._last)

    def _close(self, depth: int, time: int) -> None:
        """Ends what is open at ``depth`` and above it on the stack, as ``time`` does not have
        it."""
        while len(self._open) > depth:
            context, first = self._open.pop()
            instance = Instance(context, first, self._last, time)
            cost = Cost(1, instance.conservative, instance.aggressive)
            context.inferred = (context.inferred or NOTHING) + cost
            if self._keep is not None:
                self._keep(instance)
