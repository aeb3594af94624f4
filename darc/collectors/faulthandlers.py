"""Which of the program's signal handlers may know instructions, which are left in their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from darc.agent.memory import AgentMemory
from darc.code.faults import ELSEWHERE, FAULTS
from darc.code.program import Program
from darc.pads.backend import PadBackend
from darc.pads.foothold import Foothold

_LEFT = (
    "which may know instructions by their places: no probe moves an instruction that may fault, so "
    "some calls cannot be timed"
)


_MOST_NAMES = 4
"""Of signals that are told: some programs handle all."""

_SET_BACK = (
    "which may set a thread back that it finds in a sequence: no probe moves an instruction that "
    "accesses other memory than the stack, so some functions and calls cannot be timed"
)


class FaultHandlers:
    """The handlers of one program; ``note`` takes that it has other ones."""

    def __init__(self, program: Program, backend: PadBackend, note: Callable[[str], None]) -> None:
        self._program = program
        self._backend = backend
        self._note = note
        self._faults: frozenset[int] = frozenset()
        """Signals of faults that the program is known to handle."""
        self._seen: frozenset[int] = frozenset()
        """Handlers of other signals that it has set meanwhile, by address."""

    def look(self, foothold: Foothold) -> list[str]:
        """Finds them, before anything is put into the program. May call functions in it. Returns
        what the user should know."""
        program = self._program
        own = self._backend.own_handlers(program, foothold)
        self._faults = self._backend.faults()
        program.patchable.leave_in_place(own)
        kinds = ((FAULTS.keys() & own.keys(), _LEFT), (own.keys() - FAULTS.keys(), _SET_BACK))
        return [self._told(signals, own, what) for signals, what in kinds if signals]

    def _told(self, signals: AbstractSet[int], own: Mapping[int, int], what: str) -> str:
        program = self._program
        found = {m.name for one in signals if (m := program.module_at(own[one])) is not None}
        where = f" in {', '.join(sorted(found))}" if found else ""
        names = ", ".join((FAULTS | ELSEWHERE)[signal] for signal in sorted(signals)[:_MOST_NAMES])
        names += f" and {len(signals) - _MOST_NAMES} more" if len(signals) > _MOST_NAMES else ""
        return f"the program handles {names} by a handler{where}, {what}"

    def announce(self, tables: AgentMemory) -> None:
        """Has the debugger look at those that were set in a way that no guard sees. Any thread."""
        for signal in self._backend.faults() - self._faults:
            tables.set(faults=tables.faults | 1 << signal)

    def change(self, tables: AgentMemory) -> bool:
        """The program has, or is about to have, another handler. Whosever that is cannot be asked
        now. Whether more may know instructions by their places."""
        program = self._program
        announced = tables.faults
        tables.set(faults=0)
        self._faults = self._backend.faults() | {n for n in FAULTS if announced >> n & 1}
        handled = program.patchable.handled | self._faults
        kinds = []
        if handled != program.patchable.handled:
            kinds.append(f"faults from now on, {_LEFT}")
        set_now = frozenset(tables.handlers())
        new, self._seen = set_now - self._seen, set_now
        if any(self._backend.sets_back(program, handler) for handler in new):
            others = handled | {n for n in ELSEWHERE if announced >> n % 64 & 1}
            if others != handled:
                kinds.append(f"signals from now on, {_SET_BACK}")
            handled = others
        if handled == program.patchable.handled:
            return False
        program.patchable.leave_in_place(handled)
        for kind in kinds:
            self._note(f"the program has other handlers of {kind}")
        return True
