"""What a session is begun for, and what was before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darc.analyses.analysis import Analysis, AnalysisBrief
from darc.collectors.collector import Remains, Way
from darc.model.parameters import Parameters


@dataclass(frozen=True, kw_only=True)
class SessionBrief:
    """What an ``analysis``, which is made of calls, is to find out by the ``parameters``."""

    entry: int
    """The address of f0,"""
    spec: str
    """which the user knows as this."""
    parameters: Parameters
    analysis: Callable[[AnalysisBrief], Analysis]
    way: Way | None = None
    """How to collect, where that is one for that analysis alone: it takes the place of that of its
    kind."""


@dataclass(frozen=True, kw_only=True)
class Before:
    """What was before a session."""

    remains: Remains | None = None
    """What an earlier one has left."""
    notes: Sequence[str] = ()
    """They are told first."""
    spent: float = 0.0
    """Seconds of its time limit that are over."""
