"""While root cause paths are searched for: the search decides, and has its orders carried out."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from darc.analyses.analysis import Step
from darc.analyses.case import Case
from darc.analyses.closingphase import ClosingPhase
from darc.analyses.closinground import ClosingRound, is_frequent
from darc.analyses.pathsearch import PathSearch
from darc.analyses.phase import CHOSEN, Early, EndPhase, Following, Phase
from darc.analyses.question import About, Question
from darc.analyses.searchend import SearchEnd, early_status, stands_as_saved
from darc.collectors.collector import Collector
from darc.model.errors import UsageError
from darc.model.ftree import Fnode, RootCausePath
from darc.model.status import Status
from darc.search.contest import Contest
from darc.search.descent import Orders
from darc.search.endings import too_few, widening

_WHICH_NODES = Question(About.FTREE, "choose where to descend ('darc descend FNODE…')")

_SPANS_IN_PEAK = 256
"""A call in an op is kept one by one where it takes this part of the peak's fastest op, or more."""


def no_such_peak(case: Case, spec: str) -> UsageError:
    """What is raised for the peak ``spec``, which the profile does not have."""
    count = len(case.profile.peaks())
    return UsageError(f"there is no peak {spec}: the profile has {count} ('darc histogram')")


class SearchablePhase(Phase):
    """One at whose stops the user may choose the peak that a search is for."""

    def search_for(self, spec: str) -> Following:
        return SearchPhase.chosen(self.case, self.collector, spec, self.needed)


