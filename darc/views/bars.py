"""The latency profile drawn as the papers draw it (OSprof figure 1).

Bars on a logarithmic y axis, bin numbers below, the bins' average latency above, and below the
bins the peaks with their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from darc.model.peaks import Peak, PeakRange
from darc.model.profile import Profile, format_cycles
from darc.views.words import columns, shorten

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MAX_ROWS = 12
_MAX_BIN_WIDTH = 6

CHOSEN, PEAK, OUTLIER, AXIS = "bold red", "cyan", "dim", "dim"


@dataclass(frozen=True)
class _Scale:
    """Columns of ``per_column`` bins each, from ``first``, ``width`` characters wide."""

    first: int
    columns: int
    per_column: int
    width: int

    @classmethod
    def fitting(cls, first: int, last: int, room: int) -> _Scale:
        bins = last - first + 1
        per_column = math.ceil(bins / max(room, 1))
        columns = math.ceil(bins / per_column)
        return cls(first, columns, per_column, max(1, min(_MAX_BIN_WIDTH, room // columns)))

    @property
    def bar(self) -> int:
        return self.width - 1 if self.width > 2 else self.width

    def bins(self, column: int) -> range:
        start = self.first + column * self.per_column
        return range(start, start + self.per_column)

    def column(self, number: int) -> int:
        return min(max((number - self.first) // self.per_column, 0), self.columns - 1)


def draw(
    title: str, profile: Profile, peaks: Sequence[Peak], *, peak: PeakRange | None, width: int
) -> list[Text]:
    """The lines of the drawing, at most ``width`` wide; none for an empty profile."""
    counts = {number: count for number, count in profile.bins.items() if count}
    if not counts:
        return []
    decades = len(str(max(counts.values())))
    margin = decades + 2
    scale = _Scale.fitting(min(counts), max(counts), width - margin - 1)
    heights = [sum(counts.get(number, 0) for number in scale.bins(c)) for c in range(scale.columns)]
    styles = [_style(scale.bins(column), peaks, peak) for column in range(scale.columns)]

    def latency(column: int) -> str:
        return format_cycles(profile.mean_cycles(scale.bins(column)[0]), profile.hz)

    axis = "calls".rjust(margin)
    title = shorten(title, width - len(axis) - 1)
    lines = [Text(axis + " " * (width - len(axis) - columns(title)) + title, "bold")]
    lines.append(_labels(scale, margin, latency, AXIS))
    lines += _rows(scale, heights, styles, margin)
    lines.append(Text(" " * (margin - 1) + "└" + "─" * (scale.columns * scale.width), AXIS))
    lines.append(_labels(scale, margin, lambda column: str(scale.bins(column)[0]), ""))
    lines += _marks(scale, peaks, peak, margin)
    factor = f"{profile.resolution} × " if profile.resolution > 1 else ""
    merged = f", {scale.per_column} bins to a column" if scale.per_column > 1 else ""
    caption = f"bin = {factor}log2(cycles){merged}; above: average latency"
    lines.append(Text(" " * margin + shorten(caption, width - margin), AXIS))
    return lines


def _style(bins: range, peaks: Sequence[Peak], peak: PeakRange | None) -> str:
    if peak is not None and any(number in peak for number in bins):
        return CHOSEN
    inside = any(p.first_bin <= number <= p.last_bin for p in peaks for number in bins)
    return PEAK if inside else OUTLIER


def _rows(scale: _Scale, heights: Sequence[int], styles: Sequence[str], margin: int) -> list[Text]:
    top = math.log10(max(heights))
    per_decade = max(2, min(4, int(_MAX_ROWS / max(top, 1))))
    tops = [(math.log10(count) * per_decade + 1) * 8 if count else 0 for count in heights]
    lines = []
    for row in reversed(range(math.ceil(max(tops) / 8))):
        decade, rest = divmod(row, per_decade)
        tick = str(10**decade) if rest == 0 else ""
        line = Text()
        line.append(tick.rjust(margin - 1) + ("┤" if tick else "│"), AXIS)
        for column, style in enumerate(styles):
            level = min(max(round(tops[column] - row * 8), 0), 8)
            line.append((_EIGHTHS[level] * scale.bar).ljust(scale.width), style if level else "")
        lines.append(line)
    return lines


def _labels(scale: _Scale, margin: int, label: Callable[[int], str], style: str) -> Text:
    texts = [label(column) for column in range(scale.columns)]
    step = math.ceil((max(map(len, texts)) + 1) / scale.width)
    room = scale.columns * scale.width
    line = ""
    for column in range(0, scale.columns, step):
        text = texts[column]
        start = column * scale.width
        if start + len(text) <= room or column == 0:
            line = line.ljust(start) + text
    return Text(" " * margin + line, style)


def _marks(scale: _Scale, peaks: Sequence[Peak], peak: PeakRange | None, margin: int) -> list[Text]:
    line = Text(" " * margin)
    for one in peaks:
        chosen = peak is not None and peak.number == one.number
        left = margin + scale.column(one.first_bin) * scale.width
        right = margin + scale.column(one.last_bin) * scale.width + scale.bar
        if scale.bar == scale.width and right - left > 1:
            right -= 1
        text = str(one.number).center(right - left, "═" if chosen else "─")
        touches = left == len(line) and line.plain[-1].isdigit()
        if left >= len(line) and not touches:
            line.append(" " * (left - len(line)))
            line.append(text, CHOSEN if chosen else PEAK)
    lines = [line] if peaks else []
    if peak is not None:
        left = scale.column(peak.first_bin) * scale.width
        end = scale.columns - 1 if peak.last_bin is None else scale.column(peak.last_bin)
        right = end * scale.width + scale.bar
        lines.append(Text(" " * (margin + left) + "▲" * (right - left), CHOSEN))
    return lines
