"""For how long the probes of a set are made before its functions are timed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from darc.analyses import setmaking
from darc.analyses.setmaking import SetMaking
from tests.unit.movedtime import MovedTime


class Timed:
    """A set, and its own probes: some are made at stops alone."""

    def __init__(self) -> None:
        self.probes = self
        self.functions = range(100)
        self.timed = 50
        self.is_in = self.is_prepared = False
        self.at_stops = 2
        """So many stops it takes."""

    @property
    def making(self) -> tuple[int, int]:
        return self.timed, len(self.functions)

    def make_at_stop(self) -> bool:
        self.at_stops -= 1
        return not self.at_stops

    def put_in(self) -> None:
        self.is_in = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedTime:
    made = MovedTime()
    monkeypatch.setattr(setmaking, "time", made)
    return made


@pytest.fixture
def timed() -> Timed:
    return Timed()


@pytest.fixture
def making(timed: Timed, clock: MovedTime) -> SetMaking:
    return SetMaking(cast(Any, timed))


def test_what_is_prepared_is_put_in_at_stops_that_are_apart(
    making: SetMaking, timed: Timed, clock: MovedTime
) -> None:
    assert not making.wants_stop  # the program has not gone on yet
    making.goes_on()
    assert (making.wants_stop, making.how_far) == (False, (50, 100))
    timed.is_prepared = True
    assert making.wants_stop
    making.at_stop()
    assert (making.wants_stop, timed.is_in) == (False, False)
    making.at_stop()  # another's
    assert timed.at_stops == 1
    clock.now += 0.6
    assert making.wants_stop
    making.at_stop()
    assert (making.wants_stop, making.how_far, timed.is_in) == (False, None, True)


@pytest.mark.parametrize(("made", "patience"), [(50, 10), (20, 30)])
def test_patience_is_longer_where_few_are_made(
    making: SetMaking, timed: Timed, clock: MovedTime, *, made: int, patience: int
) -> None:
    timed.timed = made
    making.goes_on()
    clock.now += patience - 1
    making.goes_on()  # it counts from the first time
    assert not making.wants_stop
    clock.now += 2
    assert making.wants_stop
    making.at_stop()
    assert timed.is_in
