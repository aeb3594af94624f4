"""JSON, schema 1, for programs."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from darc.model.depth import deep
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.snapshot import Snapshot
from darc.search import loops
from darc.views.exporters.exporter import Exporter
from darc.views.render import Style
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


def _text(snapshot: Snapshot, _style: Style) -> Shown:
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


JSON = Exporter(name="json", suffixes=(".json",), text=_text)
