"""Choosing root causes from votes (paper sections 3 and 6), and how sure the choice is."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
