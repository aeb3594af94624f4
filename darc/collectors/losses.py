"""What the agent could not measure, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from darc.agent.memory import AgentMemory

LOSSES = {
    "lost_records": "calls were not timed: there were more stack depths than darc can tell apart",
    "lost_callers": "calls were not timed: there was no landing left for a caller of theirs, and "
    "each function takes one for each place that calls it (docs/pad.md)",
    "lost_foreign": "calls were not timed: they came from code that was generated, and its runtime "
    "may look for the return addresses: functions that they call can be timed",
    "lost_jumps": "calls were not timed: code jumped there, and no call stands before the address "
    "on top of the stack",
    "lost_contexts": "calls were not timed: there were more threads than darc can tell apart",
    "lost_ops": "calls were not measured: their exceptions were caught where darc cannot see it",
    "interrupted_ops": "calls inside the peak were interrupted in darc's own time, for how long is "
    "not known: it counts as their callers' (such calls decide only where most are)",
    "unsettled_calls": "calls were not counted: they came soon after stops, when all was done at "
    "once that had become due meanwhile",
    "left_ops": "calls were not measured: they were left by a jump or an exception, or their "
    "frames were not in their place as they returned (coroutines that share a stack)",
}
"""By what the agent counts them in."""


class Losses:
    """Those of one analysis: ``texts`` as :data:`LOSSES` are."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._counts = dict.fromkeys(texts, 0)

    def count(self, tables: AgentMemory) -> None:
        """Takes over what the agent has counted since the last time."""
        for name in self._counts:
            self._counts[name] += tables.take(name)

    def has(self, *names: str) -> bool:
        """Whether there was one of these."""
        return any(self._counts[name] for name in names)

    def count_of(self, name: str) -> int:
        """How many there were so far of what the agent counts in ``name``."""
        return self._counts[name]

    def told(self, besides: Collection[str] = ()) -> list[str]:
        """A line for each kind of them that there was, but for those ``besides``."""
        counts = {name: count for name, count in self._counts.items() if name not in besides}
        return [f"{count} {self._texts[name]}" for name, count in counts.items() if count]


def vanished_pads(functions: Sequence[str]) -> list[str]:
    """What is told where the program's own code was back in these functions, as
    :attr:`darc.pads.patching.Patcher.vanished` are."""
    if not functions:
        return []
    first, more = functions[0], len(functions) - 1
    where = f"{first} and {more} other function{'s' * (more > 1)}" if more else first
    return [
        f"darc's jumps in the code of {where} were gone when darc looked, and calls there not seen "
        "since: the program has read that code anew (MADV_DONTNEED), or put its own bytes back"
    ]
