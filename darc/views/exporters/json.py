"""JSON, schema 1, for programs."""

from __future__ import annotations

import json
from typing import Any

from darc.model.comparison import ChangeVerdict
from darc.model.contrast import Contrast, Figures
from darc.model.ftree import Fnode
from darc.model.functionprofile import FunctionProfile
from darc.model.ops import KeptOps, Op
from darc.model.recursion import deep
from darc.model.setdiff import SetDifference
from darc.model.shares import is_minor, led_there, weigh_all
from darc.model.snapshot import Snapshot
from darc.saved.sets import function_to_json
from darc.search import loops
from darc.views.exporters.exporter import Exporter
from darc.views.jsonvalues import path_to_json, waits_to_json
from darc.views.parts import PARTS
from darc.views.style import Style
from darc.views.words import Shown, whole

SCHEMA = 1
"""Version of the JSON report: more keys may follow, the ones that are there stay."""


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
        "probes": snapshot.probes.value,
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
        "root_cause_paths": [path_to_json(path, snapshot) for path in snapshot.paths],
        "ftree": None if snapshot.ftree is None else _tree(snapshot.ftree),
        "ops": None if snapshot.ops is None else ops_to_json(snapshot.ops),
        "waits": waits_to_json(snapshot),
        **{
            key: _part(snapshot, key)
            for key, view in PARTS.items()
            if view.is_in_every_report or key in snapshot.parts
        },
        "decisions": [] if snapshot.ftree is None else _decisions(snapshot.ftree),
        "program": {
            "stops": program.stops,
            "stopped_seconds": round(program.stopped_seconds, 6),
            "longest_stop": round(program.longest_stop, 6),
            "setup_seconds": round(program.setup_seconds, 6),
            "in_peak_calls": program.in_peak_calls or 0,
            "probes": program.probes or 0,
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
        "notes": list(snapshot.notes),
        "explained": _explained(snapshot),
    }


def _explained(snapshot: Snapshot) -> dict[str, Any] | None:
    """What all root cause paths explain together: of the peak's time, and of what makes its calls
    slow."""
    weight = weigh_all(snapshot)
    if weight is None:
        at_most = led_there(snapshot)
        untold = {"share": None, "of_slowness": None, "at_most": at_most}
        return None if at_most is None else {**untold, "is_minor": is_minor(snapshot)}
    return {
        "share": round(weight.share, 6),
        "of_slowness": round(weight.part, 6),
        "is_minor": is_minor(snapshot),
    }


def _part(snapshot: Snapshot, key: str) -> Any:
    part = snapshot.parts.get(key)
    return None if part is None else PARTS[key].to_json(part)


def _text(snapshot: Snapshot, _style: Style) -> Shown:
    return json_text(to_json(snapshot))


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
            "calls": totals.ops if node is root else node.called.calls,
            "repeated": loops.repeats(node.called),
            "children": [],
        }
        if node is not root and node.parent is not None:
            made[node.parent]["children"].append(made[node])
    return made[root]


JSON = Exporter(name="json", suffixes=(".json",), text=_text)
