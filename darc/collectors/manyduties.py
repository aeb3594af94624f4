"""What a collector does that times many functions: duties beside those of all collectors.

Which collector that is, is not for an analysis to know, nor by which probes it times: it looks
whether the one that it is given has the duty. Where a method does not say "any thread", it is
called on the debugger's own thread while the program is stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from darc.code.unwind import Frame
from darc.collectors.duties import Counting, LooksAhead
from darc.model.ftree import Function
from darc.model.leftout import LeftOut
from darc.model.membercounts import MemberCounts


class MemberProbes(LooksAhead):
    """The probes of the functions of a set: which there are, and when each is made."""

    functions: tuple[Function, ...]
    """By their numbers."""
    left_out: Mapping[Function, LeftOut]
    """Those that are not timed, and why."""

    @property
    @abstractmethod
    def is_prepared(self) -> bool:
        """Whether what can be made while the program runs is made. Any thread."""

    @property
    @abstractmethod
    def making(self) -> tuple[int, int]:
        """The number of the probe that is made now, and of how many. Any thread."""

    @abstractmethod
    def make_at_stop(self) -> bool:
        """At a stop: makes some of the probes that can only be made at one. Whether these are
        all."""


class MemberCounting(Counting):
    """Counts the calls of each function of a set for itself."""

    @abstractmethod
    def counts(self) -> Mapping[Function, MemberCounts]:
        """What was counted of each function that was called. Any thread."""

    @abstractmethod
    def unmeasured(self, counts: Mapping[Function, MemberCounts]) -> Mapping[Function, str]:
        """Functions of which ``counts`` has no call, though they were called, or may have been; and
        why. Any thread."""

    @property
    @abstractmethod
    def call_cost(self) -> int:
        """Cycles that a call of a function takes more."""


class TimesSets(ABC):
    """Times many functions at once, each for itself."""

    counting: MemberCounting
    left_out: Sequence[tuple[Function, LeftOut]] = ()
    """Functions that were not taken into the set, and why."""

    @property
    @abstractmethod
    def probes(self) -> MemberProbes:
        """Those of the functions, since the collector's ``install``."""

    @property
    @abstractmethod
    def is_in(self) -> bool:
        """Whether the functions are timed. Any thread."""

    @abstractmethod
    def put_in(self) -> None:
        """At a stop: all are timed from now on whose pads are made; the others are left out. Raises
        :class:`~darc.model.errors.UnsupportedError`: none can be."""

    @property
    @abstractmethod
    def looks_while_it_runs(self) -> bool:
        """Whether what was counted can be read while the program runs."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What messages call what is debugged."""

    @abstractmethod
    def give_up(self, functions: AbstractSet[Function]) -> None:
        """These are timed no more; what was counted of them stays."""

    @property
    @abstractmethod
    def unsettled_seconds(self) -> float:
        """See :attr:`darc.collectors.collector.Collector.unsettled_seconds`."""

    @property
    @abstractmethod
    def busy_seconds(self) -> float:
        """For how long the program's threads had something to do so far, those that live, whether
        they had a processor or not. Any thread."""

    @property
    @abstractmethod
    def tick(self) -> float | None:
        """Seconds between two ticks of the timer of the program's kernel; ``None``: nobody knows.
        Any thread."""

    @abstractmethod
    def under_way(self) -> list[int]:
        """At a stop, which is to be short: as :func:`darc.code.stacks.under_way`."""

    @property
    @abstractmethod
    def timed(self) -> int:
        """How many functions are timed now. Any thread."""


@dataclass(frozen=True)
class Counted:
    """Of one thread in a window, in cycles: calls that began and ended there, with the parts of
    those that were under way at its end. By function."""

    calls: Mapping[Function, int] = field(default_factory=dict)
    cycles: Mapping[Function, int] = field(default_factory=dict)
    first: int = 0
    """TSC of the first call; 0: there was none. And of the first one of an event wait:"""
    first_wait: int = 0


class CountsWindows(ABC):
    """What was counted in each window of a walk."""

    entered: AbstractSet[int]
    """Where the return addresses of calls stand that began in the latest window and have not ended,
    when that was counted."""

    @abstractmethod
    def begin(self) -> None:
        """The program is about to go on."""

    @abstractmethod
    def counted(self, start: int, end: int) -> Mapping[int, Counted]:
        """What was counted since :meth:`begin`, by the threads' keys."""


@dataclass(frozen=True)
class ThreadStack:
    """Where a thread stands: its key in the agent, and its frames, the outermost first."""

    key: int
    frames: tuple[Frame, ...]


class SeesStacks(ABC):
    """Where threads stand."""

    @abstractmethod
    def all(self, among: AbstractSet[int] | None = None) -> dict[int, ThreadStack]:
        """Of all threads, or of those of them that are ``among`` these, by the system's ids. The
        program stands still."""


class Walks(TimesSets):
    """Times the callees of one function after the other."""

    doing: str
    """How far the walk is, for whoever waits."""
    windows: CountsWindows
    """Since the collector's ``install``: what was counted in each window,"""
    stacks: SeesStacks
    """and where the threads stand."""

    @abstractmethod
    def begin_level(
        self, parts: Sequence[tuple[int, int]], callees: Sequence[Function], own: Function | None
    ) -> None:
        """The calls of ``callees`` count that come from code in these ``parts``, or that ``own``
        jumps to where it has tail calls, all of ``own``, and no others."""

    @abstractmethod
    def is_member(self, function: Function) -> bool:
        """Whether its calls are timed now."""

    @abstractmethod
    def ran(self, thread: int) -> tuple[int, int] | None:
        """See :meth:`darc.debuggee.debuggee.Debuggee.ran`."""

    @property
    @abstractmethod
    def quota_used_up(self) -> int:
        """For how long a CPU quota has kept the program's threads waiting so far, all together and
        at most, in ns."""

    @property
    @abstractmethod
    def is_stopped(self) -> bool:
        """Whether the debugger has stopped the program. Any thread."""

    @property
    @abstractmethod
    def now(self) -> int:
        """The time-stamp counter."""


def that_times_sets(collector: object) -> TimesSets | None:
    """A collector, if it has this duty."""
    return collector if isinstance(collector, TimesSets) else None


def that_walks(collector: object) -> Walks | None:
    """A collector, if it has this duty."""
    return collector if isinstance(collector, Walks) else None
