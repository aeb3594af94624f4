"""Every way to collect latencies that ``--probes`` offers, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.collector import Collector, Way
from darc.collectors.pad_collector import PadCollector
from darc.collectors.set_collector import SetCollector
from darc.collectors.walk_collector import WalkCollector
from darc.debuggee.debuggee import Debuggee
from darc.model.errors import UnsupportedError
from darc.model.parameters import Probes


@dataclass(frozen=True)
class _WayRow:
    """One of them."""

    collector: type[Collector]
    for_the_rest: type[Collector] | None = None
    """Where this one may find no room at a call: which always has some."""


_ROWS = (_WayRow(PadCollector, for_the_rest=BreakpointCollector), _WayRow(BreakpointCollector))
"""In the order in which ``auto`` tries them."""

_OF_MANY: Sequence[type[Collector]] = (SetCollector, WalkCollector)
"""Which are made for one analysis alone."""

WAYS: Mapping[Probes, Way] = {row.collector.kind: Way(row.collector) for row in _ROWS}
"""By the kind of probes."""


def ways_of(probes: Probes, own: Way | None) -> tuple[Way, ...]:
    """What ``probes`` tries, one after the other. A way of one analysis's ``own`` takes the place
    of that of its kind, and ``auto`` tries nothing else."""
    if probes is Probes.AUTO:
        return tuple(WAYS.values()) if own is None else (own,)
    return (own if own is not None and own.collector.kind is probes else WAYS[probes],)


def for_the_rest(kind: Probes) -> type[Collector] | None:
    """What times calls that probes of this kind could not; ``None``: nothing does."""
    others = {row.collector.kind: row.for_the_rest for row in _ROWS}
    return others.get(kind)


def kind_for_the_rest(kind: Probes) -> Probes | None:
    """Which kind that is of."""
    other = for_the_rest(kind)
    return None if other is None else other.kind


def only_by(command: str, duty: type[object]) -> str:
    """What the user is told whose ``command`` needs a collector with this ``duty``, and gets none
    by the probes that were asked for."""
    able = next(one for one in _OF_MANY if issubclass(one, duty))
    return f"'{command}' times functions by {able.plural} alone: '--probes {able.kind.value}'"


def told_of_other(kind: Probes, debuggee: Debuggee) -> str:
    """What follows upon a reason why probes of this ``kind`` cannot time a function of
    ``debuggee``: which others can, and what they do to the program. Nothing where none can."""
    other = for_the_rest(kind)
    if other is None:
        return ""
    told, drawbacks = f"; '--probes {other.kind.value}' can", [other.drawback, other.risk(debuggee)]
    known = [one for one in drawbacks if one is not None]
    return f"{told}, but {', and '.join(known)}" if known else told


def way_instead(
    first: Way, others: Sequence[Way], why: str, *, debuggee: Debuggee, spec: str
) -> tuple[Way, str]:
    """Which of ``others`` times the function ``spec`` of ``debuggee``, as ``first`` cannot, for
    that reason: the first that does no harm; and what the user is told of that.

    Raises:
        UnsupportedError: there is none, or each does harm: it is for the user to choose.
    """
    unable = first.collector
    if not others:
        raise UnsupportedError(f"cannot time {spec}: only {unable.plural} can, and {why}")
    for other in others:
        if other.collector.risk(debuggee) is None:
            return other, f"no {unable.plural}, but {other.collector.plural}: {why}"
    able = others[0].collector
    raise UnsupportedError(
        f"cannot time {spec} with {unable.plural}: {why}; "
        f"'--probes {able.kind.value}' can, but {able.risk(debuggee)}"
    )
