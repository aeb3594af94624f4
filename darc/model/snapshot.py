"""What is known of a session at one moment: everything that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, TypeVar

from darc.model.ftree import Cause, Fnode, Function, RootCausePath
from darc.model.ops import KeptOps
from darc.model.parameters import Parameters, Probes
from darc.model.part import Part, parts_of
from darc.model.peaks import Peak, PeakRange
from darc.model.profile import Profile
from darc.model.status import Status
from darc.model.waits import Waits
from darc.model.why import Suspect, Tail, Verdict

_Part = TypeVar("_Part", bound=Part)


class SiteState(str, Enum):
    """How a call site is timed. ``FELL_BACK`` and ``NOT_POSSIBLE`` come with a reason."""

    TIMED = "instrumented"
    """Recorded under this name; users are shown :attr:`word`."""
    FELL_BACK = "fell back"
    NOT_POSSIBLE = "not possible"

    @property
    def word(self) -> str:
        """What users are shown."""
        return "timed" if self is SiteState.TIMED else self.value


KERNELS_HALF = 1 << 63
"""Addresses from there on are a kernel's."""


@dataclass(frozen=True)
class SiteReport:
    """One call site that darc wanted to time.

    ``function`` is the caller, ``offset`` the site's offset in its module in bytes, ``callee``
    ``None`` where the call is indirect.
    """

    function: str
    offset: int
    callee: str | None
    state: SiteState
    why: str | None
    address: int = 0
    """Where it is while the program runs; 0: nobody told."""

    @property
    def place(self) -> str:
        """What to show of where it is: in a kernel, which may have moved, what the debugger knows
        it by."""
        return f"{self.address if self.address >= KERNELS_HALF else self.offset:#x}"


@dataclass(frozen=True)
class ProgramFigures:
    """What the analysis did to the program.

    ``stops`` counts the times the program was stopped for darc and ``stopped_seconds`` is their
    sum, from where its probes are set up: not that, which took ``setup_seconds``, nor what comes
    before (libraries that load while f0 is waited for); ``in_peak_calls`` are the calls inside the
    peak over all levels; ``probes`` are the call sites that were timed, over all levels. Both are
    ``None`` of an analysis that has no such thing: then the report is silent about it, and about
    root causes where nobody looks into a peak.
    """

    stops: int = 0
    stopped_seconds: float = 0.0
    in_peak_calls: int | None = None
    probes: int | None = None
    sites: tuple[SiteReport, ...] = ()
    setup_seconds: float = 0.0
    longest_stop: float = 0.0
    """Of the stops for decisions, in seconds."""


@dataclass(frozen=True)
class Snapshot:
    """A session at one moment.

    ``probes`` is the kind of probes in use; ``collected`` of ``needed`` in-peak calls were seen
    at this ``level``, ``None`` where that cannot be read now; ``elapsed_seconds`` counts from the
    start of the analysis, ``profile_seconds`` are those in which the program ran up to the choice
    of the peak. The ftree may still be the session's own, which goes on with it: :meth:`frozen` is
    a snapshot that nothing changes any more.
    """

    function: str
    status: Status
    probes: Probes
    profile: Profile | None = None
    peaks: tuple[Peak, ...] = ()
    peak: PeakRange | None = None
    ftree: Fnode | None = None
    paths: tuple[RootCausePath, ...] = ()
    level: int = 0
    collected: int | None = 0
    needed: int = 0
    program: ProgramFigures = field(default_factory=ProgramFigures)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Those of the notes that put the paths in doubt."""
    parameters: Parameters = field(default_factory=Parameters)
    elapsed_seconds: float = 0.0
    profile_seconds: float = 0.0
    ops: KeptOps | None = None
    """``None`` before a search, and where none are kept."""
    waits: Waits | None = None
    """Of the in-peak ops among those,"""
    waits_of_fastest: Waits | None = None
    """and of those of the fastest peak."""
    spec: str | None = None
    """What is to be typed for the function; ``None``: its name."""
    generated: int = 0
    """Calls by code that was generated, which are not timed, where many have come and no other."""
    parts: Mapping[str, Part] = field(default_factory=parts_of)
    """What analyses know beside the descent, by their keys: of several the last one is made of
    those before."""

    def frozen(self) -> Snapshot:
        """The same with an ftree, paths and ops of its own."""
        if self.ftree is None:
            return self
        copies = self.ftree.copied()
        return replace(
            self,
            ftree=copies[self.ftree],
            paths=tuple(path.with_nodes(copies) for path in self.paths),
            ops=None if self.ops is None else self.ops.with_nodes(copies),
        )

    def part(self, kind: type[_Part]) -> _Part | None:
        """The part of that ``kind``, where there is one."""
        found = self.parts.get(kind.key)
        return found if isinstance(found, kind) else None


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
    def paths(self) -> tuple[RootCausePath, ...]:
        """The root cause paths."""
        return () if self.found is None else self.found.paths

    @property
    def is_preempted(self) -> bool:
        """Whether others had the processor in the middle of its slow calls, and nothing of its own
        makes these slow: its function is where that has fallen, and no cause."""
        return bool(self.paths) and all(p.ending.cause is Cause.PREEMPTION for p in self.paths)

    @property
    def agreement(self) -> float:
        """The part of the votes that agree with these causes together, where fewest do on the way
        down; 0 without one."""
        if not self.paths:
            return 0.0
        first = self.paths[0]
        if _is_preemption(first):
            root = first.nodes[0]
            counted = root.decision.ops if root.decision is not None and root.self_maxcount else 0
            return min(1.0, first.ending.maxcount / counted) if counted else 1.0
        nodes = _agreement([path for path in self.paths if not _is_preemption(path)], 0)
        return min(nodes, self.spent_alike)


def _is_preemption(path: RootCausePath) -> bool:
    """Whether it is preemption wherever it fell: its votes are not those of nodes."""
    return path.ending.cause is Cause.PREEMPTION and len(path.nodes) == 1


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

    verdict: Verdict
    answers: tuple[Answer, ...]
    """The one with the most time first; without those that are idle or disturbed."""
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
    tail: Tail | None = None
    """Where nothing stands out: what has the longest tail, in no peak of its own."""
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
    """As :attr:`ProgramFigures.longest_stop`, over all steps."""

    def function(self, number: int) -> Function | None:
        """That of an answer."""
        if not 1 <= number <= len(self.answers):
            return None
        return self.answers[number - 1].suspect.row.function
