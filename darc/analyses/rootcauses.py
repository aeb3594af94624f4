"""The analysis of one function: from its profile over a peak to the root cause paths.

What it does, and what it may be asked, is its phase's to say (:mod:`darc.analyses.phase`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

from darc.analyses import knowncauses
from darc.analyses.analysis import AnalysisBrief, FallsBack, Resumable, Step
from darc.analyses.case import Case
from darc.analyses.phase import EndPhase, Following, Phase
from darc.analyses.profilephase import ProfilePhase
from darc.analyses.question import Question
from darc.collectors.collector import Collector
from darc.model.ftree import Fnode
from darc.model.functionprofile import FunctionProfile
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved.descents import SavedDescent, from_session
from darc.saved.olderfiles import DESCENT
from darc.saved.storage import Stored
from darc.search.descent import open_paths


class RootCauses(FallsBack, Resumable):
    """See the module."""

    key = DESCENT
    _called = "the search"

    def __init__(
        self,
        brief: AnalysisBrief,
        *,
        resumed: SavedDescent | None = None,
        profiled: FunctionProfile | None = None,
    ) -> None:
        """``resumed`` is the session to go on with, once f0's profile is known again; ``profiled``
        what the user has seen of f0 before."""
        super().__init__(brief)
        self._case = Case.of(brief, resumed)
        self._phase: Phase = ProfilePhase.of(self._case, profiled)

    @property
    def is_searching(self) -> bool:
        """Whether a peak was chosen, and what causes it is looked for, or was."""
        return self._phase.is_searching

    @property
    def needed(self) -> int:
        return self._phase.needed

    def lacks(self, missed: int, figures: ProgramFigures) -> str:
        in_peak = figures.in_peak_calls or 0
        return with_fewer_stops(missed, in_peak, self._spec) if self.is_searching else ""

    # -------------------------------------------------------------------- time

    def stands(self) -> None:
        self._case.clock.stands()
        self._case.guess_time.stands()

    def goes_on(self) -> None:
        self._case.choice.is_followed()
        self._case.clock.goes_on()

    @property
    def seconds_left(self) -> float | None:
        return self._phase.seconds_left

    def look(self) -> float:
        return self._phase.look()

    def look_ahead(self, seconds: float) -> bool:
        return self._case.clock.goes and self._phase.look_ahead(seconds)

    # ----------------------------------------------------------------- decisions

    def _enter(self, phase: Phase) -> None:
        self._phase, self._status = phase, phase.status

    def _follow(self, after: Following) -> Step:
        while isinstance(after, Phase):
            self._enter(after)
            after = after.begin()
        return after

    def decide(self) -> Step:
        return self._follow(self._phase.decide())

    def collect(self) -> None:
        self._phase.collect()

    @property
    def question(self) -> Question | None:
        return self._phase.question

    def choose_peak(self, spec: str) -> Step:
        """``darc peak``: the user's choice, at a stop.

        Raises:
            UsageError: it is not of the form of a peak, or not there.
        """
        is_there = self._phase.takes_peak(spec)
        self.parameters = dataclasses.replace(self.parameters, peak=spec)
        return self._follow(self._phase.search_for(spec)) if is_there else Step.GO_ON

    def descend(self, nodes: Sequence[Fnode]) -> Step:
        """``darc descend``: go on into these nodes only (``set darc auto off``).

        Raises:
            UsageError: it cannot.
        """
        return self._follow(self._phase.descend(nodes))

    def why_no_fall_back(self) -> str | None:
        return self._phase.why_no_fall_back()

    def fall_back(self, collector: Collector) -> Step:
        self._collector = collector
        return self._follow(self._phase.fall_back(collector))

    def stay(self, why: str | None = None) -> Step:
        return self._follow(self._phase.stay(why))

    # ----------------------------------------------------------------------- end

    def finish_early(self, why: str) -> None:
        self.collect()
        early = self._phase.finish_early(why)
        self.is_cut_short = early.is_cut_short
        self._enter(early.phase)

    def fail(self, why: str) -> None:
        super().fail(why)
        self._enter(EndPhase(self._phase, self._status))
        for path in open_paths(self.root):
            self._note(f"it had come to {' → '.join(node.function.name for node in path)}")

    def close(self, status: Status, alive: bool) -> None:
        self._enter(self._phase.close(status, alive))

    # --------------------------------------------------------- what is saved and shown

    @classmethod
    def resumed(cls, stored: Stored) -> Callable[[AnalysisBrief], RootCauses]:
        return functools.partial(cls, resumed=from_session(stored).taken_up())

    def stored(self, alive: bool) -> Stored:
        self._case.ops.watch()
        if (waiting := self._case.resumption.waiting) is not None:
            return dataclasses.replace(waiting, parameters=self.parameters)
        if alive:
            self.collect()
        f0 = self._stored_with(self._case.profile.at_choice)
        return knowncauses.to_save(self._phase, f0, alive=alive)

    def snapshot(self, alive: bool) -> Snapshot:
        self._case.ops.watch()
        if alive:
            self.collect()
        return knowncauses.whole(self._phase, self._head(), alive=alive)

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        return knowncauses.while_it_runs(self._phase, self._head(), alive=alive, readable=readable)


def with_fewer_stops(missed: int, in_peak: int, spec: str) -> str:
    """What is told behind it that stops for the user have kept so many calls of ``spec`` from being
    measured, where these are more than the ``in_peak`` calls that a search rests on."""
    if missed <= in_peak:
        return ""
    return (
        f", more than the {in_peak} in the peak that were: with fewer stops inside {spec} the "
        "search goes on"
    )
