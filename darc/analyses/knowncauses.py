"""What is known of root causes at one moment: what views show, and what a session file has."""

from __future__ import annotations

import dataclasses

from darc.analyses.phase import Phase
from darc.model.ops import OpClass
from darc.model.snapshot import ProgramFigures, Snapshot
from darc.saved.storage import Stored
from darc.search.descent import ended_paths


def whole(phase: Phase, head: Snapshot, *, alive: bool) -> Snapshot:
    """All of it, with what the analysis says of itself (``head``); ``alive``: the collector still
    has what was counted, and was read."""
    case, ops = phase.case, phase.case.ops
    seen, used = phase.seen(alive), phase.used
    tree, paths = phase.tree, phase.paths
    if (waiting := case.resumption.waiting) is not None:
        tree = waiting.root  # until the program has shown its profile again
        paths = ended_paths(tree)
    return dataclasses.replace(
        head,
        probes=case.brief.collector.kind,
        profile=case.profile.grown,
        peaks=case.profile.peaks(),
        peak=case.profile.peak,
        ftree=tree,
        paths=paths,
        level=phase.level,
        collected=min(seen, phase.needed) if phase.has_counts else None,
        needed=phase.needed,
        program=ProgramFigures(
            # Those of the level that goes on are inside the peak, too.
            in_peak_calls=case.resumption.in_peak + (seen if phase.is_counting else 0),
            probes=len(used),
            sites=phase.collector.callees.told.of_used(used),
        ),
        warnings=case.resumption.warnings(case.doubts, ops, paths),
        profile_seconds=case.profile.seconds,
        profile_calls=case.profile.at_choice.count,
        spec=case.brief.spec,
        ops=ops.kept,
        waits=ops.waits_of(OpClass.IN_PEAK),
        waits_of_fastest=ops.waits_of(OpClass.FASTEST),
    )


def while_it_runs(phase: Phase, head: Snapshot, *, alive: bool, readable: bool) -> Snapshot:
    """What a live line shows: see :meth:`~darc.analyses.analysis.Analysis.live_snapshot`. Any
    thread."""
    case, profile = phase.case, phase.case.profile.grown
    collected: int | None = 0
    if alive and not readable:
        collected = None
    elif alive:
        counting = phase.collector.counting
        collected = min(counting.seen, phase.needed)
        if phase.collector is case.brief.collector:
            profile = counting.profile()
    return dataclasses.replace(
        head,
        probes=case.brief.collector.kind,
        profile=profile,
        peak=case.profile.peak,
        level=phase.level,
        collected=collected,
        needed=phase.needed,
        program=ProgramFigures(probes=len(phase.used)),
    )


def to_save(phase: Phase, f0: Stored, *, alive: bool) -> Stored:
    """What another run goes on with: ``f0`` and its profile, with all else; ``alive`` as of
    :func:`whole`."""
    case = phase.case
    return case.resumption.stored(
        f0,
        profile=case.profile,
        callees=phase.collector.callees,
        ops=case.ops,
        doubts=case.doubts,
        votes=phase.votes(alive),
    )
