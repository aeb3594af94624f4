"""What an analysis stands on: a process of this machine, or a kernel.

Descent, votes, tables and pads are the same everywhere. What differs is here: where code and memory
come from, how the agent is told which calls to watch, and how it calls the debugger.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from darc.agent.memory import AgentMemory, Room
from darc.code.program import Program
from darc.debuggee.procfs import Use
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.pads.foothold import Foothold
from darc.pads.guards import Guard
from darc.target.target import Outcome


@dataclass(frozen=True)
class Bell:
    """The engine's answer to the doorbell."""

    outcome: Outcome = Outcome.CONTINUE
    """``STOP``: where the thread that rang is back in the program's own code. Where that is not
    known, at once."""
    back: int = 0
    """Where that is; 0 where it is not known."""
    slot: int = 0
    """The stack word that held that address: the thread's stack pointer is above it there."""


class Ground(ABC):
    """One process or kernel that a debugger has stopped."""

    @property
    @abstractmethod
    def identity(self) -> int:
        """Tells it from others that the debugger had or will have: a process id, for a kernel what
        stays the same until it boots anew."""

    @property
    @abstractmethod
    def hz(self) -> int:
        """Cycles of its time-stamp counter in a second."""

    @property
    @abstractmethod
    def signal(self) -> int | None:
        """A signal that makes the debugger look, where there are signals. Any thread."""

    @property
    @abstractmethod
    def is_readable_while_it_runs(self) -> bool:
        """Whether counters can be read, and a sign of life be given, while it runs."""

    def risk_of_pads(self) -> str | None:
        """Why putting pads there might end what runs there; ``None`` where nothing says so."""
        return None

    def risk_of_breakpoints(self) -> str | None:
        """Why darc takes no breakpoints there that the user has not asked for; ``None`` where
        nothing speaks against them."""
        return "a breakpoint there stops the whole machine"

    def danger_of_breakpoints(self) -> str | None:
        """Why what runs there may end with the debugger, were that killed with breakpoints in it;
        ``None`` where it ends with the debugger in any case, or outlives them."""
        return None

    calibration_steps = 1
    """How many instructions are executed between the two breakpoints that tell what a hit costs.
    With one the debugger is there as soon as it has stepped; with two the hit costs as much as
    others, which matters where nothing but a clock tells."""

    @property
    def breakpoints_blur(self) -> str:
        """About what latencies cannot be told apart where breakpoints collect, for the user."""
        return "1 ms"

    @property
    def opening(self) -> str | None:
        """What the user is to know before an analysis goes on."""
        return None

    auto_lookahead: int | None = None
    """What ``--lookahead auto`` means where pads are dear; ``None``: it is for others to say."""

    tells_of_files = True
    """Whether darc hears of code that is loaded later."""

    @abstractmethod
    def begin(self) -> None:
        """Probes are about to be put in."""

    @abstractmethod
    def leave(self, is_there: bool = True) -> None:
        """Every probe is out: undoes what :meth:`begin` changed, as far as what runs there
        ``is_there`` still."""

    @abstractmethod
    def watch(self, parameters: Parameters) -> Callable[[int], bool]:
        """Tells of a thread that has come to f0, at a breakpoint, whether its call counts.

        Raises:
            NotFoundError: there is no such thread or task.
        """

    def strand(self, thread: int) -> int:
        """What runs in a thread that has come to a breakpoint: its calls are told from others by
        that. In a process the thread itself."""
        return thread

    def own_clock(self) -> Callable[[], int] | None:
        """A clock in ns, to be read at a breakpoint, that stands still while the debugger has
        stopped what runs there. ``None``: there is no such clock."""
        return None

    def waited_ns(self, thread: int) -> int:
        """For how long a thread has waited for a processor so far, in ns; 0 where nothing tells."""
        return 0

    def use(self, thread: int) -> Use | None:
        """What a thread that has come to a breakpoint has had of processors so far; ``None`` where
        nothing tells."""
        return None

    @abstractmethod
    def check_supported(self) -> None:
        """Raises :class:`~darc.model.errors.UnsupportedError` for modes of the debugger that darc
        refuses."""

    def entry(self) -> int | None:
        """Where the program itself begins, when everything that is loaded with it is there;
        ``None`` where there is no such place."""
        return None

    @abstractmethod
    def is_at_start(self) -> bool:
        """Whether it has just been loaded, and its threads cannot be told apart yet."""

    @abstractmethod
    def program(self) -> Program:
        """Its code, as it is now."""

    @abstractmethod
    def refresh(self, program: Program) -> None:
        """Looks again at what code there is."""

    @abstractmethod
    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        """What is to be told before ``function`` is timed, which the user knows as ``spec``.

        Raises:
            UnsupportedError: it cannot be timed.
        """

    def watch_over(self) -> Callable[[bool], None]:
        """From now on it goes on if the debugger is killed, where that can be seen to. What is
        returned is called with ``False`` when the debugger lets it go, or it is gone; with ``True``
        when the debugger has lost it."""
        return lambda lost: None

    @abstractmethod
    def clean_up(self, program: Program, *, unmap: bool = True) -> list[str]:
        """Takes out what a debugger that was killed left there; tells of it. ``unmap``: also gives
        back memory that nothing needs, where that can be.

        Raises:
            UnsupportedError: it was one of another version.
        """

    @abstractmethod
    def room(self, parameters: Parameters) -> Room:
        """How much the agent's tables are to hold at least for an analysis."""

    def living(self) -> AbstractSet[int]:
        """The ids of all threads, as they know them themselves. Any thread."""
        return frozenset()

    @abstractmethod
    def new_foothold(self, program: Program, room: Room) -> Foothold:
        """A foothold that is still to be installed, with tables of that ``room``, or more."""

    def faults(self) -> frozenset[int]:
        """Signals of faults (:data:`~darc.code.faults.FAULTS`) for which what runs there has
        handlers, whosever they are. Any thread."""
        return frozenset()

    def own_handlers(self, program: Program, foothold: Foothold) -> Mapping[int, int]:
        """The addresses of those handlers, by signal, that may know an instruction by its address.
        May call functions."""
        return {}

    @abstractmethod
    def guard_places(self, program: Program) -> Iterator[tuple[Guard, int, str]]:
        """The kind, address and name of every place that is to have a guard
        (see :mod:`darc.pads.guards`)."""

    @abstractmethod
    def configure(self, tables: AgentMemory, parameters: Parameters, needed: int) -> None:
        """Tells the agent which calls to watch, and to ring after ``needed`` of them.

        Raises:
            NotFoundError: there is no such thread or task.
        """

    @abstractmethod
    def arm_bell(self, foothold: Foothold, handler: Callable[[], Bell]) -> None:
        """``handler`` decides, with everything stopped, whenever the agent rings."""

    @abstractmethod
    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        """Without an agent: ``handler`` decides, with everything stopped, at the signal whose
        number is returned, or after :meth:`knock` where that takes no signal."""

    @property
    def bell_is_lost(self) -> bool:
        """Whether the program listens to the bell's signal by now, and another one would do. Any
        thread."""
        return False

    def change_bell(self, tables: AgentMemory) -> None:  # noqa: B027
        """Takes that other signal. May be called while the bell's handler decides."""

    @abstractmethod
    def disarm_bell(self) -> None:
        """Takes back what :meth:`arm_bell` or :meth:`arm_limit` set."""

    def knock(self) -> None:  # noqa: B027  a process is sent a signal
        """Stops everything, and the handler of the bell decides, where that takes no signal. Any
        thread."""

    def give_sign(self, tables: AgentMemory, seconds_left: float | None) -> None:  # noqa: B027
        """A sign of life from the debugger, which ends the analysis in ``seconds_left``, where the
        agent looks for one. Any thread."""

    @abstractmethod
    def beat(self, tables: AgentMemory) -> None:
        """Looks at what may change while it runs, once a second. Any thread."""
