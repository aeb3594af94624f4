"""How pads live in what is debugged: the memory that they lie in, the agent's settings, its bell.

A process of this machine and a kernel are each their own backend, which what is debugged
(``darc/debuggee/``) hands out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from darc.agent.layout import Room
from darc.agent.memory import AgentMemory
from darc.code.program import Program
from darc.model.parameters import Parameters
from darc.pads.foothold import Foothold
from darc.target.outcome import Outcome


@dataclass(frozen=True)
class BellOutcome:
    """What the engine answers to the bell."""

    outcome: Outcome = Outcome.CONTINUE
    """``STOP``: where the thread that rang is back in the program's own code. Where that is not
    known, at once."""
    back: int = 0
    """Where that is; 0 where it is not known."""
    slot: int = 0
    """The stack word that held that address: the thread's stack pointer is above it there."""


class PadBackend(ABC):
    """What pads need of one process or kernel."""

    def risk(self) -> str | None:
        """Why putting pads there might end what runs there; ``None`` where nothing says so."""
        return None

    @property
    def auto_lookahead(self) -> int | None:
        """What ``--lookahead auto`` means where pads are dear; ``None``: others are to say."""
        return None

    @abstractmethod
    def clean_up(
        self, program: Program, *, unmap: bool = True, of_memory: bool = False
    ) -> list[str]:
        """Takes out what a debugger that was killed left there; tells of it. ``unmap``: also gives
        back memory that nothing needs, where that can be; ``of_memory``: tells of that, too, and of
        what stays.

        Raises:
            UnsupportedError: it was one of another version.
        """

    def children_with_copies(self) -> Sequence[int]:
        """What has been made of it meanwhile, and has a copy of all that darc had put into it, of
        which nothing is there any more: ids of processes."""
        return ()

    @abstractmethod
    def room(self, program: Program, parameters: Parameters) -> Room:
        """How much the agent's tables are to hold at least for an analysis."""

    no_sets = "'darc profile' times no functions here: 'darc start FUNCTION' times one"
    """What to say where :meth:`room_for_set` knows of none."""

    def room_for_set(self, functions: int) -> Room | None:
        """The same for a set of so many functions; ``None``: there are none here."""
        del functions
        return None

    def room_for_both(self, of_set: Room, of_search: Room) -> Room:
        """For that set, where a search that needs the other may follow. (Where tables have some
        sizes alone, the search has its own.)"""
        del of_search
        return of_set

    def living(self) -> AbstractSet[int]:
        """The ids of all threads, as they know them themselves. Any thread."""
        return frozenset()

    def thread_count(self) -> int:
        """How many threads may have something due when they go on after a stop, as time has passed
        for them; 0: none is known to."""
        return 0

    def is_in_system_call(self, thread: int) -> bool:
        """Whether a stopped thread is in one, where that can be seen."""
        del thread
        return False

    @abstractmethod
    def new_foothold(self, program: Program, room: Room) -> Foothold:
        """A foothold that is still to be installed, with tables of that ``room``, or more."""

    def faults(self) -> frozenset[int]:
        """Signals of faults (:data:`~darc.code.faults.FAULTS`) for which what runs there has
        handlers, whosever they are. Any thread."""
        return frozenset()

    def own_handlers(self, program: Program, foothold: Foothold) -> Mapping[int, int]:
        """The addresses of those handlers, by signal, that may know an instruction by its address,
        of faults and of signals that come anywhere (:data:`~darc.code.faults.ELSEWHERE`). May call
        functions."""
        return {}

    def sets_back(self, program: Program, handler: int) -> bool:
        """Whether what begins at ``handler``, as the handler of a signal, may set a thread back to
        where a sequence begins."""
        return False

    def take_interrupt(self, foothold: Foothold) -> bool:
        """Takes a SIGINT that waits, as every thread blocks it, out of what is debugged. Whether
        one did.

        Raises:
            TargetError: no system call can be made there now.
        """
        return False

    @abstractmethod
    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        """Tells the agent which calls to watch, and to ring after ``needed`` of them.

        Raises:
            NotFoundError: there is no such thread or task.
            UsageError: what runs there is told by the other one of the two.
            UnsupportedError: the agent has nothing to ring with.
        """

    @abstractmethod
    def arm_bell(self, foothold: Foothold, handler: Callable[[], BellOutcome]) -> None:
        """``handler`` decides, with everything stopped, whenever the agent rings."""

    @property
    @abstractmethod
    def signal(self) -> int | None:
        """A signal that makes the debugger look, where there are signals. Any thread."""

    @property
    def bell_is_lost(self) -> bool:
        """Whether the program listens to the bell's signal by now, and another one would do. Any
        thread."""
        return False

    @abstractmethod
    def disarm_bell(self) -> None:
        """Takes back what :meth:`arm_bell` set."""

    def change_bell(self, tables: AgentMemory) -> None:  # noqa: B027
        """Takes that other signal. May be called while the bell's handler decides."""

    def lead_home(self, foothold: Foothold) -> None:  # noqa: B027
        """At a stop for the user: threads that have just rung are where f0 has returned to."""

    def beat(self, tables: AgentMemory, seconds_left: float | None) -> None:  # noqa: B027
        """A sign of life from the debugger, which ends the analysis in ``seconds_left``, where the
        agent looks for one. Any thread."""

    @abstractmethod
    def look_after(self, tables: AgentMemory) -> None:
        """Looks at what may change while it runs, once a second. Any thread."""


def batch_size(ops: int) -> int:
    """How many calls a thread keeps to itself before it adds them to the common count: the
    largest divisor of ``ops`` that keeps the count fine enough."""
    return next(b for b in range(max(1, min(64, ops // 64)), 0, -1) if ops % b == 0)
