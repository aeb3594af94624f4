"""A session as a file has it."""

from __future__ import annotations

from darc.model.ftree import (
    CallKind,
    CallSite,
    Totals,
)
from darc.model.parameters import Parameters
from darc.model.peaks import PeakRange
from darc.model.status import Status
from darc.saved.descents import to_parts
from darc.saved.storage import SearchState, Stored
from darc.search.contest import Contest
from tests.unit import ops, samples


def sample() -> Stored:
    root, _ = samples.tree()
    fill = root.find("1.7.2")
    learned = fill.add_child(
        samples.function("on_sync"), CallSite(0x401400, CallKind.INDIRECT, "mixture", 0x1400)
    )
    contest = Contest(
        fill, seen=7, own=5, ops=6, totals=Totals(6, 6, 60, 60), votes={learned: 2},
        callee_totals={learned: Totals(6, 8, 50, 40)},
    )  # fmt: skip
    return Stored(
        spec="handle",
        parameters=Parameters(peak="3"),
        status=Status.ENDED,
        profile=samples.profile(samples.BINS),
        root=root,
        modules={"mixture": "15df", "libc.so.6": "sha256:77"},
        search=SearchState(
            60,
            (contest,),
            {learned: (1, 3)},
            peak=PeakRange(3, 23, None),
            slices=({11: 900, 23: 1}, {11: 905, 23: 29}),
        ),
        parts=to_parts(ops.of_samples(root, 1)),
    )
