"""A search for root causes, with a made-up collector: its case and its phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from darc.analyses.analysis import AnalysisBrief
from darc.analyses.case import Case
from darc.analyses.closingphase import ClosingPhase
from darc.analyses.closinground import ClosingRound
from darc.analyses.profilephase import ProfilePhase
from darc.analyses.searchphase import SearchPhase
from darc.collectors.collector import Collector
from darc.model.errors import TargetError
from darc.model.ftree import CallKind, CallSite, Fnode, Totals
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import KeptOps
from darc.model.parameters import Parameters, Probes
from darc.model.profile import Profile
from darc.saved.descents import SavedDescent
from darc.search.contest import Vote
from darc.search.descent import Orders
from tests.unit import ops, samples

CALLS: dict[str, Sequence[str]] = {"handle": ("flush",)}
"""What each function calls."""

PEAK = "3"
"""The slowest one of the samples' profile."""


class MadeCollector:
    """Counts what a test says; what it is asked for is in ``asked``, in that order."""

    kind = Probes.PAD
    hz = samples.HZ
    probe_cost = 100
    unsettled_seconds = 0.0
    sure_from = 0.0
    overdrawn = 0
    fastest = 0
    probe_doubt = 0
    open_calls: Any = None
    ahead: Any = None
    ops: Any = None

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.counting = self.timing = self.callees = self.told = self
        self.bins: Mapping[int, int] = samples.BINS
        self.seen = self.voted = 0
        self.counted: dict[Fnode, Vote] = {}
        self.used = frozenset({0x401300})

    # ------------------------------------------------------------------ it counts

    def profile(self) -> Profile:
        self.asked.append("profile")
        return samples.profile(dict(self.bins))

    def tell_fastest(self, cycles: int) -> None:
        self.fastest = cycles

    def search(self, low: int, high: int) -> None:
        self.asked.append("search")

    def await_calls(self, needed: int) -> None:
        self.asked.append(("calls", needed))

    def await_in_peak(self, needed: int) -> None:
        self.asked.append(("in peak", needed))

    def await_more(self, needed: int) -> None:
        self.asked.append(("more", needed))

    def await_user(self) -> None:
        self.asked.append("the user")

    # ------------------------------------------------------------------- it times

    def apply(self, orders: Orders) -> None:
        self.asked.append(("times", *(node.function.name for node in orders.analyse)))

    def fits(self, orders: Orders) -> bool:
        return True

    def votes(self) -> dict[Fnode, Vote]:
        return self.counted

    def make_room(self, votes: object) -> bool:
        return False

    def drop_open_calls(self) -> None:
        self.asked.append("drops open calls")

    def within_limits(self, parameters: Parameters) -> Parameters:
        return parameters

    # ------------------------------------------------------- and knows what calls what

    def expand(self, node: Fnode) -> None:
        for number, name in enumerate(CALLS.get(node.function.name, ())):
            site = CallSite(0x401300 + number, CallKind.DIRECT, "mixture", 0x1300 + number)
            node.add_child(samples.function(name), site)

    def call_sites(self, node: Fnode) -> list[CallSite]:
        return []

    def relearn(self, *about: object) -> None:
        return None

    def take_over(self, *about: object) -> None:
        self.asked.append("takes over")

    def missed(self, function: object) -> list[object]:
        return []

    def positions(self) -> dict[Fnode, tuple[int, int]]:
        return {}

    def of_used(self, used: object) -> tuple[object, ...]:
        return ()


class Keeper:
    """Keeps so many ops of either peak, on the path of the samples."""

    def __init__(self, asked: list[object], count: int = 20) -> None:
        self.asked = asked
        self.count = count
        self.is_gone = False

    def keep_ops(self, least: int, fast: tuple[int, int]) -> None:
        self.asked.append("keep ops")

    def watch_waits(self) -> None:
        self.asked.append("watch waits")

    def kept_ops(self) -> KeptOps:
        self.asked.append("kept ops")
        if self.is_gone:
            raise TargetError("the program is gone")
        root, _ = samples.tree()
        return ops.of_samples(root, self.count)


class ProgramOfFiles:
    """A helper may read these; ``read`` are those that were, ``asked`` the addresses near which
    they were asked for."""

    asks_debugger = False

    def __init__(self, *paths: str) -> None:
        self._paths = paths
        self.read: list[str] = []
        self.asked: list[int] = []

    def modules_near(self, address: int) -> Iterator[Any]:
        self.asked.append(address)
        for path in self._paths:
            image = SimpleNamespace(warm_up=partial(self.read.append, path))
            yield SimpleNamespace(is_vdso=path == "[vdso]", image=image)

    def module_at(self, address: int) -> None:
        return None


class Made:
    """A case, with the collector and the notes that are its own."""

    def __init__(self, resumed: SavedDescent | None = None, **parameters: Any) -> None:
        self.collector = MadeCollector()
        self.program = ProgramOfFiles("mixture")
        self.notes: list[str] = []
        self.root = Fnode(samples.function("handle"))
        defaults = Parameters(start_ops=100, lookahead=1, decision_ops=4)
        self.brief = AnalysisBrief(
            program=cast(Any, self.program),
            collector=cast(Collector, self.collector),
            root=self.root,
            spec="handle",
            parameters=defaults.overridden(parameters),
            note=self.notes.append,
        )
        self.case = Case.of(self.brief, resumed)

    @property
    def asked(self) -> list[object]:
        """What the collector was asked for since this was asked last."""
        asked = list(self.collector.asked)
        self.collector.asked.clear()
        return asked

    def keeps(self, count: int = 20) -> Keeper:
        """From now on so many ops of either peak are kept whole."""
        keeper = self.collector.ops = Keeper(self.collector.asked, count)
        return keeper

    def profiled(self, peak: str = PEAK, seconds: float = 2.0) -> Made:
        """Calls came for so long, and a peak is chosen."""
        profile = samples.profile(dict(self.collector.bins))
        self.case.profile.take(profile, seconds, is_searching=False)
        assert self.case.profile.choose(peak)
        return self

    def searching(self) -> SearchPhase:
        """The phase in which causes are searched for: it has given its first orders."""
        self.profiled()
        phase = SearchPhase.begun(self.case, self.brief.collector, needed=100)
        phase.begin()
        return phase

    def votes_for(self, node: Fnode, count: int = 4) -> None:
        """So many calls inside the peak, which are slow in ``node`` alone, were counted."""
        totals = Totals(count, count, 10**9 * count, 10**9)
        others = Totals(count, count, 100 * count, 100)
        self.collector.voted = self.collector.seen = count
        votes: dict[Fnode, Vote] = {}
        self.collector.counted = votes
        for one in self.root.walk():
            is_on_path = one in node.route()
            won = count if is_on_path else 0
            own = count if one is node else 0
            votes[one] = Vote(own, count, won, totals if is_on_path else others)


def profiling(
    made: Made, profiled: FunctionProfile | None = None, seconds: float = 2.0
) -> ProfilePhase:
    """Its first one, when the program has run for so long."""
    made.case.clock._before = seconds
    return ProfilePhase.of(made.case, profiled)


class Round(ClosingRound):
    """It lasts, once."""

    def lasts(self, kept: KeptOps, now: float) -> bool:
        lasts, self._is_lengthened = not self._is_lengthened, True
        return lasts


def closing(made: Made, *, lasts: bool = False) -> ClosingPhase:
    """Of a search that has found nothing."""
    before = made.searching()
    made.votes_for(made.root, 3)
    _ = made.asked
    return ClosingPhase(before, before._search, Round(5.0, 9, not lasts))
