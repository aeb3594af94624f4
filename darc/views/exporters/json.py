"""JSON, schema 1, for programs."""

from __future__ import annotations

from typing import Any

from darc.model.ftree import Fnode
from darc.model.shares import is_minor, led_there, weigh_all
from darc.model.snapshot import Snapshot
from darc.search import loops
from darc.views.exporters.exporter import Exporter
from darc.views.jsonvalues import json_text, ops_to_json, path_to_json, waits_to_json
from darc.views.parts import PARTS
from darc.views.style import Style
from darc.views.words import Shown

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
