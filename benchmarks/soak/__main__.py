"""Runs every job, prints a table and writes ``docs/soak.md``. See ``--help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
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
    print(f"soak: seed {seed}", flush=True)
    begin = time.monotonic()
    outcomes: list[run.Outcome] = []
    failures: list[str] = []
    left_out: list[str] = []
    work = Path(tempfile.mkdtemp(prefix="darc-soak-"))
    for program, make in jobs(Sources(cache(), _say)).items():
        if options.programs and program not in options.programs:
            continue
        try:
            for job in make():
                if time.monotonic() - begin > options.minutes * 60:
                    left_out.append(job.name)
                    continue
                if options.job and options.job not in job.what:
                    continue
                print(job.name, flush=True)
                folder = work / str(len(outcomes) + len(failures))
                outcomes.append(run.run(job, folder, seed, _say))
                _tell(outcomes[-1])
        except (SourceError, run.JobError) as error:
            failures.append(f"{program}: {error}")
            print(f"  {error}", flush=True)
    text = page.table(outcomes)
    print(text)
    if left_out:
        print(f"soak: the {options.minutes} minutes were over before {', '.join(left_out)}")
    for failure in failures:
        print(f"soak: not run: {failure.splitlines()[0]}")
    if options.write and not options.programs and not options.job:
        PAGE.write_text(page.page(outcomes, seed, time.monotonic() - begin))
    failed = [o for o in outcomes if o.failed]
    print(f"soak: {len(outcomes)} jobs, {len(failed)} with a difference; logs are in {work}")
    sys.exit(1 if failed or failures or not outcomes else 0)


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


def _tell(outcome: run.Outcome) -> None:
    if outcome.difference:
        _say(f"  differs ({outcome.blame}):\n{outcome.difference}")
    for words in outcome.figures.trouble[:10]:
        _say(f"  {words}")
    for fault in outcome.figures.faults[:5]:
        _say(f"  {fault}")


main()
