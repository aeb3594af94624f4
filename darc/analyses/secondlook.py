"""Where paths end in a function's own time, and calls of it took no pad: the time may be theirs.

Breakpoints can time such calls. They take much longer than pads do, so they are put in only below
these paths, and only where the time is long and f0 is called seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from darc.collectors.callees import Callees, may_fall_back
from darc.collectors.ways import kind_for_the_rest
from darc.model.ftree import Fnode, NodeState, RootCausePath, Unclear
from darc.model.parameters import Probes
from darc.model.snapshot import SiteReport

LEAST_FOR_BREAKPOINTS_NS = 2_000_000
"""What a function must take inside the peak, in ns, before breakpoints time its calls without being
asked for: some ten hits of gdb's."""

MOST_CALLS_FOR_BREAKPOINTS = 500
"""Calls of f0 in a second up to which they do so: its hits stop the program a third of the time."""

_CUT_SHORT = f"calls of it that take no pad were still being timed: {Unclear.WHOSE.value}"

Untimed = Mapping[Fnode, Sequence[SiteReport]]
"""Of the last functions on paths: which of their calls took no probe."""


def untimed(paths: Iterable[RootCausePath], callees: Callees) -> Untimed:
    """Where one of ``paths`` ends in a function's own time: which of its calls may be in it."""
    found = {}
    for path in paths:
        node = path.nodes[-1]
        missed = callees.missed(node.function)
        if missed and path.ending.remark is None:
            found[node] = missed
    return found


def for_breakpoints(calls: Untimed) -> Untimed:
    """Those of them that breakpoints can time."""
    found = {node: list(filter(may_fall_back, reports)) for node, reports in calls.items()}
    return {node: reports for node, reports in found.items() if reports}


def why_not(calls: Untimed, *, hz: int, spec: str, calls_per_second: float) -> str | None:
    """Why breakpoints would spoil more than they tell of ``calls``, in cycles of ``hz``; f0, which
    the user knows as ``spec``, is called so often."""
    cycles = min((n.totals.max_sum / max(1, n.totals.ops) for n in calls), default=0.0)
    if cycles * 1e9 / hz < LEAST_FOR_BREAKPOINTS_NS:
        return "it takes less than 2 ms"
    if calls_per_second > MOST_CALLS_FOR_BREAKPOINTS:
        return f"{spec} is called {calls_per_second:.0f} times a second"
    return None


def tell_untimed(calls: Untimed, kind: Probes, why: str | None) -> None:
    """Paths that end above such calls say so in their endings. ``kind`` is how the others were
    timed; ``why`` says why breakpoints did not time these."""
    for node, missed in calls.items():
        whose = Unclear.WHOSE
        note = f"{len(missed)} of its calls could not be timed, {whose.value}: {_first(missed)}"
        if (other := kind_for_the_rest(kind)) is not None:
            note += f"; '--probes {other.value}' can time them, if they take milliseconds"
        if why is not None:
            note += f"; darc did not by itself: {why}"
        assert node.end is not None
        node.end = node.end.noting(note, whose)


class SecondLook:
    """The paths that breakpoints go on with, and how they had ended by then: what the first look
    saw holds where the second one finds no more, as it timed all the other callees."""

    def __init__(self, calls: Untimed) -> None:
        """``calls`` are those that breakpoints time now."""
        self._before = {node: (node.end, node.decision) for node in calls if node.end is not None}

    def settle(self, *, is_cut_short: bool) -> list[Fnode]:
        """It is over: paths that do not go on end as they had before. Where it ``is_cut_short``,
        those that had not ended again say so. Returns where paths go on into what only this look
        has timed."""
        for node, (before, decision) in self._before.items():
            ended = [below for below in node.walk() if below.end is not None]
            if not ended and is_cut_short:
                before = before.noting(_CUT_SHORT, Unclear.WHOSE)
            if node in ended or not ended:
                node.end, node.state = before, NodeState.ROOT_CAUSE
                node.decision = decision
        return [node for node in self._before if any(child.root_cause for child in node.children)]


def opening_note(node: Fnode, missed: Sequence[SiteReport]) -> str:
    """What the user is told as it begins."""
    return (
        f"breakpoints time {len(missed)} of the calls of {node.function.name}, and what lies below "
        f"them, as they take no pad ({_first(missed)})"
    )


def _first(missed: Sequence[SiteReport]) -> str:
    first = missed[0]
    return f"{first.callee or 'an indirect one'} at {first.place}: {first.why}"
