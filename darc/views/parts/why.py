"""The answer of ``darc why``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from darc.model.functionprofile import FunctionProfile
from darc.model.snapshot import Snapshot
from darc.model.why import Answer, Suspect, Why
from darc.saved.sets import function_to_json
from darc.views.jsonvalues import path_to_json, waits_to_json
from darc.views.parts.part import PartView
from darc.views.style import Style
from darc.views.treeview import path_text
from darc.views.whyview import draw_why


def _lines(_snapshot: Snapshot, known: Why, style: Style) -> Iterator[Text]:
    return draw_why(known, style.name, style.note, path_text)


def _to_json(known: Why) -> dict[str, Any]:
    """The answer, and what it rests on; latencies in cycles of ``hz``, shares from 0 to 1."""
    return {
        "verdict": known.verdict.value,
        "sure": known.is_sure,
        "reasons": list(known.reasons),
        "functions": known.functions,
        "calls": known.calls,
        "seconds": known.seconds,
        "stops": known.stops,
        "stopped_seconds": round(known.stopped_seconds, 6),
        "longest_stop": round(known.longest_stop, 6),
        "setup_seconds": round(known.setup_seconds, 6),
        "idle": [f"{suspect.name} in {wait}" for suspect, wait in known.idle],
        "usual": [f"{suspect.name} in {whole.name}" for suspect, whole in known.usual],
        "answers": [_answer_to_json(one) for one in known.answers],
        "open": [_suspect_to_json(one) for one in known.open],
        "tail": None if known.tail is None else _tail_to_json(known.tail),
        "costlier": None if known.costlier is None else _suspect_to_json(known.costlier),
        "too_few": None if known.rare is None else _suspect_to_json(known.rare),
    }


def _answer_to_json(one: Answer) -> dict[str, Any]:
    found = one.found
    return {
        **_suspect_to_json(one.suspect),
        "preempted": one.is_preempted,
        "agreement": round(one.agreement, 4),
        "status": None if found is None else found.status.value,
        "why": one.why,
        "root_cause_paths": [] if found is None else [path_to_json(p, found) for p in found.paths],
        "waits": None if found is None else waits_to_json(found),
    }


def _suspect_to_json(suspect: Suspect) -> dict[str, Any]:
    return {
        **_slow_to_json(suspect.row, suspect.slow),
        "slow_mean": round(suspect.slow_mean),
        "fast_mean": round(suspect.fast_mean),
        "share": round(suspect.share, 4),
        "first_bin": suspect.peak.first_bin,
        "last_bin": suspect.peak.last_bin,
    }


def _tail_to_json(tail: Suspect) -> dict[str, Any]:
    return {
        **_slow_to_json(tail.row, tail.slow),
        "median": round(tail.fast_mean),
        "threshold": tail.threshold,
        "share": round(tail.share, 4),
    }


def _slow_to_json(row: FunctionProfile, slow: int) -> dict[str, Any]:
    profile = row.profile
    return {
        **function_to_json(row.function),
        "hz": profile.hz,
        "calls": profile.count,
        "slow": slow,
    }


WHY = PartView(Why, _lines, _to_json, with_notes=False, is_in_every_report=True)
