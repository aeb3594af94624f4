"""What is asked of whatever is debugged, by duty.

Each duty is a class of its own, and those that need one take that one: who counts asks for the
clock, the monitor for what can be seen beside the program. A
:class:`~darc.debuggee.debuggee.Debuggee` has all of them. What is abstract must be answered. By all
other answers something is not there, is not told or need not be done: they do for whatever nobody
can look into but by the debugger, while that has stopped it.

Where a method does not say "any thread", it is called on the debugger's own thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from darc.code.architecture import FunctionCode
from darc.code.labels import LABEL, is_label
from darc.code.landmarks import Landmark
from darc.code.live import REWRITTEN
from darc.code.modules import Module
from darc.code.notrace import entered_otherwise, why_notrace
from darc.code.processor import PATCH_REACH
from darc.code.program import Program
from darc.debuggee.clock import Use
from darc.debuggee.holds import Scheduled
from darc.debuggee.quota import Quota
from darc.debuggee.switchwatch import Watching
from darc.model.ftree import Function
from darc.model.parameters import Parameters
from darc.model.refusal import Refusal
from darc.target.outcome import Outcome

FAR_MORE = 2
"""How many times what cannot be told apart a call takes at least whose cause is, where hits slow
down what comes behind them: calls of microseconds were seen to take twice as much at most."""


def milliseconds(seconds: float) -> str:
    """For the user."""
    return f"{1000 * seconds:.0f} ms"


class Clocked(ABC):
    """Has a time-stamp counter."""

    @property
    @abstractmethod
    def hz(self) -> int:
        """Cycles of its time-stamp counter in a second. Raises UnsupportedError: nothing tells."""

    shares_clock = False
    """Whether its time-stamp counter is the one that the debugger itself reads."""


class HasCode(ABC):
    """Has code that may be timed."""

    @abstractmethod
    def program(self) -> Program:
        """Its code, as it is now."""

    @abstractmethod
    def refresh(self, program: Program) -> None:
        """Looks again at what code there is.

        Raises:
            UnsupportedError: there is some by now that nothing may be timed beside.
        """

    def entry(self) -> int | None:
        """Where the program itself begins, when everything that is loaded with it is there;
        ``None`` where there is no such place."""
        return None

    @abstractmethod
    def is_at_start(self) -> bool:
        """Whether it has just been loaded, and its threads cannot be told apart yet."""

    tells_of_files = True
    """Whether darc hears of code that is loaded later."""

    def mapped(self) -> bytes | None:
        """Tells what is mapped in it now from what was before; ``None``: that cannot be seen."""
        return None

    def unloaded(self, program: Program) -> list[Module]:
        """At a stop: files that patches stand in, and that are not there any more, where nobody
        tells of that."""
        return []

    @abstractmethod
    def landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        """The kind, address and name of every :class:`Landmark` of its code."""

    @abstractmethod
    def check(self, program: Program, function: Function, spec: str) -> list[str]:
        """What is to be told before ``function`` is timed, which the user knows as ``spec``.

        Raises:
            UnsupportedError: it cannot be timed.
        """

    def entry_code(self, program: Program, function: Function) -> FunctionCode | Refusal:
        """The code of a function of a set, as far as a pad at its entry needs it, or why
        none can stand there."""
        if program.live.is_rewritten(function.address, PATCH_REACH):
            return Refusal(REWRITTEN)
        why = why_notrace(program, function) or entered_otherwise(program, function)
        if why is None and is_label(program, function.address):
            why = LABEL
        if why is not None:
            return Refusal(why)
        code = program.function(function.address)
        return code if code.ranges else Refusal("its code cannot be read")

    tells_interrupts = False
    """Whether calls that interrupts make are told from those of threads."""


class TellsWaits:
    """May tell when its threads are off their processors, and who waits for whom."""

    @property
    def tick(self) -> float | None:
        """Seconds between two ticks of the timer of its kernel; ``None``: nobody knows. Any
        thread."""
        return None

    def watching(self) -> Watching:
        """Tells when its threads leave their processors, as far as that is told from outside."""
        return Watching()

    def watch_holds(self) -> Callable[[], bool]:
        """Tells, whenever that is asked, whether the debugger may have held it since the last time:
        also by stops that darc hears nothing of, as far as anything else tells. Any thread, one at
        a time."""
        return lambda: False

    def wait_landmarks(self, program: Program) -> Iterator[tuple[Landmark, int, str]]:
        """The same of those that tell who waits for whom."""
        return iter(())

    def why_no_waits(self, program: Program) -> str | None:
        """Why it is not seen what its threads wait for; ``None`` where it may be."""
        del program
        return None

    unseen_waits: str | None = None
    """Why it was not seen what the calls that were kept waited for, where it may be; ``None``: that
    may have one of several reasons."""


class TellsOfThreads:
    """Has threads, of which the system may tell what the debugger does not."""

    sees_all_threads = False
    """Whether the debugger's threads are all that run there, so that their stacks tell what is
    under way. A kernel's are its processors: of tasks that were preempted nobody tells."""

    def thread_called(self, own: int) -> int | None:
        """The thread that it knows itself as ``own``, if there is one. Any thread."""
        del own
        return None

    def thread_name(self, number: int) -> str | None:
        """What the thread with that id, as the program knows it, is called."""
        return None

    def outsider_name(self, number: int) -> str | None:
        """What the other process is called that has the thread with that id, as the program knows
        it; ``None``: it is the program's own, or nobody's that is known."""
        return None

    def ran(self, thread: int) -> tuple[int, int] | None:
        """For how long a thread has run so far, and waited for a processor, in ns; ``None``: that
        is not known."""
        del thread
        return None

    def quota(self) -> Quota | None:
        """What tells of its CPU quota; ``None``: it has none."""
        return None

    def scheduled(self, own: int) -> Scheduled | None:
        """What has become of the thread that it knows itself as ``own``; ``None`` where nothing
        tells. Any thread."""
        del own
        return None

    def deep_wait(self, own: int) -> Sequence[str] | None:
        """The kernel's functions, innermost first, in which the thread that it knows itself as
        ``own`` is in such a wait, as far as they may be seen; ``None``: it is in none. Any
        thread."""
        del own
        return None


