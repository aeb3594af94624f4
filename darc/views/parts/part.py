"""How the part of an analysis is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from rich.text import Text

from darc.model.part import Part
from darc.model.snapshot import Snapshot
from darc.views.style import Style
from darc.views.words import Shown, cost_text

_Part = TypeVar("_Part", bound=Part)


@dataclass(frozen=True)
class Doing:
    """What an analysis is doing now, in the place of its status, on the live line."""

    text: str
    counts: tuple[str, ...] = ()
    """What is told before how many calls were seen."""
    is_all: bool = False
    """Whether no calls and probes are told of."""


@dataclass(frozen=True)
class PartView(Generic[_Part]):
    """The views of a ``kind`` of part: the ``lines`` of ``darc status`` and the report, and
    ``to_json``, its value in the JSON report. Both are of a frozen snapshot."""

    kind: type[_Part]
    lines: Callable[[Snapshot, _Part, Style], Iterable[Text]]
    to_json: Callable[[_Part], Any]
    _: KW_ONLY
    with_notes: bool = True
    """Whether what was noted follows these lines: else they say what of it matters."""
    below_histogram: Callable[[_Part, Style], Iterable[Text]] = lambda _part, _style: ()
    """What ``darc histogram`` shows of it below the profile."""
    doing: Callable[[_Part], Doing | None] = lambda _part: None
    """What the live line says; ``None``: how far the analysis is, as of any. Any thread."""
    place: Callable[[Snapshot, _Part, Style], Shown | None] = lambda _snapshot, _part, _style: None
    """Where the program stands, as it is shown of that; ``None``: nothing is known of it."""
    is_in_every_report: bool = False
    """Whether JSON reports have its key where there is no such part, too, with ``None``, as those
    of schema 1 had from the start."""


def cost_lines(snapshot: Snapshot) -> list[Text]:
    """What the analysis has cost the program, where it was stopped."""
    cost = snapshot.program
    if not cost.stops:
        return []
    return [Text(f"  {cost_text(cost)}")]
