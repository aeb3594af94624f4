"""The analysis of one function: from its profile over a peak to the root cause paths.

It reads what the collector counted, lets the search decide and has its orders carried out. It is
told when to: its methods are called with all threads of the program stopped, but for
:meth:`Analysis.live_snapshot`, which may be called at any time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from darc import refit
from darc.code.program import Program
from darc.collector import Collector
from darc.contest import Contest
from darc.descent import Descent, Orders, Status, Vote, ended_paths
from darc.errors import TargetError, UsageError
from darc.ftree import Fnode, Function
from darc.parameters import Parameters, Probes
from darc.peaks import choose_peak, find_peaks, reach
from darc.profile import Profile, thresholds
from darc.snapshot import ProgramFigures, Snapshot
from darc.storage import Stored

_FINAL = frozenset(
    {Status.FOUND, Status.MAX_DEPTH, Status.INCONCLUSIVE, Status.STOPPED, Status.ENDED}
)

_LONGEST = (1 << 64) - 1
"""Upper end of a peak that has none, in cycles."""


class Next(Enum):
    """What comes after a decision."""

    GO_ON = auto()
    CHOOSE_PEAK = auto()
    """The user is to choose a peak."""
    CHOOSE_NODES = auto()
    """The user is to choose where to descend."""
    END = auto()
    """The search is over: every probe can come out."""


class Analysis:
    """See the module. ``notes`` collects what is told to the user."""

    def __init__(
        self,
        program: Program,
        collector: Collector,
        root: Fnode,
        spec: str,
        parameters: Parameters,
        notes: list[str],
        resumed: Stored | None = None,
    ) -> None:
        """``resumed`` is the session to go on with, once f0's profile is known again."""
        self.parameters = parameters
        self.status = Status.PROFILING
        self.root = root
        self._spec = spec
        self._program = program
        self._collector = collector
        self._callees = collector.callees
        self._notes = notes
        self._profile = Profile.empty(parameters.resolution, collector.hz)
        self._peak = resumed.peak if resumed is not None else None
        self._descent: Descent | None = None
        self._in_peak = resumed.in_peak_calls if resumed is not None else 0
        self._needed = parameters.start_ops
        self._contests: tuple[Contest, ...] = ()
        self._resumed = resumed

    @property
    def finished(self) -> bool:
        """Whether the search has ended."""
        return self.status in _FINAL

    # ----------------------------------------------------------------- decisions

    def decide(self) -> Next:
        """Enough calls were seen: reads what was counted and orders what comes next."""
        if self._descent is None:
            return self._look_at_profile()
        votes = self._collector.votes()
        self._in_peak += self._followed(votes)
        if self._collector.make_room(votes):
            self._collector.apply_again()
            self._collector.await_in_peak(self._needed)
            return Next.GO_ON
        return self._go(self._descent.decide(votes))

    def _look_at_profile(self) -> Next:
        self.collect_profile()
        if self._resumed is not None:
            self._notes += refit.compare(self._resumed.profile, self._profile)
            if self._resumed.peak is not None:
                return self._go(self._begin())
            self._resumed = None
        if self.parameters.peak is None:
            return self._ask_for_peak()
        if not self._choose(self.parameters.peak):
            return self._look_again()
        return self._go(self._begin())

    def finish_early(self, why: str) -> None:
        """Ends the search with what is known."""
        self.collect_profile()
        self._keep_votes(alive=True)
        self._notes.append(f"{why}: this is what was known by then")
        if self._descent is None:
            self.status = Status.NO_PEAK
        else:
            self.status = early_status(self._descent.status, bool(self._descent.paths()))

    def close(self, status: Status, alive: bool) -> None:
        """The session ends. A search that had not ended takes ``status`` and keeps its votes;
        ``alive`` tells whether the collector still has them."""
        if not self.finished:
            self._keep_votes(alive)
            self.status = status

    def _look_again(self) -> Next:
        """The peak is not there yet: look at each doubling of the calls."""
        self._needed *= 2
        self._collector.await_calls(self._needed)
        return Next.GO_ON

    def _ask_for_peak(self) -> Next:
        self.status = Status.NO_PEAK
        self._collector.await_user()
        return Next.CHOOSE_PEAK

    def collect_profile(self) -> None:
        """Reads f0's profile, up to the choice of a peak."""
        if self._descent is None:
            self._profile = self._collector.profile()

    def _choose(self, spec: str) -> bool:
        peak = choose_peak(spec, self._profile)
        if peak is None or not any(number in peak for number in self._profile.bins):
            return False
        self._profile.check()
        self._peak = peak
        return True

    def choose_peak(self, spec: str) -> Next:
        """``darc peak``: the user's choice, at a stop.

        Raises:
            UsageError: it is not of the form of a peak, or not there.
        """
        if self._descent is not None or (self._resumed and self._resumed.peak):
            raise UsageError("a peak was chosen already: 'darc stop', then 'darc start' anew")
        self.collect_profile()
        if not self._choose(spec):
            count = len(find_peaks(self._profile.bins, self._profile.resolution))
            if self._profile.count < self.parameters.start_ops:
                self.parameters = dataclasses.replace(self.parameters, peak=spec)
                return Next.GO_ON
            raise UsageError(f"there is no peak {spec}: the profile has {count} ('darc histogram')")
        self.parameters = dataclasses.replace(self.parameters, peak=spec)
        self._collector.drop_open_calls()
        return self._go(self._begin())

    def _begin(self) -> Orders:
        assert self._peak is not None
        table = thresholds(self.parameters.resolution)
        low = table[self._peak.first_bin]
        last = reach(self._peak, self._profile)
        high = _LONGEST if last is None else table[last + 1]
        self._collector.search(low, high)
        self.status = Status.SEARCHING
        self._descent = Descent(self.root, self.parameters, self._callees.expand)
        return self._descent.begin(self._take_up())

    def descend(self, nodes: Sequence[Fnode]) -> Next:
        """``darc descend``: go on into these nodes only (``set darc auto off``)."""
        if self._descent is None:
            raise UsageError("choose a peak first: 'darc peak N'")
        self._collector.drop_open_calls()
        return self._go(self._descent.choose(nodes))

    def _go(self, orders: Orders) -> Next:
        """Carries out orders."""
        assert self._descent is not None
        if orders.finished:
            self.status = self._descent.status
            if explanation := self._descent.explain():
                self._notes.append(explanation)
            self._say_what_was_not_timed()
            return Next.END
        if not orders.analyse:  # drill-down by hand: wait for the user
            self._collector.await_user()
            return Next.CHOOSE_NODES
        self._collector.apply(orders)
        self._needed = self._descent.in_peak_needed()
        self._collector.await_in_peak(self._needed)
        return Next.GO_ON

    def _say_what_was_not_timed(self) -> None:
        """A path that ends in a function's own time says which of its calls may be in it."""
        assert self._descent is not None
        for path in self._descent.paths():
            node, ending = path.nodes[-1], path.ending
            missed = self._callees.missed(node.function)
            if missed and ending.note is None:
                first = missed[0]
                note = (
                    f"{len(missed)} of its calls could not be timed, the time may be theirs: "
                    f"{first.callee or 'an indirect one'} at {first.offset:#x}: {first.why}"
                )
                if self._collector.kind is Probes.PAD:
                    note += "; '--probes breakpoint' can time them, if they take milliseconds"
                node.end = dataclasses.replace(ending, note=note)

    # ----------------------------------------------------------------- resuming

    def stored(self, alive: bool) -> Stored:
        """What a later run needs to go on from here; ``alive`` as for :meth:`close`."""
        resumed = self._resumed
        if resumed is not None and resumed.peak is not None:
            return dataclasses.replace(resumed, parameters=self.parameters)
        if alive:
            self.collect_profile()
        contests, in_peak = self._contests, self._in_peak
        if self._descent is not None and not self.finished:
            contests, in_peak = self._count(alive)
        profile = self._profile
        places = [(node.function.address, node.function.module) for node in self.root.walk()]
        return Stored(
            spec=self._spec,
            parameters=self.parameters,
            status=self.status,
            profile=dataclasses.replace(profile, count=sum(profile.bins.values())),
            peak=self._peak,
            root=self.root,
            modules={
                name: module.image.identity
                for address, name in dict.fromkeys(places)
                if (module := self._program.module_at(address)) is not None
            },
            in_peak_calls=in_peak,
            contests=contests,
            indirect=self._callees.positions(),
        )

    def _count(self, alive: bool) -> tuple[tuple[Contest, ...], int]:
        """The votes that did not suffice for a decision yet, and all calls inside the peak."""
        assert self._descent is not None
        if not alive:
            return self._descent.open_contests({}, 0), self._in_peak
        votes = self._collector.votes()
        seen = self._collector.seen
        in_peak = self._in_peak + self._followed(votes)
        return self._descent.open_contests(votes, seen), in_peak

    def _keep_votes(self, alive: bool) -> None:
        """The search ends before its next decision: what was counted for it is not lost."""
        if self._descent is not None:
            with contextlib.suppress(TargetError):  # the program may be gone
                self._contests, self._in_peak = self._count(alive)

    def _take_up(self) -> tuple[Contest, ...]:
        """Builds the ftree of the session that is resumed; the votes that are left of it."""
        if self._resumed is None:
            return ()
        relearn = functools.partial(self._callees.relearn, self._resumed.modules)
        live = refit.Live(
            self._callees.expand, self._is_same_build, self._callees.call_sites, relearn
        )
        fitted = refit.fit(self._resumed, self.root, live)
        self._notes += fitted.notes
        self._resumed = None
        return fitted.contests

    def _is_same_build(self, old: Function, new: Function) -> bool:
        assert self._resumed is not None
        module = self._program.module_at(new.address)
        identity = self._resumed.modules.get(old.module)
        return module is not None and module.image.identity == identity and new.offset == old.offset

    def _followed(self, votes: Mapping[Fnode, Vote]) -> int:
        """How many calls inside the peak were counted since the last orders."""
        seen = self._collector.seen
        return min(seen, votes[self.root].ops if self.root in votes else 0)

    # --------------------------------------------------------------------- views

    @property
    def needed(self) -> int:
        """After how many calls a decision is due: of f0, or inside the peak once that is known."""
        return self._needed

    def live_snapshot(self, alive: bool, readable: bool) -> Snapshot:
        """What a live line shows. Any thread, while the program runs, whose memory may not be
        ``readable`` then."""
        profile, descent = self._profile, self._descent
        collected: int | None = 0
        if alive and not readable:
            collected = None
        elif alive:
            collected = min(self._collector.seen, self._needed)
            profile = self._collector.profile() if descent is None else profile
        return Snapshot(
            function=self.root.function.name,
            status=self.status,
            probes=self._collector.kind.value,
            profile=profile,
            peak=self._peak,
            level=descent.level if descent is not None else 0,
            collected=collected,
            needed=self._needed,
            program=ProgramFigures(probes=len(self._collector.used)),
        )

    def snapshot(self, alive: bool) -> Snapshot:
        """All that the analysis knows, without what the session knows of stops, notes and time."""
        if alive:
            self.collect_profile()
        profile, descent = self._profile, self._descent
        seen = self._collector.seen if alive and descent is not None else 0
        tree = self.root if descent is not None else None
        paths = descent.paths() if descent is not None else ()
        if self._resumed is not None and self._resumed.peak is not None:
            tree = self._resumed.root  # until the program has shown its profile again
            paths = ended_paths(tree)
        used = self._collector.used
        return Snapshot(
            function=self.root.function.name,
            status=self.status,
            probes=self._collector.kind.value,
            profile=profile,
            peaks=find_peaks(profile.bins, profile.resolution),
            peak=self._peak,
            ftree=tree,
            paths=paths,
            level=descent.level if descent is not None else 0,
            collected=min(seen, self._needed),
            needed=self._needed,
            program=ProgramFigures(
                in_peak_calls=self._in_peak,
                probes=len(used),
                sites=self._callees.reports(used),
            ),
            parameters=self.parameters,
        )


def early_status(status: Status, has_paths: bool) -> Status:
    """What a search ends as that is ended from outside: the paths that have ended by then are
    root causes, whatever else was still being compared."""
    if not has_paths:
        return Status.INCONCLUSIVE
    return Status.FOUND if status is Status.SEARCHING else status
