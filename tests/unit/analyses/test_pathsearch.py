"""What a search asks its collector for before each decision, and when another one may look."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from darc.analyses.guesstime import GuessTime
from darc.analyses.pathsearch import PathSearch
from darc.analyses.peakprofile import PeakProfile
from darc.collectors.collector import Collector
from darc.model.ftree import Fnode
from darc.model.parameters import Parameters, Probes
from darc.model.profile import Profile
from tests.unit import samples

NEEDED = 20


class Counts:
    """A collector's counting and timing, of so many calls; what they are asked for is ``asked``."""

    hz = samples.HZ
    used: frozenset[int] = frozenset()
    probe_cost = 100

    def __init__(self, voted: int, *, has_room_to_make: bool = False) -> None:
        self.voted = voted
        self.asked: list[object] = []
        self._has_room_to_make = has_room_to_make

    def votes(self) -> dict[Fnode, object]:
        return {}

    def make_room(self, votes: object) -> bool:
        if self._has_room_to_make:
            self.asked.append("the same again")
        return self._has_room_to_make

    def await_more(self, needed: int) -> None:
        self.asked.append(("more", needed))

    def await_in_peak(self, needed: int) -> None:
        self.asked.append(("in peak", needed))


class Search(PathSearch):
    """By such a collector, of one kind; ``seen`` is what was seen for decisions."""

    def __init__(self, counts: Counts, kind: Probes = Probes.PAD, **parameters: Any) -> None:
        profile = PeakProfile(Profile.empty(1, samples.HZ), None)
        profile.take(samples.profile(samples.BINS), 2.0, is_searching=False)
        assert profile.choose("2")
        root = Fnode(samples.function("handle"))
        callees = SimpleNamespace(
            expand=lambda node: None, told=SimpleNamespace(missed=lambda function: [])
        )
        made = SimpleNamespace(
            kind=kind,
            counting=counts,
            timing=counts,
            callees=callees,
            within_limits=lambda parameters: parameters,
        )
        self.notes: list[str] = []
        self.seen: list[int] = []
        super().__init__(
            cast(Collector, made),
            root,
            Parameters(lookahead=1, **parameters),
            spec="handle",
            profile=profile,
            guess_time=GuessTime(),
            note=self.notes.append,
            saw=self.seen.append,
        )


def test_too_few_calls_are_waited_for() -> None:
    counts = Counts(NEEDED - 1)
    search = Search(counts)
    assert search.decide(NEEDED) is None
    assert counts.asked == [("more", NEEDED)]
    assert (search.seen, search.has_decided) == ([], False)


def test_votes_are_counted_anew_where_there_is_more_room() -> None:
    """The calls were inside the peak all the same."""
    counts = Counts(NEEDED, has_room_to_make=True)
    search = Search(counts)
    assert search.decide(NEEDED) is None
    assert counts.asked == ["the same again", ("in peak", NEEDED)]
    assert (search.seen, search.has_decided) == ([NEEDED], False)


@pytest.mark.parametrize("kind", [Probes.PAD, Probes.BREAKPOINT])
def test_nobody_looks_again_where_nothing_was_missed(kind: Probes) -> None:
    search = Search(Counts(NEEDED), kind)
    assert not search.may_fall_back
    assert not search.looks_twice


def test_why_another_kind_would_spoil_more_than_it_tells() -> None:
    assert Search(Counts(NEEDED)).why_no_fall_back() == "it takes less than 2 ms"
    assert Search(Counts(NEEDED), Probes.BREAKPOINT).why_no_fall_back() is None


def test_without_a_second_look_nothing_is_to_be_settled() -> None:
    search = Search(Counts(NEEDED))
    assert search.close(is_cut_short=True) == []
    assert search.notes == []
