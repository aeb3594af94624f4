"""What all phases of one search for root causes have before them: f0's profile and its kept ops,
the session that it goes on with, its time, and what users are told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from darc.analyses.analysis import AnalysisBrief
from darc.analyses.guesstime import GuessTime
from darc.analyses.peakchoice import PeakChoice
from darc.analyses.peakprofile import PeakProfile
from darc.analyses.profilepace import ProfilePace
from darc.analyses.resumption import Resumption
from darc.analyses.roundops import RoundOps
from darc.analyses.runclock import RunClock
from darc.collectors.collector import Collector
from darc.model.errors import TargetError
from darc.model.ops import KeptOps
from darc.model.profile import Profile
from darc.saved.descents import SavedDescent


@dataclass(frozen=True)
class Case:
    """Of a ``brief``, whose collector is the first one; which peak is asked for, the user may say
    later than its parameters do."""

    brief: AnalysisBrief
    profile: PeakProfile
    choice: PeakChoice
    resumption: Resumption
    ops: RoundOps
    clock: RunClock
    guess_time: GuessTime = field(default_factory=GuessTime)
    of_paths: list[str] = field(default_factory=list)
    """What users should know beside the paths."""

    @classmethod
    def of(cls, brief: AnalysisBrief, resumed: SavedDescent | None) -> Case:
        """With nothing known but of the session that is ``resumed``, if one is."""
        collector, parameters, root = brief.collector, brief.parameters, brief.root
        profile = PeakProfile(
            Profile.empty(parameters.resolution, collector.counting.hz),
            resumed.session.search.peak if resumed is not None else None,
        )
        calls = collector.open_calls
        pace = ProfilePace(
            parameters,
            threads=brief.threads,
            may_run_longer=calls is not None and calls.running() is not None,
        )
        return cls(
            brief,
            profile,
            PeakChoice(profile, pace, brief.spec),
            Resumption(resumed, root, brief.program),
            RoundOps(brief.program, brief.switches, root, resumed=resumed, keeper=collector.ops),
            # The first one's: a collector that follows has no such time.
            RunClock(lambda: collector.unsettled_seconds),
        )

    @property
    def doubts(self) -> list[str]:
        """What users should know beside the peak and the paths."""
        return [*self.choice.doubts, *self.of_paths]

    def tell(self, notes: Iterable[str]) -> None:
        """The user is to know these."""
        for note in notes:
            self.brief.note(note)

    def collect(self, collector: Collector, *, is_searching: bool) -> None:
        """Reads the profile. That of breakpoints which time what took no pad is another one."""
        if collector is self.brief.collector:
            profile = collector.counting.profile()
            self.profile.take(profile, self.clock.seconds, is_searching=is_searching)

    def take_ops(self, collector: Collector) -> None:
        """Keeps those of the round that is over."""
        kept = kept_ops(collector)
        if kept is not None:
            self.ops.take(kept, is_closing=False)

    def close_ops(self, *, is_gone: bool) -> None:
        """It is over: says of the ops when their threads were off, and tells what users must know
        of that. ``is_gone``: nobody can be asked any more."""
        self.ops.watch()
        self.tell(self.ops.notes)
        if is_gone:
            self.ops.ended()


def kept_ops(collector: Collector) -> KeptOps | None:
    """Those of the round that is over; ``None``: it keeps none, or the program is gone."""
    keeper = collector.ops
    if keeper is None:
        return None
    with contextlib.suppress(TargetError):  # the program may be gone
        return keeper.kept_ops()
    return None
