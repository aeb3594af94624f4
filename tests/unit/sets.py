"""Profiles of many functions, made up."""

from __future__ import annotations

import dataclasses

from darc.model.ftree import Function
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet, ranked
from darc.model.leftout import LeftOut
from darc.model.membercounts import MemberCounts
from darc.model.profile import Profile

HZ = 10**9


def function(name: str, address: int = 16) -> Function:
    return Function(name=name, symbol=name, module="prog", address=address, offset=address)


def row(name: str, bins: dict[int, int], mean: float = 1.5, left: int = 0) -> FunctionProfile:
    """A function whose calls are spread so in their bins that the middle of each is the mean."""
    total = round(sum(n * mean * 2**b for b, n in bins.items()))
    profile = Profile(resolution=1, hz=HZ, bins=bins, count=sum(bins.values()), total=total)
    longest = 2 ** (max(bins) + 1) - 1 if bins else 0
    return FunctionProfile(function=function(name), profile=profile, longest=longest, left=left)


def counts(bins: dict[int, int], recursions: int = 0) -> MemberCounts:
    """What was counted of a function whose calls are in these bins, each in the middle of its."""
    return MemberCounts(
        calls=sum(bins.values()),
        sum=sum(round(n * 1.5 * 2**b) for b, n in bins.items()),
        max=2 ** (max(bins) + 1) - 1,
        left=0,
        dropped=0,
        lost=0,
        foreign=0,
        jumps=0,
        bins=bins,
        recursions=recursions,
    )


SECONDS = 2.0
"""For which those are timed that nobody says it of."""


def of(*rows: FunctionProfile, every: float | None = None) -> FunctionSet:
    """A set of functions, each at an address of its own."""
    placed = [
        dataclasses.replace(one, function=function(one.function.name, 64 * number))
        for number, one in enumerate(rows, 1)
    ]
    return FunctionSet(ranked(placed), seconds=SECONDS, every=every)


KNOWN = FunctionSet(
    (
        dataclasses.replace(
            row("handle", {10: 1000, 20: 10}, left=3),
            dropped=1,
            until=0.5,
            slices=({10: 500}, {10: 500, 20: 10}),
            lapse=({}, {10: 1000}),
        ),
        row("a_function_with_a_rather_long_name_that_does_not_fit", {9: 5}),
    ),
    uncalled=(function("idle"),),
    left_out=((function("tiny"), LeftOut("the function is shorter than a jump")),),
    seconds=2.0,
)
