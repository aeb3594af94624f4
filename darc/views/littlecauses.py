"""Causes that explain little each of a peak most of which has another one: in one line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from darc.model.enumerated import ends
from darc.model.ftree import RootCausePath
from darc.model.shares import explain
from darc.model.snapshot import Snapshot
from darc.views.style import Style
from darc.views.words import way

_LITTLE = 0.1
"""Of the peak's time: paths that explain less are told together."""


def told_together(paths: Sequence[RootCausePath], snapshot: Snapshot) -> list[RootCausePath]:
    """Those of ``paths`` that explain little each, where they are several."""
    shares = [(path, explain(path, snapshot).share) for path in paths if path.is_sure]
    little = [path for path, share in shares if share is not None and share < _LITTLE]
    return little if len(little) > 1 else []


def together_line(
    little: Sequence[RootCausePath], snapshot: Snapshot, what: str, style: Style
) -> Text:
    """These paths, which are ``what``, those that explain the most first."""
    shares = [(explain(path, snapshot).share or 0.0, path) for path in little]
    shares.sort(key=lambda one: -one[0])
    told = ", ".join(f"{_ends_text(path, style)} {100 * share:.0f} %" for share, path in shares)
    return Text(f"darc: {what}, less than {100 * _LITTLE:.0f} % each: {told}", "bold")


def _ends_text(path: RootCausePath, style: Style) -> str:
    return way(ends([style.name(node.function.name) for node in path.nodes]))
