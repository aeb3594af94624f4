"""What the agent has counted of f0's calls, and after how many it rings."""

from __future__ import annotations

from darc.agent.memory import AgentMemory
from darc.collectors.duties import Counting
from darc.debuggee.duties import Clocked
from darc.model.profile import Profile
from darc.pads.backend import batch_size

_NEVER = (1 << 63) - 1
"""So many calls are never seen: the agent does not ring until the user has chosen."""


class PadCounting(Counting):
    """By the ``tables`` of one analysis."""

    def __init__(self, tables: AgentMemory, debuggee: Clocked) -> None:
        self._tables = tables
        self._debuggee = debuggee

    @property
    def hz(self) -> int:
        return self._debuggee.hz

    @property
    def seen(self) -> int:
        return self._tables.seen

    def profile(self) -> Profile:
        return self._tables.contexts.profile(self.hz)[0]

    def await_calls(self, needed: int) -> None:
        self._tables.set(needed=needed, batch=batch_size(needed))

    def await_in_peak(self, needed: int) -> None:
        self._tables.set(seen=0, needed=needed, batch=1)

    @property
    def voted(self) -> int:
        return self._tables.contexts.voted()

    def await_more(self, needed: int) -> None:
        self._tables.set(seen=self.voted, needed=needed, batch=1)

    def await_user(self) -> None:
        self._tables.set(needed=_NEVER, batch=64)

    def tell_fastest(self, cycles: int) -> None:
        self._tables.set(least_op=cycles)

    def search(self, low: int, high: int) -> None:
        self._tables.set(mode=1, peak_low=low, peak_high=high)

    def hurry(self) -> None:
        self._tables.set(needed=0, batch=1)
