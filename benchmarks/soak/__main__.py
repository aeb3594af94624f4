"""Runs every job, prints a table and writes ``docs/soak.md``. See ``--help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.soak import page, run
from benchmarks.soak.programs import jobs
from benchmarks.soak.sources import SourceError, Sources, cache

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "soak.md"


def main() -> None:
    """Ends with status 1 when darc changed anything, or a job could not be run."""
    options = _options()
    seed = run.random_seed() if options.seed is None else options.seed
    _say(f"soak: seed {seed}")
    begin = time.monotonic()
    soak = Soak(seed, begin + options.minutes * 60)
    for program, make in jobs(Sources(cache(), _say)).items():
        if not options.programs or program in options.programs:
            soak.all_of(program, make(), options.job or "")
    _say(page.table(soak.outcomes))
    if soak.left_out:
        _say(f"soak: the {options.minutes} minutes were over before {', '.join(soak.left_out)}")
    for failure in soak.failures:
        _say(f"soak: not run: {failure.splitlines()[0]}")
    if options.write and not options.programs and not options.job:
        seconds = time.monotonic() - begin
        PAGE.write_text(page.page(soak.outcomes, seed, seconds, soak.left_out))
    failed = [outcome for outcome in soak.outcomes if outcome.failed]
    _say(f"soak: {len(soak.outcomes)} jobs, {len(failed)} with a difference; logs: {soak.work}")
    sys.exit(1 if failed or soak.failures or not soak.outcomes else 0)


class Soak:
    """The jobs of one run and what came of them."""

    def __init__(self, seed: int, deadline: float) -> None:
        self._seed = seed
        self._deadline = deadline
        self.work = Path(tempfile.mkdtemp(prefix="darc-soak-"))
        self.outcomes: list[run.JobOutcome] = []
        self.failures: list[str] = []
        self.left_out: list[str] = []

    def all_of(self, program: str, made: Iterator[run.Job], wanted: str) -> None:
        """Runs the jobs of a program that have ``wanted`` in their names."""
        try:
            for job in made:
                if wanted in job.what:
                    self._one(job)
        except SourceError as error:
            self._failed(f"{program}: {error}")

    def _one(self, job: run.Job) -> None:
        if time.monotonic() > self._deadline:
            self.left_out.append(job.name)
            return
        _say(job.name)
        folder = self.work / str(len(self.outcomes) + len(self.failures))
        try:
            self.outcomes.append(run.run(job, folder, self._seed, _say))
        except run.JobError as error:
            self._failed(str(error))
        else:
            _tell(self.outcomes[-1])

    def _failed(self, why: str) -> None:
        self.failures.append(why)
        _say(f"  {why}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("programs", nargs="*", help="these programs only")
    parser.add_argument("--job", help="jobs with this in their name only")
    parser.add_argument(
        "--minutes", type=int, default=60, help="no job begins later than that (default: 60)"
    )
    parser.add_argument("--seed", type=int, help="repeat the choices of an earlier run")
    parser.add_argument(
        "--write", action="store_true", help="write the figures of all jobs to docs/soak.md"
    )
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, flush=True)


def _tell(outcome: run.JobOutcome) -> None:
    if outcome.blame is not None:
        _say(f"  differs ({outcome.blame.value}):\n{outcome.difference}")
    for words in outcome.figures.trouble[:10]:
        _say(f"  {words}")
    for fault in outcome.figures.faults[:5]:
        _say(f"  {fault}")


main()
