"""A session as darc would find it in a small program, for the views and reports."""

import dataclasses
from typing import Any

from darc.model.ftree import (
    CallKind,
    CallSite,
    Cause,
    Decision,
    Ending,
    Fnode,
    Function,
    NodeState,
    RootCausePath,
    Totals,
)
from darc.model.parameters import Probes
from darc.model.peaks import PeakRange, find_peaks
from darc.model.profile import Profile
from darc.model.snapshot import ProgramFigures, SiteReport, SiteState, Snapshot
from darc.model.status import Status

HZ = 2_596_000_000
BINS = {11: 1805, 12: 70, 19: 94, 23: 30, 24: 1}


def profile(bins: dict[int, int], resolution: int = 1) -> Profile:
    empty = Profile.empty(resolution, HZ)
    total = sum(round(empty.mean_cycles(number)) * count for number, count in bins.items())
    return Profile(resolution=resolution, hz=HZ, bins=bins, count=sum(bins.values()), total=total)


def function(name: str, module: str = "mixture", offset: int = 0x1100) -> Function:
    return Function(
        name=name,
        symbol=name,
        module=module,
        address=0x400000 + offset,
        offset=offset,
        file="mixture.c",
        line=7,
    )


def site(line: int | None, *inlined: str, module: str = "/opt/app/mixture") -> CallSite:
    file = "/src/app/mixture.c" if line is not None else None
    offset = 0x1300 + (line or 0)
    return CallSite(
        address=0x400000 + offset,
        kind=CallKind.DIRECT,
        module=module,
        offset=offset,
        file=file,
        line=line,
        inlined=tuple(inlined),
    )


def decide(node: Fnode, maxcount: int, cycles: int, root_cause: bool = True) -> None:
    node.maxcount = maxcount
    node.root_cause = root_cause
    node.state = NodeState.ROOT_CAUSE if root_cause else NodeState.REJECTED
    node.totals = node.called = Totals(20, 20, 20 * cycles, 20 * cycles)


def tree() -> tuple[Fnode, tuple[RootCausePath, ...]]:
    root = Fnode(function("handle"))
    decide(root, 0, 12_000_000)
    root.called = Totals()
    for number in range(6):
        decide(root.add_child(function(f"parse{number}"), site(10 + number)), number, 900, False)
    flush = root.add_child(function("flush"), site(25, "flush_one"))
    decide(flush, 20, 11_000_000)
    write = flush.add_child(function("write_out"), site(31))
    decide(write, 20, 10_500_000)
    fill = flush.add_child(function("fill"), site(33))
    decide(fill, 12, 9_000_000)
    usleep = write.add_child(function("usleep", "libc.so.6"), site(None))
    decide(usleep, 20, 10_400_000)
    for node in (root, flush):
        node.decision = Decision(20, 20, 0)
    usleep.end = Ending(Cause.FUNCTION, 20)
    fill.end = Ending(
        cause=Cause.LOOP, maxcount=12, loop_callee="memcpy", loop_calls=400.0, loop_share=0.93
    )
    return root, (
        RootCausePath((root, flush, write, usleep), usleep.end),
        RootCausePath((root, flush, fill), fill.end),
    )


def snapshot(**changes: Any) -> Snapshot:
    root, paths = tree()
    made = Snapshot(
        function="handle",
        status=Status.FOUND,
        probes=Probes.PAD,
        profile=profile(BINS),
        peaks=find_peaks(BINS),
        peak=PeakRange(3, 23, None),
        ftree=root,
        paths=paths,
        level=4,
        collected=20,
        needed=20,
        program=ProgramFigures(
            stops=4,
            stopped_seconds=0.0412345678,
            in_peak_calls=60,
            probes=12,
            sites=(
                SiteReport(
                    function="handle",
                    offset=0x1319,
                    callee="flush",
                    state=SiteState.TIMED,
                    why=None,
                ),
                SiteReport(
                    function="flush",
                    offset=0x131F,
                    callee=None,
                    state=SiteState.FELL_BACK,
                    why="short indirect call",
                ),
                SiteReport(
                    function="flush",
                    offset=0x1321,
                    callee="setjmp",
                    state=SiteState.NOT_POSSIBLE,
                    why="returns twice",
                ),
            ),
            setup_seconds=0.0625,
        ),
        notes=("the TSC is not invariant here",),
        elapsed_seconds=75.4,
    )
    return dataclasses.replace(made, **changes)
