"""The result of a session, written down, in one of the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from darc.model.errors import DarcError, UsageError
from darc.model.shares import is_minor
from darc.model.snapshot import Snapshot
from darc.saved.files import replace_file
from darc.views.exporters import EXPORTERS
from darc.views.exporters.exporter import Exporter
from darc.views.style import Style

_DEFAULT = next(iter(EXPORTERS.values()))
_OTHERS = frozenset({".html", ".htm", ".pdf"})
"""Names of files that would promise what no exporter makes; one that does take its own first."""


def write_report(
    snapshot: Snapshot,
    form: Exporter,
    file: Path | None,
    *,
    emit: Callable[[str], None],
    style: Style | None = None,
    require_root_cause: bool = False,
    require_answer: bool = False,
) -> None:
    """Write the report to ``file``, which is replaced as a whole, or hand it to ``emit``.

    Raises :class:`UsageError` for a file name that cannot be, :class:`TargetError` when
    the system refuses the file (the old one then stays as it was), and, with
    ``require_root_cause``, :class:`DarcError` after writing when no root cause was found, or only
    such as explain the smaller part of the peak's time; with ``require_answer``, when
    ``darc why`` has found none.
    """
    given = style or Style()
    in_file = Style(verbose=given.verbose, whole_names=True)
    text = form.text(snapshot, given if file is None else in_file)
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


def format_of(file: Path | None) -> Exporter:
    """The format that the name of ``file`` asks for: the first where it does not say.

    Raises:
        UsageError: it promises what no exporter makes.
    """
    suffix = "" if file is None else file.suffix.lower()
    for one in EXPORTERS.values():
        if suffix in one.suffixes:
            return one
    if suffix in _OTHERS:
        endings = _or(end for one in EXPORTERS.values() for end in one.suffixes)
        raise UsageError(
            f"'{file}': no report can be written as {suffix}; files end in {endings}, or "
            f"'--format' says {_or(EXPORTERS)}"
        )
    return _DEFAULT


def _or(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}"
