"""Where a view goes: to the user, or into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from darc.model.errors import UsageError
from darc.saved.files import replace_file
from darc.views.style import Style
from darc.views.words import Shown

Text = Callable[[Style], Shown]
"""Makes a view's text."""

Values = Callable[[], dict[str, Any]]
"""Makes what is written as JSON."""

FORMATS = ("text", "json")
"""What ``--format`` takes where a view is written as the report is."""


def write_view(
    made: Mapping[str, Text],
    form: str,
    file: Path | None,
    *,
    emit: Callable[[str], None],
    style: Style,
) -> None:
    """Write the view, of which ``made`` has each format, to ``file``, or hand it to ``emit``.

    Raises:
        UsageError: there is no such format, or no file of this name can be.
        TargetError: the system refuses the file.
    """
    check_format(form)
    if file is None:
        emit(made[form](style))
        return
    replace_file(file, made[form](Style(verbose=style.verbose, whole_names=True)) + "\n")
    emit(f"darc: written to {file}")


def check_format(form: str) -> None:
    """Raise :class:`UsageError` unless views are written in this format."""
    if form not in FORMATS:
        raise UsageError(f"--format: '{form}' is not a format; there are {' and '.join(FORMATS)}")
