"""The result of a session, written down: as text for people or as JSON, schema 1, for programs."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any

from darc.model.errors import DarcError, TargetError, UsageError
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.parameters import MAX_DEPTH
from darc.model.snapshot import Snapshot
from darc.search import loops
from darc.views import render
from darc.views.render import Style
from darc.views.words import Shown, whole

SCHEMA = 1
"""Version of the JSON report: more keys may follow, the ones that are there stay."""

FORMATS = ("text", "json")
"""The formats that can be written."""

_LATER = ("html", "folded", "speedscope")
_SUFFIXES = {".json": "json", ".html": "html", ".htm": "html", ".folded": "folded"}


def to_json(snapshot: Snapshot) -> dict[str, Any]:
    """The JSON report, schema 1, as Python values.

    Latencies are in cycles, with ``hz``; offsets are bytes in the module. ``profile``, ``peak``
    and ``ftree`` are ``None`` while there is none, and ``last_bin`` for a peak that is open to
    the right.
    """
    profile, peak, program = snapshot.profile, snapshot.peak, snapshot.program
    return {
        "schema": SCHEMA,
        "function": snapshot.function,
        "status": snapshot.status.value,
        "probes": snapshot.probes,
        "profile": None
        if profile is None
        else {
            "unit": "cycles",
            "hz": profile.hz,
            "resolution": profile.resolution,
            "count": profile.count,
            "sum": profile.total,
            "bins": {str(number): count for number, count in sorted(profile.bins.items()) if count},
        },
        "peaks": [
            {
                "number": one.number,
                "first_bin": one.first_bin,
                "last_bin": one.last_bin,
                "count": one.count,
            }
            for one in snapshot.peaks
        ],
        "peak": None
        if peak is None
        else {"number": peak.number, "first_bin": peak.first_bin, "last_bin": peak.last_bin},
        "root_cause_paths": [_path(path) for path in snapshot.paths],
        "ftree": None if snapshot.ftree is None else _tree(snapshot.ftree),
        "decisions": [] if snapshot.ftree is None else _decisions(snapshot.ftree),
        "program": {
            "stops": program.stops,
            "stopped_seconds": round(program.stopped_seconds, 6),
            "in_peak_calls": program.in_peak_calls,
            "probes": program.probes,
            "sites": [
                {
                    "function": site.function,
                    "offset": site.offset,
                    "state": site.state.value,
                    "why": site.why,
                }
                for site in program.sites
            ],
        },
    }


def write_report(
    snapshot: Snapshot,
    form: str,
    file: Path | None,
    *,
    emit: Callable[[str], None],
    style: Style | None = None,
    require_root_cause: bool = False,
) -> None:
    """Write the report to ``file``, which is replaced as a whole, or hand it to ``emit``.

    Raises :class:`UsageError` for a format or file name that cannot be, :class:`TargetError` when
    the system refuses the file (the old one then stays as it was), and, with
    ``require_root_cause``, :class:`DarcError` after writing when no root cause was found.
    """
    check_format(form)
    if form == "json":
        text: str = _json_text(snapshot)
    else:
        given = style or Style()
        in_file = Style(verbose=given.verbose, whole_names=True)
        text = render.report(snapshot, given if file is None else in_file)
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


def _json_text(snapshot: Snapshot) -> Shown:
    """The JSON report as text. It is plain ASCII, also for whoever shows the file on a terminal,
    and names are whole."""
    with deep():
        text = json.dumps(_whole(to_json(snapshot)), indent=1)
    return Shown(text.replace("\x7f", "\\u007f"))


def _whole(value: Any) -> Any:
    """The same values without half surrogate pairs, which some readers of JSON refuse."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


@contextlib.contextmanager
def deep() -> Iterator[None]:
    """Recursion over a tree of :data:`~darc.model.parameters.MAX_DEPTH` levels fits in."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 12 * MAX_DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def format_of(file: Path | None) -> str:
    """The format that the name of ``file`` asks for: ``text`` when it does not say."""
    return "text" if file is None else _SUFFIXES.get(file.suffix.lower(), "text")


def check_format(form: str) -> None:
    """Raise :class:`UsageError` unless reports can be written in this format."""
    if form in FORMATS:
        return
    reason = "is not available yet" if form in _LATER else "is not a format"
    raise UsageError(f"--format: '{form}' {reason}; there are {' and '.join(FORMATS)}")


def replace_file(file: Path, text: str) -> None:
    """Write ``text`` to ``file``, all of it or nothing.

    Raises :class:`UsageError` when no file of this name can be, and :class:`TargetError` when
    the system refuses it.
    """
    try:
        if file.is_dir():
            raise UsageError(f"{file} is a directory; name a file in it: {file / 'report.json'}")
        if not file.absolute().parent.is_dir():
            raise UsageError(f"there is no directory {file.parent}; make it first")
        if file.exists() and not file.is_file():
            _write_to_device(file, text)
        else:
            _replace(Path(os.path.realpath(file)), text)
    except (OSError, ValueError) as error:  # a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise TargetError(f"cannot write {file}: {reason}; name another file") from error


def _write_to_device(file: Path, text: str) -> None:
    """A terminal, a pipe: one that nobody reads from is refused, as waiting for a reader would be
    for ever."""
    descriptor = os.open(file, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        os.set_blocking(descriptor, True)
        stream.write(text)


def _replace(target: Path, text: str) -> None:
    temporary = target.with_name(f".darc-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _decisions(root: Fnode) -> list[dict[str, Any]]:
    return [
        {
            "id": node.id,
            "function": node.function.name,
            "ops": decision.ops,
            "needed": decision.needed,
            "conclusive": decision.is_conclusive,
            "itself": decision.own,
            "winners": [
                {"id": child.id, "function": child.function.name, "votes": child.maxcount}
                for child in node.children
                if child.root_cause
            ],
        }
        for node in root.walk()
        if (decision := node.decision) is not None
    ]


def _path(path: RootCausePath) -> dict[str, Any]:
    ending = path.ending
    found: dict[str, Any] = {
        "functions": [node.function.name for node in path.nodes],
        "cause": ending.cause.value,
        "maxcount": ending.maxcount,
        "calls": [_call(node) for node in path.nodes[1:]],
    }
    if ending.cause is Cause.LOOP:
        found["loop"] = {
            "function": ending.loop_callee,
            "calls": ending.loop_calls,
            "share": ending.loop_share,
        }
    return found


def _call(node: Fnode) -> dict[str, Any]:
    function, site = node.function, node.site
    return {
        "function": function.name,
        "symbol": function.symbol,
        "module": PurePath(site.module).name if site is not None else None,
        "offset": site.offset if site is not None else None,
        "file": PurePath(site.file).name if site is not None and site.file else None,
        "line": site.line if site is not None else None,
        "inlined": list(site.inlined) if site is not None else [],
    }


def _tree(root: Fnode) -> dict[str, Any]:
    made: dict[Fnode, dict[str, Any]] = {}
    for node in root.walk():
        totals = node.totals
        made[node] = {
            "id": node.id,
            "function": node.function.name,
            "maxcount": node.maxcount,
            "self_maxcount": node.self_maxcount,
            "ops": totals.ops,
            "root_cause": node.root_cause,
            "mean_cycles": round(totals.max_sum / totals.ops) if totals.ops else 0,
            "calls": node.called.calls,
            "repeated": loops.repeats(node.called),
            "children": [],
        }
        if node is not root and node.parent is not None:
            made[node.parent]["children"].append(made[node])
    return made[root]
