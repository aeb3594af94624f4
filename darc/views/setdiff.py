"""Two sets of profiles beside each other: a line for each function that differs, and its peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from darc.model.comparison import ChangeVerdict, PeakChange
from darc.model.enumerated import first_few
from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.profile import Profile, format_cycles
from darc.model.setdiff import Difference, Fate, Method, SetDifference
from darc.views.style import Style, write
from darc.views.words import Shown, shorten

SHOWN_ROWS = 20
"""Functions that are listed unless all are asked for."""

_SHOWN_NAMES = 4
_LEAST_NAME = 8
"""Columns of a function's name."""

_UNITS = {Method.EMD: "EMD", Method.CHI2: "chi2", Method.OPS: "ops", Method.LATENCY: "latency"}


def table(made: SetDifference, names: tuple[str, str], style: Style) -> Shown:
    """The comparison; ``names`` are what the two sets are called."""
    return write(_lines(made, names, style), style)


def _lines(made: SetDifference, names: tuple[str, str], style: Style) -> Iterator[Text]:
    first, second = map(style.name, names)
    compared = len(made.rows) + made.similar
    alarms = made.alarms
    of = f"{compared} compared function{'' if compared == 1 else 's'}"
    what = f"{alarms} of {of} changed" if alarms else f"no change seen in {of}"
    yield Text(f"darc: {first} → {second}: {what}", "bold")
    if made.clocks is not None:
        a, b = (f"{hz / 1e6:.0f} MHz" for hz in made.clocks)
        yield Text(f"cycles were counted at {a}, and now at {b}: bins stand for other times")
    shown = made.rows if style.verbose else made.rows[:SHOWN_ROWS]
    yield from _rows(made, shown, style)
    yield from _rest(made, len(shown), style)


def _rows(made: SetDifference, shown: Sequence[Difference], style: Style) -> Iterator[Text]:
    if not shown:
        return
    seconds = made.before.seconds, made.now.seconds
    head = ("#", _UNITS[made.method], "calls/s", "", "mean", "", "function")
    cells = [head]
    for number, row in enumerate(shown, 1):
        rates = [
            _rate(one, length) for one, length in zip((row.before, row.now), seconds, strict=True)
        ]
        means = [format_cycles(one.mean, one.profile.hz) for one in (row.before, row.now)]
        mark = "!" if row.is_alarm else " "
        own = (f"{mark}{number}", f"{row.rating:.2g}", rates[0], f"→ {rates[1]}")
        cells.append((*own, means[0], f"→ {means[1]}", style.name(row.function.name)))
    widths = [max(len(line[column]) for line in cells) for column in range(6)]
    is_narrow = sum(widths) + len(widths) + 1 + _LEAST_NAME > style.tree_width
    for number, line in enumerate(cells):
        aligned = [
            cell.ljust(size) if column in (3, 5) else cell.rjust(size)
            for column, (cell, size) in enumerate(zip(line, widths, strict=False))
            if not (is_narrow and column in (2, 3))  # how often they are called
        ]
        text = " ".join(aligned)
        name = shorten(line[6], max(style.tree_width - len(text) - 2, _LEAST_NAME))
        yield Text(f"{text}  {name}", "bold" if number == 0 else "")
        if number:
            yield from _peaks(shown[number - 1], style.tree_width)


def _rate(row: FunctionProfile, seconds: float) -> str:
    calls = row.profile.count / (seconds or 1.0)
    return f"{calls:.0f}" if calls >= 9.5 else f"{calls:.1f}"


def _peaks(row: Difference, width: int) -> Iterator[Text]:
    for change in row.notable:
        is_certain = change.verdict is ChangeVerdict.CHANGED
        doubt = "" if is_certain else f": may be chance{_enough(change, row)}"
        what = row.fate(change)
        text = f"{what.value:>9} {_peak_text(row.now.profile, change, what)}{doubt}"
        yield Text(shorten(text, width), "" if is_certain else "dim")


def _enough(change: PeakChange, row: Difference) -> str:
    """What would tell, where that is more calls."""
    there = min(row.before.profile.count, row.now.profile.count)
    return f", {change.calls_to_tell} calls would tell" if change.calls_to_tell > there else ""


def _peak_text(profile: Profile, change: PeakChange, fate: Fate) -> str:
    """Where a peak is, and what has become of it."""
    told = change.figures(profile)
    text = f"{told.where}: {told.before} → {told.now} of the calls"
    return f"{text}, {told.octaves} to the {told.side}" if fate is Fate.MOVED else text


def _rest(made: SetDifference, shown: int, style: Style) -> Iterator[Text]:
    if len(made.rows) > shown:
        yield Text(f"{len(made.rows) - shown} more differ: 'set darc verbose on' lists them", "dim")
    if made.similar:
        yield Text(f"{made.similar} similar", "dim")
    if made.small:
        yield Text(f"{made.small} hardly count: below 1 % of the calls and of the latency", "dim")
    for which, when in ((made.only_before, "before"), (made.only_now, "now")):
        if which:
            yield Text(f"called only {when}: {_names(which, style.name)}")


def _names(functions: Sequence[Function], show: Callable[[str], str]) -> str:
    return first_few([show(one.name) for one in functions], _SHOWN_NAMES)
