"""How often a resumed session tells of a change that is none, and of one that is there.

``python -m benchmarks.resume [RUNS]`` prints it. Calls are drawn independently, or with slow calls
that come in bursts: then the share of slow calls is another one in each moment (a beta
distribution).
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from darc.model.comparison import ChangeVerdict, PeakChange, compare
from darc.model.profile import Profile

HZ = 2_600_000_000
MOMENTS = 200
"""Bursts that a run has room for."""

SLICES = 20
RUNS = 500


@dataclass(frozen=True)
class Program:
    """Where its calls lie, and how much its slow ones come together."""

    slow: float
    """The part of its calls that is slow."""
    burst: float = 0.0
    """How alike calls of one moment are: 0 independent, 1 all or none of them slow."""


def draw(program: Program, calls: int, chance: random.Random) -> tuple[Profile, list[Counter[int]]]:
    """A run of it: its profile and the slices of that."""
    slices: list[Counter[int]] = [Counter() for _ in range(SLICES)]
    moments = min(MOMENTS, calls)
    for moment in range(moments):
        here = calls * (moment + 1) // moments - calls * moment // moments
        share = program.slow
        if program.burst and 0 < share < 1:
            size = 1 / program.burst - 1
            share = chance.betavariate(share * size, (1 - share) * size)
        slow = sum(chance.random() < share for _ in range(here))
        found = slices[moment * SLICES // moments]
        found[23] += slow
        quick = chance.choices((10, 11, 12), (1, 6, 2), k=here - slow)
        found.update(quick)
    bins: Counter[int] = Counter()
    for one in slices:
        bins.update(one)
    return Profile(1, HZ, dict(bins), calls), slices


def told(
    before: Program, now: Program, calls: tuple[int, int], *, runs: int, seed: int = 1
) -> Iterator[tuple[PeakChange, ...]]:
    """What is said of pairs of runs."""
    chance = random.Random(seed)
    for _ in range(runs):
        a, b = draw(before, calls[0], chance), draw(now, calls[1], chance)
        yield compare(a[0], b[0], a[1], b[1])


def alarms(
    before: Program, now: Program, calls: tuple[int, int], *, runs: int, seed: int = 1
) -> float:
    """In what part of them a change is told."""
    found = sum(
        any(change.verdict is ChangeVerdict.CHANGED for change in changes)
        for changes in told(before, now, calls=calls, runs=runs, seed=seed)
    )
    return found / runs


def main() -> None:
    """Prints both."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(f"false alarms, of {runs} pairs of runs without a change")
    for burst in (0.0, 0.02, 0.2):
        for slow in (0.001, 0.01, 0.1):
            for calls in ((100, 100), (100, 5000), (2000, 2000), (10000, 10000)):
                program = Program(slow, burst)
                rate = alarms(program, program, calls, runs=runs)
                print(
                    f"  {slow:6.1%} slow, alike {burst:4.2f}, {calls[0]:5} and {calls[1]:5} calls: "
                    f"{rate:.1%}"
                )
    print(f"power, of {runs} pairs of runs with a change of the slow calls' share")
    for burst in (0.0, 0.02, 0.2):
        for shares in ((0.001, 0.011), (0.0, 0.01), (0.01, 0.02)):
            before, now = (Program(share, burst) for share in shares)
            rate = alarms(before, now, (10000, 10000), runs=runs)
            print(
                f"  {shares[0]:.1%} to {shares[1]:.1%} of 10000 calls, alike {burst:4.2f}: "
                f"{rate:.1%}"
            )


if __name__ == "__main__":
    main()
