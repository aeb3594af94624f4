"""The seam between what is analysed and how latency is collected.

A *collector* times the calls of f0 and of what it calls, and counts votes (paper section 3). The
:class:`~darc.analyses.analysis.Analysis` tells it what to time and reads what was counted; the
:class:`~darc.session.session.Session` puts it into the program and takes it out. It knows neither
peaks by their names nor decisions: when it has seen as many calls as it was asked for, it asks its
:class:`Listener` what comes next.

Where a method does not say "any thread", it is called on the debugger's own thread while the
program is stopped. Collectors count in cycles of a clock of :attr:`Collector.hz` Hz.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from darc.code.architecture import FunctionCode
from darc.code.program import Program
from darc.collectors.callees import Callees
from darc.debuggee.debuggee import Debuggee
from darc.model.ftree import Fnode
from darc.model.ops import Event, KeptOps
from darc.model.parameters import Parameters, Probes
from darc.model.profile import Profile
from darc.pads.foothold import Foothold
from darc.search.contest import Vote
from darc.search.descent import Orders
from darc.target.outcome import Outcome
from darc.target.target import Target


class Listener(Protocol):
    """Whom a collector asks, with all threads of the program stopped."""

    def is_due(self) -> bool:
        """Whether a decision is to be made now, whatever was seen."""

    @property
    def seconds_left(self) -> float | None:
        """Until that is so; ``None``: there is no limit. Any thread."""

    def decide(self) -> Outcome:
        """Enough calls were seen, or time is up."""

    def give_up(self, why: str) -> Outcome:
        """Nothing more can be seen."""

    def damaged(self, why: str) -> Outcome:
        """What is counted with was written over by the program."""

    def vanished(self, why: str) -> Outcome:
        """What the probes were put into is not there any more."""

    def before_resume(self) -> None:
        """The program went on after a stop for the user, and not step by step."""

    def exits(self) -> None:
        """The program is about to end: the last moment to look."""


@dataclass(frozen=True)
class Assignment:
    """What a collector is made for: the calls of ``root``'s function, which the user knows as
    ``spec``, in ``program`` of ``debuggee``. ``note`` takes what the user should know; ``foothold``
    is what an earlier analysis may have left in the debuggee."""

    target: Target
    program: Program
    debuggee: Debuggee
    root: Fnode
    spec: str
    parameters: Parameters
    listener: Listener
    note: Callable[[str], None]
    foothold: Foothold | None = None
    progress: Callable[[str], None] = lambda _: None
    """Is told what is done, where that may take long. The program stands still."""


@runtime_checkable
class HasFoothold(Protocol):
    """A collector that leaves something in the debuggee, for the next analysis."""

    foothold: Foothold | None


@dataclass(frozen=True)
class Running:
    """A call of f0 that is under way."""

    key: Hashable
    """Tells it from all others."""
    thread: int
    """The id of its thread, as the program knows it; 0: not known."""
    seconds: float
    """For how long it has been."""


class KeepsOps(ABC):
    """Keeps some ops whole, for collectors that can (:attr:`Collector.ops`)."""

    @property
    def may_look_closer(self) -> bool:
        """Whether a round may be added in which ops are kept whole: it takes one stop more."""
        return False

    @abstractmethod
    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        """From now on some ops are kept whole: calls of f0 inside the peak, and those that take
        from ``fast[0]`` to below ``fast[1]`` cycles (none where both are 0). Calls in them of at
        least ``least`` cycles are kept one by one."""

    @abstractmethod
    def watch_waits(self) -> None:
        """From now on ops that are kept tell what their threads wait for, and who releases it."""

    @abstractmethod
    def kept_ops(self) -> KeptOps:
        """The ops that were kept since the orders. Learned callees join the ftree here."""


class SeesOpenCalls(ABC):
    """Tells which calls of f0 are under way, for collectors that can
    (:attr:`Collector.open_calls`)."""

    @abstractmethod
    def running(self) -> Sequence[Running] | None:
        """These calls; ``None``: that cannot be told while the program runs, here. Any thread."""

    @abstractmethod
    def waits_for(self, call: Running) -> Event | None:
        """What that call began to wait for last, if it is known to wait for anything. The program
        stands still."""


class Collector(ABC):
    """One way to collect latencies, for one analysis of one program."""

    kind: ClassVar[Probes]
    plural: ClassVar[str]
    """What messages call its probes."""

    def __init__(self, assignment: Assignment) -> None:
        self._target = assignment.target
        self._debuggee = assignment.debuggee
        self._program = assignment.program
        self._root = assignment.root
        self._spec = assignment.spec
        self._parameters = assignment.parameters
        self._listener = assignment.listener
        self._note = assignment.note

    outlives: ClassVar[bool] = False
    """Whether what was counted can be read when the program is gone."""

    @property
    def auto_lookahead(self) -> int | None:
        """What ``--lookahead auto`` means where that is not for the search to say."""
        return None

    @property
    def most_probes(self) -> int | None:
        """How many call sites can be timed at once at most, where there is a limit."""
        return None

    @staticmethod
    def problem(debuggee: Debuggee) -> str | None:
        """Why there can be none in what is debugged, whatever the function is."""
        del debuggee
        return None

    @staticmethod
    def risk(debuggee: Debuggee) -> str | None:
        """Why ``--probes auto`` puts none into what is debugged: it could come to harm."""
        del debuggee
        return None

    @staticmethod
    def risk_of_fall_back(debuggee: Debuggee) -> str | None:
        """Why none takes the place of one that has collected: it would spoil more than it tells."""
        del debuggee
        return None

    def opening(self, why: str | None) -> str | None:
        """What the user is to know of it before the program goes on. ``why`` says why it is this
        one, where ``--probes auto`` would rather have another."""
        del why
        return None

    @property
    def ops(self) -> KeepsOps | None:
        """What keeps some ops whole, where it can, since :meth:`install`."""
        return None

    @property
    def open_calls(self) -> SeesOpenCalls | None:
        """What tells which calls are under way, where it can, since :meth:`install`."""
        return None

    callees: Callees
    """The call sites of every fnode that was looked into; set when it is made."""

    # ------------------------------------------------------------- begin and end

    @abstractmethod
    def install(self, code: FunctionCode, needed: int) -> list[str]:
        """Puts probes to f0, whose code is ``code``, into the program and begins to collect its
        profile; may call functions in it. Returns what the user should know.

        Raises:
            DarcError: it cannot be. :meth:`remove` undoes what was done.
        """

    @abstractmethod
    def remove(self) -> None:
        """Takes everything back. May be called in the middle of :meth:`Listener.decide`."""

    @abstractmethod
    def gone(self) -> None:
        """The program is gone, and everything that was in it."""

    def abandon(self) -> None:
        """The debugger has lost the program, which lives on with the probes: they do nothing any
        more, and what is noted of them stays for the next debugger."""
        self.gone()

    @abstractmethod
    def is_there(self) -> bool:
        """Whether the program that the probes were put into is still the one that runs."""

    def lost(self) -> str | None:
        """At a stop: why what the probes were put into is not what runs there any more."""
        return None

    def damage(self) -> str | None:
        """Why nothing can be made of what was counted, as the program has written over it. Any
        thread."""
        return None

    # ---------------------------------------------------------- the user's stops

    def stands(self) -> None:  # noqa: B027  most have no use for it
        """The program has just stopped for the user: :meth:`pause` follows."""

    @abstractmethod
    def pause(self) -> None:
        """The program stopped for the user: it looks as if there were no probe. Calls that are
        under way are measured on only if the program goes on from here, by :meth:`resume`, and
        not step by step."""

    def passes(self) -> bool:
        """In place of :meth:`pause`: the debugger will let the program go on by itself, and nobody
        looks at it before. Whether probes are left in for that moment."""
        return False

    @property
    def passing(self) -> bool:
        """Whether they are, as :meth:`passes` has said so."""
        return False

    @abstractmethod
    def resume(self) -> list[str]:
        """The program is about to go on: probes are back. Tells which ones could not be."""

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether probes are out, as the user steps through the program. Any thread."""

    def make_way(self) -> str | None:
        """The user has set a breakpoint. A string says why f0 cannot be timed any more."""
        return None

    @abstractmethod
    def modules_changed(self) -> list[str]:
        """The program has loaded or unloaded files. Tells what could not be done.

        Raises:
            UnsupportedError: f0 cannot be timed any more.
        """

    # -------------------------------------------------------- while it runs

    def beat(self) -> None:  # noqa: B027  most have nobody who waits for one
        """A sign of life, several times a second. Any thread."""

    def look_ahead(self, nodes: Callable[[], Sequence[Fnode]], levels: int, seconds: float) -> bool:
        """While the program runs: prepares for timing what ``nodes``, which are timed now, call,
        ``levels`` deep, as far as that goes in so many seconds. Whether there is more to do before
        ``nodes`` are to be asked for again. On a thread that may help (:class:`Turn
        <darc.target.ownthread.Turn>`)."""
        del nodes, levels, seconds
        return False

    def goes_on(self) -> None:  # noqa: B027  most have nothing to do
        """The program is about to go on, and :meth:`look_ahead` may be called."""

    @property
    def waits(self) -> bool:
        """Whether it waits for the debugger to look. Any thread."""
        return False

    @property
    def rings_itself(self) -> bool:
        """Whether it calls the debugger by itself when it waits. Any thread."""
        return False

    @property
    def signal(self) -> int | None:
        """A signal that makes the debugger look when a thread gets it. Any thread."""
        return None

    @abstractmethod
    def hurry(self) -> None:
        """Enough was seen, whatever it was: the listener is asked at the next call. Any thread."""

    @property
    def probe_cost(self) -> int:
        """Cycles that a timed call adds to its caller; 0 where nobody has measured it."""
        return 0

    def losses(self) -> list[str]:
        """What was not measured so far, and why."""
        return []

    @property
    def cut_short(self) -> int:
        """Calls of f0 that stops for the user have come in the middle of: they are not measured."""
        return 0

    @property
    def hits(self) -> tuple[int, float]:
        """How often the program was stopped to time a call, and for how many seconds in all; with
        those in which a thread that had asked for a decision waited for it to begin, and for the
        program to go on behind it."""
        return 0, 0.0

    # ------------------------------------------------------------------- counting

    @property
    @abstractmethod
    def hz(self) -> int:
        """Cycles of its clock in a second."""

    @property
    @abstractmethod
    def seen(self) -> int:
        """Calls of f0 that counted since they were last asked for. Any thread."""

    @abstractmethod
    def profile(self) -> Profile:
        """The profile of f0 so far. Any thread."""

    @abstractmethod
    def await_calls(self, needed: int) -> None:
        """Asks the listener once f0 was called ``needed`` times in all."""

    @abstractmethod
    def await_in_peak(self, needed: int) -> None:
        """Asks the listener after ``needed`` calls inside the peak from now on."""

    @property
    @abstractmethod
    def voted(self) -> int:
        """In how many calls inside the peak every vote was counted since the orders: what a
        decision rests on. (:attr:`seen` may be off by a call for each thread that a stop has
        caught on its way.)"""

    @abstractmethod
    def await_more(self, needed: int) -> None:
        """Asks the listener once :attr:`voted` is ``needed``."""

    @abstractmethod
    def await_user(self) -> None:
        """Asks nobody until something else is awaited: it is for the user to choose."""

    @abstractmethod
    def search(self, low: int, high: int) -> None:
        """From now on only calls of f0 of at least ``low`` cycles and less than ``high`` count."""

    @abstractmethod
    def drop_open_calls(self) -> None:
        """Calls that are under way are not measured: they span a stop."""

    # ----------------------------------------------------------- orders and votes

    @abstractmethod
    def apply(self, orders: Orders) -> None:
        """Times what the orders name and nothing else; votes are counted anew."""

    @abstractmethod
    def apply_again(self) -> None:
        """The same orders once more, from the start."""

    @abstractmethod
    def votes(self) -> dict[Fnode, Vote]:
        """What was counted since the orders; learned callees join the ftree here."""

    def make_room(self, votes: Mapping[Fnode, Vote]) -> bool:
        """Makes room for more targets of indirect calls where that could change the decision.
        True: it did, so the round is to begin again."""
        del votes
        return False

    @property
    @abstractmethod
    def used(self) -> AbstractSet[int]:
        """The addresses of all call sites that were timed so far."""


@dataclass(frozen=True)
class Way:
    """How one of the class ``collector`` is made: by ``make``, or with the assignment alone."""

    collector: type[Collector]
    make: Callable[[Assignment], Collector] | None = None

    def new(self, assignment: Assignment) -> Collector:
        """A collector for that."""
        return (self.make or self.collector)(assignment)
