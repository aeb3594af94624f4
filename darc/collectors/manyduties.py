"""What a collector does that times many functions: duties beside those of all collectors.

Which collector that is, is not for an analysis to know: it looks whether the one that it is given
has the duty. Where a method does not say "any thread", it is called on the debugger's own thread
while the program is stopped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from darc.collectors.memberpads import MemberPads
from darc.collectors.setcount import SetCounting
from darc.collectors.walkcount import Windows
from darc.collectors.walkstacks import Stacks
from darc.model.ftree import Function
from darc.model.leftout import LeftOut


class TimesSets(ABC):
    """Times many functions at once, each for itself."""

    pads: MemberPads
    """Their probes, since the collector's ``install``."""
    counting: SetCounting
    left_out: Sequence[tuple[Function, LeftOut]] = ()
    """Functions that were not taken into the set, and why."""

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

    @abstractmethod
    def under_way(self) -> list[int]:
        """At a stop, which is to be short: as :func:`darc.code.stacks.under_way`."""

    @property
    @abstractmethod
    def timed(self) -> int:
        """How many functions are timed now. Any thread."""


class Walks(TimesSets):
    """Times the callees of one function after the other."""

    doing: str
    """How far the walk is, for whoever waits."""
    windows: Windows
    """Since the collector's ``install``: what was counted in each window,"""
    stacks: Stacks
    """and where the threads stand."""

    @abstractmethod
    def begin_level(
        self, parts: Sequence[tuple[int, int]], callees: Sequence[Function], jumper: Function | None
    ) -> None:
        """The calls of ``callees`` count that come from code in these ``parts``, or that ``jumper``
        jumps to where it has tail calls, and no others."""

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
