"""How much two profiles differ (OSprof section 3.2, paper section 3.4)."""

from __future__ import annotations

import math

from darc.errors import ProfileError
from darc.profile import OCTAVES, Profile


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
