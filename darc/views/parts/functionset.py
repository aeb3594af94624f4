"""The profiles of many functions."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from darc.model.functionset import FunctionSet, making_text
from darc.model.hints import CallsAnother, Comes, Hint, LongTail, Tick, hints
from darc.model.snapshot import Snapshot
from darc.saved.sets import to_report
from darc.views.lapse import draw_hints, draw_lapse
from darc.views.parts.part import Doing, PartView, cost_lines
from darc.views.setview import draw_set, making_told
from darc.views.style import Style
from darc.views.words import calls_text, functions_text


def _lines(snapshot: Snapshot, known: FunctionSet, style: Style) -> list[Text]:
    profile = snapshot.profile
    calls = calls_text(profile.count if profile is not None else 0)
    lines = [
        Text(f"darc: {style.name(snapshot.function)}: {snapshot.status.value}", "bold"),
        Text(f"  {calls} of {functions_text(len(known.counted))} in {known.seconds:.1f}s"),
    ]
    if known.making is not None:
        lines[1:] = [Text(f"  {making_told(known.making, is_over=snapshot.status.is_final)}")]
        return lines + cost_lines(snapshot)
    top = len(known.rows) if style.verbose or style.whole_names else known.top
    lines += draw_set(known, top, style.width, style.name)
    lines += draw_hints(known, top, style.name)
    return lines + cost_lines(snapshot)


def _to_json(known: FunctionSet) -> dict[str, Any]:
    """The profiles of many functions, the most interesting one first, with what is made of them."""
    found: dict[str, Any] = to_report(known)
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
    if isinstance(hint, CallsAnother):
        peaks = list(range(hint.first.number, hint.last.number + 1))
        return {**own, "kind": "calls", "peaks": peaks, "other": hint.other.name}
    if isinstance(hint, LongTail):
        calls = {"first_bin": hint.first_bin, "slow": hint.slow}
        return {**own, "kind": "tail", **calls, "delay": round(hint.delay)}
    return {**own, "kind": "contended", "share": hint.share, "waited": round(hint.waited)}


def _below_histogram(known: FunctionSet, style: Style) -> list[Text]:
    """When the calls of a function that is shown alone came, where that was counted."""
    if known.every is None or len(known.rows) != 1:
        return []
    lapse = draw_lapse(known.rows[0], known.every, style.width)
    return [Text(), *lapse, *draw_hints(known, 1, style.name, is_table=False)]


def _doing(known: FunctionSet) -> Doing | None:
    return None if known.making is None else Doing(making_text(*known.making), is_all=True)


SET = PartView(
    FunctionSet,
    _lines,
    _to_json,
    below_histogram=_below_histogram,
    doing=_doing,
    is_in_every_report=True,
)
