"""The profiles of a set of functions as a table: a line each, the most interesting one first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet, making_text
from darc.model.profile import format_cycles
from darc.model.waitcalls import is_wait
from darc.views.words import calls_text, columns, shorten

_EIGHTHS = "▁▂▃▄▅▆▇█"
_EMPTY = "·"
_LEAST_NAME = 12
_MOST_NAMED = 5
"""Rows that are told of in a line."""

_MOST_COLUMNS = 24
"""Of a small histogram."""

_HEAD = ("#", "excess", "calls", "total", "mean", "p50", "p99", "max", "pk")


def making_told(making: tuple[int, int], *, is_over: bool) -> str:
    """How far it is, or was at its end, where probes are made and nothing is timed as yet."""
    if is_over:
        number, many = making
        return f"it ended as it made probe {number:,} of {many:,}: nothing was timed"
    return f"{making_text(*making)}: nothing is timed yet"


def draw_set(
    known: FunctionSet, top: int, width: int, show: Callable[[str], str]
) -> Iterator[Text]:
    """The lines of the table, ``top`` functions at most, and what is not in it."""
    rows = known.counted[:top]
    if not known.rows:
        yield Text("none of the functions was called yet")
    elif not rows:
        yield Text("no call of these functions was counted yet")
    else:
        yield from _table(rows, width, show)
    yield from _rest(known, len(rows), show)


def _table(
    rows: Sequence[FunctionProfile], width: int, show: Callable[[str], str]
) -> Iterator[Text]:
    cells = [_HEAD, *(_cells(number, row) for number, row in enumerate(rows, 1))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    names = [show(row.function.name) for row in rows]
    taken = sum(widths) + len(widths) + 2
    room = max(width - taken - max(_LEAST_NAME, min(max(map(columns, names)), 32)), 8)
    scale = _SharedScale.of(rows, min(room, _MOST_COLUMNS))
    for number, line in enumerate(cells):
        text = " ".join(cell.rjust(size) for cell, size in zip(line, widths, strict=True))
        if number == 0:
            yield Text(f"{text}  {scale.title().ljust(scale.columns)}  function", "bold")
            continue
        row = rows[number - 1]
        mark = f" ({row.left} left)" if row.left else ""
        mark += f" (out at {row.until:.1f}s)" if row.until is not None else ""
        name = shorten(names[number - 1], max(width - taken - scale.columns - 2 - len(mark), 8))
        yield Text(f"{text}  {scale.draw(row)}  {name}{mark}")


def _cells(number: int, row: FunctionProfile) -> tuple[str, ...]:
    hz = row.profile.hz
    times = (row.profile.total, row.mean, row.quantile(0.5), row.quantile(0.99), row.longest)
    total, mean, p50, p99, longest = (format_cycles(time, hz) for time in times)
    excess = format_cycles(row.excess, hz)
    calls = str(row.profile.count)
    return (str(number), excess, calls, total, mean, p50, p99, longest, str(len(row.peaks)))


class _SharedScale:
    """One axis for the histograms of all rows, so that they can be compared."""

    def __init__(self, first: int, per_column: int, columns: int, hz: int) -> None:
        self._first = first
        self._per_column = per_column
        self.columns = columns
        self._hz = hz

    @classmethod
    def of(cls, rows: Sequence[FunctionProfile], room: int) -> _SharedScale:
        bins = [number for row in rows for number in row.profile.bins] or [0]
        count = max(bins) - min(bins) + 1
        per_column = math.ceil(count / room)
        return cls(min(bins), per_column, math.ceil(count / per_column), rows[0].profile.hz)

    def title(self) -> str:
        low = format_cycles(2**self._first, self._hz)
        high = format_cycles(2 ** (self._first + self._per_column * self.columns), self._hz)
        whole = f"{low}–{high}"
        return whole if len(whole) <= self.columns else ""

    def draw(self, row: FunctionProfile) -> str:
        heights = [0] * self.columns
        for number, calls in row.profile.bins.items():
            heights[(number - self._first) // self._per_column] += calls
        top = math.log(max(heights) + 1)
        return "".join(
            _EIGHTHS[min(int(math.log(h + 1) / top * len(_EIGHTHS)), 7)] if h else _EMPTY
            for h in heights
        )


def _waits(numbers: Sequence[int], known: FunctionSet, show: Callable[[str], str]) -> str:
    """Which of them wait, behind all others, however long: ``numbers`` of rows, from 1."""
    told = [f"{n} {show(known.row(n).function.name)}" for n in numbers[:_MOST_NAMED]]
    if len(numbers) > _MOST_NAMED:
        told.append(f"{len(numbers) - _MOST_NAMED} more")
    what = "sleeps and waits for what comes next are"
    return f"{what} the last of these: {', '.join(told)}"


def _rest(known: FunctionSet, shown: int, show: Callable[[str], str]) -> Iterator[Text]:
    counted = known.counted
    if len(counted) > shown:
        more = len(counted) - shown
        were = "was" if more == 1 else "were"
        yield Text(f"{more} more {were} called: '--top {len(counted)}'", "dim")
        if waits := [n for n, row in enumerate(counted, 1) if n > shown and is_wait(row.function)]:
            yield Text(_waits(waits, known, show), "dim")
    if uncounted := len(known.rows) - len(counted):
        were = "was" if uncounted == 1 else "were"
        yield Text(f"{uncounted} {were} called, and no call of theirs was counted", "dim")
    if known.uncalled:
        many = len(known.uncalled)
        yield Text(f"{many} {'was' if many == 1 else 'were'} not called", "dim")
    left = sum(row.left for row in known.rows)
    if left:
        yield Text(
            f"{calls_text(left)} left by an exception or a longjmp: in no figure above", "dim"
        )
    out = sum(row.until is not None for row in known.rows)
    if out:
        why = "as their calls are many and short, or call themselves"
        yield Text(f"{out} went out, {why}: 'out at' tells when", "dim")
    for reason, count in known.reasons.most_common():
        yield Text(f"{count} not timed: {reason.text}", "dim")
