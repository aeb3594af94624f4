"""What is told of the user's own stops."""

from __future__ import annotations

import pytest

from darc.analyses.rootcauses import with_fewer_stops
from darc.session.remarks import cut_short, stopped_for_files

ONE = "1 call was not measured: the program stopped for you in the middle"
MORE = ", more than the 2 in the peak that were: with fewer stops inside serve the search goes on"


@pytest.mark.parametrize(
    ("count", "is_searching", "told"),
    [
        (0, True, []),
        (1, True, [ONE]),
        (2, True, ["2 calls were not measured: the program stopped for you in the middle"]),
        (3, True, ["3 calls were not measured: the program stopped for you in the middle" + MORE]),
        (3, False, ["3 calls were not measured: the program stopped for you in the middle"]),
    ],
)
def test_calls_that_were_cut_short(count: int, is_searching: bool, told: list[str]) -> None:
    def lacks(missed: int) -> str:
        return with_fewer_stops(missed, 2, "serve") if is_searching else ""

    assert cut_short(count, lacks) == told


@pytest.mark.parametrize(
    ("count", "in_peak", "told"),
    [(0, 0, None), (3, 0, None), (1, 21, None), (1, 20, "once meanwhile"), (97, 17, "97 times")],
)
def test_files_that_came_meanwhile(count: int, in_peak: int, told: str | None) -> None:
    said = stopped_for_files(count, in_peak=in_peak, spec="serve")
    assert len(said) == (told is not None)
    assert all(told is not None and told in line for line in said)
