"""What the agent could not measure, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from darc.agent.memory import AgentMemory

LOSSES = {
    "lost_records": "{calls} not timed: there were more stack depths than darc can tell apart",
    "lost_callers": "{calls} not timed: there was no landing left for {their} caller, and "
    "each function takes one for each place that calls it (docs/pad.md)",
    "lost_foreign": "{calls} not timed: {they} came from code that was generated, and its runtime "
    "may look for the return addresses: functions that are called below can be timed",
    "lost_jumps": "{calls} not timed: code jumped there, and no call stands before the address "
    "on top of the stack",
    "lost_contexts": "{calls} not timed: there were more threads than darc can tell apart",
    "lost_ops": "{calls} not measured: an exception was caught where darc cannot see it",
    "interrupted_ops": "{in_peak} interrupted in darc's own time, for how long is "
    "not known: it counts as the callers' (such calls decide only where most are)",
    "unsettled_calls": "{calls} not counted: {they} came soon after stops, when all was done at "
    "once that had become due meanwhile",
    "left_ops": "{calls} not measured: {they} {were} left by a jump or an exception, or {frames} "
    "not in {place} as {they} returned (coroutines that share a stack)",
}
"""By what the agent counts them in; :func:`loss_text` puts in what depends on how many they are."""

_ONE = {
    "calls": "call was",
    "in_peak": "call inside the peak was",
    "tail_calls": "tail call was",
    "they": "it",
    "their": "its",
    "were": "was",
    "frames": "its frame was",
    "place": "its place",
}
_MANY = {
    "calls": "calls were",
    "in_peak": "calls inside the peak were",
    "tail_calls": "tail calls were",
    "they": "they",
    "their": "their",
    "were": "were",
    "frames": "their frames were",
    "place": "their place",
}


def loss_text(count: int, text: str) -> str:
    """A line of so many losses, of which ``text`` is as in :data:`LOSSES`."""
    return f"{count} {text.format_map(_ONE if count == 1 else _MANY)}"


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
        return [loss_text(count, self._texts[name]) for name, count in counts.items() if count]


def vanished_pads(functions: Sequence[str], why: str) -> list[str]:
    """What is told where the program's own code was back in these functions, as
    :attr:`darc.pads.patching.Patcher.vanished` are."""
    if not functions:
        return []
    first, more = functions[0], len(functions) - 1
    where = f"{first} and {more} other function{'s' * (more > 1)}" if more else first
    return [
        f"darc's jumps in the code of {where} were gone when darc looked, and calls there not seen "
        f"since: {why}"
    ]
