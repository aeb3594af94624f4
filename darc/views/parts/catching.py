"""What is waited for by ``darc catch``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from darc.model.catching import Catching
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.views.parts.part import Doing, PartView
from darc.views.render import duration, probes_text
from darc.views.style import Style

_MANY_MISSED = 10
"""Late calls, with none caught: then it is told what to do."""


def _text(known: Catching) -> tuple[str, ...]:
    """What ``darc catch`` does, and what has come of it."""
    found = [f"catches calls above {duration(known.seconds)}", f"{known.caught} caught"]
    if known.missed:
        told = f"{known.missed} missed, ended before the stop"
        if known.missed >= _MANY_MISSED and not known.caught:
            told += ": '--above' a shorter time leaves more of it to stop in"
        found.append(told)
    return tuple(found)


def _lines(snapshot: Snapshot, known: Catching, style: Style) -> list[Text]:
    doing, *counts = _text(known)
    what = snapshot.status.value
    if not snapshot.status.is_final:
        what = doing if snapshot.status is Status.SEARCHING else f"{what}: {doing}"
    return [
        Text(f"darc: {style.name(snapshot.function)}: {what}", "bold"),
        Text(f"  {', '.join(counts)}"),
        Text(f"  {probes_text(snapshot)}"),
    ]


def _to_json(known: Catching) -> dict[str, Any]:
    """The time from which on a call is late is in seconds."""
    return {"above": known.seconds, "caught": known.caught, "missed": known.missed}


def _doing(known: Catching) -> Doing:
    doing, *counts = _text(known)
    return Doing(doing, tuple(counts))


CATCH = PartView(Catching, _lines, _to_json, doing=_doing)
