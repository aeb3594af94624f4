"""Where a view goes: to the user, or into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from darc.saved.files import replace_file
from darc.views.style import Style
from darc.views.words import Shown

Text = Callable[[Style], Shown]
"""Makes a view's text."""

Values = Callable[[], dict[str, Any]]
"""Makes what is written as JSON."""


class ViewFormat(Enum):
    """How a view is written, by what ``--format`` takes."""

    TEXT = "text"
    JSON = "json"

    @classmethod
    def of_file(cls, file: Path | None) -> ViewFormat:
        """The one that the name of ``file`` asks for: text where it does not say."""
        is_json = file is not None and file.suffix.lower() == ".json"
        return cls.JSON if is_json else cls.TEXT


def write_view(
    made: Mapping[ViewFormat, Text],
    form: ViewFormat,
    file: Path | None,
    *,
    emit: Callable[[str], None],
    style: Style,
) -> None:
    """Write the view, of which ``made`` has each format, to ``file``, or hand it to ``emit``.

    Raises:
        UsageError: no file of this name can be.
        TargetError: the system refuses the file.
    """
    if file is None:
        emit(made[form](style))
        return
    replace_file(file, made[form](Style(verbose=style.verbose, whole_names=True)) + "\n")
    emit(f"darc: written to {file}")
