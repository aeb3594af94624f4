"""The search for root cause paths in a program: a descent orders what is timed, a collector counts
the votes, and where calls took no probe of its kind, one of another kind may look once more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from darc.analyses.guesstime import GuessTime
from darc.analyses.peakprofile import PeakProfile
from darc.analyses.secondlook import (
    SecondLook,
    Untimed,
    for_others,
    opening_note,
    tell_untimed,
    untimed,
    why_not,
)
from darc.collectors.collector import Collector
from darc.collectors.ways import for_the_rest
from darc.model.ftree import Fnode, RootCausePath
from darc.model.parameters import Parameters, Probes
from darc.search.contest import Contest
from darc.search.descent import Descent, Orders


class PathSearch:
    """Of what makes calls in the peak of ``profile`` slow, below ``root``, which the user knows as
    ``spec``. ``note`` takes what that user should know, ``saw`` how many calls inside the peak
    were seen for each decision."""

    def __init__(
        self,
        collector: Collector,
        root: Fnode,
        parameters: Parameters,
        *,
        spec: str,
        profile: PeakProfile,
        guess_time: GuessTime,
        note: Callable[[str], None],
        saw: Callable[[int], None],
    ) -> None:
        self._collector = collector
        self._root = root
        self._parameters = parameters
        self._spec = spec
        self._profile = profile
        self._guess_time = guess_time
        self._note = note
        self._saw = saw
        self._used: AbstractSet[int] = frozenset()
        """Where there were probes of the kind before."""
        self._second_look: SecondLook | None = None
        """While another kind of probes times calls that took none."""
        self._why_alone: str | None = None
        """Why no other kind does."""
        self.has_decided = False
        self.descent = self._new_descent(self._within_limits())

    def _new_descent(self, parameters: Parameters) -> Descent:
        collector = self._collector
        return Descent(
            self._root,
            parameters,
            collector.callees.expand,
            has_time=self._guess_time.is_left,
            probe_cost=lambda: collector.timing.probe_cost,
            least=self._profile.limits()[0],
            probe_doubt=lambda: collector.timing.probe_doubt,
        )

    def _within_limits(self) -> Parameters:
        """The parameters as the collector can keep to them, with what ``--lookahead auto`` means
        for this peak."""
        parameters = self._collector.within_limits(self._parameters)
        if parameters.lookahead is not None:
            return parameters
        cost = self._collector.timing.probe_cost
        if self._profile.goes_level_by_level(parameters.decision_ops, cost):
            return dataclasses.replace(parameters, lookahead=1)
        return parameters

    @property
    def paths(self) -> tuple[RootCausePath, ...]:
        """Those that have ended."""
        return self.descent.paths()

    @property
    def used(self) -> AbstractSet[int]:
        """Where probes are, or were."""
        return self._used | self._collector.timing.used

    @property
    def likely(self) -> list[Fnode]:
        """Whose callees will probably be timed next."""
        return self.descent.leaders(self._collector.timing.votes())

    # ----------------------------------------------------------------- decisions

    def begin(self, contests: Iterable[Contest]) -> Orders:
        """The first orders, with the votes that are left of a session that is resumed."""
        return self.descent.begin(contests)

    def decide(self, needed: int) -> Orders | None:
        """What follows from the votes of so many calls inside the peak; ``None``: more are to be
        seen."""
        counting, timing = self._collector.counting, self._collector.timing
        votes, counted = timing.votes(), counting.voted
        if counted < needed:
            counting.await_more(needed)
            return None
        self._saw(counted)
        if timing.make_room(votes):
            counting.await_in_peak(needed)
            return None
        self.has_decided = True
        return self.descent.decide(votes, counted)

    def carry_out(self, orders: Orders) -> int:
        """Times what they name. Returns how many calls inside the peak are to be seen then."""
        self._collector.timing.apply(orders)
        needed = self.descent.in_peak_needed()
        self._collector.counting.await_in_peak(needed)
        return needed

    def explain(self) -> None:
        """Notes why it has found nothing more, where that is to be said."""
        if explanation := self.descent.explain():
            self._note(explanation)

    # ------------------------------------------------------- calls that took no probe

    @property
    def _untimed(self) -> Untimed:
        return untimed(self.paths, self._collector.callees)

    @property
    def may_fall_back(self) -> bool:
        """Whether a second look, by probes of another kind, can tell more."""
        if not self._parameters.auto or self._parameters.probes is not Probes.AUTO:
            return False
        has_another = for_the_rest(self._collector.kind) is not None
        return has_another and bool(for_others(self._untimed))

    def why_no_fall_back(self) -> str | None:
        """Why it would spoil more than it tells."""
        other = for_the_rest(self._collector.kind)
        if other is None or other.restraint is None:
            return None
        return why_not(
            for_others(self._untimed),
            other.restraint,
            hz=self._collector.counting.hz,
            spec=self._spec,
            calls_per_second=self._profile.calls_per_second,
        )

    def stays(self, why: str | None) -> None:
        """No other probes are tried, for this reason."""
        self._why_alone = why

    def fall_back(self, collector: Collector) -> Orders:
        """Goes on with this one, which takes the place of the one before."""
        self.explain()
        self._tell_passed()
        before, calls = self._collector, for_others(self._untimed)
        self._second_look = SecondLook(calls, before.kind)
        self._used |= before.timing.used
        collector.callees.take_over(before.callees, self._root)
        self._collector = collector
        children = {node: tuple(collector.callees.fall_back(node)) for node in calls}
        for node, missed in calls.items():
            self._note(opening_note(node, missed, before.kind, type(collector)))
        collector.counting.search(*self._profile.limits())
        self.descent = self._new_descent(collector.within_limits(self._parameters))
        return self.descent.reopen(children)

    @property
    def looks_twice(self) -> bool:
        """Whether another kind of probes times what took none."""
        return self._second_look is not None

    # ----------------------------------------------------------------------- end

    def close(self, *, is_cut_short: bool) -> list[Fnode]:
        """It is over. Returns where paths go on into what only a second look has timed."""
        self._tell_passed()
        look, self._second_look = self._second_look, None
        return [] if look is None else look.close(is_cut_short=is_cut_short)

    def tell_untimed(self) -> None:
        """Paths that end above calls that took no probe say so."""
        tell_untimed(self._untimed, self._collector.kind, self._why_alone)

    def _tell_passed(self) -> None:
        for note in self.descent.passed:
            self._note(note)
