"""The result of a session, written down, in one of the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from darc.model.errors import DarcError, UsageError
from darc.model.shares import is_minor
from darc.model.snapshot import Snapshot
from darc.saved.files import replace_file
from darc.views.exporters import EXPORTERS
from darc.views.style import Style

_DEFAULT = next(iter(EXPORTERS))
_OTHERS = frozenset({".html", ".htm", ".pdf"})
"""Names of files that would promise what no exporter makes; one that does take its own first."""


def write_report(
    snapshot: Snapshot,
    form: str,
    file: Path | None,
    *,
    emit: Callable[[str], None],
    style: Style | None = None,
    require_root_cause: bool = False,
    require_answer: bool = False,
) -> None:
    """Write the report to ``file``, which is replaced as a whole, or hand it to ``emit``.

    Raises :class:`UsageError` for a format or file name that cannot be, :class:`TargetError` when
    the system refuses the file (the old one then stays as it was), and, with
    ``require_root_cause``, :class:`DarcError` after writing when no root cause was found, or only
    such as explain the smaller part of the peak's time; with ``require_answer``, when
    ``darc why`` has found none.
    """
    check_format(form)
    given = style or Style()
    in_file = Style(verbose=given.verbose, whole_names=True)
    text = EXPORTERS[form].text(snapshot, given if file is None else in_file)
    if file is None:
        emit(text)
    else:
        replace_file(file, text + "\n")
        emit(f"darc: report written to {file}")
    if require_root_cause and not snapshot.paths:
        raise DarcError(
            f"no root cause of {snapshot.function} was found: {snapshot.status.value}; "
            "'darc status' tells more"
        )
    if require_root_cause and is_minor(snapshot):
        raise DarcError(
            f"no root cause of most of the time of {snapshot.function}'s slow calls was found; "
            "'darc status' tells more"
        )
    if require_answer and (why := _why_no_answer(snapshot)) is not None:
        raise DarcError(f"no answer: {why}; 'darc status' tells more")


def _why_no_answer(snapshot: Snapshot) -> str | None:
    """What there is in the place of an answer to what is slow."""
    answers = [part for part in snapshot.parts.values() if part.is_answer]
    return answers[-1].why_no_answer if answers else "'darc why' was not asked"


def format_of(file: Path | None) -> str:
    """The format that the name of ``file`` asks for, which there may be none of: the first when it
    does not say."""
    suffix = "" if file is None else file.suffix.lower()
    for name, one in EXPORTERS.items():
        if suffix in one.suffixes:
            return name
    return suffix.removeprefix(".") if suffix in _OTHERS else _DEFAULT


def check_format(form: str) -> None:
    """Raise :class:`UsageError` unless reports can be written in this format."""
    if form not in EXPORTERS:
        *others, last = EXPORTERS
        there = f"{', '.join(others)} and {last}"
        raise UsageError(f"--format: '{form}' is not a format; there are {there}")