class SearchPhase(SearchablePhase):
    """By a ``search``."""

    status = Status.SEARCHING
    is_searching = True
    is_counting = True

    def __init__(self, case: Case, collector: Collector, search: PathSearch, needed: int) -> None:
        """``needed`` calls were seen before; it says itself how many are to be."""
        super().__init__(case, collector)
        self._search = search
        self._needed = needed
        self._is_to_descend = False
        """Whether the user is to say into which nodes (``set darc auto off``)."""

    @classmethod
    def begun(cls, case: Case, collector: Collector, needed: int) -> SearchPhase:
        """For what makes calls in the peak slow that is chosen: they alone count from now on, and
        some of them are kept whole."""
        brief = case.brief
        low, high = case.profile.limits()
        collector.counting.tell_fastest(case.profile.fastest)
        collector.counting.search(low, high)
        keeper = collector.ops
        if keeper is not None:
            keeper.keep_ops(low // _SPANS_IN_PEAK, case.profile.limits_of_fastest())
        with case.guess_time.uncounted():
            brief.switches.begin()
        often = is_frequent(case.profile.in_peak_per_second)
        if keeper is not None and not often:
            keeper.watch_waits()  # else in the closing round
        search = PathSearch(
            collector,
            brief.root,
            brief.parameters,
            spec=brief.spec,
            profile=case.profile,
            guess_time=case.guess_time,
            note=brief.note,
            saw=case.resumption.saw,
        )
        return cls(case, collector, search, needed)

    @classmethod
    def chosen(cls, case: Case, collector: Collector, spec: str, needed: int) -> SearchPhase:
        """The same where the user has chosen the peak ``spec`` at this stop."""
        case.choice.made_by_user(spec)
        case.guess_time.stands_for_user()
        collector.timing.drop_open_calls()
        return cls.begun(case, collector, needed)

    @property
    def needed(self) -> int:
        return self._needed

    @property
    def question(self) -> Question | None:
        return _WHICH_NODES if self._is_to_descend else None

    def look_ahead(self, seconds: float) -> bool:
        return self._look_ahead(lambda: self._search.likely, seconds)

    # ------------------------------------------------------------------ decisions

    def begin(self) -> Following:
        return self._go(self._search.begin(self._take_up()))

    def _take_up(self) -> tuple[Contest, ...]:
        """The votes that are left of the session that is resumed, for the tree as it fits."""
        fitted = self.case.resumption.take_up(self.collector.callees)
        if fitted is None:
            return ()
        self.case.tell(fitted.notes)
        self.case.ops.fit(fitted.nodes)
        return fitted.contests

    def decide(self) -> Following:
        before = len(self.paths)
        orders = self._search.decide(self._needed)
        if orders is None:
            return Step.GO_ON
        if not orders.finished and len(self.paths) > before:
            # In case it is ended from outside: on later levels these paths are not timed any more.
            self.case.take_ops(self.collector)
            self.case.ops.watch()
        return self._go(orders)

    def _go(self, orders: Orders) -> Following:
        """Carries out orders."""
        if orders.finished:
            self.case.take_ops(self.collector)
            self.collect()
            return Step.FALL_BACK if self._search.may_fall_back else self.stay(None)
        if not orders.analyse:  # drill-down by hand: wait for the user
            self.collector.counting.await_user()
            self._is_to_descend = True
            return Step.ASK
        self._needed = self._search.carry_out(orders)
        return Step.GO_ON

    # ------------------------------------------------------- what the user chooses

    def takes_peak(self, spec: str) -> bool:
        if not self.case.choice.is_fresh:
            raise UsageError(CHOSEN)
        self.collect()
        if not self.case.profile.choose(spec):
            raise no_such_peak(self.case, spec)
        return True

    def descend(self, nodes: Sequence[Fnode]) -> Following:
        self.case.choice.is_followed()
        self._is_to_descend = False
        self.case.guess_time.stands_for_user()
        self.collector.timing.drop_open_calls()
        return self._go(self._search.descent.choose(nodes))

    # ------------------------------------------------- calls that took no probe

    def why_no_fall_back(self) -> str | None:
        return self._search.why_no_fall_back()

    def fall_back(self, collector: Collector) -> Following:
        self.collector = collector
        return self._go(self._search.fall_back(collector))

    def stay(self, why: str | None) -> Following:
        self._search.stays(why)
        if self._may_look_closer:
            return self._look_closer()
        return EndPhase(self, self._end(is_gone=False).conclude())

    # ------------------------------------------------------------------------ end

    @property
    def _may_look_closer(self) -> bool:
        """Whether a moment more tells more of the paths. Drill-down by hand ends where the user has
        chosen the last node."""
        if self.collector.ops is None or not self.paths or not self.case.brief.parameters.auto:
            return False
        return not stands_as_saved(self.case, self._search)

    def _look_closer(self) -> ClosingPhase:
        """Where the paths are known and calls inside the peak are frequent: lets the program go on
        for a moment with all calls on the paths timed, so that whole ops can be kept."""
        closing = ClosingRound.begun(
            self.collector,
            self.paths,
            self.case.brief.parameters,
            rate=self.case.profile.in_peak_per_second,
            now=self.case.clock.seconds,
        )
        self.case.brief.switches.watch_places()
        return ClosingPhase(self, self._search, closing)

    def _end(self, *, is_gone: bool) -> SearchEnd:
        return SearchEnd(self.case, self.collector, self._search, is_gone=is_gone)

    def _take_last_ops(self) -> None:
        """Where it is ended from outside, keeps those of the level that it had come to, if it does
        not have those that tell of the paths that have ended."""
        if not self.paths or self.case.ops.of_this_run is None:
            self.case.take_ops(self.collector)

    def finish_early(self, why: str) -> Early:
        case, descent = self.case, self._search.descent
        self._take_last_ops()
        case.resumption.keep_votes(descent, self.collector, alive=True)
        case.tell([f"{why}: this is what was known by then{self._how_far()}"])
        if not self._search.looks_twice:
            case.tell(widening(descent.under_way, descent.level))
        self._end(is_gone=False).cut_short()
        ended = EndPhase(self, early_status(descent.status, bool(self.paths)))
        return Early(ended, is_cut_short=True)

    def _how_far(self) -> str:
        """How much was seen of what the next decision needs."""
        needed = self._needed
        voted = min(self.collector.counting.voted, needed)
        seen = f"level {self.level} had {voted} of {needed} calls inside the peak"
        return f"; {seen}{too_few(self.case.profile.in_peak_per_second, needed)}"

    def close(self, status: Status, alive: bool) -> Phase:
        if not alive:
            self.case.profile.lost()
        self.case.resumption.keep_votes(self._search.descent, self.collector, alive)
        if alive:
            self._take_last_ops()
        looked_twice = self._search.looks_twice
        self._end(is_gone=not alive or status is Status.ENDED).cut_short()
        ended_as = Status.FOUND if looked_twice and self.paths else status
        return EndPhase(self, ended_as, has_counts=alive)

    # ---------------------------------------------------- what is saved and shown

    @property
    def tree(self) -> Fnode | None:
        return self.case.brief.root

    @property
    def paths(self) -> tuple[RootCausePath, ...]:
        return self._search.paths

    @property
    def level(self) -> int:
        return self._search.descent.level

    @property
    def used(self) -> AbstractSet[int]:
        return self._search.used

    def seen(self, alive: bool) -> int:
        return self.collector.counting.seen if alive else 0

    def votes(self, alive: bool) -> tuple[tuple[Contest, ...], int]:
        return self.case.resumption.votes(self._search.descent, self.collector, alive)
