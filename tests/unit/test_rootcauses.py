"""How a search ends, by itself or ended from outside."""

from __future__ import annotations

import pytest

from darc.analyses.rootcauses import closing_calls, early_status
from darc.model.ops import LEAST_FOR_ESTIMATES, MOST_KEPT
from darc.model.status import Status

LEAST = LEAST_FOR_ESTIMATES + 1  # with the slowest one, which is no one of the sample


@pytest.mark.parametrize(
    ("status", "has_paths", "ends_as"),
    [
        (Status.SEARCHING, True, Status.FOUND),  # one of several paths has ended
        (Status.SEARCHING, False, Status.INCONCLUSIVE),
        (Status.MAX_DEPTH, True, Status.MAX_DEPTH),
        (Status.INCONCLUSIVE, False, Status.INCONCLUSIVE),
    ],
)
def test_time_is_up(status: Status, has_paths: bool, ends_as: Status) -> None:
    assert early_status(status, has_paths) is ends_as


@pytest.mark.parametrize(
    ("decision_ops", "is_frequent", "calls"),
    [
        (None, True, MOST_KEPT),
        (20, True, 20),
        (5, True, LEAST),  # else no share of any cause is known
        (5, False, LEAST),
        (1000, True, MOST_KEPT),
        (1000, False, LEAST),
    ],
)
def test_calls_of_the_closing_round(
    decision_ops: int | None, is_frequent: bool, calls: int
) -> None:
    assert closing_calls(decision_ops, is_frequent) == calls
