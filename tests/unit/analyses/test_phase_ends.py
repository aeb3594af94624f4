"""What each phase that keeps ops has of them when the session ends in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from darc.analyses.phase import Phase
from darc.analyses.roundops import ENDED
from darc.model.status import Status
from tests.unit.cases import Made, closing, profiling

PHASES = pytest.mark.parametrize("phase_in", [profiling, closing])


@PHASES
@pytest.mark.parametrize(("status", "why"), [(Status.ENDED, ENDED), (Status.STOPPED, None)])
def test_whether_its_ops_can_still_be_asked_of(
    status: Status, why: str | None, phase_in: Callable[[Made], Phase]
) -> None:
    """Nobody knows any more what they waited for, once the program is about to be gone."""
    made = Made()
    made.keeps()
    phase_in(made).close(status, alive=True)
    kept = made.case.ops.of_this_run
    assert kept is not None
    assert kept.why_no_waits == why


@PHASES
def test_the_ops_that_were_kept_before_a_kill_are_of_one_that_is_gone(
    phase_in: Callable[[Made], Phase],
) -> None:
    made = Made()
    made.keeps()
    phase = phase_in(made)
    made.case.take_ops(made.brief.collector)
    phase.close(Status.STOPPED, alive=False)
    kept = made.case.ops.of_this_run
    assert kept is not None
    assert kept.why_no_waits == ENDED
