"""What views show, as the Python values of JSON, and these as text."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from darc.model.comparison import ChangeVerdict
from darc.model.contrast import Contrast, Figures
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import KeptOps, Op
from darc.model.recursion import deep
from darc.model.setdiff import SetDifference
from darc.model.shares import explain
from darc.model.snapshot import Snapshot
from darc.model.waits import Waits
from darc.saved.sets import function_to_json
from darc.saved.waits import object_to_json
from darc.views.words import Shown, whole


def json_text(value: Any) -> Shown:
    """Python values as JSON text. It is plain ASCII, also for whoever shows the file on a terminal,
    and names are whole."""
    with deep():
        text = json.dumps(_whole(value), indent=1)
    return Shown(text.replace("\x7f", "\\u007f"))


def _whole(value: Any) -> Any:
    """The same values without half surrogate pairs, which some readers of JSON refuse."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def path_to_json(path: RootCausePath, snapshot: Snapshot) -> dict[str, Any]:
    """A path of ``snapshot``, and what it explains."""
    ending = path.ending
    explained = explain(path, snapshot)
    without = explained.without
    found: dict[str, Any] = {
        "functions": [node.function.name for node in path.nodes],
        "cause": ending.cause.value,
        "maxcount": ending.maxcount,
        "note": ending.remark,
        "calls": [_call(node) for node in path.nodes[1:]],
        "share": explained.share,
        "without": None
        if without is None
        else {
            "first_bin": without.first_bin,
            "last_bin": without.last_bin,
            "peak": without.peak,
        },
        "kept_ops": explained.ops,
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


def waits_to_json(snapshot: Snapshot) -> dict[str, Any] | None:
    """Whom the kept ops waited for, by class of ops; ``null`` where that was not watched."""
    kept, waits, fastest = snapshot.ops, snapshot.waits, snapshot.waits_of_fastest
    if kept is None or waits is None or not kept.sees_waits:
        return None
    return {
        "hz": kept.hz,
        "not_followed": kept.not_followed,
        "in_peak": _waits_of(waits),
        "fastest": None if fastest is None else _waits_of(fastest),
    }


def _waits_of(waits: Waits) -> dict[str, Any]:
    return {
        "ops": waits.ops,
        "cycles": waits.cycles,
        "waited": waits.waited,
        "lost": waits.lost,
        "not_followed": waits.not_followed,
        "moments": waits.moments or None,
        "objects": [object_to_json(one) for one in waits.objects],
    }


def ops_to_json(kept: KeptOps) -> dict[str, Any]:
    """The kept ops, as Python values: times are of the time-stamp counter, in cycles."""
    return {
        "hz": kept.hz,
        "in_peak_seen": kept.in_peak_seen,
        "fastest_seen": kept.fastest_seen,
        "not_kept": kept.not_kept,
        "by_quota": kept.by_quota,
        "kept": [op_to_json(op) for op in kept.ops],
    }


def op_to_json(op: Op) -> dict[str, Any]:
    """One op, as Python values."""
    return {
        "number": op.number,
        "class": op.kept_as.value,
        "slowest": op.is_slowest,
        "thread": op.thread,
        "start": op.start,
        "end": op.end,
        "cost": op.cost,
        "latency": op.latency,
        "least": op.least,
        "lost": op.lost,
        "spans": [
            {**_named(span.node), "start": span.start, "end": span.end, "cost": span.cost}
            for span in op.spans
        ],
        "sums": [
            {**_named(one.node), "calls": one.calls, "sum": one.sum, "max": one.max}
            for one in op.sums
        ],
        "off": None
        if op.off is None
        else [{"start": o.start, "end": o.end, "reason": o.reason.value} for o in op.off],
    }


def _named(node: Fnode) -> dict[str, Any]:
    return {"id": node.id, "function": node.function.name}


def contrast_to_json(made: Contrast) -> dict[str, Any]:
    """Two groups of ops held against each other, as Python values: means over the ops of each, in
    cycles of one clock; ``null`` where calls were not timed."""

    def figures(one: Figures | None) -> dict[str, Any] | None:
        return None if one is None else {"cycles": round(one.time, 1), "calls": round(one.calls, 4)}

    return {
        "hz": made.hz,
        "first": {"name": made.first.name, "ops": len(made.first.ops), "cycles": made.latency[0]},
        "second": {
            "name": made.second.name,
            "ops": len(made.second.ops),
            "cycles": made.latency[1],
        },
        "calls": [
            {
                **_named(row.node),
                "itself": row.is_own,
                "first": figures(row.first),
                "second": figures(row.second),
            }
            for row in made.calls
        ],
        "off": None
        if made.off is None
        else [{"reason": r.reason.value, "first": r.first, "second": r.second} for r in made.off],
    }


def difference_to_json(made: SetDifference, names: tuple[str, str]) -> dict[str, Any]:
    """Two sets held against each other, as Python values: those that have changed first, and then
    by ``rating``. ``alarm`` says that chance does not explain it."""
    return {
        "by": made.method.value,
        "before": {"name": names[0], "seconds": made.before.seconds},
        "now": {"name": names[1], "seconds": made.now.seconds},
        "functions": [
            {
                **function_to_json(row.function),
                "alarm": row.is_alarm,
                "rating": row.rating,
                "before": _calls_and_sum(row.before),
                "now": _calls_and_sum(row.now),
                "peaks": [
                    {
                        "first_bin": one.peak.first_bin,
                        "last_bin": one.peak.last_bin,
                        "before": one.before,
                        "now": one.now,
                        "moved": one.moved,
                        "verdict": one.verdict.value,
                        "fate": None
                        if one.verdict is ChangeVerdict.NOTHING_SEEN
                        else row.fate(one).value,
                        "needed": one.calls_to_tell,
                    }
                    for one in row.peaks
                ],
            }
            for row in made.rows
        ],
        "small": made.small,
        "similar": made.similar,
        "only_before": [function_to_json(one) for one in made.only_before],
        "only_now": [function_to_json(one) for one in made.only_now],
    }


def _calls_and_sum(row: FunctionProfile) -> dict[str, int]:
    profile = row.profile
    return {"hz": profile.hz, "calls": profile.count, "sum": profile.total}
