"""A third kind of debuggee: a program of another machine, behind a gdbstub that reads its memory
only while it stands still. It has neither ``/proc`` nor signals, and is no kernel; breakpoints
collect.

It answers what is abstract and has otherwise what the seam says by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from darc.code import program
from darc.code.landmarks import Landmark
from darc.debuggee.debuggee import Debuggee
from darc.debuggee.nature import Nature
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.target.outcome import Outcome
from tests.fake_target import FakeTarget
from tests.unit.machine import Program

REMOTE = Nature(
    noun="remote program",
    begins_anew=False,
    left_in="its probes stay: connect again and type 'darc stop' to take them out",
    why_unread="reads the program while it runs: the stub reads one that stands still",
    puts_back="the remote program has put its own bytes back",
)


class FarawayDebuggee(Debuggee):
    """What stub and debugger have stopped."""

    nature = REMOTE
    identity = 1
    hz = 10**9
    is_readable_while_it_runs = False

    def __init__(self, target: FakeTarget, code: Program) -> None:
        self._target = target
        self._program = code
        self.begun = False
        self.on_limit: Callable[[], Outcome] | None = None
        self.knocks = 0

    def program(self) -> program.Program:
        return cast(program.Program, self._program)

    def refresh(self, program: object) -> None: ...

    def check_supported(self) -> None: ...

    def check(self, program: object, function: Function, spec: str) -> list[str]:
        return []

    def is_at_start(self) -> bool:
        return False

    def landmarks(self, program: object) -> Iterator[tuple[Landmark, int, str]]:
        return iter(())

    def counts_in(self, parameters: Parameters) -> Callable[[int], bool]:
        return lambda thread: True

    def begin(self) -> None:
        self.begun = True

    def leave(self, is_there: bool = True) -> None:
        self.begun = False

    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        self.on_limit = handler
        return None

    def disarm_limit(self) -> None:
        self.on_limit = None

    def knock(self) -> None:
        self.knocks += 1
