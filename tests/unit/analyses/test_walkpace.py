"""How often a walk stops the program, by a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from darc.analyses import walk, walkwindow
from darc.analyses.analysis import AnalysisBrief
from darc.analyses.walkpace import Pace
from darc.collectors.walk_collector import WalkCollector
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters
from darc.model.walk import Walk
from tests.unit.callees import Make, World


class OftenStopped:
    """One that is stopped as soon as that may be, for so many seconds each time."""

    def __init__(self, takes: float) -> None:
        self.now = self.stood = 0.0
        self.takes = takes
        self.pace = Pace(lambda: self.now)
        self.pace.goes_on()

    def look(self) -> None:
        while not self.pace.may_look:
            self.now += 0.001
        self.pace.stands()
        self.pace.decides()
        self.now += self.takes
        self.stood += self.takes
        assert not self.pace.may_look, "it stands"
        self.pace.goes_on()


@pytest.mark.parametrize("takes", [0.004, 0.14, 2.0])
def test_the_program_stands_for_a_tenth_of_the_time_at_most(takes: float) -> None:
    program = OftenStopped(takes)
    for _ in range(200):
        program.look()
    assert program.stood <= 0.11 * program.now


@pytest.mark.parametrize("takes", [0.0005, 0.004, 0.008])
def test_behind_short_stops_it_stands_for_a_fiftieth(takes: float) -> None:
    program = OftenStopped(takes)
    for _ in range(200):
        program.look()
    assert program.stood <= 0.022 * program.now


def test_where_stops_are_short_there_are_many_looks_soon() -> None:
    program = OftenStopped(0.001)
    for _ in range(10):
        program.look()
    assert program.now < 1
    assert program.pace.looks(2.0, 1) == program.pace.looks(2.0, 300) == 12


def test_where_stops_are_long_there_are_fewer_looks() -> None:
    """But some: each look sees all threads."""
    program = OftenStopped(0.14)
    program.look()
    assert program.pace.looks(2.0, 1) == program.pace.looks(0.1, 1) == 4
    assert program.pace.looks(2.0, 300) == 2
    program.takes = 0.02
    program.look()
    assert program.pace.looks(2.0, 1) > 4


def test_stops_for_the_user_are_none_of_the_walks() -> None:
    """Nor is the one at which a walk begins: to make its probes takes ten seconds of a very large
    program that may run for twenty."""
    program = OftenStopped(0.002)
    pace = Pace(lambda: program.now)
    program.now += 10
    pace.goes_on()
    assert pace.runs_at_least < 0.1
    pace.stands()
    program.now += 60
    pace.goes_on()
    assert pace.runs_at_least < 0.1
    pace.stands()
    pace.decides()
    program.now += 0.1
    pace.goes_on()
    assert pace.runs_at_least > 0.5


class Collector(WalkCollector):
    """Of a program without threads, which is never asked."""

    def __init__(self) -> None:
        self.looked = self.levels = 0
        nothing = lambda *_: None  # noqa: E731
        self.counting = SimpleNamespace(await_user=nothing)  # type: ignore[assignment]
        self.windows = SimpleNamespace(begin=nothing)  # type: ignore[assignment]
        self.stacks = SimpleNamespace(all=self._stacks)  # type: ignore[assignment]

    def _stacks(self, among: object = None) -> dict[int, object]:
        self.looked += 1
        return {}

    def begin_level(self, *_: object) -> None:
        self.levels += 1

    @property
    def now(self) -> int:
        return 0

    @property
    def is_stopped(self) -> bool:
        return True

    @property
    def quota_used_up(self) -> int:
        return 0


def _brief(world: World, collector: Collector) -> AnalysisBrief:
    return AnalysisBrief(
        program=world.program,  # type: ignore[arg-type]
        collector=collector,
        root=Fnode(world.function("f")),
        spec="f",
        parameters=Parameters(),
        note=world.notes.append,
    )


def test_a_walk_stops_the_program_as_rarely_as_its_stops_are_long(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it looks at what indirect calls lead to, and in the windows."""
    world, now = make(), [100.0]
    monkeypatch.setattr(walk, "Pace", lambda: Pace(lambda: now[0]))
    monkeypatch.setattr(walkwindow, "time", SimpleNamespace(monotonic=lambda: now[0]))
    collector = Collector()
    brief = _brief(world, collector)
    walking = walk.CallWalk(brief, seconds=2.0, goes_below=True)
    begun, stood, looks = now[0], 0.0, 0
    walking.goes_on()
    while collector.levels < 2:  # one before the looks, one behind them
        while walking.urgent is None:
            assert now[0] < begun + 60
            now[0] += walking.look() / 8
        walking.stands()
        now[0] += 0.14
        stood += 0.14
        looks += 1
        walking.decide()
        walking.goes_on()
    assert looks == 4
    assert stood < 0.15 * (now[0] - begun)
    assert collector.looked < 3 * looks + 3, "a look is at the stacks as they are, once"
    left = walking.seconds_left
    assert left == pytest.approx(2.0), "the window is long enough as it is"


def test_a_thread_whose_stack_is_cut_is_looked_at_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look may find it where frame information does not lead on; and one that never shows
    where it has begun is told to be left out."""
    world = make()
    function = world.function("f")
    stack = SimpleNamespace(key=7, frames=())
    looks: list[int] = []

    class Starts:
        found_at = 3

        def __init__(self, *_: object) -> None:
            looks.clear()

        def of(self, _: object) -> object:
            looks.append(1)
            return function if len(looks) >= self.found_at else None

        def is_whole(self, _: object) -> bool:
            return len(looks) >= self.found_at

    monkeypatch.setattr(walk, "ThreadStarts", Starts)
    collector = Collector()
    collector.stacks = SimpleNamespace(all=lambda *_: {1234: stack})  # type: ignore[assignment]
    collector.pads = SimpleNamespace(left_out={}, functions=())  # type: ignore[assignment]
    monkeypatch.setattr(Collector, "ran", lambda *_: None)

    def walked() -> walk.CallWalk:
        walking = walk.CallWalk(_brief(world, collector), seconds=2.0)
        while not walking.finished and not collector.levels:
            walking.goes_on()
            walking.stands()
            walking.decide()
        return walking

    walking = walked()
    assert collector.levels == 1, "it is walked down"
    assert not walking.finished
    Starts.found_at, collector.levels = 1000, 0
    lost = walked()
    assert lost.finished
    known = lost.snapshot(alive=True).part(Walk)
    assert known is not None
    assert known.lost == (1234,)
