"""JSON, schema 1, for programs."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from darc.model.comparison import Verdict
from darc.model.contrast import Contrast, Figures
from darc.model.depth import deep
from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.functionset import FunctionProfile, FunctionSet
from darc.model.hints import Calls, Comes, Hint, Tick, hints
from darc.model.ops import KeptOps, Op
from darc.model.setdiff import SetDifference
from darc.model.shares import explain
from darc.model.snapshot import Answer, Snapshot, Why
from darc.model.waits import Waits
from darc.model.walk import Walk
from darc.model.why import Suspect
from darc.saved.sets import function_to_json, to_part
from darc.saved.waits import object_to_json
from darc.search import loops
from darc.views.exporters.exporter import Exporter
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
        "root_cause_paths": [_path(path, snapshot) for path in snapshot.paths],
        "ftree": None if snapshot.ftree is None else _tree(snapshot.ftree),
        "ops": None if snapshot.ops is None else ops_to_json(snapshot.ops),
        "waits": _waits(snapshot),
        "set": None if snapshot.set is None else _set(snapshot.set),
        "walk": None if snapshot.walk is None else _walk(snapshot.walk),
        "why": None if snapshot.why is None else _why(snapshot.why),
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


def _waits(snapshot: Snapshot) -> dict[str, Any] | None:
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


def _set(known: FunctionSet) -> dict[str, Any]:
    """The profiles of many functions, the most interesting one first, with what is made of them."""
    found: dict[str, Any] = to_part(known)
    for made, row in zip(found["functions"], known.rows, strict=True):
        made["excess"] = round(row.excess)
        made["p50"], made["p99"] = round(row.quantile(0.5)), round(row.quantile(0.99))
        made["peaks"] = [
            {"number": p.number, "first_bin": p.first_bin, "last_bin": p.last_bin, "count": p.count}
            for p in row.peaks
        ]
    found["hints"] = [_hint(hint, known) for hint in hints(known, known.top)]
    return found


def _hint(hint: Hint, known: FunctionSet) -> dict[str, Any]:
    """What may be supposed of a function, from the numbers of its calls."""
    own: dict[str, Any] = {"row": hint.row, "function": known.row(hint.row).function.name}
    if isinstance(hint, Comes):
        return {**own, "kind": "period", "peak": hint.peak.number, "seconds": hint.seconds}
    if isinstance(hint, Tick):
        return {**own, "kind": "tick", "peak": hint.peak.number, "seconds": hint.seconds}
    if isinstance(hint, Calls):
        peaks = list(range(hint.first.number, hint.last.number + 1))
        return {**own, "kind": "calls", "peaks": peaks, "other": hint.other.name}
    return {**own, "kind": "contended", "share": hint.share, "hold": round(hint.hold)}


def _walk(known: Walk) -> dict[str, Any]:
    """The chains of each group of threads; shares are from 0 to 1."""
    return {
        "threshold": known.threshold,
        "seconds": known.seconds,
        "windows": known.windows,
        "groups": [
            {
                "start": group.name,
                "threads": group.threads,
                "idle": [{"function": name, "share": round(s, 4)} for name, s in group.idle],
                "ran": group.ran,
                "ready": group.ready,
                "chains": [
                    {
                        "functions": [step.function.name for step in chain.steps],
                        "shares": [round(step.share, 4) for step in chain.steps],
                        "own": round(chain.own, 4),
                        "end": chain.end.value,
                    }
                    for chain in group.chains
                ],
            }
            for group in known.groups
        ],
        "left_out": [{"function": f.name, "why": why} for f, why in known.left_out],
    }


def _why(known: Why) -> dict[str, Any]:
    """The answer, and what it rests on; latencies in cycles of ``hz``, shares from 0 to 1."""
    return {
        "verdict": known.verdict.value,
        "sure": known.is_sure,
        "reasons": list(known.reasons),
        "functions": known.functions,
        "calls": known.calls,
        "seconds": known.seconds,
        "idle": list(known.idle),
        "answers": [_answer(one) for one in known.answers],
        "open": [_suspect(one) for one in known.open],
    }


def _answer(one: Answer) -> dict[str, Any]:
    found = one.found
    return {
        **_suspect(one.suspect),
        "agreement": round(one.agreement, 4),
        "status": None if found is None else found.status.value,
        "why": one.why,
        "root_cause_paths": [] if found is None else [_path(p, found) for p in found.paths],
        "waits": None if found is None else _waits(found),
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    profile = suspect.row.profile
    return {
        **function_to_json(suspect.row.function),
        "hz": profile.hz,
        "calls": profile.count,
        "slow": suspect.slow,
        "slow_mean": round(suspect.slow_mean),
        "fast_mean": round(suspect.fast_mean),
        "share": round(suspect.share, 4),
        "first_bin": suspect.peak.first_bin,
        "last_bin": suspect.peak.last_bin,
    }


def _waits_of(waits: Waits) -> dict[str, Any]:
    return {
        "ops": waits.ops,
        "cycles": waits.cycles,
        "waited": waits.waited,
        "lost": waits.lost,
        "objects": [object_to_json(one) for one in waits.objects],
    }


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
                        if one.verdict is Verdict.NOTHING_SEEN
                        else row.fate(one).value,
                        "needed": one.needed,
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


def _path(path: RootCausePath, snapshot: Snapshot) -> dict[str, Any]:
    ending = path.ending
    explained = explain(path, snapshot)
    without = explained.without
    found: dict[str, Any] = {
        "functions": [node.function.name for node in path.nodes],
        "cause": ending.cause.value,
        "maxcount": ending.maxcount,
        "note": ending.note,
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
