"""While f0's profile grows: until the peak is there that is asked for, or the user chooses one."""

from __future__ import annotations

from darc.analyses.analysis import Step
from darc.analyses.case import Case
from darc.analyses.peakchoice import Choice
from darc.analyses.phase import CHOSEN, Early, EndPhase, Following, Phase
from darc.analyses.question import About, Question
from darc.analyses.searchphase import SearchablePhase, SearchPhase, no_such_peak
from darc.analyses.warming import Warming
from darc.collectors.collector import Collector
from darc.model.errors import UsageError
from darc.model.functionprofile import FunctionProfile
from darc.model.status import Status


class ProfilePhase(SearchablePhase):
    """It is looked at when enough was seen, and again if more is to come."""

    status = Status.PROFILING

    def __init__(
        self,
        case: Case,
        collector: Collector,
        *,
        peak: str | None,
        profiled: FunctionProfile | None,
        warming: Warming,
    ) -> None:
        """``peak`` is the one that is asked for, ``None`` where the user is to choose; ``profiled``
        what the user has seen of f0 before; ``warming`` is done meanwhile."""
        super().__init__(case, collector)
        self._peak = peak
        self._profiled = profiled
        self._warming = warming

    @classmethod
    def of(cls, case: Case, profiled: FunctionProfile | None) -> ProfilePhase:
        """The first phase of it."""
        brief = case.brief
        return cls(
            case,
            brief.collector,
            peak=brief.parameters.peak,
            profiled=profiled,
            warming=Warming(brief.program, brief.root.function.address),
        )

    @property
    def needed(self) -> int:
        return self.case.choice.pace.calls

    @property
    def seconds_left(self) -> float | None:
        limit = self.case.choice.pace.seconds
        return None if limit is None else limit - self.case.clock.seconds

    def look(self) -> float:
        return self.case.profile.look(self.case.clock.seconds, self.collector.counting.profile)

    def look_ahead(self, seconds: float) -> bool:
        return self._warming.step() or self._look_ahead(lambda: (self.case.brief.root,), seconds)

    # ------------------------------------------------------------------ decisions

    def begin(self) -> Following:
        return Step.GO_ON

    def decide(self) -> Following:
        case = self.case
        self.collect()
        seconds = case.clock.seconds
        if not case.choice.has_seen_enough(seconds):
            return self._await_calls()
        case.tell(case.resumption.compare(case.profile))
        if case.resumption.waiting is not None:
            return self._begin_search()
        choice = case.choice.look(self._peak, seconds)
        if choice is Choice.WAITS:
            return self._await_calls()
        return self._asking() if choice is Choice.IS_USERS else self._begin_search()

    def _await_calls(self) -> Step:
        """More of f0 is to be seen before its peaks are looked at."""
        self.collector.counting.await_calls(self.needed)
        return Step.GO_ON

    def _asking(self) -> PeakPhase:
        return PeakPhase(
            self.case,
            self.collector,
            peak=self._peak,
            profiled=self._profiled,
            warming=self._warming,
        )

    def _begin_search(self) -> SearchPhase:
        return SearchPhase.begun(self.case, self.collector, self.needed)

    # ------------------------------------------------------- what the user chooses

    def takes_peak(self, spec: str) -> bool:
        if self.case.resumption.waiting is not None:
            raise UsageError(CHOSEN)
        self.collect()
        is_there = self.case.profile.choose(spec)
        if not is_there:
            self._is_not_there(spec)
        self._peak = spec
        return is_there

    def _is_not_there(self, spec: str) -> None:
        """It is waited for."""

    # ------------------------------------------------------------------------ end

    def finish_early(self, why: str) -> Early:
        self.case.take_ops(self.collector)
        self.case.tell([f"{why}: this is what was known by then{self._how_far()}"])
        is_asked = self._peak is None and self.case.profile.at_choice.count > 0
        ended = self._asking() if is_asked else EndPhase(self, Status.INCONCLUSIVE)
        return Early(ended, is_cut_short=True)

    def _how_far(self) -> str:
        """How much was seen of what the next decision needs, where the calls of f0 that were seen
        do not say so."""
        task = self.case.brief.parameters.task
        if task is not None and not self.case.profile.grown.count:
            return f"; task {task} has not called it"
        return ""

    def close(self, status: Status, alive: bool) -> Phase:
        if not alive:
            self.case.profile.lost()
        return self._ended(status, alive, has_counts=alive)

    def _ended(self, status: Status, alive: bool, *, has_counts: bool) -> EndPhase:
        if alive:
            self.case.take_ops(self.collector)
        self.case.close_ops(is_gone=not alive or status is Status.ENDED)
        return EndPhase(self, status, has_counts=has_counts)


class PeakPhase(ProfilePhase):
    """The same, and it is for the user to choose one of its peaks."""

    status = Status.NO_PEAK

    @property
    def question(self) -> Question | None:
        spec = self.case.brief.spec
        unanswered = (
            f"no peak of {spec} is chosen: the program goes on, and nothing is searched for until "
            "you choose one ('darc peak N')"
        )
        return Question(About.PROFILE, "choose a peak ('darc peak N')", unanswered)

    @property
    def seconds_left(self) -> float | None:
        return None

    def begin(self) -> Following:
        case = self.case
        if self._profiled is not None:
            note = case.profile.told_of_missing(self._profiled.peaks, case.brief.spec)
            case.tell([] if note is None else [note])
        self.collector.counting.await_user()
        return Step.ASK

    def _is_not_there(self, spec: str) -> None:
        raise no_such_peak(self.case, spec)

    def close(self, status: Status, alive: bool) -> Phase:
        # The profile is what is asked for.
        return self._ended(status, alive, has_counts=True)
