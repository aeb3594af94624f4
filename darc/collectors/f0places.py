"""Where breakpoints tell that f0 begins and ends."""

from __future__ import annotations

from darc.code.architecture import FunctionCode
from darc.code.landmarks import Landmark
from darc.code.processor import is_return
from darc.code.program import Program
from darc.collectors.breakplaces import BreakPlaces
from darc.collectors.hitcost import HitCost
from darc.debuggee.duties import HasCode
from darc.model.errors import UnsupportedError

MAX_CALLERS = 64
"""Return addresses of f0 that are learned, where its own returns do not tell its end."""


class F0Places:
    """Those of one analysis, among its ``places``. What a hit costs is measured there too."""

    def __init__(
        self, program: Program, debuggee: HasCode, places: BreakPlaces, cost: HitCost
    ) -> None:
        self._program = program
        self._debuggee = debuggee
        self._places = places
        self._cost = cost
        self._learns_callers = False
        self.loops_to_entry = False
        """Whether f0's own code may lead to its entry, in the same frame."""

    def plan(self, code: FunctionCode) -> None:
        """f0 ends at its own return instructions. Where it may end in another way (a tail call,
        code that is not known), the places that it returns to are learned."""
        self._places.at(code.entry).entry = True
        returns = [at for at, instruction in code.instructions.items() if is_return(instruction)]
        has_tails = any(site.kind.is_tail for site in code.sites)
        self._learns_callers = has_tails or not returns or not code.complete
        if not self._learns_callers:
            for address in returns:
                self._places.at(address).leaves = True
        self.loops_to_entry = code.entry in code.targets or any(
            site.kind.is_tail and site.target in (None, code.entry) for site in code.sites
        )
        self._measure_at(code.entry)

    def plan_guards(self) -> None:
        """Where exceptions are caught and longjmps begin: frames end there without a return."""
        try:
            for kind, address, _ in self._debuggee.landmarks(self._program):
                if kind is Landmark.SHOW:
                    self._places.at(address).catches = True
                elif kind is Landmark.JUMP:
                    self._places.at(address).jumps = True
        except UnsupportedError:
            pass  # an unwinder that cannot be found: it sees the program's own stack

    def is_to_learn(self, back: int) -> bool:
        """Whether f0's end is not seen yet where it returns to ``back``."""
        return self._learns_callers and not self._places.at(back).caller

    def may_learn(self, back: int) -> bool:
        """Whether f0 may come back there at all: where code has jumped to what looks like a
        function, that may be data, and no breakpoint may stand in it."""
        return self._program.live.is_returned_to(back)

    def learn(self, back: int) -> bool:
        """f0's end is seen there from now on; not if there are too many such places."""
        if self._places.callers >= MAX_CALLERS:
            return False
        self._places.at(back).caller = True
        if self._cost.second is None:
            self._measure_at(back)
        self._places.set_all()
        return True

    def _measure_at(self, address: int) -> None:
        self._cost.begin_at(address)
        if self._cost.second is not None:
            self._places.at(self._cost.second)