class TakesBreakpoints(ABC):
    """Its threads come to breakpoints."""

    def risk_of_breakpoints(self) -> str | None:
        """Why darc takes no breakpoints there that the user has not asked for; ``None`` where
        nothing speaks against them."""
        return None

    def danger_of_breakpoints(self) -> str | None:
        """Why what runs there may end with the debugger, were that killed with breakpoints in it;
        ``None`` where it ends with the debugger in any case, or outlives them."""
        return None

    def lacks_breakpoint(self, address: int) -> bool:
        """Whether it runs, the debugger has it, and no breakpoint of the debugger's stands at
        ``address``, where one should. Any thread."""
        del address
        return False

    calibration_steps = 1
    """How many instructions are executed between the two breakpoints that tell what a hit costs.
    With one the debugger is there as soon as it has stepped; with two the hit costs as much as
    others, which matters where nothing but a clock tells."""

    @property
    def breakpoints_blur(self) -> float:
        """Seconds: about what latencies cannot be told apart where breakpoints collect."""
        return 1e-3

    @property
    def breakpoints_doubt(self) -> str | None:
        """Why causes that breakpoints have found may be wrong here, for the user; ``None``: they
        are as good as others. They are so of calls that take :data:`FAR_MORE` times the blur."""
        return None

    @abstractmethod
    def counts_in(self, parameters: Parameters) -> Callable[[int], bool]:
        """What tells of a thread that has come to f0, at a breakpoint, whether its call counts.

        Raises:
            NotFoundError: there is no such thread or task.
            UsageError: what runs there is told by the other one of the two.
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


class SeenBeside(ABC):
    """Runs, and may be looked at meanwhile without the debugger."""

    @property
    @abstractmethod
    def is_readable_while_it_runs(self) -> bool:
        """Whether its memory can be read and written while it runs: counters, and signs of life.
        Any thread."""

    def is_gone(self) -> bool:
        """Whether it has ended, as far as that can be seen without the debugger. Any thread."""
        return False

    def is_stopped(self) -> bool:
        """Whether the debugger has stopped it, and may be telling so at this moment. Any thread."""
        return False

    def writes_on(self, descriptor: int) -> bool:
        """Whether its output goes to the terminal that a descriptor of the debugger's is. Any
        thread."""
        del descriptor
        return False


class CanBeStopped(ABC):
    """Is stopped beside the debugger, which hears of that."""

    @abstractmethod
    def arm_limit(self, handler: Callable[[], Outcome]) -> int | None:
        """Without an agent: ``handler`` decides, with everything stopped, at the signal whose
        number is returned, or after :meth:`knock` where that takes no signal."""

    @abstractmethod
    def disarm_limit(self) -> None:
        """Takes back what :meth:`arm_limit` set."""

    def knock(self) -> None:  # noqa: B027
        """Stops everything, and the handler of :meth:`arm_limit` decides, where that takes no
        signal. Any thread."""

    def is_signalled(self, number: int) -> bool:
        """Whether the signal ``number`` is on its way already, or the debugger has it. Any
        thread."""
        return False

    def send(self, number: int, own: int | None = None) -> None:  # noqa: B027
        """Sends it the signal ``number``, with darc's mark: to the thread with the id ``own``, as
        it knows that itself, or to another one that does not block it. Any thread."""

    def keeps_interrupt(self) -> bool:
        """Whether a SIGINT that was sent to the program waits, as every thread blocks it. Any
        thread."""
        return False

    def waits_deeply(self) -> bool:
        """Whether a thread is in a wait that no signal ends, so that a stop would last until it
        comes back. Any thread."""
        return False
