"""Where the time of threads goes."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from darc.model.snapshot import Snapshot
from darc.model.walk import Walk
from darc.views.parts.part import PartView, cost_lines
from darc.views.style import Style
from darc.views.walkview import draw_walk


def _lines(snapshot: Snapshot, known: Walk, style: Style) -> list[Text]:
    title = f"darc: {style.name(snapshot.function)}: {snapshot.status.value}"
    is_over = snapshot.status.is_final
    lines = [Text(title, "bold"), *draw_walk(known, style.name, is_over=is_over)]
    return lines + cost_lines(snapshot)


def _to_json(known: Walk) -> dict[str, Any]:
    """The chains of each group of threads; shares are from 0 to 1."""
    return {
        "threshold": known.threshold,
        "seconds": known.seconds,
        "longest": round(known.longest, 3),
        "windows": known.windows,
        "by_quota": round(known.by_quota, 4),
        "groups": [
            {
                "start": group.name,
                "threads": group.threads,
                "known": group.is_known,
                "idle": [{"function": name, "share": round(s, 4)} for name, s in group.idle],
                "ran": group.ran,
                "ready": group.ready,
                "chains": [
                    {
                        "functions": [step.function.name for step in chain.steps],
                        "shares": [round(step.share, 4) for step in chain.steps],
                        "own": round(chain.own, 4),
                        "end": chain.end.value,
                        "untimed": list(chain.untimed),
                        "spread": [
                            {"function": one.function.name, "share": round(one.share, 4)}
                            for one in chain.spread
                        ],
                    }
                    for chain in group.chains
                ],
            }
            for group in known.groups
        ],
        "lost": list(known.lost),
        "left_out": [{"function": f.name, "why": why.text} for f, why in known.left_out],
    }


WALK = PartView(Walk, _lines, _to_json, is_in_every_report=True)
