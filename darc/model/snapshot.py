"""What is known of a session at one moment: everything that a report is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from darc.model.ftree import Fnode, RootCausePath
from darc.model.parameters import Parameters
from darc.model.peaks import Peak, PeakRange
from darc.model.profile import Profile
from darc.model.status import Status


class SiteState(str, Enum):
    """How a call site is timed. ``FELL_BACK`` and ``NOT_POSSIBLE`` come with a reason."""

    INSTRUMENTED = "instrumented"
    FELL_BACK = "fell back"
    NOT_POSSIBLE = "not possible"


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


@dataclass(frozen=True)
class ProgramFigures:
    """What the analysis did to the program.

    ``stops`` counts the times the program was stopped for darc and ``stopped_seconds`` is their
    sum; ``in_peak_calls`` are the calls inside the peak over all levels; ``probes`` are the call
    sites that were timed, over all levels.
    """

    stops: int = 0
    stopped_seconds: float = 0.0
    in_peak_calls: int = 0
    probes: int = 0
    sites: tuple[SiteReport, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """A session at one moment.

    ``probes`` is the kind of probes in use; ``collected`` of ``needed`` in-peak calls were seen
    at this ``level``, ``None`` where that cannot be read now; ``elapsed_seconds`` counts from the
    start of the analysis, ``profile_seconds`` are those in which the program ran up to the choice
    of the peak. The ftree is the session's own: render a snapshot before the session goes on.
    """

    function: str
    status: Status
    probes: str
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
