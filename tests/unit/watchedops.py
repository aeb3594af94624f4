"""Kept ops whose thread was watched."""

from __future__ import annotations

import dataclasses

from darc.model.contrast import Side
from darc.model.ops import Off, OffReason, OpClass
from darc.model.snapshot import Snapshot
from tests.unit import ops, samples


def watched(*off: tuple[int, int, OffReason]) -> Snapshot:
    """The sample, with switches in each op, at times from its start."""
    snapshot = ops.snapshot()
    assert snapshot.ops is not None
    kept = dataclasses.replace(
        snapshot.ops,
        ops=tuple(
            dataclasses.replace(
                op, off=tuple(Off(op.start + a, op.start + b, reason) for a, b, reason in off)
            )
            for op in snapshot.ops.ops
        ),
    )
    return dataclasses.replace(snapshot, ops=kept)


ROOT, PATHS = samples.tree()


NODES = list(ROOT.walk())


def sides(snapshot: Snapshot) -> tuple[Side, Side]:
    assert snapshot.ops is not None
    return (
        Side.of("peak 3", snapshot.ops, OpClass.IN_PEAK),
        Side.of("peak 1", snapshot.ops, OpClass.FASTEST),
    )
