"""``darc status``, ``histogram`` and ``tree``: views of what is known now."""

from __future__ import annotations

from collections.abc import Callable

from darc.app.commands.command import Actions, Command, Parsed, no_arguments, style_of
from darc.model.snapshot import Snapshot
from darc.views import render


def _shows(
    view: Callable[[Snapshot, render.Style], str],
) -> Callable[[Actions, Parsed], None]:
    def show(app: Actions, _parsed: Parsed) -> None:
        app.emit(view(app.snapshot(), style_of(app)))

    return show


STATUS = Command(
    name="status",
    summary="Show how far the search is.",
    usage="darc status",
    details=("Tells the state, the calls seen and the peak, and the root cause paths so far."),
    examples=(("darc status", "At any time, also before the program runs."),),
    parse=no_arguments("status"),
    action=_shows(render.status),
    only_looks=True,
)

HISTOGRAM = Command(
    name="histogram",
    summary="Show the latency profile with its peaks.",
    usage="darc histogram",
    details=(
        "Both axes are logarithmic: bin b holds the calls of 2^b cycles and more, and the "
        "labels above are the average latency of a bin."
    ),
    examples=(("darc histogram", "Draw the profile and list its peaks."),),
    parse=no_arguments("histogram"),
    action=_shows(render.histogram),
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
        "these calls. 'set darc verbose on' lists every callee that was rejected, too."
    ),
    examples=(("darc tree", "Show the tree; its numbers name fnodes, as 1.3.2."),),
    parse=no_arguments("tree"),
    action=_shows(render.tree),
    only_looks=True,
)
