"""The profile as a picture: of all calls, or those of one row of a table."""

from __future__ import annotations

import dataclasses

from darc.model.errors import UsageError
from darc.model.functionprofile import row_of
from darc.model.snapshot import Snapshot
from darc.views.parts import PARTS
from darc.views.render import profile_lines
from darc.views.style import Style, write
from darc.views.words import Shown


def histogram(snapshot: Snapshot, style: Style) -> Shown:
    """The profile drawn, with the table of its peaks, and what parts have to say below it."""
    lines = profile_lines(snapshot, style)
    for key, part in snapshot.parts.items():
        if key in PARTS:
            lines += PARTS[key].below_histogram(part, style)
    return write(lines, style)


def of_row(snapshot: Snapshot, row: int | str | None) -> Snapshot:
    """The profile of one function of a table, by its number there, or its name; without one, of
    all.

    Raises:
        NotFoundError: there is no such row.
        UsageError: there is no table.
    """
    if row is None:
        return snapshot
    if snapshot.profiles is None:
        raise UsageError("rows are those of 'darc profile': type 'darc histogram' alone")
    found = row_of(snapshot.profiles, row)
    return dataclasses.replace(
        snapshot,
        function=found.function.name,
        profile=found.profile,
        peaks=found.peaks,
        parts={key: part.with_row_alone(found) for key, part in snapshot.parts.items()},
    )
