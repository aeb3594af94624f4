"""Runs the fuzzers and prints a table; status 1 when there was a failure. See :mod:`tests.fuzz`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from tests.fuzz.trials import Result, run

FUZZERS = ("elf_files", "session_files", "command_lines", "names", "tables", "journals", "texts")
COUNT = 10_000
SAMPLE = {
    "elf_files": 150,
    "session_files": 600,
    "command_lines": 600,
    "names": 100,
    "tables": 300,
    "journals": 300,
    "texts": 200,
}
"""Inputs for each in the tests: a few seconds in all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m tests.fuzz [--only NAME] [--count N] [--seed N] [--first N]``."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--only", choices=FUZZERS, action="append", help="this fuzzer")
    parser.add_argument("--count", type=int, default=COUNT, help="inputs for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    options = parser.parse_args(arguments)
    results: list[Result] = []
    print(f"{'fuzzer':12} {'inputs':>8} {'refused':>8} {'failed':>8} {'seconds':>8}")
    for name in options.only or FUZZERS:
        trial = importlib.import_module(f"tests.fuzz.{name}").trial
        result = run(name, trial, count=options.count, seed=options.seed, first=options.first)
        results.append(result)
        print(
            f"{name:12} {result.inputs:8} {result.refused:8} {result.failed:8} "
            f"{result.seconds:8.0f}",
            flush=True,
        )
    for result in results:
        for kind, (number, text) in result.failures.items():
            print(f"\n{result.name}, input {number}: {kind}\n{text}")
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    sys.exit(main())
