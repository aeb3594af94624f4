"""What the agent could not measure, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from darc.agent.fieldnames import ControlField
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.model.ftree import Function


class Unmeasured(Enum):
    """What the agent could not measure, by the field that counts it."""

    _value_: ControlField

    RECORDS = ControlField.LOST_RECORDS
    CALLERS = ControlField.LOST_CALLERS
    FOREIGN = ControlField.LOST_FOREIGN
    JUMPS = ControlField.LOST_JUMPS
    CONTEXTS = ControlField.LOST_CONTEXTS
    OPS = ControlField.LOST_OPS
    INTERRUPTED_OPS = ControlField.INTERRUPTED_OPS
    UNSETTLED_CALLS = ControlField.UNSETTLED_CALLS
    LEFT_OPS = ControlField.LEFT_OPS
    OVERDRAWN_OPS = ControlField.OVERDRAWN_OPS
    BLOCKS = ControlField.LOST_BLOCKS
    MOVED = ControlField.LOST_MOVED
    TAILS = ControlField.LOST_TAILS


LOSSES = {
    Unmeasured.RECORDS: "{calls} not timed: there were more stack depths than darc can tell apart",
    Unmeasured.CALLERS: "{calls} not timed: there was no landing left for {their} caller, and "
    "each function takes one for each place that calls it (docs/pad.md)",
    Unmeasured.FOREIGN: "{calls} not timed: {they} came from code that was generated, and its "
    "runtime may look for the return addresses: functions that are called below can be timed",
    Unmeasured.JUMPS: "{calls} not timed: code jumped there, and no call stands before the address "
    "on top of the stack",
    Unmeasured.CONTEXTS: "{calls} not timed: there were more threads than darc can tell apart",
    Unmeasured.OPS: "{calls} not measured: an exception was caught where darc cannot see it",
    Unmeasured.INTERRUPTED_OPS: "{in_peak} interrupted in darc's own time, for how long is "
    "not known: it counts as the callers' (such calls decide only where most are)",
    Unmeasured.UNSETTLED_CALLS: "{calls} not counted: {they} came soon after stops, when all was "
    "done at once that had become due meanwhile",
    Unmeasured.OVERDRAWN_OPS: "{calls} counted as long as the fastest before: probes inside seem "
    "to have taken nearly all of {their} time",
    Unmeasured.LEFT_OPS: "{calls} not measured: {they} {were} left by a jump or an exception, or "
    "{frames} not in {place} as {they} returned (coroutines that share a stack)",
}
"""What users are told; :func:`loss_text` puts in what depends on how many they are."""

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

    def __init__(self, texts: Mapping[Unmeasured, str]) -> None:
        self._texts = texts
        self._counts = dict.fromkeys(texts, 0)
        self.out_of_reach: str | None = None
        """Whose calls cannot be timed at all, in words, if there are any."""

    def see_code(self, tables: AgentMemory, program: Program, f0: Function) -> None:
        """Tells the agent whose calls are timed: those from ordinary code of the program; where
        there is no room for all of it, from that next to ``f0``."""
        code = program.patchable.ordinary_code()
        self.out_of_reach = None
        if lost := tables.set_code(code, f0.address):
            self.out_of_reach = (
                f"pads cannot time calls from {lost} of {len(code)} stretches of code, those far "
                f"from {f0.name}"
            )

    def count(self, tables: AgentMemory) -> None:
        """Takes over what the agent has counted since the last time."""
        for loss in self._counts:
            self._counts[loss] += tables.take(loss.value)

    def has(self, *losses: Unmeasured) -> bool:
        """Whether there was one of these."""
        return any(self._counts[loss] for loss in losses)

    def count_of(self, loss: Unmeasured) -> int:
        """How many of these there were so far."""
        return self._counts[loss]

    def told(self, besides: Collection[Unmeasured] = ()) -> list[str]:
        """A line for each kind of them that there was, but for those ``besides``."""
        counts = {loss: count for loss, count in self._counts.items() if loss not in besides}
        return [loss_text(count, self._texts[loss]) for loss, count in counts.items() if count]


WRITTEN_OVER = (
    "the {} has written over them, as whoever hooks functions does; what they lead to stays in its "
    "memory, as they may be written back"
)
"""Why jumps to elsewhere are in the place of darc's, in what is called so."""


def vanished_pads(functions: Sequence[str], why: str) -> list[str]:
    """What is told where darc's jumps were no more in these functions, as
    :attr:`darc.pads.patching.Patcher.vanished` are, or ``written_over``, and ``why``."""
    if not functions:
        return []
    first, more = functions[0], len(functions) - 1
    where = f"{first} and {more} other function{'s' * (more > 1)}" if more else first
    return [
        f"darc's jumps in the code of {where} were gone when darc looked, and calls there not seen "
        f"since: {why}"
    ]
