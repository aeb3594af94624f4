"""What is known of root causes, as it is shown and saved."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest

from darc.analyses import knowncauses
from darc.analyses.closingphase import ClosingPhase
from darc.analyses.closinground import ClosingRound
from darc.analyses.phase import EndPhase, Phase
from darc.analyses.profilephase import ProfilePhase
from darc.collectors.collector import Collector
from darc.model.parameters import Probes
from darc.model.snapshot import Snapshot
from darc.model.status import Status
from darc.saved.descents import SavedDescent
from darc.saved.storage import Stored
from tests.unit import samples, stored
from tests.unit.cases import Made, MadeCollector

HEAD = Snapshot(function="handle", status=Status.SEARCHING, probes=Probes.BREAKPOINT)


def whole(phase: Phase, *, alive: bool = True) -> Snapshot:
    return knowncauses.whole(phase, HEAD, alive=alive)


def live(phase: Phase, *, alive: bool = True, readable: bool = True) -> Snapshot:
    return knowncauses.while_it_runs(phase, HEAD, alive=alive, readable=readable)


def profiling(made: Made) -> ProfilePhase:
    return ProfilePhase.of(made.case, None)


def searching(made: Made) -> Phase:
    """Three of four calls inside the peak were seen."""
    phase = made.searching()
    made.votes_for(made.root, 3)
    _ = made.asked
    return phase


def test_while_the_profile_grows() -> None:
    made = Made()
    phase = profiling(made)
    phase.collect()
    shown = whole(phase)
    assert (shown.function, shown.spec, shown.status) == ("handle", "handle", Status.SEARCHING)
    assert shown.profile is not None
    assert shown.profile.bins == samples.BINS
    assert [peak.number for peak in shown.peaks] == [1, 2, 3]
    assert (shown.peak, shown.ftree, shown.paths, shown.level) == (None, None, (), 0)
    assert (shown.collected, shown.needed) == (0, 100)
    assert (shown.program.in_peak_calls, shown.program.probes) == (0, 1)
    assert shown.probes is Probes.PAD, "those of the first collector"


def test_while_it_is_searched() -> None:
    made = Made()
    phase = searching(made)
    made.case.resumption.saw(10)
    shown = whole(phase)
    assert (shown.ftree, shown.level, shown.collected, shown.needed) == (made.root, 1, 3, 4)
    assert shown.program.in_peak_calls == 13
    assert whole(phase, alive=False).program.in_peak_calls == 10


def test_calls_of_the_closing_round_are_no_part_of_a_decision() -> None:
    made = Made()
    before = made.searching()
    made.votes_for(made.root, 3)
    phase = ClosingPhase(before, before._search, ClosingRound(5.0, 9))
    shown = whole(phase)
    assert (shown.collected, shown.needed, shown.program.in_peak_calls) == (3, 9, 0)


@pytest.mark.parametrize(("has_counts", "collected"), [(True, 3), (False, None)])
def test_what_the_program_has_taken_with_it(has_counts: bool, collected: int | None) -> None:
    made = Made()
    ended = EndPhase(searching(made), Status.ENDED, has_counts=has_counts)
    assert whole(ended).collected == collected


def test_doubts_are_warnings() -> None:
    made = Made()
    made.case.of_paths.append("is it so?")
    assert whole(profiling(made)).warnings == ("is it so?",)


def test_a_saved_tree_is_shown_until_the_profile_is_known_again() -> None:
    session = stored.sample()
    made = Made(SavedDescent(session))
    shown = whole(profiling(made))
    assert shown.ftree is session.root
    assert [path.nodes[-1].function.name for path in shown.paths] == ["usleep", "fill"]
    assert shown.program.in_peak_calls == 60
    assert shown.level == 0


def test_a_live_line_while_memory_can_be_read() -> None:
    made = Made()
    shown = live(searching(made))
    assert (shown.level, shown.collected, shown.needed, shown.program.probes) == (1, 3, 4, 1)
    assert made.asked == ["profile"]
    assert shown.ftree is None, "that is for a stop"


def test_a_live_line_while_it_cannot() -> None:
    made = Made()
    phase = searching(made)
    assert live(phase, readable=False).collected is None
    assert live(phase, alive=False).collected == 0
    assert made.asked == []


def test_a_live_line_by_another_collector_has_the_first_ones_profile() -> None:
    made = Made()
    phase = searching(made)
    other = MadeCollector()
    phase.collector = cast(Collector, other)
    assert live(phase).profile == made.case.profile.grown
    assert other.asked == []


def f0(made: Made) -> Stored:
    sample = stored.sample()
    return dataclasses.replace(sample, root=made.root, search=type(sample.search)(), parts={})


def test_what_is_saved_of_a_search_under_way() -> None:
    made = Made()
    phase = searching(made)
    made.case.of_paths.append("is it so?")
    saved = knowncauses.to_save(phase, f0(made), alive=True)
    assert (saved.search.in_peak_calls, len(saved.search.contests)) == (3, 1)
    assert saved.search.peak == made.case.profile.peak
    assert saved.root is made.root
    parts: dict[str, Any] = dict(saved.parts)
    assert parts == {"doubts": ["is it so?"]}


def test_what_is_saved_of_one_that_has_ended() -> None:
    made = Made()
    ended = EndPhase(searching(made), Status.FOUND)
    saved = knowncauses.to_save(ended, f0(made), alive=True)
    assert (saved.search.in_peak_calls, saved.search.contests) == (0, ())
