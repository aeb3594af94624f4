"""Every way to collect latencies that ``--probes`` offers, once."""

from __future__ import annotations

from collections.abc import Mapping

from darc.collectors.breakpoints import BreakpointCollector
from darc.collectors.collector import Way
from darc.collectors.pad_collector import PadCollector
from darc.model.parameters import Probes

WAYS: Mapping[Probes, Way] = {
    kind.kind: Way(kind.kind, kind) for kind in (PadCollector, BreakpointCollector)
}
"""By the kind of probes."""
