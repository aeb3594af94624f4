"""Every way to collect latencies that ``--probes`` offers, once."""

from __future__ import annotations

from collections.abc import Mapping

from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.collector import Way
from darc.collectors.pad_collector import PadCollector
from darc.model.parameters import Probes

WAYS: Mapping[Probes, Way] = {
    collector.kind: Way(collector) for collector in (PadCollector, BreakpointCollector)
}
"""By the kind of probes, in the order in which ``auto`` tries them."""


def ways_of(probes: Probes, own: Way | None) -> tuple[Way, ...]:
    """What ``probes`` tries, one after the other. A way of one analysis's ``own`` takes the place
    of that of its kind, and ``auto`` tries nothing else."""
    if probes is Probes.AUTO:
        return tuple(WAYS.values()) if own is None else (own,)
    return (own if own is not None and own.collector.kind is probes else WAYS[probes],)


def kind_after(kind: Probes) -> Probes:
    """What takes the place of a ``kind`` that is not the last."""
    kinds = list(WAYS)
    return kinds[kinds.index(kind) + 1]
