"""Rows of two sets that are compared."""

from __future__ import annotations

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.profile import Profile
from tests.unit.samples import HZ

SLICES = 20


def row(name: str, bins: dict[int, int], offset: int = 16, module: str = "prog") -> FunctionProfile:
    """A function whose calls come evenly."""
    empty = Profile.empty(1, HZ)
    total = round(sum(n * empty.mean_cycles(b) for b, n in bins.items()))
    profile = Profile(resolution=1, hz=HZ, bins=bins, count=sum(bins.values()), total=total)
    one = {b: n // SLICES for b, n in bins.items() if n >= SLICES}
    longest = 2 ** (max(bins) + 1) - 1 if bins else 0
    function = Function(name=name, symbol=name, module=module, address=offset, offset=offset)
    return FunctionProfile(
        function=function, profile=profile, longest=longest, slices=(one,) * SLICES
    )
