"""The analysis of one function: from its profile over a peak to the root cause paths.

It reads what the collector counted, lets the search decide and has its orders carried out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum

from darc.analyses.analysis import Resumable, Step, Subject
from darc.analyses.closinground import ClosingRound, is_frequent
from darc.analyses.corrections import Corrections, tell_others, tell_unheard
from darc.analyses.guesstime import GuessTime
from darc.analyses.pathsearch import PathSearch
from darc.analyses.peakchoice import Choice, PeakChoice
from darc.analyses.peakprofile import PeakProfile
from darc.analyses.profilepace import ProfilePace
from darc.analyses.question import About, Question
from darc.analyses.resumption import Resumption
from darc.analyses.roundops import RoundOps
from darc.analyses.runclock import RunClock
from darc.analyses.warming import Warming
from darc.collectors.collector import Collector
from darc.model.errors import TargetError, UsageError
from darc.model.ftree import Fnode, RootCausePath
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OpClass
from darc.model.profile import Profile
from darc.model.shares import share_of
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved.descents import SavedDescent, from_session
from darc.saved.origins import DESCENT
from darc.saved.storage import Stored
from darc.search.contest import Contest
from darc.search.descent import (
    AUTO_LOOKAHEAD,
    Descent,
    Orders,
    ended_paths,
    open_paths,
    outcome,
)
from darc.search.endings import too_few, widening

_WHICH_NODES = Question(About.FTREE, "choose where to descend ('darc descend FNODE…')")

_SPANS_IN_PEAK = 256
"""A call in an op is kept one by one where it takes this part of the peak's fastest op, or more."""

_TOO_FEW = "too few calls were kept whole by then"
_TOO_FEW_AT_THE_END = "the program ended before enough calls were kept whole: a longer run tells"


class _Gone(Enum):
    """With what a program is gone."""

    WITH_NOTHING = "nothing that is asked for"
    WITH_COUNTS = "what was counted last"


