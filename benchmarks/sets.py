"""How often the comparison of two sets tells of a change that is none, and of one that is there.

``python -m benchmarks.sets [PAIRS]`` prints it. Runs are drawn from real profiles: those of
functions of SQLite that were called all the time (``benchmarks/sets.json.gz``), in time slices, on
a busy machine; each stands for several, so that there are 500. A run of a function is as many of
its slices as it has, drawn with replacement: its slow calls come in bursts, as they did.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from darc.model.comparison import ChangeVerdict, Pair, compare_all
from darc.model.functionprofile import FunctionProfile
from darc.model.functionset import FunctionSet
from darc.model.profile import Profile
from darc.model.setdiff import LEAST_DF, Method, difference, rate
from darc.saved.sets import from_part

RECORDED = Path(__file__).with_suffix(".json.gz")
FUNCTIONS = 500
PAIRS = 200
LABELLED = 250
_COUNTING = 40
"""The first so many functions hold almost all the latency."""

_SLOWER = 8
"""Bins further to the right, and more: where a call lies that has become slow."""


def recorded() -> FunctionSet:
    """The set that runs are drawn from."""
    known = from_part(json.loads(gzip.decompress(RECORDED.read_bytes())))
    rows = []
    for number in range(FUNCTIONS):
        row = known.rows[number % len(known.rows)]
        where = dataclasses.replace(row.function, offset=number, address=number)
        rows.append(dataclasses.replace(row, function=where))
    return dataclasses.replace(known, rows=tuple(rows))


def made(row: FunctionProfile, slices: Sequence[Mapping[int, int]]) -> FunctionProfile:
    """The function's profile of these slices."""
    bins: Counter[int] = Counter()
    for one in slices:
        bins.update(one)
    hz = row.profile.hz
    empty = Profile.empty(1, hz)
    middle = sum(n * empty.mean_cycles(b) for b, n in row.profile.bins.items())
    scale = row.profile.total / middle if middle else 1.0
    total = round(scale * sum(n * empty.mean_cycles(b) for b, n in bins.items()))
    profile = Profile(resolution=1, hz=hz, bins=dict(bins), count=sum(bins.values()), total=total)
    return dataclasses.replace(row, profile=profile, slices=tuple(slices))


def run(known: FunctionSet, chance: random.Random) -> FunctionSet:
    """Another run of the set."""
    rows = []
    for row in known.rows:
        rows.append(made(row, chance.choices(row.slices, k=len(row.slices))))
    return dataclasses.replace(known, rows=tuple(rows))


def slowed(row: FunctionProfile, share: float, chance: random.Random) -> FunctionProfile:
    """A part of its calls, in each slice, has become slow."""
    far = max(row.profile.bins) + _SLOWER
    slices = []
    for one in row.slices:
        slow = round(sum(one.values()) * share * chance.expovariate(1.0))
        slices.append({**one, far: slow} if slow else one)
    return made(row, slices)


def alarms(known: FunctionSet, chance: random.Random) -> tuple[int, int]:
    """Functions of two runs that are told to have changed: as ``darc compare`` has it, and where
    those are compared too that hardly count."""
    a, b = run(known, chance), run(known, chance)
    every = compare_all(
        [
            Pair(one.profile, other.profile, one.slices, other.slices)
            for one, other in zip(a.rows, b.rows, strict=True)
        ],
        least_df=LEAST_DF,
    )
    told = sum(any(c.verdict is ChangeVerdict.CHANGED for c in changes) for changes in every)
    return difference(a, b).alarms, told


def anew(bins: Mapping[int, int], times: float, chance: random.Random) -> dict[int, int]:
    """So many times as many calls, each drawn by itself."""
    return {
        b: round(max(0.0, chance.gauss(n * times, (n * times) ** 0.5))) for b, n in bins.items()
    }


def labelled(
    known: FunctionSet, chance: random.Random
) -> list[tuple[bool, FunctionProfile, FunctionProfile]]:
    """Pairs of a function's profiles, and whether they are different: calls drawn anew, more and
    fewer of them; moved; with a peak that came or went; with twice to four times the slow calls,
    of those that have at least a hundredth of them."""
    fit = [
        row
        for row in known.rows
        if row.profile.count >= 1000
        and len(row.peaks) > 1
        and row.peaks[-1].count * 100 >= row.profile.count
    ]
    found = []
    for number in range(LABELLED):
        row = chance.choice(fit)
        before = made(row, [anew(row.profile.bins, 1.0, chance)])
        bins = anew(row.profile.bins, chance.uniform(0.7, 1.4), chance)
        now, kind = made(row, [bins]), number % 5
        if kind == 2:
            by = chance.choice((1, 2))
            moved = made(row, [{b + by: n for b, n in bins.items()}]).profile
            now = dataclasses.replace(
                now, profile=dataclasses.replace(moved, total=now.profile.total << by)
            )
        elif kind == 3:
            now = slowed(now, chance.uniform(0.02, 0.1), chance)
            if chance.random() < 0.5:
                before, now = now, before
        elif kind == 4:
            first, times = row.peaks[-1].first_bin, chance.choice((2, 4))
            now = made(row, [{b: n * times if b >= first else n for b, n in bins.items()}])
        found.append((kind > 1, before, now))
    return found


def errors(pairs: Sequence[tuple[bool, FunctionProfile, FunctionProfile]], method: Method) -> float:
    """What part of the pairs the method tells wrongly, with the limit that suits it best."""
    rated = sorted((rate(method, a, b), differs) for differs, a, b in pairs)
    wrong = sum(not differs for _, differs in rated)
    least = wrong
    for _, differs in rated:  # everything up to here is called the same
        wrong += 1 if differs else -1
        least = min(least, wrong)
    return least / len(rated)


def main() -> None:
    """Prints all of it."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    known, chance = recorded(), random.Random(1)
    told = [alarms(known, chance) for _ in range(pairs)]
    print(f"false alarms in {pairs} pairs of runs of {len(known.rows)} functions:")
    print(f"  {sum(a for a, _ in told)} functions; {sum(b for _, b in told)} if none is dropped")
    print("a function gets slow calls, by the part of its calls:")
    for share in (0.001, 0.003, 0.01, 0.03):
        seen = 0
        for _ in range(20):
            a, b = run(known, chance), run(known, chance)
            which = chance.randrange(_COUNTING)
            rows = list(b.rows)
            rows[which] = slowed(rows[which], share, chance)
            found = difference(a, dataclasses.replace(b, rows=tuple(rows)))
            seen += any(r.is_alarm and r.now is rows[which] for r in found.rows)
        print(f"  {share:.1%}: told in {seen} of 20")
    print(f"pairs of {LABELLED} that a method alone tells wrongly (OSprof 3.2: 2 to 5 %):")
    sample = labelled(known, chance)
    for method in Method:
        print(f"  {method.value:8}{errors(sample, method):.1%}")


if __name__ == "__main__":
    main()
