"""What ``--lookahead auto`` means for a profile."""

from __future__ import annotations

import pytest

from darc.model.profile import Profile, bin_of
from darc.search.lookahead import level_by_level

GHZ = 1_000_000_000


@pytest.mark.parametrize(
    ("microseconds", "calls", "in_peak", "seconds", "decision_ops", "one_level"),
    [
        pytest.param(10, 1000, 1000, 0.02, 100_000, True, id="hot, with many votes"),
        pytest.param(10, 1000, 1000, 0.02, 20, False, id="a level takes no time"),
        pytest.param(10, 1000, 20, 0.02, None, True, id="hot, decided when it is clear"),
        pytest.param(10, 1000, 1, 0.05, 1_000_000, False, id="rare"),
        pytest.param(10, 10_000, 0, 1.0, 100, False, id="not seen again"),
        pytest.param(10, 10_000, 1, 1.0, None, False, id="rare, decided when it is clear"),
        pytest.param(10, 10_000, 1, 0.15, 1_000_000, True, id="rare, but there is nothing else"),
        pytest.param(1000, 1000, 1000, 1.1, 1000, False, id="not short"),
        pytest.param(10, 1000, 1000, 5.0, 1000, False, id="not often called"),
        pytest.param(10, 1000, 1000, 0.05, 1_000_000, False, id="with votes that take long"),
    ],
)
def test_one_level_at_a_time_where_probes_are_costly_and_time_is_not(
    microseconds: int,
    calls: int,
    in_peak: int,
    *,
    seconds: float,
    decision_ops: int | None,
    one_level: bool,
) -> None:
    cycles = microseconds * GHZ // 1_000_000
    profile = Profile(
        resolution=1, hz=GHZ, bins={bin_of(cycles, 1): calls}, count=calls, total=calls * cycles
    )
    assert (
        level_by_level(profile, in_peak, seconds=seconds, decision_ops=decision_ops, probe_cost=100)
        is one_level
    )


@pytest.mark.parametrize(("nanoseconds", "one_level"), [(5, False), (20, True)])
def test_what_is_short_depends_on_what_a_probe_takes(nanoseconds: int, one_level: bool) -> None:
    profile = Profile(
        resolution=1, hz=GHZ, bins={bin_of(10_000, 1): 1000}, count=1000, total=10_000_000
    )
    assert (
        level_by_level(profile, 1000, seconds=0.02, decision_ops=100_000, probe_cost=nanoseconds)
        is one_level
    )
