"""``darc status``, ``histogram``, ``tree`` and ``waits``: views of what is known now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darc.app.commands.command import Actions, Command, Parsed, no_arguments
from darc.app.finding import rows_called
from darc.app.options import Typed, number_in
from darc.model.errors import UsageError
from darc.model.functionprofile import FunctionProfile
from darc.model.snapshot import Snapshot
from darc.views import render
from darc.views.general.histogram import histogram, of_row
from darc.views.general.status import status
from darc.views.style import Style


def _shows(
    view: Callable[[Snapshot, Style], str], *, tree: bool = False
) -> Callable[[Actions, Parsed], None]:
    def show(app: Actions, _parsed: Parsed) -> None:
        app.emit(view(app.snapshot(tree=tree), app.style))

    return show


STATUS = Command(
    name="status",
    summary="Show how far the search is.",
    usage="darc status",
    details=("Tells the state, the calls seen and the peak, and the root cause paths so far."),
    examples=(("darc status", "At any time, also before the program runs."),),
    parse=no_arguments,
    action=_shows(status),
    only_looks=True,
)


def _parse_histogram(typed: Typed) -> Parsed:
    if len(typed.words) > 1:
        raise UsageError("darc histogram takes one row of 'darc profile', or nothing")
    return Parsed(typed.words)


def _histogram(app: Actions, parsed: Parsed) -> None:
    shown = app.snapshot()
    if parsed.arguments and not shown.profiles:
        shown = app.table() or shown  # that of an analysis before
    rows = [_row(shown.profiles or (), typed) for typed in parsed.arguments]
    app.emit(histogram(of_row(shown, rows[0] if rows else None), app.style))


def _row(profiles: Sequence[FunctionProfile], typed: str) -> int | str:
    """Which one is typed: by its number, or by a name that a search for it would take, too."""
    if (number := number_in(typed)) is not None:
        return number
    rows = rows_called(profiles, typed)
    return rows[0].function.name if rows else typed


def _rows(app: Actions, prefix: str) -> list[str]:
    table = app.table()
    rows = () if table is None else table.profiles or ()
    return [row.function.name for row in rows if row.function.name.startswith(prefix)]


HISTOGRAM = Command(
    name="histogram",
    summary="Show the latency profile with its peaks.",
    usage="darc histogram [ROW]",
    details=(
        "Both axes are logarithmic: bin b holds the calls of 2^b cycles and more, and the "
        "labels above are the average latency of a bin. After 'darc profile' ROW tells whose: the "
        "number before the function in the table, or its name; without it, of all functions "
        "together."
    ),
    examples=(
        ("darc histogram", "Draw the profile and list its peaks."),
        ("darc histogram 3", "After 'darc profile': that of the function in the third row."),
        ("darc histogram handle", "And that of the function of this name."),
    ),
    complete_argument=_rows,
    parse=_parse_histogram,
    action=_histogram,
    only_looks=True,
)

TREE = Command(
    name="tree",
    summary="Show the function tree with its maxcounts.",
    usage="darc tree",
    details=(
        "Root causes are marked with ●. '18 of 20': it was among the largest in 18 of the "
        "20 calls in which it was compared with the other callees, and behind that is its "
        "mean latency in these; 'itself 2 of 20': the same of its own time, beside its own "
        "callees. '×20,000': so often it was called in each, and the latency is of all "
        "these calls. Lines are cut to the terminal's width, from what matters least; "
        "'set darc verbose on' cuts none, and lists every callee that was rejected, too."
    ),
    examples=(("darc tree", "Show the tree; its numbers name fnodes, as 1.3.2."),),
    parse=no_arguments,
    action=_shows(render.tree, tree=True),
    only_looks=True,
)

WAITS = Command(
    name="waits",
    summary="Show who kept the slow calls waiting.",
    usage="darc waits",
    details=(
        "Of the calls inside the peak that are kept whole: which locks, conditions, semaphores "
        "and threads they waited for, in which function, and who had them meanwhile, in which "
        "function. A wait is divided among those who held the lock one after the other. Shares "
        "are of all the time of these calls. What else they were blocked in is told by the call; "
        "who ended that, only to those whom the kernel tells it, as root."
    ),
    examples=(("darc waits", "When the root cause ends in a lock's wait."),),
    parse=no_arguments,
    action=_shows(render.waits),
    only_looks=True,
)
