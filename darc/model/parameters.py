"""The parameters of a session (paper section 6): their values.

How these are written is said in :mod:`darc.model.domains`; what the user is told of each parameter
is in :mod:`darc.app.parameters`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

from darc.model.peaks import calls_for, choose_peak, percentile
from darc.model.profile import Profile

MAX_DEPTH = 1000
"""Levels that a search may descend."""

MAX_RESOLUTION = 8
"""Bins for each doubling of the latency at most."""

AUTO_START_OPS = 100
"""Calls to see before the peak is looked for, unless a number or a time is given."""

MOST_CALLS = 1 << 62
"""More calls than are ever made."""


@dataclass(frozen=True, kw_only=True)
class Ability:
    """What one kind of probes can do that others cannot."""

    keeps_ops: bool
    """Calls are kept whole, with what was timed in them."""
    uses_breakpoints: bool
    """The debugger's breakpoints stand where calls are timed, which stops the program at each."""


class Probes(str, Enum):
    """How latency is collected. ``AUTO`` takes the cheapest kind that is safe at each place; it can
    what the kind can that it tries first."""

    can: Ability
    """What that kind can do."""

    def __new__(cls, word: str, can: Ability) -> Self:
        """What users type, and what it can do."""
        made = str.__new__(cls, word)
        made._value_, made.can = word, can
        return made

    AUTO = "auto", Ability(keeps_ops=True, uses_breakpoints=False)
    PAD = "pad", Ability(keeps_ops=True, uses_breakpoints=False)
    BREAKPOINT = "breakpoint", Ability(keeps_ops=False, uses_breakpoints=True)


class Loops(str, Enum):
    """What counts of a callee that is called again and again. ``TOGETHER``: all of its calls."""

    TOGETHER = "together"
    PAPER = "paper"


class OnFinish(str, Enum):
    """The parameter that says what the program does once the answer is known."""

    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Parameters:
    """The parameters of one session; the defaults are the paper's where it has the parameter.

    ``None`` stands for: no peak chosen, ``start_ops``, ``decision_ops`` and ``lookahead`` auto, no
    time limit (``start_time`` and ``max_time`` are in seconds), all threads and tasks. ``thread``
    is the system's thread id, ``task`` the process id or the name of a kernel's tasks. Raises
    :class:`~darc.model.errors.UsageError` for a peak that cannot be at this resolution.
    """

    peak: str | None = None
    start_ops: int | None = None
    start_time: float | None = None
    decision_ops: int | None = 20
    maxcount_percentage: float = 0.5
    max_depth: int = 32
    max_probes: int = 1000
    lookahead: int | None = None
    loops: Loops = Loops.TOGETHER
    max_time: float | None = None
    resolution: int = 1
    thread: int | None = None
    task: int | str | None = None
    probes: Probes = Probes.AUTO
    on_finish: OnFinish = OnFinish.STOP
    auto: bool = True
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.peak is not None:
            choose_peak(self.peak, Profile.empty(self.resolution, hz=1))

    @property
    def profile_calls(self) -> int:
        """After how many calls to look for the peak, if not after ``start_time`` already."""
        if self.start_ops is not None:
            return self.start_ops
        if self.start_time is not None:
            return MOST_CALLS
        percent = None if self.peak is None else percentile(self.peak)
        return max(AUTO_START_OPS, 0 if percent is None else min(calls_for(percent), MOST_CALLS))

    def overridden(self, overrides: Mapping[str, Any]) -> Parameters:
        """These parameters with the values of ``overrides``, keyed by field name."""
        return dataclasses.replace(self, **overrides)
