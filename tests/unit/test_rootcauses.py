"""How an analysis ends that is ended from outside."""

from __future__ import annotations

import pytest

from darc.analyses.rootcauses import early_status
from darc.model.status import Status


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
