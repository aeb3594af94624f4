"""What is known of a session at one moment: everything that a report is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from typing import TypeVar

from darc.model.addresses import is_kernels
from darc.model.contexts import Context, measured_tree
from darc.model.ftree import Fnode, RootCausePath
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import KeptOps
from darc.model.parameters import Parameters, Probes
from darc.model.part import Part, parts_of
from darc.model.peaks import Peak, PeakRange
from darc.model.profile import Profile
from darc.model.status import EndedBy, Status
from darc.model.waits import Waits

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
        return f"{self.address if is_kernels(self.address) else self.offset:#x}"


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

    ``probes`` is the kind of probes in use; ``collected`` of ``needed`` in-peak calls were seen at
    this ``level``, ``None`` where that cannot be read now; ``elapsed_seconds`` counts from the
    start of the analysis, ``profile_seconds`` are those in which the program ran up to the choice
    of the peak, and ``profile_calls`` the calls that came in these. The ftree may still be the
    session's own, which goes on with it: :meth:`frozen` is a snapshot that nothing changes any
    more. ``level`` (``None``: of no descent), ``paths``, ``waits`` and ``waits_of_fastest`` are a
    descent's alone; other analyses have parts.
    """

    function: str
    status: Status
    probes: Probes
    _: KW_ONLY
    profile: Profile | None = None
    peaks: tuple[Peak, ...] = ()
    peak: PeakRange | None = None
    ftree: Fnode | None = None
    paths: tuple[RootCausePath, ...] = ()
    level: int | None = None
    collected: int | None = 0
    needed: int = 0
    program: ProgramFigures = field(default_factory=ProgramFigures)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """Those of the notes that put the paths in doubt."""
    parameters: Parameters = field(default_factory=Parameters)
    elapsed_seconds: float = 0.0
    profile_seconds: float = 0.0
    profile_calls: int = 0
    ops: KeptOps | None = None
    """``None`` before a search, and where none are kept."""
    waits: Waits | None = None
    """Of the in-peak ops among those,"""
    waits_of_fastest: Waits | None = None
    """and of those of the fastest peak."""
    spec: str | None = None
    """What is to be typed for the function; ``None``: its name."""
    ended_by: EndedBy | None = None
    """What has ended it before its end, where that is known."""
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

    @property
    def measured(self) -> Context | None:
        """Its ftree by calling contexts, each with its time; ``None``: none were timed."""
        if self.ftree is None or self.profile is None:
            return None
        return measured_tree(self.ftree, self.profile.hz)

    @property
    def profiles(self) -> tuple[FunctionProfile, ...] | None:
        """Those that users call by numbers, of the last part that has some; ``None``: none has."""
        part = self._numbering
        return None if part is None else part.profiles

    @property
    def named(self) -> tuple[FunctionProfile, ...]:
        """Those of all functions that the same part names."""
        part = self._numbering
        return () if part is None else part.named

    @property
    def _numbering(self) -> Part | None:
        parts = reversed(list(self.parts.values()))
        return next((part for part in parts if part.profiles is not None), None)
