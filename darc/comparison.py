"""How much two profiles differ (OSprof section 3.2, paper section 3.4)."""

from __future__ import annotations

import math

from darc.errors import ProfileError
from darc.profile import OCTAVES, Profile

NOTABLE_OCTAVES = 0.5
"""Distances below this are not worth telling: it is as if every call took 1.4 times as long."""

CHANCE_FACTOR = 4.0
"""How many times further than by chance two profiles must be apart to count as different. Where
one rare and distant mode makes up all of the distance, that is 3.2 standard deviations."""


def emd(a: Profile, b: Profile) -> float:
    """The Earth Mover's Distance between two profiles, in bins.

    Both are normalised to one call; the result is the least work that turns one into the other,
    where a unit of work moves a whole call by one bin. 0 for profiles of one shape, 1 when every
    latency has doubled at resolution 1. Profiles of different resolutions are compared in the bins
    of the finest resolution that both can be brought to. Symmetric, and a metric.

    Raises :class:`~darc.errors.ProfileError` when one of them is empty.
    """
    if not any(a.bins.values()) or not any(b.bins.values()):
        raise ProfileError("a profile without calls cannot be compared; collect some calls first")
    resolution = math.gcd(a.resolution, b.resolution)
    a, b = a.coarsened(resolution), b.coarsened(resolution)
    a_calls, b_calls = sum(a.bins.values()), sum(b.bins.values())
    # On a line, what has to cross from one bin to the next is the difference of the sums so far.
    # In integers, so that equal shapes are at a distance of exactly 0.
    crossing, work = 0, 0
    for bin_number in range(OCTAVES * resolution + 1):
        crossing += a.bins.get(bin_number, 0) * b_calls - b.bins.get(bin_number, 0) * a_calls
        work += abs(crossing)
    return work / (a_calls * b_calls)


def chance(a: Profile, b: Profile) -> float:
    """The distance to expect, in bins as in :func:`emd`, between two profiles of as many calls as
    ``a`` and ``b`` have when all of them come from one distribution.

    That distribution is estimated by both together. Across each border between two bins, the
    shares of calls below it differ by a normal deviate with the variance F(1-F)(1/m+1/n), whose
    mean size is its standard deviation times sqrt(2/π). 0 when one profile is empty.
    """
    resolution = math.gcd(a.resolution, b.resolution)
    a, b = a.coarsened(resolution), b.coarsened(resolution)
    a_calls, b_calls = sum(a.bins.values()), sum(b.bins.values())
    if not a_calls or not b_calls:
        return 0.0
    below, distance = 0, 0.0
    for bin_number in range(OCTAVES * resolution + 1):
        below += a.bins.get(bin_number, 0) + b.bins.get(bin_number, 0)
        share = below / (a_calls + b_calls)
        variance = share * (1 - share) * (1 / a_calls + 1 / b_calls)
        distance += math.sqrt(2 / math.pi * variance)
    return distance


def has_changed(before: Profile, now: Profile) -> bool:
    """Whether two profiles show different distributions: their distance is above
    :data:`NOTABLE_OCTAVES` and above :data:`CHANCE_FACTOR` times what chance alone makes of it.

    Raises :class:`~darc.errors.ProfileError` when one of them is empty.
    """
    least = NOTABLE_OCTAVES * math.gcd(before.resolution, now.resolution)
    return emd(before, now) > max(least, CHANCE_FACTOR * chance(before, now))
