"""``darc report``: the result, shown or written."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from darc.app.commands.command import FILE, Actions, Command, Option, Parsed, Value, advised
from darc.app.commands.written import FILE_OPTION
from darc.app.options import Typed
from darc.model.errors import DarcError, UsageError
from darc.model.shares import is_minor
from darc.model.snapshot import Snapshot
from darc.model.values import named, one_of_enum
from darc.views.exporters import EXPORTERS, reportfile
from darc.views.exporters.exporter import Exporter


class Required(Enum):
    """What a report may be an error without."""

    ROOT_CAUSE = "root-cause"
    """One, or more, that explain most of the peak's time, as far as that is known."""
    ANSWER = "answer"
    """Of ``darc why``."""

    def why_missing(self, snapshot: Snapshot) -> str | None:
        """What to tell where a snapshot is without it."""
        is_path = self is Required.ROOT_CAUSE
        return _no_root_cause(snapshot) if is_path else _no_answer(snapshot)


def _no_root_cause(snapshot: Snapshot) -> str | None:
    if not snapshot.paths:
        return f"no root cause of {snapshot.function} was found: {snapshot.status.value}"
    if is_minor(snapshot):
        return f"no root cause of most of the time of {snapshot.function}'s slow calls was found"
    if not any(path.is_sure for path in snapshot.paths):
        why = dict.fromkeys(one.text for path in snapshot.paths for one in path.doubts)
        return f"no root cause of {snapshot.function} is sure: {'; '.join(why)}"
    return None


def _no_answer(snapshot: Snapshot) -> str | None:
    answers = [part for part in snapshot.parts.values() if part.is_answer]
    why = answers[-1].why_no_answer if answers else "'darc why' was not asked"
    return None if why is None else f"no answer: {why}"


_FORMAT = Option(
    "--format",
    "FORMAT",
    "How it is written.",
    named(EXPORTERS),
    default=f"what FILE ends in, else {next(iter(EXPORTERS))}",
)
_OUTPUT = Option("--output", "FILE", "The same as -o.", FILE)
_REQUIRE = Option(
    "--require",
    "WHAT",
    "An error without a root-cause that explains most of the peak's time, as far as that is "
    "known, or without an answer of 'darc why'.",
    one_of_enum(Required),
    default="none",
)
_FORM: Value[Exporter] = Value("format")
_FILE: Value[Path | None] = Value("file")
_NEEDED: Value[Required | None] = Value("require")
REPORT_OPTIONS = (_FORMAT, FILE_OPTION, _OUTPUT, _REQUIRE)


def _parse_report(typed: Typed) -> Parsed:
    if typed.words:
        word = typed.words[0]
        raise UsageError(
            f"darc report takes no argument '{word}'; to write it to a file type "
            f"'darc report -o {advised(word, 'FILE')}'"
        )
    path = FILE_OPTION.typed_in(typed) or _OUTPUT.typed_in(typed)
    form = _FORMAT.typed_in(typed) or reportfile.format_of(path)
    needed = _NEEDED.put(_REQUIRE.typed_in(typed))
    return Parsed((), {**_FORM.put(form), **_FILE.put(path), **needed})


def _report(app: Actions, parsed: Parsed) -> None:
    snapshot, needed = app.snapshot(tree=True), _NEEDED.of(parsed)
    reportfile.write_report(
        snapshot, _FORM.of(parsed), _FILE.of(parsed), emit=app.emit, style=app.style
    )
    if needed is not None and (missing := needed.why_missing(snapshot)) is not None:
        raise DarcError(f"{missing}; 'darc status' tells more")


REPORT = Command(
    name="report",
    summary="Show or write the result.",
    usage="darc report [--format FORMAT] [-o FILE] [--require WHAT]",
    details=(
        "The report has the profile, its peaks, the root cause paths, the function tree "
        "and what was done to the program. JSON is for scripts: times are cycles, with hz."
    ),
    examples=(
        ("darc report", "Show it."),
        ("darc report -o out.json", "Write it as JSON."),
        ("darc report -o waits.dot", "Write who waited for whom, for Graphviz."),
        ("darc report --require root-cause", "Fail when there is no root cause."),
        ("darc report --require answer", "Fail where 'darc why' has found nothing."),
    ),
    parse=_parse_report,
    action=_report,
    options=REPORT_OPTIONS,
    only_looks=True,
)
