"""Breakpoints that darc sets where it is to decide something."""

from __future__ import annotations

from collections.abc import Callable

from darc.target.breaks import Breaks
from darc.target.outcome import OnHit, Outcome
from darc.target.ownthread import Turn, any_thread, own_thread
from darc_lldb.inferior import Inferior
from darc_lldb.memory import LldbMemory
from darc_lldb.ownstops import OwnBreakpoints


@own_thread
class LldbBreaks(Breaks):
    """Those in the program of ``inferior``; ``own`` keeps them, and ``tidy`` deletes what is not
    needed any more."""

    hits_stop_all = True

    def __init__(
        self,
        turn: Turn,
        inferior: Inferior,
        own: OwnBreakpoints,
        *,
        memory: LldbMemory,
        tidy: Callable[[], None],
    ) -> None:
        self.turn = turn
        self._inferior = inferior
        self._own = own
        self._memory = memory
        self._tidy = tidy

    def break_once(self, address: int, handler: Callable[[], Outcome]) -> None:
        self._own.break_once(self._inferior.target, address, handler)

    @any_thread
    def cancel_break(self) -> None:
        self._own.cancel_break()
        self._tidy()

    def set_break(self, address: int, on_hit: OnHit) -> Callable[[], None]:
        self._memory.read(address, 1)
        number = self._own.set_break(self._inferior.target, address, on_hit)

        def take_back() -> None:
            self._own.take_back(number)
            self._tidy()

        return take_back
