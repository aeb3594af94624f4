"""Choosing root causes from votes (paper sections 3 and 6), and how sure the choice is.

Beyond the paper: votes alone do not say how much is at stake. A call of f0 that is slow for
something else passes through a function that is fast this time, and what is the largest part of
next to nothing has a vote as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from darc.model.shares import SLIGHT

CONFIDENT = 0.95
"""The confidence at which votes are decisive when ``decision_ops`` is auto."""

CHECKPOINTS = (5, 10, 20, 40, 80, 160, 200)
"""In-peak calls after which the votes are looked at when ``decision_ops`` is auto. At the last one
the choice is made in any case."""


def chosen(votes: Sequence[int], percentage: float) -> list[bool]:
    """Which contestants are root causes: those with at least ``percentage`` (0 to 1) of the most
    votes that any has, and with any at all."""
    # A product such as 0.1 * 30 must not end up above 3.
    needed = percentage * max(votes, default=0) - 1e-9
    return [count > 0 and count >= needed for count in votes]


@dataclass(frozen=True)
class Taken:
    """What a contestant took, in cycles, over in-peak calls of f0."""

    sum: int = 0
    ops: int = 0
    """In how many of them it was there at all."""


def merely_passed(votes: Sequence[int], taken: Sequence[Taken], least: int) -> list[bool]:
    """Which of the contestants cannot have made a call of f0 slow: those that took less than an
    eighth (:data:`~darc.model.shares.SLIGHT`) of what another one took, and in the calls that they
    were in less than an eighth of ``least``, what the fastest call inside the peak takes. Both, as
    a single call that the machine held up makes up most of a sum; so does one that hardly any
    ``votes`` fell to, an eighth of the most at least."""
    some = _some(votes)
    most = max((one.sum for one, count in zip(taken, some, strict=True) if count), default=0)
    return [
        count > 0 and one.sum * SLIGHT < most and one.sum * SLIGHT < least * one.ops
        for one, count in zip(taken, votes, strict=True)
    ]


def _some(votes: Sequence[int]) -> list[int]:
    """Without those that have next to none beside another one."""
    return [count if count * SLIGHT >= max(votes) else 0 for count in votes]


def chosen_of_slow(votes: Sequence[int], percentage: float, passed: Sequence[bool]) -> list[bool]:
    """As :func:`chosen`, of those that are not merely ``passed``: where most calls are slow
    somewhere else, and pass through, these have most of the votes, though they tell nothing."""
    some = zip(_some(votes), passed, strict=True)
    return chosen([0 if gone else count for count, gone in some], percentage)


def confidence(votes: Sequence[int], percentage: float) -> float:
    """How sure :func:`chosen` is, from 0 to 1: that of the least sure contestant.

    Wald's sequential probability ratio test, so it may be looked at as often as one likes. Each
    contestant is compared with the one that has the most votes: of the votes of the two, the part
    that is its own would be p / (1 + p), p being ``percentage``, just at the limit. One that is
    chosen is tested for being as good as the best against being at the limit, one that is not for
    having an eighth of what the limit asks. A likelihood ratio L makes a confidence of
    L / (1 + L).
    """
    if not any(votes):
        return 0.0
    best = max(votes)
    others = list(votes)
    others.remove(best)
    limit = percentage / (1 + percentage)
    clearly_less = (percentage / 8) / (1 + percentage / 8)
    least = math.inf
    for count, is_chosen in zip(others, chosen([best, *others], percentage)[1:], strict=True):
        part = 0.5 if is_chosen else clearly_less
        ratio = count * math.log(part / limit) + best * math.log((1 - part) / (1 - limit))
        least = min(least, ratio)
    return 1.0 if math.isinf(least) else 1 / (1 + math.exp(-max(least, -700.0)))
