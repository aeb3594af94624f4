"""What ``darc why`` answers: whom it looks into, what was found of each, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import ClassVar

from darc.model.ftree import Cause, Fnode, Function, RootCausePath
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import OpClass
from darc.model.part import Offer, Part
from darc.model.peaks import LAST_PEAK, PeakRange
from darc.model.profile import time_above
from darc.model.snapshot import Snapshot

_SPARE_BINS = 2
"""Slow calls that make tens of thousands of calls, each of which was timed, have taken up to four
times as long."""


class Verdict(str, Enum):
    """What is known in the end. The values are those of the report."""

    FOUND = "found"
    NOTHING = "nothing stands out"
    WAITS = "nothing but waits for work"
    """What stands out was left out, as it waits for what comes next."""
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class Suspect:
    """A function that is slow now and then."""

    row: FunctionProfile
    peak: PeakRange
    """Its slow calls: those of this peak, or of its tail (:attr:`is_tail`)."""
    slow: int
    """How many they are."""
    seconds: float
    """For how long the function was timed."""
    slow_mean: float
    """What they take, in cycles, as far as bins tell,"""
    fast_mean: float
    """and what those of the fastest peak do, or most calls, where it is a tail."""
    share: float
    """What its slow calls take beyond the fast ones, by what one thread has of time: above 1 where
    several threads call it."""
    delay: float
    """In seconds: what is left of a slow call, on average over all moments, where one goes on; so
    long waits who comes at any moment for it to end. Of two functions that take as much time, it is
    longer for that with fewer and longer calls."""

    @property
    def name(self) -> str:
        """Of the function."""
        return self.row.function.name

    @property
    def is_tail(self) -> bool:
        """Whether its slow calls make no peak: no valley parts them from the others."""
        return self.peak.number is None

    @property
    def threshold(self) -> int:
        """From how many cycles on calls are slow."""
        return self.row.profile.low(self.peak.first_bin)

    @property
    def typed_peak(self) -> str:
        """Its slow calls, as one types them."""
        if self.is_tail:
            return f">{time_above(self.threshold / self.row.profile.hz)}"
        if self.peak.last_bin is None:
            return LAST_PEAK
        return f"{self.peak.first_bin}-{self.peak.last_bin}"

    @property
    def gap(self) -> int:
        """How many bins right before the peak have no call at all."""
        before = [number for number in self.row.profile.bins if number < self.peak.first_bin]
        return self.peak.first_bin - 1 - max(before, default=-1)

    def spec(self, resolution: int, last: int) -> str:
        """The peak by its bins, at a ``resolution`` whose last bin is ``last``, with some of the
        gap before it: by as much as the probes of all that they call have made them longer, slow
        calls take less where the function is timed alone."""
        spare = min(self.gap // 2, _SPARE_BINS)
        first, end = (self.peak.first_bin - spare) * resolution, self.peak.last_bin
        return f"{first}-{last if end is None else (end + 1) * resolution - 1}"


@dataclass(frozen=True)
class Answer:
    """What a search has said of one suspect. ``found`` is what was known at its end; ``None``: it
    could not be begun, and ``why`` says why. ``idle`` names the function that its slow calls wait
    in for whatever comes next: they are none that anybody would call slow."""

    suspect: Suspect
    found: Snapshot | None
    why: str | None = None
    idle: str | None = None
    is_disturbed: bool = False
    """Whether calls of all functions are slow as often, and nobody saw what had the processor."""
    handed: str | None = None
    """The function that its slow calls wait in, where that may be for the thread's next work, or
    for something that the call needs: nobody can tell."""
    spent_alike: float = 1.0
    """Of the kept calls that say what the paths' last functions spent their own time in, the part
    that says what the causes do."""

    @property
    def doubt(self) -> str | None:
        """That it may wait for work, where nobody can tell."""
        if self.handed is None:
            return None
        return f"whether it waits in {self.handed} for its next work, nobody can tell"

    @property
    def paths(self) -> tuple[RootCausePath, ...]:
        """The root cause paths."""
        return () if self.found is None else self.found.paths

    @property
    def is_preempted(self) -> bool:
        """Whether others had the processor in the middle of its slow calls, and nothing of its own
        makes these slow: its function is where that has fallen, and no cause."""
        return bool(self.paths) and all(p.ending.cause is Cause.PREEMPTION for p in self.paths)

    @property
    def is_of_no_call(self) -> bool:
        """The same, or it was the debugger that held its slow calls."""
        return bool(self.paths) and all(p.ending.cause.is_of_no_call for p in self.paths)

    @property
    def agreement(self) -> float:
        """The part of the votes that agree with these causes together, where fewest do on the way
        down; 0 without one."""
        if not self.paths:
            return 0.0
        first = self.paths[0]
        if _is_of_no_call(first):
            kept = None if self.found is None else self.found.ops
            ops = () if kept is None else kept.sample(OpClass.IN_PEAK)
            watched = sum(op.off is not None for op in ops)
            if watched:  # it is by these that it was chosen
                return min(1.0, first.ending.maxcount / watched)
            root = first.nodes[0]
            counted = root.decision.ops if root.decision is not None and root.self_maxcount else 0
            return min(1.0, first.ending.maxcount / counted) if counted else 1.0
        nodes = _agreement([path for path in self.paths if not _is_of_no_call(path)], 0)
        return min(nodes, self.spent_alike)


def _is_of_no_call(path: RootCausePath) -> bool:
    """Whether it is one cause wherever it fell: its votes are not those of nodes."""
    return path.ending.cause.is_of_no_call and len(path.nodes) == 1


def _agreement(paths: Sequence[RootCausePath], depth: int) -> float:
    """The part of the votes at a node, the same one on all ``paths`` at that ``depth``, and below
    it, that go to any of these, where fewest do.

    A call may vote for several, and votes for one at least. So of the calls that were compared
    those do not agree at most that voted for one that is not named; and no more agree than the
    named ones have votes, nor fewer than one of them has.
    """
    node = paths[0].nodes[depth]
    below: dict[Fnode, list[RootCausePath]] = {}
    for path in paths:
        if len(path.nodes) > depth + 1:
            below.setdefault(path.nodes[depth + 1], []).append(path)
    own = max((_own_votes(path) for path in paths if len(path.nodes) == depth + 1), default=0)
    loops = {path.ending.loop_callee for path in paths if len(path.nodes) == depth + 1}
    named = [own, *(child.maxcount for child in below)]
    others = [c.maxcount for c in node.children if c not in below and c.function.name not in loops]
    ops = node.totals.ops
    if not ops and node.decision is not None:
        ops = node.decision.ops
    parts = [_agreement(those, depth + 1) for those in below.values()]
    votes = sum(named)
    if not ops or not (votes or below):
        return min(parts, default=1.0)
    against = sum(others) + (0 if own else node.self_maxcount)
    here = min(votes, max(*named, ops - against)) / ops
    further = own + sum(part * c.maxcount for part, c in zip(parts, below, strict=True))
    return min(1.0, here, further / max(votes, 1))


def _own_votes(path: RootCausePath) -> int:
    """Those by which a path ends at its last node. What a function's own time was spent in is told
    by other calls, those that were kept (:attr:`Answer.spent_alike`): here it is the votes for that
    time."""
    last = path.nodes[-1]
    if last.decision is None or not last.self_maxcount:
        return 0
    is_own = path.ending.cause in (Cause.BLOCKED, Cause.PREEMPTION)
    return last.self_maxcount if is_own else path.ending.maxcount


@dataclass(frozen=True)
class Why(Part):
    """What is slow, in which call, and who was behind it: the answer of ``darc why``, so far."""

    key: ClassVar[str] = "why"
    is_answer: ClassVar[bool] = True

    verdict: Verdict
    answers: tuple[Answer, ...]
    """Those with a cause first, of these what delayed calls most; without those that are idle,
    disturbed, or another one's calls once more."""
    _: KW_ONLY
    functions: int = 0
    """So many were timed,"""
    calls: int = 0
    """with so many calls,"""
    seconds: float = 0.0
    """in so much time."""
    is_sure: bool = False
    reasons: tuple[str, ...] = ()
    """Why it is not, or why nothing was found."""
    is_over: bool = True
    """Whether nothing more will be known,"""
    has_ended: bool = False
    """as the program is gone."""
    is_cut: bool = False
    """Whether ``--max-time`` left it less than what was asked for."""
    open: tuple[Suspect, ...] = ()
    """Those that nobody came to look into."""
    tail: Suspect | None = None
    """What has the longest tail, in no peak of its own, and was not looked into: where nothing
    stands out, or where that delays far more than the first answer."""
    costlier: Suspect | None = None
    """What costs more than the first answer, and why is not known."""
    rare: Suspect | None = None
    """What has slow calls that matter, and too few of them to be judged."""
    rare_seconds: float = 0.0
    """For how long it would have to be timed to have enough."""
    stops: int = 0
    """So often the program stood still for it, over all its steps,"""
    stopped_seconds: float = 0.0
    """for so long in all,"""
    setup_seconds: float = 0.0
    """and so long before, as functions were chosen and their probes made."""
    idle: tuple[tuple[Suspect, str], ...] = ()
    """Those that were left out, as they are slow where they wait for whatever comes next, and the
    functions that they wait in."""
    spelled: Mapping[int, str] = field(default_factory=dict)
    """What to type for functions, by their addresses, where that was asked."""
    usual: tuple[tuple[Suspect, Function], ...] = ()
    """Those that were left out, as each call of another function has one of their slow calls, and
    that function."""
    making: tuple[int, int] | None = None
    """As :attr:`~darc.model.functionset.FunctionSet.making`."""
    longest_stop: float = 0.0
    """As :attr:`~darc.model.snapshot.ProgramFigures.longest_stop`, over all steps."""

    @property
    def offer(self) -> Offer | None:
        """The first suspect whose causes were not found, for want of time."""
        late = [one.suspect for one in self.answers if not one.paths]
        offered = [*late, *self.open, *filter(None, (self.tail,))]
        return self.start_of(offered[0]) if offered else None

    def start_of(self, suspect: Suspect) -> Offer:
        """The search that looks into the slow calls of a suspect."""
        spelled = self.spelled.get(suspect.row.function.address, suspect.name)
        return Offer(spelled, suspect.typed_peak)

    def function(self, number: int) -> Function | None:
        """That of an answer."""
        if not 1 <= number <= len(self.answers):
            return None
        return self.answers[number - 1].suspect.row.function

    def why_no_function(self, number: int) -> str:
        answers = f"1 to {len(self.answers)}" if self.answers else "none"
        return f"there is no answer {number} of 'darc why': there are {answers}"

    @property
    def profiles(self) -> tuple[FunctionProfile, ...]:
        return tuple(one.suspect.row for one in self.answers)

    @property
    def named(self) -> tuple[FunctionProfile, ...]:
        left_out = (suspect for suspect, _ in (*self.idle, *self.usual))
        told = [one for one in (self.tail, self.rare) if one is not None]
        return (*self.profiles, *(one.row for one in (*self.open, *left_out, *told)))

    @property
    def why_no_answer(self) -> str | None:
        return None if self.verdict is Verdict.FOUND else self.verdict.value
