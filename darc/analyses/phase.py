"""The seam between the analysis of one function and its phases, and the last of these.

The profile grows (:mod:`~darc.analyses.profilephase`), paths are searched for
(:mod:`~darc.analyses.searchphase`), the closing round keeps ops
(:mod:`~darc.analyses.closingphase`), and it has ended. Each has what only it has, and says itself
which one follows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, NamedTuple, TypeAlias

from darc.analyses.analysis import Step
from darc.analyses.case import Case
from darc.analyses.question import Question
from darc.collectors.collector import Collector
from darc.model.errors import UsageError
from darc.model.ftree import Fnode, RootCausePath
from darc.model.status import Status
from darc.search.contest import Contest
from darc.search.descent import AUTO_LOOKAHEAD

Following: TypeAlias = "Step | Phase"
"""What comes after a decision: a step of the same phase, or the phase that follows, whose own
beginning says the step."""

CHOSEN = "a peak was chosen already: 'darc stop', then 'darc start' anew"


class Early(NamedTuple):
    """What comes of a phase that is ended early."""

    phase: Phase
    is_cut_short: bool
    """Whether what was to be found out was not known yet."""


class Phase(ABC):
    """Of a ``case``, in which ``collector`` counts. Methods are called as those of an analysis that
    have their names; "any thread" holds here, too."""

    status: Status
    """What the analysis is as long as this lasts."""

    is_searching: bool = False
    """Whether a peak was chosen, and what causes it is looked for, or was."""

    is_counting: ClassVar[bool] = False
    """Whether a decision is to come from the calls inside the peak that are seen."""

    has_counts: bool = True
    """Whether it is known what was counted last."""

    def __init__(self, case: Case, collector: Collector) -> None:
        self.case = case
        self.collector = collector

    # ------------------------------------------------------------------ decisions

    @abstractmethod
    def begin(self) -> Following:
        """It follows upon another one: orders what comes first."""

    @abstractmethod
    def decide(self) -> Following:
        """Enough calls were seen, or their time is over."""

    @property
    @abstractmethod
    def needed(self) -> int:
        """After how many calls. Any thread."""

    @property
    def question(self) -> Question | None:
        """What the user is to choose."""
        return None

    @property
    def seconds_left(self) -> float | None:
        """Until it is to decide, whatever was seen; ``None``: time ends it not. Any thread."""
        return None

    def collect(self) -> None:
        """Reads what was counted."""
        self.case.collect(self.collector, is_searching=self.is_searching)

    def look(self) -> float:
        """Takes down how the profile grows. In how many seconds that is due. Any thread."""
        return math.inf

    def look_ahead(self, seconds: float) -> bool:
        """Prepares for the decision that comes. Whether there is more to be done at once."""
        del seconds
        return False

    def _look_ahead(self, nodes: Callable[[], Sequence[Fnode]], seconds: float) -> bool:
        """The same for the callees of ``nodes``, which will probably be timed next."""
        lookahead = self.collector.within_limits(self.case.brief.parameters).lookahead
        levels = AUTO_LOOKAHEAD if lookahead is None else lookahead
        ahead = self.collector.ahead
        return ahead is not None and ahead.look_ahead(nodes, levels, seconds)

    # ------------------------------------------------------- what the user chooses

    def takes_peak(self, spec: str) -> bool:
        """The user has chosen the peak ``spec``. Whether it is there, and :meth:`search_for`
        follows; else it is waited for.

        Raises:
            UsageError: it is not of the form of a peak, not there, or no time to choose one.
        """
        del spec
        raise UsageError(CHOSEN)

    def search_for(self, spec: str) -> Following:
        """Searches for the causes of the peak ``spec``, which the user has chosen."""
        raise NotImplementedError

    def descend(self, nodes: Sequence[Fnode]) -> Following:
        """Goes on into these nodes only.

        Raises:
            UsageError: it cannot.
        """
        del nodes
        raise UsageError("choose a peak first: 'darc peak N'")

    # ------------------------------------------------- calls that took no probe

    def why_no_fall_back(self) -> str | None:
        """Why other probes would spoil more than they tell."""
        return None

    def fall_back(self, collector: Collector) -> Following:
        """Goes on with ``collector``."""
        raise NotImplementedError

    def stay(self, why: str | None) -> Following:
        """There are no other probes, for this reason."""
        raise NotImplementedError

    # ------------------------------------------------------------------------ end

    @abstractmethod
    def finish_early(self, why: str) -> Early:
        """Ends with what is known; ``why`` is told. What was counted is read already."""

    @abstractmethod
    def close(self, status: Status, alive: bool) -> Phase:
        """The session ends, as ``status`` says. What follows."""

    # ---------------------------------------------------- what is saved and shown

    @property
    def tree(self) -> Fnode | None:
        """The ftree; ``None``: there is none yet."""
        return None

    @property
    def paths(self) -> tuple[RootCausePath, ...]:
        """Those that have ended."""
        return ()

    @property
    def level(self) -> int:
        """How far down the search has come. Any thread."""
        return 0

    @property
    def used(self) -> AbstractSet[int]:
        """Where probes are, or were. Any thread."""
        return self.collector.timing.used

    def seen(self, alive: bool) -> int:
        """Calls inside the peak that were seen since they were asked for."""
        del alive
        return 0

    def votes(self, alive: bool) -> tuple[tuple[Contest, ...], int]:
        """The votes that did not suffice for a decision yet, and all calls inside the peak, in each
        of the runs; ``alive``: the collector still has what was counted."""
        del alive
        return self.case.resumption.left


class LaterPhase(Phase):
    """One that follows upon ``before``, and shows what that had come to."""

    def __init__(self, before: Phase) -> None:
        super().__init__(before.case, before.collector)
        self.is_searching = before.is_searching
        self._before = before

    @property
    def tree(self) -> Fnode | None:
        return self._before.tree

    @property
    def paths(self) -> tuple[RootCausePath, ...]:
        return self._before.paths

    @property
    def level(self) -> int:
        return self._before.level

    @property
    def used(self) -> AbstractSet[int]:
        return self._before.used

    def seen(self, alive: bool) -> int:
        return self._before.seen(alive)


class EndPhase(LaterPhase):
    """It has ended, as ``status`` says."""

    def __init__(self, before: Phase, status: Status, *, has_counts: bool = True) -> None:
        """``has_counts``: the program has not taken with it what was counted last."""
        super().__init__(before)
        self.status = status
        self.has_counts = has_counts

    def begin(self) -> Following:
        return Step.END

    def decide(self) -> Following:
        return Step.END

    @property
    def needed(self) -> int:
        return self._before.needed

    def finish_early(self, why: str) -> Early:
        del why
        return Early(self, is_cut_short=False)

    def close(self, status: Status, alive: bool) -> Phase:
        del status, alive
        return self
