"""The seam between a session and what it is for: counts in, steps and a result out.

An *analysis* reads what a collector counted, tells it what to time next, and says what is known.
The :class:`~darc.session.session.Session` knows no particular one: it lets the program run and
stop, and carries out each :class:`Step`. What a user may ask of one analysis alone (a peak, nodes)
are methods of its own that return a step as well.

An analysis is told when to look: its methods are called on the debugger's own thread with all
threads of the program stopped, where they do not say "any thread".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from darc.code.program import Program
from darc.collectors.collector import Collector
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.saved.storage import Stored


class Step(Enum):
    """What comes after a decision."""

    GO_ON = auto()
    CHOOSE_PEAK = auto()
    """The user is to choose a peak."""
    CHOOSE_NODES = auto()
    """The user is to choose where to descend."""
    FALL_BACK = auto()
    """Time may be in calls that took no pad: breakpoints are to time them
    (see :meth:`Analysis.fall_back`), or :meth:`Analysis.stay` ends the search."""
    END = auto()
    """The search is over: every probe can come out."""


@dataclass(frozen=True)
class Subject:
    """What is analysed, and by what: calls of ``root``'s function, which the user knows as
    ``spec``, counted by ``collector``. ``note`` takes what the user should know."""

    program: Program
    collector: Collector
    root: Fnode
    spec: str
    parameters: Parameters
    note: Callable[[str], None]


class Analysis(ABC):
    """See the module."""

    @property
    @abstractmethod
    def status(self) -> Status:
        """How far it is. Any thread."""

    @property
    def finished(self) -> bool:
        """Whether the search has ended. Any thread."""
        return self.status.is_final

    @property
    @abstractmethod
    def is_searching(self) -> bool:
        """Whether a peak was chosen, and what causes it is looked for, or was."""

    # -------------------------------------------------------------------- time

    @abstractmethod
    def stopped(self) -> None:
        """The program has stopped, for a decision or for the user. It had when this was made."""

    @abstractmethod
    def goes_on(self) -> None:
        """The program is about to go on, with its probes."""

    @property
    @abstractmethod
    def seconds_left(self) -> float | None:
        """Until it is to decide, whatever was seen; ``None``: that is not for the time to say. Any
        thread."""

    @abstractmethod
    def look(self) -> float:
        """Takes down how the counts have grown, if it is time for that. Tells in how many seconds
        that is. Any thread, while the program runs, whose memory can be read."""

    # ----------------------------------------------------------------- decisions

    @abstractmethod
    def decide(self) -> Step:
        """Enough calls were seen: reads what was counted and orders what comes next."""

    @abstractmethod
    def collect(self) -> None:
        """Reads what was counted, and decides nothing."""

    @abstractmethod
    def finish_early(self, why: str) -> None:
        """Ends with what is known; ``why`` is told."""

    @abstractmethod
    def fail(self) -> None:
        """Ends without an answer: a decision could not be made."""

    @abstractmethod
    def close(self, status: Status, alive: bool) -> None:
        """The session ends. A search that had not ended takes ``status``; ``alive`` tells whether
        the collector still has what was counted."""

    def why_no_fall_back(self) -> str | None:
        """After :attr:`Step.FALL_BACK`: why breakpoints would spoil more than they tell."""
        return None

    def fall_back(self, collector: Collector) -> Step:
        """After :attr:`Step.FALL_BACK`: goes on with ``collector``, which watches f0 already; the
        one before is removed."""
        raise NotImplementedError

    def stay(self, why: str | None = None) -> Step:
        """After :attr:`Step.FALL_BACK`: ends with what is known. ``why`` says why there are no
        breakpoints."""
        raise NotImplementedError

    # -------------------------------------------------------------------- views

    @property
    @abstractmethod
    def needed(self) -> int:
        """After how many calls a decision is due. Any thread."""

    @abstractmethod
    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        """What a live line shows. Any thread, while the program runs, whose memory may not be
        ``readable`` then."""

    @abstractmethod
    def snapshot(self, alive: bool) -> Snapshot:
        """All that is known, without what the session knows of stops, notes and time."""

    @abstractmethod
    def stored(self, alive: bool) -> Stored:
        """What a later run needs to go on from here; ``alive`` as for :meth:`close`."""
