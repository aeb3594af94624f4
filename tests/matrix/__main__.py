"""``make matrix``: every cell with its fixtures, several at a time, and one table at the end.

``python -m tests.matrix [--jobs N] [--fixture NAME]… [--cell TEXT]…`` restricts it to those
fixtures and to the cells whose name contains one of the texts. Ends with status 1 when a program
was harmed or a path is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.matrix.cells import AXES, CELLS, Cell, plan
from tests.matrix.trial import Result, TrialOutcome, attempt

ATTEMPTS = 3
"""A busy machine makes other functions slow now and then, and darc says so: a wrong path is tried
again, and the table counts it. A program that was harmed is not."""

Trial = tuple[str, Cell]


def tried(trial: Trial) -> tuple[Trial, TrialOutcome, int]:
    """A trial, its outcome, and how often it was tried."""
    name, cell = trial
    for number in range(1, ATTEMPTS + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = attempt(name, cell, Path(folder))
            except Exception as error:  # one trial's trouble is told with the others
                return trial, TrialOutcome(Result.HARMED, f"could not be tried: {error!r}"), number
        if outcome.result is not Result.WRONG:
            break
    return trial, outcome, number


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--fixture", action="append")
    parser.add_argument("--cell", action="append")
    chosen = parser.parse_args(arguments)
    trials = [
        (name, cell)
        for cell, fixtures in plan(chosen.fixture).cells.items()
        for name in fixtures
        if not chosen.cell or any(text in str(cell) for text in chosen.cell)
    ]
    begin = time.monotonic()
    outcomes: dict[Trial, TrialOutcome] = {}
    again = 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for trial, outcome, number in pool.map(tried, trials):
            outcomes[trial] = outcome
            again += number > 1
            if outcome.result is not Result.RIGHT:
                name, cell = trial
                print(f"{outcome.result.value}: {name} {cell}: {outcome.words}", flush=True)
    print(table(outcomes))
    minutes = (time.monotonic() - begin) / 60
    print(f"{len(outcomes)} trials in {minutes:.1f} minutes, {again} of them tried again")
    return int(not all(outcome.is_fine for outcome in outcomes.values()))


def table(outcomes: Mapping[Trial, TrialOutcome]) -> str:
    """A row for each compiler, optimisation and linking; a column for each of the rest."""
    columns = [(p, s) for p in AXES["protection"] for s in AXES["symbols"]]
    heads = [f"{'cet' if p == 'full' else 'nocet'} {s}" for p, s in columns]
    lines = [f"{'':22}" + "".join(f"{head:>18}" for head in heads)]
    by_cell: dict[Cell, list[TrialOutcome]] = {}
    for (_, cell), outcome in outcomes.items():
        by_cell.setdefault(cell, []).append(outcome)
    rows = {(cell.cc, cell.opt, cell.link): None for cell in CELLS if cell in by_cell}
    for cc, opt, link in rows:
        cells = [
            by_cell.get(Cell(cc=cc, opt=opt, link=link, protection=p, symbols=s), [])
            for p, s in columns
        ]
        lines.append(f"{f'{cc} {opt} {link}':22}" + "".join(f"{_short(o):>18}" for o in cells))
    total = Counter(outcome.result for outcome in outcomes.values())
    lines.append(", ".join(f"{total[result]} {result.value}" for result in Result))
    return "\n".join(lines)


def _short(outcomes: Iterable[TrialOutcome]) -> str:
    """``3 right``, or the counts of what is not."""
    counts = Counter(outcome.result for outcome in outcomes)
    return ", ".join(f"{count} {result.value}" for result, count in counts.items()) or "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
