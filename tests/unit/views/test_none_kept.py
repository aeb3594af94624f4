"""Why no call was kept: what is advised fits how the search has ended."""

from __future__ import annotations

import dataclasses

import pytest

from darc.model.errors import UsageError
from darc.model.ops import KeptOps
from darc.model.parameters import Probes
from darc.model.part import parts_of
from darc.model.snapshot import Snapshot
from darc.model.status import EndedBy, Status
from darc.model.waits import Waits
from darc.model.why import Answer, Verdict, Why
from darc.search.suspects import suspects
from darc.views import render
from darc.views.style import Style
from darc.views.timeline import op_list
from tests.unit import ops, samples
from tests.unit.sets import of, row

PLAIN = Style()
FREQUENT = "a peak that is frequent"


def late(snapshot: Snapshot) -> Snapshot:
    """A search that kept no call before the time was up."""
    kept = ops.snapshot().ops
    assert kept is not None
    return dataclasses.replace(
        snapshot,
        status=Status.INCONCLUSIVE,
        ended_by=EndedBy.TIME,
        paths=(),
        ops=KeptOps(ops=(), hz=kept.hz),
        waits=Waits(ops=0, cycles=0, objects=()),
    )


def answered_late() -> Why:
    (suspect,) = suspects(of(row("serve_one", {10: 1000, 24: 30})))
    found = Snapshot("serve_one", Status.INCONCLUSIVE, Probes.PAD, ended_by=EndedBy.TIME)
    return Why(Verdict.UNKNOWN, (Answer(suspect, found),))


@pytest.mark.parametrize("has_peak", [True, False])
def test_after_a_search_of_why_without_time_its_own_command_is_told(has_peak: bool) -> None:
    """However far that had come: a peak was not chosen by then, or no call was in it."""
    snapshot = late(dataclasses.replace(samples.snapshot(), parts=parts_of(answered_late())))
    if not has_peak:
        snapshot = dataclasses.replace(snapshot, peak=None, ops=None, waits=None)
    told = "before the time was up: 'darc start serve_one --peak last' looks longer"
    assert str(render.waits(snapshot, PLAIN)) == f"no call inside the peak was kept {told}"
    with pytest.raises(UsageError, match=told):
        op_list(snapshot, PLAIN)


def test_after_a_search_that_was_typed_more_time_is_advised() -> None:
    text = str(render.waits(late(samples.snapshot()), PLAIN))
    assert "before the time was up: give a longer --max-time, or choose" in text


def test_where_nothing_stood_out_what_was_offered_is_told() -> None:
    (suspect,) = suspects(of(row("slow", {10: 1000, 24: 30})))
    done = Snapshot("*", Status.DONE, Probes.PAD, parts=parts_of(Why(Verdict.NOTHING, ())))
    assert "no call was kept: 'darc start' looks for root causes" in render.waits(done, PLAIN)
    offered = Why(Verdict.UNKNOWN, (), open=(suspect,))
    text = render.waits(dataclasses.replace(done, parts=parts_of(offered)), PLAIN)
    assert "'darc start slow --peak last' looks longer" in text


def test_a_search_that_goes_on_is_not_told_to_begin_anew() -> None:
    going = dataclasses.replace(late(samples.snapshot()), status=Status.SEARCHING, ended_by=None)
    assert "was kept yet: let the program go on" in render.waits(going, PLAIN)
    ended = dataclasses.replace(going, status=Status.STOPPED)
    assert FREQUENT in render.waits(ended, PLAIN)