class RootCauses(Resumable):
    """See the module."""

    key = DESCENT
    _called = "the search"

    def __init__(
        self,
        subject: Subject,
        *,
        resumed: SavedDescent | None = None,
        profiled: FunctionProfile | None = None,
    ) -> None:
        """``resumed`` is the session to go on with, once f0's profile is known again; ``profiled``
        what the user has seen of f0 before."""
        super().__init__(subject)
        collector, parameters = subject.collector, subject.parameters
        self._first_collector = collector
        self._switches = subject.switches
        self._profile = PeakProfile(
            Profile.empty(parameters.resolution, collector.counting.hz),
            resumed.session.peak if resumed is not None else None,
        )
        self._search: PathSearch | None = None
        """Since a peak was chosen."""
        self._needed = parameters.profile_calls
        calls = collector.open_calls
        pace = ProfilePace(
            parameters,
            threads=subject.threads,
            may_run_longer=calls is not None and calls.running() is not None,
        )
        self._choice = PeakChoice(self._profile, pace, subject.spec)
        self._doubts: list[str] = []
        """What users should know beside the paths."""
        self._resumption = Resumption(resumed, self.root, self._program)
        self._profiled = profiled
        self._ops = RoundOps(
            self._program, self._switches, self.root, resumed, own_back=collector.own_back
        )
        self._is_to_descend = False
        """Whether the user is to say into which nodes (``set darc auto off``)."""
        self._closing: ClosingRound | None = None
        self._gone: _Gone | None = None
        """With what the program is, where it is."""
        # The first one's: a collector that follows has no such time.
        self._clock = RunClock(lambda: collector.unsettled_seconds)
        self._guess_time = GuessTime()
        self._warming = Warming(self._program, self.root.function.address)

    @property
    def is_searching(self) -> bool:
        """Whether a peak was chosen, and what causes it is looked for, or was."""
        return self._search is not None

    def lacks(self, missed: int, figures: ProgramFigures) -> str:
        in_peak = figures.in_peak_calls or 0
        return with_fewer_stops(missed, in_peak, self._spec) if self.is_searching else ""

    @property
    def question(self) -> Question | None:
        if self.status is Status.NO_PEAK:
            return _which_peak(self._spec)
        return _WHICH_NODES if self._is_to_descend and not self.finished else None

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            self._note(note)

    # -------------------------------------------------------------------- time

    def stopped(self) -> None:
        self._clock.stops()
        self._guess_time.stops()

    def goes_on(self) -> None:
        self._choice.is_fresh = False
        self._clock.goes_on()

    @property
    def seconds_left(self) -> float | None:
        limit = None if self._closing is None else self._closing.until
        if self.status is Status.PROFILING:
            limit = self._choice.pace.seconds
        return None if limit is None else limit - self._clock.seconds

    # ----------------------------------------------------------------- decisions

    def decide(self) -> Step:
        if self._search is None:
            return self._look_at_profile()
        if self._closing is not None:
            kept = self._kept_ops()
            if kept is not None and self._closing.lasts(kept, self._clock.seconds):
                self._collector.counting.await_user()  # or that time
                return Step.GO_ON
            return self._conclude(kept)
        before = len(self._paths)
        orders = self._search.decide(self._needed)
        if orders is None:
            return Step.GO_ON
        if not orders.finished and len(self._paths) > before:
            # In case it is ended from outside: on later levels these paths are not timed any more.
            self._take_ops()
            self._ops.watch()
        return self._go(orders)

    def _look_at_profile(self) -> Step:
        self.collect()
        seconds = self._clock.seconds
        if not self._choice.has_seen_enough(seconds):
            return self._await_calls()
        self._tell(self._resumption.compare(self._profile))
        if self._resumption.waiting is not None:
            return self._go(self._begin())
        choice = self._choice.look(self.parameters.peak, seconds)
        if choice is Choice.WAITS:
            return self._await_calls()
        return self._ask_for_peak() if choice is Choice.IS_USERS else self._go(self._begin())

    def _await_calls(self) -> Step:
        """More of f0 is to be seen before its peaks are looked at."""
        self._needed = self._choice.pace.calls
        self._collector.counting.await_calls(self._needed)
        return Step.GO_ON

    def _how_far(self) -> str:
        """How much was seen of what the next decision needs, where the calls of f0 that were seen
        do not say so."""
        task, needed = self.parameters.task, self._needed
        if (descent := self._descent) is not None:
            voted = min(self._collector.counting.voted, needed)
            seen = f"level {descent.level} had {voted} of {needed} calls inside the peak"
            return f"; {seen}{too_few(self._profile.in_peak_per_second, needed)}"
        if task is not None and not self._profile.grown.count:
            return f"; task {task} has not called it"
        return ""

    def finish_early(self, why: str) -> None:
        self.collect()
        if self._closing is not None:
            kept = self._kept_ops()
            if kept is not None and len(kept.sample(OpClass.IN_PEAK)) < LEAST_FOR_ESTIMATES:
                self._note(f"{why}: the last round, which tells what causes explain, was not over")
                self.is_cut_short = True
            self._conclude(kept)
            return
        self._take_last_ops()
        self._resumption.keep_votes(self._descent, self._collector, alive=True)
        self._note(f"{why}: this is what was known by then{self._how_far()}")
        self.is_cut_short = True
        if self._search is None:
            is_asked = self.parameters.peak is None and self._profile.at_choice.count > 0
            self._status = Status.NO_PEAK if is_asked else Status.INCONCLUSIVE
        else:
            descent = self._search.descent
            if not self._search.looks_twice:
                self._tell(widening(descent.under_way, descent.level))
            self._close_up(is_cut_short=True)
            self._status = early_status(descent.status, bool(self._paths))

    def close(self, status: Status, alive: bool) -> None:
        if not alive and self._status in (Status.PROFILING, Status.SEARCHING):
            self._gone = _Gone.WITH_COUNTS
            self._profile.lost()
        elif not alive or status is Status.ENDED:
            # Where it waits for the user to choose, the profile is what is asked for.
            self._gone = _Gone.WITH_NOTHING
        if not self.finished and self._closing is not None:
            self._conclude(self._kept_ops() if alive else None)
        elif not self.finished:
            self._resumption.keep_votes(self._descent, self._collector, alive)
            if alive:
                self._take_last_ops()
            looked_twice = self._search is not None and self._search.looks_twice
            self._close_up(is_cut_short=True)
            self._status = Status.FOUND if looked_twice and self._paths else status

    def fail(self, why: str) -> None:
        super().fail(why)
        for path in open_paths(self.root):
            self._note(f"it had come to {' → '.join(node.function.name for node in path)}")

    def _ask_for_peak(self) -> Step:
        if self._profiled is not None:
            note = self._profile.told_of_missing(self._profiled.peaks, self._spec)
            self._tell([] if note is None else [note])
        self._status = Status.NO_PEAK
        self._collector.counting.await_user()
        return Step.ASK

    def collect(self) -> None:
        # The profile of breakpoints which time what took no pad is another one.
        if self._collector is self._first_collector:
            profile = self._collector.counting.profile()
            self._profile.take(profile, self._clock.seconds, is_searching=self.is_searching)

    def look(self) -> float:
        if self._search is not None or self.finished:
            return math.inf
        return self._profile.look(self._clock.seconds, self._collector.counting.profile)

    def look_ahead(self, seconds: float) -> bool:
        if not self._clock.goes or self.finished or self._closing is not None:
            return False
        if self._search is None and self._warming.step():
            return True
        lookahead = self._collector.within_limits(self.parameters).lookahead
        levels = AUTO_LOOKAHEAD if lookahead is None else lookahead
        ahead = self._collector.ahead
        return ahead is not None and ahead.look_ahead(self._likely, levels, seconds)

    def _likely(self) -> Sequence[Fnode]:
        """Whose callees will probably be timed next."""
        return (self.root,) if self._search is None else self._search.likely

    def choose_peak(self, spec: str) -> Step:
        """``darc peak``: the user's choice, at a stop.

        Raises:
            UsageError: it is not of the form of a peak, or not there.
        """
        has_begun = self._search is not None and not self._choice.is_fresh
        if has_begun or self._resumption.waiting is not None:
            raise UsageError("a peak was chosen already: 'darc stop', then 'darc start' anew")
        self.collect()
        if not self._profile.choose(spec):
            if self.status is Status.PROFILING:
                self.parameters = dataclasses.replace(self.parameters, peak=spec)
                return Step.GO_ON
            count = len(self._profile.peaks())
            raise UsageError(f"there is no peak {spec}: the profile has {count} ('darc histogram')")
        self.parameters = dataclasses.replace(self.parameters, peak=spec)
        self._choice.made_by_user(spec)
        self._guess_time.stands_for_user()
        self._collector.timing.drop_open_calls()
        return self._go(self._begin())

    def _begin(self) -> Orders:
        low, high = self._profile.limits()
        self._collector.counting.search(low, high)
        keeper = self._collector.ops
        if keeper is not None:
            keeper.keep_ops(low // _SPANS_IN_PEAK, self._profile.limits_of_fastest())
        with self._guess_time.uncounted():
            self._switches.begin()
        often = is_frequent(self._profile.in_peak_per_second)
        if keeper is not None and not often:
            keeper.watch_waits()  # else in the closing round
        self._status = Status.SEARCHING
        self._search = PathSearch(
            self._collector,
            self.root,
            self.parameters,
            spec=self._spec,
            profile=self._profile,
            guess_time=self._guess_time,
            note=self._note,
            saw=self._resumption.saw,
        )
        return self._search.begin(self._take_up())

    def descend(self, nodes: Sequence[Fnode]) -> Step:
        """``darc descend``: go on into these nodes only (``set darc auto off``)."""
        if self._search is None:
            raise UsageError("choose a peak first: 'darc peak N'")
        self._choice.is_fresh = self._is_to_descend = False
        self._guess_time.stands_for_user()
        self._collector.timing.drop_open_calls()
        return self._go(self._search.descent.choose(nodes))

    def _go(self, orders: Orders) -> Step:
        """Carries out orders."""
        assert self._search is not None
        if orders.finished:
            self._take_ops()
            self.collect()
            if self._search.may_fall_back:
                return Step.FALL_BACK
            return self.stay()
        if not orders.analyse:  # drill-down by hand: wait for the user
            self._collector.counting.await_user()
            self._is_to_descend = True
            return Step.ASK
        self._needed = self._search.carry_out(orders)
        return Step.GO_ON

    # ------------------------------------------------------- calls that took no probe

    def why_no_fall_back(self) -> str | None:
        assert self._search is not None
        return self._search.why_no_fall_back()

    def fall_back(self, collector: Collector) -> Step:
        assert self._search is not None
        self._collector = collector
        orders = self._search.fall_back(collector)
        self._status = Status.SEARCHING
        return self._go(orders)

    # ------------------------------------------------------------- the closing round

    def _kept_ops(self) -> KeptOps | None:
        """Those of the round that is over."""
        keeper = self._collector.ops
        if keeper is None:
            return None
        with contextlib.suppress(TargetError):  # the program may be gone
            return keeper.kept_ops()
        return None

    def _take_ops(self) -> None:
        """Keeps them."""
        kept = self._kept_ops()
        if kept is not None:
            self._ops.take(kept, is_closing=False)

    def _take_last_ops(self) -> None:
        """The same where the search is ended from outside: those of the level that it had come to,
        if it does not have those that tell of the paths that have ended."""
        if not self._paths or self._ops.of_this_run is None:
            self._take_ops()

    @property
    def _stands_as_saved(self) -> bool:
        """Whether there is nothing to find out in this run: what an earlier session has found
        stands, its ops told what that explains, and the peak's calls are what they were."""
        if (
            self._resumption.has_changed
            or (self._search is not None and self._search.has_decided)
            or not self.root.children
            or self._ops.of_this_run is not None
        ):
            return False
        return any(share_of(path, self._ops.kept) is not None for path in self._paths)

    def _look_closer(self) -> bool:
        """Where the paths are known and calls inside the peak are frequent: lets the program go on
        for a moment with all calls on the paths timed, so that whole ops can be kept."""
        paths, keeper = self._paths, self._collector.ops
        if keeper is None:
            return False
        if not paths or not self.parameters.auto:
            return False  # drill-down by hand ends where the user has chosen the last node
        if self._stands_as_saved:
            return False
        self._closing = ClosingRound.begun(
            self._collector,
            paths,
            self.parameters,
            rate=self._profile.in_peak_per_second,
            now=self._clock.seconds,
        )
        self._needed = self._closing.needed
        return True

    def _conclude(self, kept: KeptOps | None) -> Step:
        """The closing round is over, with these ops; ``None``: the program is gone."""
        if kept is not None:
            self._ops.take(kept, is_closing=True)
        self._closing = None
        return self._end()

    def stay(self, why: str | None = None) -> Step:
        assert self._search is not None
        self._search.stays(why)
        return Step.GO_ON if self._look_closer() else self._end()

    def _end(self) -> Step:
        assert self._search is not None
        self._search.explain()
        self._close_up(is_cut_short=False)
        self._status = outcome(self._paths)
        return Step.END

    @property
    def _descent(self) -> Descent | None:
        return None if self._search is None else self._search.descent

    @property
    def _paths(self) -> tuple[RootCausePath, ...]:
        return () if self._search is None else self._search.paths

    def _close_up(self, *, is_cut_short: bool) -> None:
        """However it ends: corrects the paths that are known by then, and says what is to be known
        of them."""
        self._ops.watch()
        self._tell(self._ops.notes)
        if self._gone is not None:
            self._ops.ended()
        if self._search is None:
            return
        if (unlike := self._profile.told_of_search(self._spec)) is not None:
            self._doubts.append(unlike)
        self._ops.forget(self._search.settle(is_cut_short=is_cut_short))
        self._correct()
        self._search.tell_untimed()
        tell_others(self._paths)

    def _correct(self) -> None:
        """By what the ops of this run say of the paths."""
        kept = self._ops.of_this_run
        keeps = self._switches.is_watching and self._collector.ops is not None
        if keeps and not self._stands_as_saved:
            why = _TOO_FEW if self._gone is None else _TOO_FEW_AT_THE_END
            tell_unheard(self._paths, kept, why)
        found = Corrections(self._paths, self.root, self._profile, self.parameters)
        if kept is None:
            found.without_ops()
        else:
            are_all = self._descent is not None and not self._descent.under_way
            found.by_ops(kept, were_watched=self._switches.is_watching, are_all=are_all)
        self._tell(found.notes)
        self._doubts += found.doubts

    # ----------------------------------------------------------------- resuming

    @classmethod
    def resumed(cls, stored: Stored) -> Callable[[Subject], RootCauses]:
        return functools.partial(cls, resumed=from_session(stored).taken_up())

    def stored(self, alive: bool) -> Stored:
        self._ops.watch()
        if (waiting := self._resumption.waiting) is not None:
            return dataclasses.replace(waiting, parameters=self.parameters)
        if alive:
            self.collect()
        under_way = None if self.finished else self._descent
        return self._resumption.stored(
            self._stored_with(self._profile.at_choice),
            profile=self._profile,
            callees=self._collector.callees,
            ops=self._ops,
            doubts=self._all_doubts(),
            votes=self._resumption.votes(under_way, self._collector, alive),
        )

    def _take_up(self) -> tuple[Contest, ...]:
        """The votes that are left of the session that is resumed, for the tree as it fits."""
        fitted = self._resumption.take_up(self._collector.callees)
        if fitted is None:
            return ()
        self._tell(fitted.notes)
        self._ops.fit(fitted.nodes)
        return fitted.contests

    def _all_doubts(self) -> list[str]:
        return [*self._choice.doubts, *self._doubts]

    # --------------------------------------------------------------------- views

    @property
    def needed(self) -> int:
        return self._needed

    @property
    def _used(self) -> AbstractSet[int]:
        return self._collector.timing.used if self._search is None else self._search.used

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        profile, descent = self._profile.grown, self._descent
        collected: int | None = 0
        if alive and not readable:
            collected = None
        elif alive:
            collected = min(self._collector.counting.seen, self._needed)
            if self._collector is self._first_collector:
                profile = self._collector.counting.profile()
        return dataclasses.replace(
            self._head(),
            probes=self._first_collector.kind,
            profile=profile,
            peak=self._profile.peak,
            level=descent.level if descent is not None else 0,
            collected=collected,
            needed=self._needed,
            program=ProgramFigures(probes=len(self._used)),
        )

    def snapshot(self, alive: bool) -> Snapshot:
        self._ops.watch()
        if alive:
            self.collect()
        descent = self._descent
        seen = self._collector.counting.seen if alive and descent is not None else 0
        # Those of the level that goes on are inside the peak, too.
        is_counting = self.status is Status.SEARCHING and self._closing is None
        tree = self.root if descent is not None else None
        paths = descent.paths() if descent is not None else ()
        if (waiting := self._resumption.waiting) is not None:
            tree = waiting.root  # until the program has shown its profile again
            paths = ended_paths(tree)
        used = self._used
        return dataclasses.replace(
            self._head(),
            probes=self._first_collector.kind,
            profile=self._profile.grown,
            peaks=self._profile.peaks(),
            peak=self._profile.peak,
            ftree=tree,
            paths=paths,
            level=descent.level if descent is not None else 0,
            collected=None if self._gone is _Gone.WITH_COUNTS else min(seen, self._needed),
            needed=self._needed,
            program=ProgramFigures(
                in_peak_calls=self._resumption.in_peak + (seen if is_counting else 0),
                probes=len(used),
                sites=self._collector.callees.reports(used),
            ),
            warnings=self._resumption.warnings(self._all_doubts(), self._ops, paths),
            profile_seconds=self._profile.seconds,
            spec=self._spec,
            ops=self._ops.kept,
            waits=self._ops.waits_of(OpClass.IN_PEAK),
            waits_of_fastest=self._ops.waits_of(OpClass.FASTEST),
        )


def early_status(status: Status, has_paths: bool) -> Status:
    """What a search ends as that is ended from outside: the paths that have ended by then are
    root causes, whatever else was still being compared."""
    if not has_paths:
        return Status.INCONCLUSIVE
    return Status.FOUND if status is Status.SEARCHING else status


def _which_peak(spec: str) -> Question:
    """Of a function that the user knows as ``spec``."""
    unanswered = (
        f"no peak of {spec} is chosen: the program goes on, and nothing is searched for until you "
        "choose one ('darc peak N' at a stop)"
    )
    return Question(About.PROFILE, "choose a peak ('darc peak N')", unanswered)


def with_fewer_stops(missed: int, in_peak: int, spec: str) -> str:
    """What is told behind it that stops for the user have kept so many calls of ``spec`` from being
    measured, where these are more than the ``in_peak`` calls that a search rests on."""
    if missed <= in_peak:
        return ""
    return (
        f", more than the {in_peak} in the peak that were: with fewer stops inside {spec} the "
        "search goes on"
    )
