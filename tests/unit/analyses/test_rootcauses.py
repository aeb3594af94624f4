"""How a search goes from phase to phase, and ends, by itself or ended from outside."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from darc.analyses import warming
from darc.analyses.analysis import Step
from darc.analyses.closinground import closing_calls, closing_orders
from darc.analyses.phase import EndPhase, Following, LaterPhase
from darc.analyses.rootcauses import RootCauses
from darc.analyses.searchend import early_status
from darc.model.errors import TargetError, UsageError
from darc.model.ftree import Cause, Ending, Fnode, RootCausePath, Totals
from darc.model.ops import LEAST_FOR_ESTIMATES, MOST_KEPT
from darc.model.status import Status
from darc.search.descent import Orders
from tests.unit import samples
from tests.unit.cases import PEAK, Made

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


def small_end() -> tuple[Fnode, RootCausePath]:
    """f0 calls 100 functions, the first of which leads to one that calls two more."""
    root = Fnode(samples.function("handle"))
    nodes = [root]
    for count in (100, 1, 1, 2):
        for number in range(count):
            child = nodes[-1].add_child(samples.function(f"c{number}"), samples.site(number))
            child.called = Totals(20, 20, 1000 - number, 1000 - number)
        nodes.append(nodes[-1].children[0])
    path = RootCausePath(tuple(nodes[:-1]), Ending(Cause.FUNCTION, 20))
    return root, path


def timed(orders: Orders) -> int:
    return sum(map(len, orders.batches.values()))


@pytest.mark.parametrize("room", [104, 103, 60, 5, 4])
def test_a_closing_round_times_the_paths_down_to_their_ends(room: int) -> None:
    root, path = small_end()
    orders = closing_orders([path], 192, lambda orders: timed(orders) <= room)
    batches = orders.batches
    assert timed(orders) <= room
    for above, node in pairwise(path.nodes):
        assert node in batches[above], "else nobody knows what the slow calls did there"
    last = path.nodes[-1]
    is_last_whole = list(batches[last]) == last.children
    assert is_last_whole == (room >= 5)
    assert (root in orders.exact) == (room < 104)
    assert set(batches[root]) < set(root.children) or room == 104


class Between(LaterPhase):
    """One behind which the next one comes at once, or fails to."""

    status = Status.SEARCHING
    needed = 7
    decide = finish_early = close = None  # type: ignore[assignment]

    def __init__(self, before: RootCauses, follows: Following | None) -> None:
        super().__init__(before._phase)
        self._follows = follows

    def begin(self) -> Following:
        if self._follows is None:
            raise TargetError("the memory is gone")
        return self._follows


def test_phases_follow_each_other_until_one_says_what_is_to_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = RootCauses(Made().brief)
    last = Between(made, Step.ASK)
    monkeypatch.setattr(made._phase, "decide", lambda: Between(made, last))
    assert made.decide() is Step.ASK
    assert made._phase is last
    assert (made.status, made.needed) == (Status.SEARCHING, 7)


def test_a_search_that_fails_shows_what_it_had_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RootCauses(Made().brief)
    phase = Between(made, None)
    phase.is_searching = True
    monkeypatch.setattr(made._phase, "decide", lambda: phase)
    with pytest.raises(TargetError):
        made.decide()
    made.fail("the memory is gone")
    assert (made.status, made.finished) == (Status.INCONCLUSIVE, True)
    assert isinstance(made._phase, EndPhase)
    assert made.is_searching
    assert made.needed == 7


def test_the_peak_that_the_user_has_chosen_is_asked_for_whatever_comes() -> None:
    world = Made()
    made = RootCauses(world.brief)
    with pytest.raises(UsageError):
        made.choose_peak("no peak")
    assert made.parameters.peak is None
    assert made.choose_peak(PEAK) is Step.GO_ON
    assert made.parameters.peak == PEAK
    assert (made.status, made.is_searching, made.needed) == (Status.SEARCHING, True, 4)


def test_a_peak_that_is_not_there_yet_is_asked_for_as_well() -> None:
    made = RootCauses(Made().brief)
    assert made.choose_peak(">1s") is Step.GO_ON
    assert (made.parameters.peak, made.status) == (">1s", Status.PROFILING)


def test_at_the_same_stop_another_peak_may_be_chosen() -> None:
    """And not once the program has gone on."""
    made = RootCauses(Made().brief)
    made.choose_peak(PEAK)
    made.choose_peak("1")
    assert made.parameters.peak == "1"
    made.goes_on()
    with pytest.raises(UsageError, match="a peak was chosen already"):
        made.choose_peak("2")


def test_nothing_is_looked_ahead_for_while_the_program_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warming, "time", SimpleNamespace(thread_time=lambda: 0.0))
    world = Made()
    made = RootCauses(world.brief)
    assert not made.look_ahead(0.01)
    assert world.program.read == []
    made.goes_on()
    assert made.look_ahead(0.01)
    assert world.program.read == ["mixture"]


def test_time_that_is_up_before_a_peak_was_chosen() -> None:
    world = Made()
    made = RootCauses(world.brief)
    made.finish_early("the time is up")
    assert (made.is_cut_short, made.status, made.finished) == (True, Status.NO_PEAK, False)
    assert made.question is not None, "it is still the user's to choose, in another run"
