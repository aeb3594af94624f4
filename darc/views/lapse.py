"""The calls of one function by latency and time (OSprof 3.1, figure 9); what may be supposed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from rich.text import Text

from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.hints import CallsAnother, Comes, Contended, Hint, LongTail, Tick, hints
from darc.model.peaks import Peak
from darc.model.profile import format_cycles
from darc.views.words import calls_text

_EIGHTHS = "▁▂▃▄▅▆▇█"
_LEAST_COLUMNS = 16


def draw_lapse(row: FunctionProfile, every: float, width: int) -> Iterator[Text]:
    """A line for each bin, the slowest above, and a column for each interval of ``every`` seconds,
    or for several where the width does not suffice. Heights are logarithmic."""
    profile = row.profile
    labels = {b: format_cycles(profile.low(b), profile.hz) for b in profile.bins}
    if not labels or not row.lapse:
        return
    margin = max(map(len, labels.values()))
    room = max(width - margin - 3, _LEAST_COLUMNS)
    together = math.ceil(len(row.lapse) / room)
    columns: list[Counter[int]] = []
    for at in range(0, len(row.lapse), together):
        column: Counter[int] = Counter()
        for one in row.lapse[at : at + together]:
            column.update(one)
        columns.append(column)
    top = math.log(max((n for column in columns for n in column.values()), default=1) + 1)
    length = format_cycles(every * together * 1e9, 10**9)
    yield Text(f"calls by latency and time, {length} a column", "bold")
    for b in range(max(labels), min(labels) - 1, -1):
        cells = "".join(
            _EIGHTHS[min(int(math.log(n + 1) / top * len(_EIGHTHS)), 7)] if n else " "
            for n in (column[b] for column in columns)
        )
        yield Text(f"{labels.get(b, '').rjust(margin)} │{cells}".rstrip())
    end = format_cycles(every * len(row.lapse) * 1e9, 10**9)
    yield Text(f"{' ' * margin} └{'─' * len(columns)}")
    yield Text(f"{' ' * margin}  0s{end.rjust(max(len(columns) - 2, len(end) + 1))}")


def draw_hints(
    known: FunctionSet, top: int, show: Callable[[str], str], *, is_table: bool = True
) -> Iterator[Text]:
    """What the numbers of calls let one suppose of the first ``top`` rows, each with its number
    where they are those of the table: a histogram tells of its own tail."""
    told = [one for one in hints(known, top) if is_table or not isinstance(one, LongTail)]
    if told:
        yield Text("perhaps:", "bold")
    for hint in told:
        row = f"{hint.row} " if is_table else ""
        yield Text(f"  {row}{_text(hint, known, show)}")


def _text(hint: Hint, known: FunctionSet, show: Callable[[str], str]) -> str:
    row = known.row(hint.row)
    profile = row.profile
    who = f"{show(row.function.name)}:"
    if isinstance(hint, Comes):
        seconds = format_cycles(hint.seconds * 1e9, 10**9)
        return f"{who} peak {_place(row, hint.peak)} comes every {seconds}"
    if isinstance(hint, CallsAnother):
        which = f"peak {_place(row, hint.first)}"
        if hint.first != hint.last:
            word = "and" if hint.last.number == hint.first.number + 1 else "to"
            which = f"peaks {hint.first.number} {word} {hint.last.number}"
        return f"{who} {which}: as many calls as {show(hint.other.name)} has in all"
    if isinstance(hint, Tick):
        tick = format_cycles(hint.seconds * 1e9, 10**9)
        return f"{who} peak {_place(row, hint.peak)} once in {tick}: a kernel's timer ticks so"
    if isinstance(hint, LongTail):
        from_on = format_cycles(profile.low(hint.first_bin), profile.hz)
        most = format_cycles(row.longest, profile.hz)
        calls = f"{hint.slow} of {calls_text(profile.count)} take {from_on} to {most}"
        extra = f"{format_cycles(hint.delay, profile.hz)} more than others in all"
        return f"{who} no slow peak, but {calls}, {extra}: 'darc start {hint.row} --peak last'"
    assert isinstance(hint, Contended)
    waited = format_cycles(hint.waited, profile.hz)
    return f"{who} {100 * hint.share:.2g} % of the calls found it held, and took about {waited}"


def _place(row: FunctionProfile, peak: Peak) -> str:
    profile = row.profile
    low, high = profile.low(peak.first_bin), profile.high(peak.last_bin)
    latencies = f"{format_cycles(low, profile.hz)} – {format_cycles(high, profile.hz)}"
    return f"{peak.number} ({latencies})"
