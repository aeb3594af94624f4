"""Which analysis a session file is of that does not say so, as those of earlier releases.

Each such analysis has a line here; a new one needs none, as its files say what they are of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from darc.saved import sets

DESCENT = "start"
"""The command that begins a descent to root causes."""

_TOLD_BY: Mapping[str, str] = {sets.PART: sets.ANALYSIS}
"""Analyses by a part that their files have alone."""

_WITHOUT_ONE = DESCENT
"""That of all other files."""


def told_by(parts: Iterable[str] = ()) -> str:
    """The analysis that a file with these parts is of, by the command that begins it."""
    return next((_TOLD_BY[part] for part in parts if part in _TOLD_BY), _WITHOUT_ONE)
