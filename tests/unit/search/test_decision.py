"""Choosing by votes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darc.search.decision import CHECKPOINTS, CONFIDENT, chosen, confidence

ballots = st.lists(st.integers(0, 200), min_size=1, max_size=8)
percentages = st.floats(0.01, 1.0)


@pytest.mark.parametrize(
    ("votes", "percentage", "expected"),
    [
        ([20, 0, 0], 0.5, [True, False, False]),
        ([20, 10, 9], 0.5, [True, True, False]),
        ([12, 11, 12], 1.0, [True, False, True]),
        ([30, 3, 2], 0.1, [True, True, False]),
        ([0, 0], 0.5, [False, False]),
        ([], 0.5, []),
    ],
)
def test_the_threshold_is_a_part_of_the_most_votes(
    votes: list[int], percentage: float, expected: list[bool]
) -> None:
    assert chosen(votes, percentage) == expected


@given(ballots, percentages)
def test_whoever_has_the_most_votes_is_chosen(votes: list[int], percentage: float) -> None:
    winners = chosen(votes, percentage)
    if any(votes):
        assert winners[votes.index(max(votes))]
    else:
        assert not any(winners)


@given(ballots, percentages)
def test_confidence_is_a_part_of_one(votes: list[int], percentage: float) -> None:
    assert 0.0 <= confidence(votes, percentage) <= 1.0


def test_confidence_needs_votes_and_grows_with_them() -> None:
    assert confidence([0, 0], 0.5) == 0.0
    assert confidence([5, 0], 0.5) < CONFIDENT <= confidence([10, 0], 0.5)
    assert confidence([10, 10], 0.5) < CONFIDENT <= confidence([40, 40], 0.5)


def test_votes_at_the_limit_are_never_decisive() -> None:
    assert all(confidence([2 * n, n], 0.5) < CONFIDENT for n in range(1, 100))


def test_one_contestant_alone_is_sure() -> None:
    assert confidence([3], 0.5) == 1.0


def test_looking_again_and_again_seldom_decides_wrongly() -> None:
    """The second best has four fifths of the votes of the best: it is a root cause too."""
    rng = random.Random(7)
    wrong = 0
    for _ in range(1000):
        votes, seen = [0, 0], 0
        for checkpoint in CHECKPOINTS:
            for _ in range(checkpoint - seen):
                votes[rng.random() < 4 / 9] += 1
            seen = checkpoint
            if confidence(votes, 0.5) >= CONFIDENT:
                wrong += not all(chosen(votes, 0.5))
                break
    assert wrong <= 50
