"""What all phases of a search have before them."""

from __future__ import annotations

from typing import cast

from darc.analyses.case import kept_ops
from darc.analyses.roundops import ENDED
from darc.collectors.collector import Collector
from tests.unit import samples
from tests.unit.cases import Made, MadeCollector


def test_the_first_collector_tells_the_profile() -> None:
    """One that times what took no pad has another one."""
    made = Made()
    other = MadeCollector()
    made.case.collect(cast(Collector, other), is_searching=False)
    assert other.asked == []
    assert made.case.profile.grown.count == 0
    made.case.collect(made.brief.collector, is_searching=False)
    assert made.case.profile.grown.count == sum(samples.BINS.values())


def test_once_it_is_searched_the_peaks_stay() -> None:
    made = Made().profiled()
    made.collector.bins = {11: 2000, 23: 60}
    made.case.collect(made.brief.collector, is_searching=True)
    assert made.case.profile.at_choice.bins == samples.BINS
    assert made.case.profile.grown.bins == {11: 2000, 23: 60}


def test_doubts_of_the_peak_come_before_those_of_the_paths() -> None:
    case = Made().case
    case.of_paths.append("of a path")
    case.choice.doubts.append("of the peak")
    assert case.doubts == ["of the peak", "of a path"]


def test_not_every_collector_keeps_ops() -> None:
    made = Made()
    assert kept_ops(made.brief.collector) is None
    made.case.take_ops(made.brief.collector)
    assert made.case.ops.kept is None


def test_ops_that_are_gone_with_the_program_leave_those_that_were_kept() -> None:
    made = Made()
    keeper = made.keeps()
    made.case.take_ops(made.brief.collector)
    kept = made.case.ops.kept
    assert kept is not None
    keeper.is_gone = True
    made.case.take_ops(made.brief.collector)
    assert made.case.ops.kept is kept


def test_what_nobody_can_be_asked_any_more_is_told() -> None:
    made = Made()
    made.keeps()
    made.case.take_ops(made.brief.collector)
    made.case.close_ops(is_gone=False)
    assert made.case.ops.kept is not None
    assert made.case.ops.kept.why_no_waits is None
    made.case.close_ops(is_gone=True)
    assert made.case.ops.kept.why_no_waits == ENDED
