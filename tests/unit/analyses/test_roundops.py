"""Which ops of a search are kept, and when more is asked of them."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest

from darc.analyses.roundops import ENDED, FEW, RoundOps
from darc.code.program import Program
from darc.debuggee.switchwatch import SwitchWatch
from darc.model.offtimes import WatchedOps
from darc.model.ops import LEAST_FOR_ESTIMATES, KeptOps, OpClass
from darc.model.waits import Waits
from darc.saved.descents import SavedDescent
from darc.saved.storage import Stored
from tests.unit import ops, samples


class Switches(SwitchWatch):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[KeptOps] = []

    def watched(self, kept: KeptOps) -> WatchedOps:
        self.asked.append(kept)
        return WatchedOps(dataclasses.replace(kept, not_kept=99), unwatched=3)


def kept(count: int = 10) -> KeptOps:
    root = samples.snapshot().ftree
    assert root is not None
    return ops.of_samples(root, count)


def round_ops(switches: SwitchWatch, resumed: SavedDescent | None = None) -> RoundOps:
    return RoundOps(cast(Program, None), switches, samples.tree()[0], resumed=resumed)


def stored(**parts: Any) -> SavedDescent:
    shown = samples.snapshot()
    assert shown.ftree is not None
    assert shown.profile is not None
    made = Stored(
        spec="handle",
        parameters=shown.parameters,
        status=shown.status,
        profile=shown.profile,
        root=shown.ftree,
        modules={},
    )
    return SavedDescent(made, **parts)


def test_they_are_asked_once_and_late_when_threads_were_off() -> None:
    switches = Switches()
    known = round_ops(switches)
    known.take(kept(), is_closing=False)
    latest = kept()
    known.take(latest, is_closing=False)
    assert known.kept is latest
    assert switches.asked == []
    known.watch()
    known.watch()
    assert switches.asked == [latest]
    assert known.kept is not None
    assert known.kept.not_kept == 99
    assert "3 of 22 kept calls" in known.notes[0]


@pytest.mark.parametrize(
    ("before", "closing", "is_taken"),
    [
        (LEAST_FOR_ESTIMATES, LEAST_FOR_ESTIMATES - 1, False),
        (LEAST_FOR_ESTIMATES - 2, LEAST_FOR_ESTIMATES - 1, True),
        (LEAST_FOR_ESTIMATES + 9, LEAST_FOR_ESTIMATES, True),
    ],
)
def test_a_closing_round_with_too_few_leaves_those_of_the_one_before(
    before: int, closing: int, is_taken: bool
) -> None:
    known = round_ops(Switches())
    first, last = kept(before), kept(closing)
    known.take(first, is_closing=False)
    known.take(last, is_closing=True)
    assert known.kept is (last if is_taken else first)


@pytest.mark.parametrize("is_watched", [True, False])
def test_that_too_few_came_in_the_closing_round_is_why_nobody_is_known(*, is_watched: bool) -> None:
    """It alone asks what calls wait for, and its ops are not those that are kept."""
    known = round_ops(Switches())
    known.take(kept(), is_closing=False)
    if is_watched:
        known.watch()
    known.take(dataclasses.replace(kept(3), sees_waits=True), is_closing=True)
    known.watch()
    assert known.kept is not None
    assert known.kept.why_no_waits == FEW
    assert len(known.kept.sample(OpClass.IN_PEAK)) == 10


def test_those_of_a_file_stay_until_there_are_others() -> None:
    switches, waits = Switches(), Waits(1, 2, (), 0)
    of_file = kept()
    known = round_ops(switches, stored(ops=of_file, waits={OpClass.IN_PEAK: waits}))
    known.watch()
    assert known.kept is of_file
    assert known.of_this_run is None
    assert switches.asked == []
    assert known.waits_of(OpClass.IN_PEAK) is waits
    assert known.waits_of(OpClass.FASTEST) is None
    known.take(kept(), is_closing=False)
    assert known.of_this_run is not None


def test_without_any_nobody_waited() -> None:
    known = round_ops(Switches())
    assert known.kept is None
    assert known.waits() == {}
    assert known.waits_of(OpClass.IN_PEAK) is None


def test_what_a_program_that_is_gone_waited_for_was_not_asked() -> None:
    """It says nothing of its C library."""
    known = round_ops(Switches())
    known.take(kept(), is_closing=False)
    known.ended()
    assert known.kept is not None
    assert known.kept.why_no_waits == ENDED
    asked = dataclasses.replace(kept(), sees_waits=True)
    known.take(asked, is_closing=False)
    known.ended()
    assert known.kept is asked
