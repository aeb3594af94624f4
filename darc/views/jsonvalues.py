"""Root cause paths, and whom they waited for, as the Python values of a JSON report."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from darc.model.ftree import Cause, Fnode, RootCausePath
from darc.model.shares import explain
from darc.model.snapshot import Snapshot
from darc.model.waits import Waits
from darc.saved.waits import object_to_json


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
