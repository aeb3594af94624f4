"""The result of a session, written down, in one of the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from darc.model.errors import UsageError
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
) -> None:
    """Write the report to ``file``, which is replaced as a whole, or hand it to ``emit``.

    Raises :class:`UsageError` for a file name that cannot be, and :class:`TargetError` when the
    system refuses the file: the old one then stays as it was.
    """
    given = style or Style()
    in_file = Style(verbose=given.verbose, whole_names=True)
    text = form.text(snapshot, given if file is None else in_file)
    if file is None:
        emit(text)
    else:
        replace_file(file, text + "\n")
        emit(f"darc: report written to {file}")


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
