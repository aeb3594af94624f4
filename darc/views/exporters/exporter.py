"""What an exporter is: a format of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darc.model.snapshot import Snapshot
from darc.views.style import Style
from darc.views.words import Shown


@dataclass(frozen=True)
class Exporter:
    """One format: the ``name`` that ``--format`` takes, the ``suffixes`` of files that are written
    in it when nothing is said, and the report's ``text`` from a frozen snapshot. The style is that
    of the terminal, or a plain one for a file."""

    name: str
    suffixes: tuple[str, ...]
    text: Callable[[Snapshot, Style], Shown]
