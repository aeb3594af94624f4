"""Ops of two sides, call by call."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from darc.model.contrast import CallRow, Contrast, Figures
from darc.model.ops import OffReason
from darc.model.profile import format_cycles
from darc.views.style import Style, write
from darc.views.waitsview import quota_text, saved_run_text
from darc.views.words import Shown, columns, shorten

SHOWN_ROWS = 20
"""Calls that are listed unless all are asked for."""

_MOST_NAME = 18
"""Columns of a figure, or of a peak's or file's name above."""

_Cells = tuple[str, str, str, str, str]


def table(made: Contrast, style: Style) -> Shown:
    """A line for each call: what an op of either side spends in it, on the average."""
    first, second = made.first, made.second
    show = style.name
    lines = [
        Text(
            f"darc: {_mean(made, 0)} in an op of {show(first.name)} ({len(first.ops)} kept), "
            f"{_mean(made, 1)} in one of {show(second.name)} ({len(second.ops)})",
            "bold",
        )
    ]
    shown = made.calls if style.verbose else made.calls[:SHOWN_ROWS]
    rows: list[tuple[_Cells, str]] = [
        (("difference", show(first.name), "calls", show(second.name), "calls"), "")
    ]
    for row in shown:
        figures = (*_figures(made, row.first), *_figures(made, row.second))
        rows.append(((_difference(made, row), *figures), _name(row, show)))
    for off in made.off or ():
        times = [format_cycles(time, made.hz) for time in (off.first, off.second)]
        cells = (_signed(made, off.first - off.second), times[0], "", times[1], "")
        rows.append((cells, f"off the processor: {off.reason.value}"))
    widths = [max(min(columns(row[0][at]), _MOST_NAME) for row in rows) for at in range(5)]
    room = max(style.tree_width - sum(widths) - 2 * 5, 20)
    for index, (cells, name) in enumerate(rows):
        fitted = [shorten(cell, width) for cell, width in zip(cells, widths, strict=True)]
        padded = [
            " " * (width - columns(cell)) + cell for cell, width in zip(fitted, widths, strict=True)
        ]
        line = "  ".join([*padded, shorten(name, room)])
        lines.append(Text(line, "bold" if index == 0 else ""))
    if len(made.calls) > len(shown):
        more = len(made.calls) - len(shown)
        lines.append(Text(f"… {more} more; 'set darc verbose on' shows them", "dim"))
    for side in (first, second):
        ready = any(off.reason is OffReason.READY for off in made.off or ())
        if ready and (quota := quota_text(side.kept)):
            lines.append(Text(f"{show(side.name)}: {quota}"))
            break
    for side in (first, second):
        if saved := saved_run_text(side.kept):
            lines.append(Text(f"{show(side.name)}: {saved}"))
    if made.off is None:
        lines.append(Text("whether the threads ran or waited was not watched"))
    return write(lines, style)


def _mean(made: Contrast, side: int) -> str:
    return format_cycles(made.latency[side], made.hz)


def _name(row: CallRow, show: Callable[[str], str]) -> str:
    name = show(row.node.function.name)
    if row.is_own:
        return f"{row.node.id} {name} itself"
    above = row.node.parent
    return f"{row.node.id} {name}" + (f" ← {show(above.function.name)}" if above else "")


def _difference(made: Contrast, row: CallRow) -> str:
    return "not timed" if row.difference is None else _signed(made, row.difference)


def _signed(made: Contrast, cycles: float) -> str:
    sign = "-" if cycles < 0 else "+"
    return f"{sign}{format_cycles(abs(cycles), made.hz)}"


def _figures(made: Contrast, figures: Figures | None) -> tuple[str, str]:
    if figures is None:
        return "?", ""
    calls = figures.calls
    if not calls:
        return "–", ""
    count = f"{calls:,.0f}" if calls >= 9.5 or calls == round(calls) else f"{calls:.1f}"
    return format_cycles(figures.time, made.hz), f"×{count}"
