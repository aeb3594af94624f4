"""Where paths end in a function's own time, and calls of it took no pad: the time may be theirs.

Probes of another kind may time such calls (:mod:`darc.collectors.ways`). As they may take much
longer, they are put in only below these paths, and only where their restraint allows it: where the
time is long, and f0 is called seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from darc.collectors.callees import Callees
from darc.collectors.collector import Collector, Restraint
from darc.collectors.sitereports import may_fall_back
from darc.collectors.ways import for_the_rest
from darc.model.ftree import Fnode, RootCausePath, Unclear
from darc.model.parameters import Probes
from darc.model.snapshot import SiteReport

Untimed = Mapping[Fnode, Sequence[SiteReport]]
"""Of the last functions on paths: which of their calls took no probe."""


def untimed(paths: Iterable[RootCausePath], callees: Callees) -> Untimed:
    """Where one of ``paths`` ends in a function's own time: which of its calls may be in it."""
    found = {}
    for path in paths:
        node = path.nodes[-1]
        missed = callees.told.missed(node.function)
        if missed and path.ending.remark is None:
            found[node] = missed
    return found


def for_others(calls: Untimed) -> Untimed:
    """Those of them that probes of another kind can time."""
    found = {node: list(filter(may_fall_back, reports)) for node, reports in calls.items()}
    return {node: reports for node, reports in found.items() if reports}


def why_not(
    calls: Untimed, restraint: Restraint, *, hz: int, spec: str, calls_per_second: float
) -> str | None:
    """Why probes that keep to ``restraint`` would spoil more than they tell of ``calls``, in cycles
    of ``hz``; f0, which the user knows as ``spec``, is called so often."""
    cycles = min((n.totals.max_sum / max(1, n.totals.ops) for n in calls), default=0.0)
    if cycles * 1e9 / hz < restraint.least_ns:
        return f"it takes less than {restraint.least_ns / 1e6:g} ms"
    if calls_per_second > restraint.most_calls:
        return f"{spec} is called {calls_per_second:.0f} times a second"
    return None


def tell_untimed(calls: Untimed, kind: Probes, why: str | None) -> None:
    """Paths that end above such calls say so in their endings. ``kind`` is how the others were
    timed; ``why`` says why no others did time these."""
    for node, missed in calls.items():
        whose = Unclear.WHOSE
        note = f"{len(missed)} of its calls could not be timed, {whose.text}: {_first(missed)}"
        if (other := for_the_rest(kind)) is not None:
            note += f"; '--probes {other.kind.value}' can time them"
            if other.restraint is not None:
                note += f", if they take {other.restraint.in_words}"
        if why is not None:
            note += f"; darc did not by itself: {why}"
        assert node.end is not None
        node.end_path(node.end.noting(note, whose))


class SecondLook:
    """The paths that probes of another kind go on with, and how they had ended by then: what the
    first look saw holds where the second one finds no more, as it timed all the other callees."""

    def __init__(self, calls: Untimed, kind: Probes) -> None:
        """``calls`` are those that are timed now, as they take no probes of ``kind``."""
        self._kind = kind
        self._before = {node: (node.end, node.decision) for node in calls if node.end is not None}

    def close(self, *, is_cut_short: bool) -> list[Fnode]:
        """It is over: paths that do not go on end as they had before. Where it ``is_cut_short``,
        those that had not ended again say so. Returns where paths go on into what only this look
        has timed."""
        for node, (before, decision) in self._before.items():
            ended = [below for below in node.walk() if below.end is not None]
            if not ended and is_cut_short:
                before = before.noting(self._cut_short, Unclear.WHOSE)
            if node in ended or not ended:
                node.end_as_before(before, decision)
        return [node for node in self._before if any(child.root_cause for child in node.children)]

    @property
    def _cut_short(self) -> str:
        unclear = Unclear.WHOSE.text
        return f"calls of it that take no {self._kind.value} were still being timed: {unclear}"


def opening_note(
    node: Fnode, missed: Sequence[SiteReport], kind: Probes, other: type[Collector]
) -> str:
    """What the user is told as it begins: ``other`` times calls that take no probes of ``kind``."""
    return (
        f"{other.plural} time {len(missed)} of the calls of {node.function.name}, and what lies "
        f"below them, as they take no {kind.value} ({_first(missed)})"
    )


def _first(missed: Sequence[SiteReport]) -> str:
    first = missed[0]
    return f"{first.callee or 'an indirect one'} at {first.place}: {first.why}"
