"""Profiles of many functions at once, for a while: where to look (OSprof 3.1)."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping

from darc.analyses.analysis import Analysis, Step, Subject
from darc.analyses.runclock import RunClock
from darc.collectors.manyduties import TimesSets, that_times_sets
from darc.collectors.ways import only_by
from darc.model.errors import UsageError
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import TOP, FunctionSet, ranked
from darc.model.leftout import LeftOut
from darc.model.leftoutmany import LeftOutMany
from darc.model.membercounts import MemberCounts
from darc.model.part import parts_of
from darc.model.profile import Profile, longer_time
from darc.model.slices import TimeSlices, less
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved.sets import ANALYSIS, PART, to_part
from darc.saved.storage import Stored
from darc.search.suspects import is_worth_its_probe

_LOOK_SECONDS = 0.1
_FIRST_SLICE = 0.02
"""Seconds of the first time slices: to read what was counted takes some milliseconds."""

_PATIENCE = 10.0
"""Seconds in which the probes are made while the program runs; functions without one are left out
then,"""

_LONG_PATIENCE = 30.0
"""or after so many where fewer are made by then"""

_ENOUGH_MADE = 0.25
"""than this part of them: in very large programs, and on busy machines."""

_BETWEEN_STOPS = 0.5
"""Seconds between two stops at which functions go out, or probes are made."""

_LEAST_EVERY = 1.0
"""Seconds of an interval where counts can only be read at a stop; the monitor asks for one a second
at most."""

_HOT_SHARE = 0.01
"""Of a processor: so much may the probe of one function take, and so much"""

_ALL_SHARE = 0.1
"""of a processor may all of them take together,"""

_HOT_COSTS = 10
"""where its calls are not longer than that many of it."""


class FunctionProfiles(Analysis):
    """The calls of each function of a set, for ``seconds`` in which the program runs."""

    key = ANALYSIS
    _ended_early = Status.DONE
    _called = "the profile"
    _all_share = _ALL_SHARE

    def __init__(
        self,
        subject: Subject,
        *,
        seconds: float,
        top: int = TOP,
        every: float | None = None,
    ) -> None:
        super().__init__(subject)
        timed = that_times_sets(subject.collector)
        if timed is None:
            raise UsageError(only_by("darc profile", TimesSets))
        self._set = timed
        self._every = every
        if every is not None and every < _LEAST_EVERY and self._stops_for_intervals:
            raise UsageError(
                f"--every: a {timed.noun} stands still at the end of each interval: take one of "
                f"{longer_time(_LEAST_EVERY)} or more"
            )
        self._wanted = seconds
        self._top = top
        self._intervals: list[Mapping[Function, Mapping[int, int]]] = []
        """The calls by bin at the end of each interval."""
        self._slices = collections.defaultdict[Function, TimeSlices](
            lambda: TimeSlices(_FIRST_SLICE),
            {function: TimeSlices(_FIRST_SLICE) for function in self._set.probes.functions},
        )
        self._next_slice = _FIRST_SLICE
        self._marks = threading.Lock()
        self._collecting = threading.Lock()
        self._left_out = LeftOutMany.of(timed.left_out)
        """Of perhaps a hundred thousand functions: those that the set is without."""
        self._clock = RunClock(lambda: self._set.unsettled_seconds)
        """Of the time in which the functions are timed."""
        self._begun: float | None = None
        """When the program first went on, on the monotonic clock."""
        self._made_at = -_BETWEEN_STOPS
        """When probes were made at a stop."""
        self._known = FunctionSet(())
        self._probed = 0
        """How many functions had a probe at the latest look."""
        self._looked: tuple[float, Mapping[Function, MemberCounts]] = (0.0, {})
        """When the counts were looked at last, in seconds that the program ran, and these."""
        self._latest: tuple[float, Mapping[Function, MemberCounts]] = (0.0, {})
        """The same of the latest reading of all: what stays known of a program that is killed."""
        self._gave_up = -_BETWEEN_STOPS
        self._hot: frozenset[Function] = frozenset()
        self._until: dict[Function, float] = {}
        self._slices_until: dict[Function, tuple[Mapping[int, int], ...]] = {}
        """Of those that went out: later looks at the others would merge them."""
        self._set.counting.await_user()
        self.collect()

    # -------------------------------------------------------------------- time

    def stopped(self) -> None:
        self._clock.stops()

    def goes_on(self) -> None:
        if self._begun is None:
            self._begun = time.monotonic()
        if self._set.is_in:
            self._clock.goes_on()

    @property
    def seconds_left(self) -> float | None:
        if self._hot or self._may_put_in:
            return 0.0
        until = self._wanted
        if self._every is not None and self._stops_for_intervals:
            until = min(until, (len(self._intervals) + 1) * self._every)
        return until - self._clock.seconds

    @property
    def _stops_for_intervals(self) -> bool:
        """Whether the program has to stand still at the end of each interval to be looked at."""
        return not self._set.looks_while_it_runs

    @property
    def _may_put_in(self) -> bool:
        """Whether the probes are made, and wait for a stop; or time is up for making them."""
        if self._set.is_in or self._begun is None:
            return False
        is_due = self._set.probes.is_prepared and time.monotonic() - self._made_at >= _BETWEEN_STOPS
        return is_due or self._is_patience_over

    @property
    def _is_patience_over(self) -> bool:
        if self._begun is None:
            return False
        few = self._set.timed < _ENOUGH_MADE * len(self._set.probes.functions)
        patience = _LONG_PATIENCE if few else _PATIENCE
        return time.monotonic() - self._begun > patience

    def look_ahead(self, seconds: float) -> bool:
        return self._set.probes.look_ahead(lambda: (), 0, seconds)

    def look(self) -> float:
        """Functions that are too hot go out at a stop that is asked for here: one whose probe
        takes more than a hundredth of a processor, or the hottest where all take more than a tenth,
        and whose calls are so short that the probe tells little of them, but for those that stand
        out."""
        if not self._set.is_in:
            return _LOOK_SECONDS / 10
        now, before = self._clock.seconds, self._looked
        due = now - before[0] >= _LOOK_SECONDS
        if not self._clock.goes or not (due or now >= self._next_mark):
            return max(0.0, min(before[0] + _LOOK_SECONDS, self._next_mark) - now)
        counts, cost = self._set.counting.counts(), self._set.counting.call_cost
        self._latest = now, counts
        self._mark(now, counts)
        if self._hot or not due:
            return max(0.0, min(before[0] + _LOOK_SECONDS, self._next_mark) - now)
        self._looked = now, counts
        if now - self._gave_up < _BETWEEN_STOPS:
            return max(0.0, min(_LOOK_SECONDS, self._next_mark - now))
        processor = self._set.counting.hz * (now - before[0])
        shares = {
            function: (one.passes - _passes(before[1].get(function))) * cost / processor
            for function, one in counts.items()
            if function not in self._until
        }
        self._hot = hottest(
            shares,
            lambda function: self._is_short(function, counts[function], now, cost),
            in_all=self._all_share,
        )
        return max(0.0, min(_LOOK_SECONDS, self._next_mark - now))

    def _is_short(self, function: Function, one: MemberCounts, now: float, cost: int) -> bool:
        if one.recursions > one.calls and one.sum < _HOT_COSTS * one.recursions * cost:
            return True  # what its calls seem to take is what its probe takes
        row = self._row(function, one)
        return row.quantile(0.99) < _HOT_COSTS * cost and not is_worth_its_probe(row, now, cost)

    @property
    def calls(self) -> Mapping[Function, int]:
        """Of each function, at the latest look. Any thread."""
        return {function: one.calls for function, one in self._looked[1].items()}

    @property
    def _next_mark(self) -> float:
        """When the counts are to be read again, for slices and intervals."""
        if self._every is None:
            return self._next_slice
        return min(self._next_slice, (len(self._intervals) + 1) * self._every)

    def _mark(self, now: float, counts: Mapping[Function, MemberCounts]) -> None:
        """What was counted up to now is the end of a slice, or of intervals, where one is due.
        Any thread."""
        with self._marks:
            if now >= self._next_slice:
                for function, slices in self._slices.items():
                    slices.look(now, counts[function].bins if function in counts else {})
                self._next_slice = next(iter(self._slices.values())).next_look
            if self._every is not None:
                bins = {function: one.bins for function, one in counts.items()}
                while len(self._intervals) < int(now / self._every):
                    self._intervals.append(bins)

    @property
    def urgent(self) -> int | None:
        return 0 if self._hot or self._may_put_in else None

    @property
    def ends_at_interrupt(self) -> bool:
        return True

    # ----------------------------------------------------------------- decisions

    @property
    def needed(self) -> int:
        return 0

    def decide(self) -> Step:
        hot, self._hot = self._hot, frozenset()
        if hot:
            self._set.give_up(hot)
            self._gave_up = self._clock.seconds
            self._until |= dict.fromkeys(hot, round(self._clock.seconds, 3))
            counts = self._set.counting.counts()
            for function in hot & counts.keys():
                slices = self._slices[function].take(counts[function].bins, least=2)
                self._slices_until[function] = slices
        if not self._set.is_in:
            if self._may_put_in:
                self._make_or_put_in()
            return Step.GO_ON
        if self._clock.seconds < self._wanted:
            if self._stops_for_intervals:
                self.collect()
            return Step.GO_ON
        self._collect_last()
        self._status = Status.DONE
        return Step.END

    def _collect_last(self) -> None:
        """At the end, with the program stopped: what counts."""
        self.collect()

    def _make_or_put_in(self) -> None:
        """At a stop, which is short: what is not made by now is made at others, or never."""
        if self._set.probes.make_at_stop() or self._is_patience_over:
            self._set.put_in()
        else:
            self._made_at = time.monotonic()

    def collect(self) -> None:
        with self._collecting:
            self._collect()

    def _collect(self) -> None:
        counts, seconds = self._set.counting.counts(), self._clock.seconds
        self._latest = seconds, counts
        self._mark(seconds, counts)
        self._make_known(seconds, counts)

    def _make_known(self, seconds: float, counts: Mapping[Function, MemberCounts]) -> None:
        """What the ``counts`` say that were read after the program had run for so many seconds."""
        probes = self._set.probes
        rows = [
            self._whole_row(function, one)
            for function, one in counts.items()
            if one.calls or one.left or one.dropped
        ]
        seen = {row.function.address for row in rows}
        unmeasured = self._set.counting.unmeasured(counts).items()
        out = {f: LeftOut(why) for f, why in unmeasured if f.address not in seen}
        out |= probes.left_out
        self._probed = len(seen | {f.address for f in probes.functions if f not in probes.left_out})
        self._known = FunctionSet(
            rows=ranked(rows),
            uncalled=tuple(f for f in probes.functions if f.address not in seen and f not in out),
            left_out=self._left_out + out.items(),
            seconds=round(seconds, 3),
            every=self._every,
            top=self._top,
            busy=self._known.busy,
            tick=self._set.tick,
            making=self._making,
        )

    @property
    def _making(self) -> tuple[int, int] | None:
        """How far it is as long as nothing is timed. Any thread."""
        return None if self._set.is_in else self._set.probes.making

    def close(self, status: Status, alive: bool) -> None:
        """Where nothing can be read any more, as the program was killed, what the latest look has
        shown is known."""
        if not alive and not self.finished:
            with self._collecting:
                self._make_known(*self._latest)
        super().close(status, alive)

    def _whole_row(self, function: Function, one: MemberCounts) -> FunctionProfile:
        before: Mapping[int, int] = {}
        lapse = []
        for ends in list(self._intervals):
            bins = ends.get(function, {})
            lapse.append(less(bins, before))
            before = bins
        slices = self._slices_until.get(function)
        if slices is None:
            slices = self._slices[function].take(one.bins, least=2)
        return dataclasses.replace(self._row(function, one), slices=slices, lapse=tuple(lapse))

    def _row(self, function: Function, one: MemberCounts) -> FunctionProfile:
        profile = Profile(
            resolution=1,
            hz=self._set.counting.hz,
            bins=one.bins,
            count=sum(one.bins.values()),
            total=one.sum,
        )
        until = self._until.get(function)
        return FunctionProfile(
            function=function,
            profile=profile,
            longest=one.max,
            left=one.left,
            dropped=one.dropped,
            until=until,
        )

    # -------------------------------------------------------------------- views

    @property
    def known(self) -> FunctionSet:
        """What was counted at the latest look."""
        return self._known

    def snapshot(self, alive: bool) -> Snapshot:
        if alive:
            self.collect()
        return dataclasses.replace(
            self._head(),
            function=self._spec,
            profile=_together(self._known, self._set.counting.hz),
            program=ProgramFigures(probes=self._set.timed if alive else self._probed),
            parts=parts_of(self._known),
        )

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        profile = self._set.counting.profile() if alive and readable else None
        return dataclasses.replace(
            self._head(),
            function=self._spec,
            profile=profile,
            collected=None if profile is None else profile.count,
            program=ProgramFigures(probes=self._set.timed if alive else 0),
            parts=parts_of(FunctionSet((), making=self._making)),
        )

    def stored(self, alive: bool) -> Stored:
        if alive:
            self.collect()
        profile = _together(self._known, self._set.counting.hz)
        if not profile.count:
            raise UsageError("nothing was collected yet: let the program go on, then 'darc save'")
        return Stored(
            spec=self._spec,
            parameters=dataclasses.replace(self.parameters, resolution=1, peak=None),
            status=self._status,
            profile=profile,
            peak=None,
            root=self.root,
            modules={},
            parts={PART: to_part(self._known)},
        )


def _passes(known: MemberCounts | None) -> int:
    return 0 if known is None else known.passes


def hottest(
    shares: Mapping[Function, float], may_go: Callable[[Function], bool], *, in_all: float
) -> frozenset[Function]:
    """Of functions whose probes take these ``shares`` of a processor those that are to be timed no
    more, so that none takes more than a hundredth and all together no more than ``in_all``, as
    far as they ``may_go``."""
    gone = set()
    rest = sum(shares.values())
    for function in sorted(shares, key=lambda function: -shares[function]):
        if shares[function] <= _HOT_SHARE and rest <= in_all:
            break
        if may_go(function):
            gone.add(function)
            rest -= shares[function]
    return frozenset(gone)


def _together(known: FunctionSet, hz: int) -> Profile:
    found = Profile.empty(1, hz)
    for row in known.rows:
        found = found.merged(row.profile)
    return found
