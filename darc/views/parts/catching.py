"""What is waited for by ``darc catch``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from darc.model.catching import Catching
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.views.parts.part import PartView
from darc.views.render import catching_text, probes_text
from darc.views.style import Style


def _lines(snapshot: Snapshot, known: Catching, style: Style) -> list[Text]:
    doing, *counts = catching_text(known)
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


CATCH = PartView(Catching, _lines, _to_json)
