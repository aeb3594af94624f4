"""Profiles of many functions at once, for a while: where to look (OSprof 3.1)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping

from darc.analyses.analysis import Analysis, AnalysisBrief, Step
from darc.analyses.runclock import RunClock
from darc.analyses.setheat import ALL_SHARE, LOOK_SECONDS, SetHeat
from darc.analyses.setlapse import SetLapse
from darc.analyses.setmaking import SetMaking
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
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.model.status import Status
from darc.saved.sets import ANALYSIS, PART, to_part
from darc.saved.storage import Stored

_LEAST_EVERY = 1.0
"""Seconds of an interval where counts can only be read at a stop; the monitor asks for one a second
at most."""


class FunctionProfiles(Analysis):
    """The calls of each function of a set, for ``seconds`` in which the program runs."""

    key = ANALYSIS
    _ended_early = Status.DONE
    _called = "the profile"
    _all_share = ALL_SHARE

    def __init__(
        self,
        brief: AnalysisBrief,
        *,
        seconds: float,
        top: int = TOP,
        every: float | None = None,
    ) -> None:
        super().__init__(brief)
        timed = that_times_sets(brief.collector)
        if timed is None:
            raise UsageError(only_by("darc profile", TimesSets))
        self._set = timed
        if every is not None and every < _LEAST_EVERY and self._stops_for_intervals:
            raise UsageError(
                f"--every: a {timed.noun} stands still at the end of each interval: take one of "
                f"{longer_time(_LEAST_EVERY)} or more"
            )
        self._wanted = seconds
        self._top = top
        self._lapse = SetLapse(timed.probes.functions, every)
        self._heat = SetHeat(timed, self._all_share)
        self._making = SetMaking(timed)
        self._collecting = threading.Lock()
        self._left_out = LeftOutMany.of(timed.left_out)
        """Of perhaps a hundred thousand functions: those that the set is without."""
        self._clock = RunClock(lambda: self._set.unsettled_seconds)
        """Of the time in which the functions are timed."""
        self._known = FunctionSet(())
        self._probed = 0
        """How many functions had a probe at the latest look."""
        self._latest: tuple[float, Mapping[Function, MemberCounts]] = (0.0, {})
        """When the counts were read last, in seconds that the program ran, and these: what stays
        known of a program that is killed."""
        self._set.counting.await_user()
        self.collect()

    # -------------------------------------------------------------------- time

    def stands(self) -> None:
        self._clock.stands()

    def goes_on(self) -> None:
        self._making.goes_on()
        if self._set.is_in:
            self._clock.goes_on()

    @property
    def seconds_left(self) -> float | None:
        if self._wants_stop:
            return 0.0
        until, interval = self._wanted, self._lapse.next_interval
        if interval is not None and self._stops_for_intervals:
            until = min(until, interval)
        return until - self._clock.seconds

    @property
    def _wants_stop(self) -> bool:
        """Whether functions are to go out, or probes to be put in."""
        return bool(self._heat.found) or self._making.wants_stop

    @property
    def _stops_for_intervals(self) -> bool:
        """Whether the program has to stand still at the end of each interval to be looked at."""
        return not self._set.looks_while_it_runs

    def look_ahead(self, seconds: float) -> bool:
        return self._set.probes.look_ahead(lambda: (), 0, seconds)

    def look(self) -> float:
        if not self._set.is_in:
            return LOOK_SECONDS / 10
        now = self._clock.seconds
        is_due = now >= self._heat.next_look
        if self._clock.goes and (is_due or now >= self._lapse.next_mark):
            counts = self._set.counting.counts()
            self._latest = now, counts
            self._lapse.mark(now, counts)
            if is_due:
                self._heat.look(now, counts)
        return max(0.0, min(self._heat.next_look, self._lapse.next_mark) - now)

    @property
    def calls(self) -> Mapping[Function, int]:
        """Of each function, at the latest look. Any thread."""
        return self._heat.calls

    @property
    def urgent(self) -> int | None:
        return 0 if self._wants_stop else None

    @property
    def ends_at_interrupt(self) -> bool:
        return True

    # ----------------------------------------------------------------- decisions

    @property
    def needed(self) -> int:
        return 0

    def decide(self) -> Step:
        if out := self._heat.go_out(self._clock.seconds):
            counts = self._set.counting.counts()
            for function in out & counts.keys():
                self._lapse.goes_out(function, counts[function].bins)
        if not self._set.is_in:
            self._making.at_stop()
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

    def collect(self) -> None:
        with self._collecting:
            self._collect()

    def _collect(self) -> None:
        counts, seconds = self._set.counting.counts(), self._clock.seconds
        self._latest = seconds, counts
        self._lapse.mark(seconds, counts)
        self._make_known(seconds, counts)

    def _make_known(self, seconds: float, counts: Mapping[Function, MemberCounts]) -> None:
        """What the ``counts`` say that were read after the program had run for so many seconds."""
        probes = self._set.probes
        rows = [
            self._row(function, one)
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
            every=self._lapse.every,
            top=self._top,
            busy=self._known.busy,
            tick=self._set.tick,
            making=self._making.how_far,
        )

    def close(self, status: Status, alive: bool) -> None:
        """Where nothing can be read any more, as the program was killed, what the latest look has
        shown is known."""
        if not alive and not self.finished:
            with self._collecting:
                self._make_known(*self._latest)
        super().close(status, alive)

    def _row(self, function: Function, one: MemberCounts) -> FunctionProfile:
        until = self._heat.until.get(function)
        return dataclasses.replace(
            FunctionProfile.counted(function, one, self._set.counting.hz, until),
            slices=self._lapse.slices_of(function, one.bins),
            lapse=self._lapse.intervals_of(function),
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
            parts=parts_of(FunctionSet((), making=self._making.how_far)),
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
            root=self.root,
            modules={},
            parts={PART: to_part(self._known)},
        )


def _together(known: FunctionSet, hz: int) -> Profile:
    found = Profile.empty(1, hz)
    for row in known.rows:
        found = found.merged(row.profile)
    return found
