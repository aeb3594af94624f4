"""How the part of an analysis is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich.text import Text

from darc.model.part import Part
from darc.model.snapshot import Snapshot
from darc.views.style import Style
from darc.views.words import cost_text

_Part = TypeVar("_Part", bound=Part)


@dataclass(frozen=True)
class PartView(Generic[_Part]):
    """The views of a ``kind`` of part: the ``lines`` of ``darc status`` and the report, and
    ``to_json``, its value in the JSON report. Both are of a frozen snapshot."""

    kind: type[_Part]
    lines: Callable[[Snapshot, _Part, Style], Iterable[Text]]
    to_json: Callable[[_Part], Any]
    with_notes: bool = True
    """Whether what was noted follows these lines: else they say what of it matters."""


def cost_lines(snapshot: Snapshot) -> list[Text]:
    """What the analysis has cost the program, where it was stopped."""
    cost = snapshot.program
    if not cost.stops:
        return []
    return [Text(f"  {cost_text(cost)}")]
