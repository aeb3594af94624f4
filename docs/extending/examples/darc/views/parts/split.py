"""Which callees take the time of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from darc.model.snapshot import Snapshot
from darc.model.split import Shares
from darc.views.parts.part import PartView
from darc.views.style import Style


def _lines(snapshot: Snapshot, known: Shares, style: Style) -> Iterator[Text]:
    yield Text(f"darc: {style.name(snapshot.function)}: {snapshot.status.value}", "bold")
    for function, share in known.of:
        yield Text(f"  {share:.0%} {style.name(function.name)}")


def _to_json(known: Shares) -> list[dict[str, Any]]:
    return [{"function": function.name, "share": round(share, 4)} for function, share in known.of]


SHARES = PartView(Shares, _lines, _to_json)
