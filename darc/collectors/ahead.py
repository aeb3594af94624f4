"""What is prepared for the next stop while the program runs, on a thread that helps."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence

from darc.code.live import NotNowError
from darc.code.program import Program
from darc.collectors.callees import Callees
from darc.collectors.duties import LooksAhead
from darc.collectors.instrumentation import Instrumentation
from darc.debuggee.duties import SeenBeside
from darc.model.ftree import Fnode
from darc.pads.foothold import Foothold
from darc.pads.installer import PadInstaller
from darc.target.memory import Read, Write
from darc.target.target import Target


class Ahead(LooksAhead):
    """What one analysis prepares, as long as it ``is_alive``."""

    def __init__(
        self,
        target: Target,
        program: Program,
        debuggee: SeenBeside,
        *,
        foothold: Foothold,
        installer: PadInstaller,
        instrumentation: Instrumentation,
        callees: Callees,
        is_alive: Callable[[], bool],
    ) -> None:
        self._target = target
        self._program = program
        self._debuggee = debuggee
        self._foothold = foothold
        self._installer = installer
        self._instrumentation = instrumentation
        self._callees = callees
        self._is_alive = is_alive
        self._users: tuple[int, ...] = ()
        """Where the user's breakpoints stood when the program went on."""
        self._plan: Iterator[None] | None = None
        """What is left to be done."""

    def goes_on(self) -> None:
        self._users = tuple(self._target.user_breaks.addresses())

    def plan_anew(self) -> None:
        """What was planned is not what is wanted next."""
        self._plan = None

    def forget(self) -> None:
        """What was read ahead may not hold any more."""
        self.plan_anew()
        self._callees.code.forget_ahead()
        self._installer.forget_ahead()

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        memory = self.memory()
        if memory is None:
            return False
        return self._work(memory, lambda: self._instrumentation.ahead(nodes(), levels), seconds)

    @property
    def may_look(self) -> bool:
        """Whether there is a program that runs but for moments, whose memory can be reached."""
        can = self._foothold.memory_beside is not None
        return can and self._is_alive() and not self._installer.patcher.paused

    def memory(self) -> tuple[Read, Write] | None:
        """Where something can be prepared now, as the program runs."""
        if not self.may_look or self._debuggee.is_stopped():
            return None
        return self._foothold.memory_beside

    def _work(
        self, memory: tuple[Read, Write], plan: Callable[[], Iterator[None]], seconds: float
    ) -> bool:
        """Goes on with what was planned, or with another ``plan`` where nothing is left."""
        end = time.monotonic() + seconds
        with self.helping(memory):
            try:
                if self._plan is None:
                    self._plan = plan()
                for _ in self._plan:
                    if self.is_over() or time.monotonic() >= end:
                        return True
            except NotNowError:
                pass
            self._plan = None
            return False

    @contextlib.contextmanager
    def helping(self, memory: tuple[Read, Write]) -> Iterator[None]:
        """This thread prepares something beside the program, which runs and has that memory."""
        stand_in = _StandIn(*memory, self.is_over, self._users)
        with self._target.turn.taken(stand_in), self._program.live.ahead():
            yield

    def is_over(self) -> bool:
        """Whether the program waits for a decision, or stands still, by now."""
        return self._target.turn.is_wanted or bool(self._installer.tables.bell)


@dataclasses.dataclass(frozen=True)
class _StandIn:
    """Memory of a program that runs, as its helper may use it."""

    read_it: Read
    write_it: Write
    is_over: Callable[[], bool]
    users: Sequence[int]

    def read(self, address: int, size: int) -> bytes:
        if self.is_over():
            raise NotNowError
        return self.read_it(address, size)

    def write(self, address: int, data: bytes) -> None:
        self.write_it(address, data)

    def flush(self) -> None:
        """It is there at once."""

    def addresses(self) -> Sequence[int]:
        return self.users
