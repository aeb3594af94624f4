"""What an analysis takes of the program."""

from __future__ import annotations

from typing import Any, cast

import pytest

from darc.model.errors import TargetError
from darc.model.snapshot import ProgramFigures
from darc.session import figures
from darc.session.figures import RunFigures


class Bench:
    """A debugger that has stopped the program four times before."""

    def __init__(self) -> None:
        self.now = 100.0
        self.own_stops = 4

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(figures, "time", made)
    return made


def figures_of(bench: Bench) -> RunFigures:
    return RunFigures(cast(Any, bench))


def test_decisions_take_stops_and_time(bench: Bench) -> None:
    known = figures_of(bench)
    for seconds in (0.25, 0.5):
        with known.stop():
            bench.now += seconds
        bench.now += 1
    found = known.added_to(ProgramFigures(in_peak_calls=20), (0, 0.0))
    assert found == ProgramFigures(
        stops=2, stopped_seconds=0.75, in_peak_calls=20, longest_stop=0.5
    )
    assert known.added_to(ProgramFigures(), (7, 1.5)).stops == 9
    assert known.added_to(ProgramFigures(), (7, 1.5)).stopped_seconds == 2.25


def test_a_stop_that_failed_is_one(bench: Bench) -> None:
    known = figures_of(bench)

    def fails() -> None:
        with known.stop():
            bench.now += 0.5
            raise TargetError("the program is gone")

    with pytest.raises(TargetError):
        fails()
    found = known.added_to(ProgramFigures(), (0, 0.0))
    assert (found.stops, found.stopped_seconds) == (1, 0.5)


def test_what_was_before_is_no_stop(bench: Bench) -> None:
    known = figures_of(bench)
    known.was_set_up(2.5)
    found = known.added_to(ProgramFigures(), (0, 0.0))
    assert (found.stops, found.stopped_seconds, found.setup_seconds) == (0, 0.0, 2.5)


def test_stops_after_the_end_are_not_counted(bench: Bench) -> None:
    known = figures_of(bench)
    bench.own_stops = 7
    known.count_stops()
    known.end()
    bench.own_stops = 9
    assert known.added_to(ProgramFigures(), (0, 0.0)).stops == 3


def test_its_time_stands_still_at_the_end(bench: Bench) -> None:
    known = figures_of(bench)
    bench.now += 3
    assert known.seconds == 3.0
    known.end()
    bench.now += 3
    assert known.seconds == 3.0
