"""The outcomes as a table, for the terminal and for the documentation."""

from __future__ import annotations

import os
from collections.abc import Sequence

from benchmarks.measure import gdb_version
from benchmarks.soak.run import JobOutcome

_TEXT = """# Soak: real programs under continuous analysis

`make soak` writes this page. It takes real programs (from Debian: sources, which it builds, and
programs as they are installed, stripped) and lets each test itself twice: once undisturbed, once
while darc analyses its processes from beginning to end. Exit status, output
and files must be the same.

gdb attaches to the process before it becomes the program, with the process's own parent, files
and signals. Then one short analysis follows the other: f0 is picked at random among functions
that were found on the stacks as the program ran and those that they call, `--decision-ops` is now
5, now a million, the peak is any; one third of the analyses is interrupted at random moments and
goes on. After each analysis, and at each interruption, all mapped code is compared with the
files. A difference is looked for once more undisturbed and in gdb without darc, to tell where it
comes from.
"""

_COLUMNS = """
- *tests*: what passed, as the program's own tests count; the same in both runs.
- *processes*: how many were analysed; where a test starts many, a random part of them is.
- *functions*: different f0; *refused*: analyses that darc refused in words, with the reason.
- *calls timed*: calls of f0, and in-peak calls below it. When enough were seen, an analysis ends.
- *slower*: time of the analysed run, with all of gdb's and darc's starts and stops, over that of
  the undisturbed one. What a probe itself costs is in [benchmarks.md](benchmarks.md).
- *differences*: of status, output or files; code that was not restored; errors of darc.
"""


def table(outcomes: Sequence[JobOutcome]) -> str:
    """One row a job, and their sum."""
    header = (
        "program",
        "tests",
        "processes",
        "functions",
        "analyses",
        "refused",
        "calls timed",
        "slower",
        "differences",
    )
    rows: list[Sequence[str]] = [header, ["---", *["---:"] * (len(header) - 1)]]
    rows += [_row(outcome) for outcome in outcomes]
    rows.append(_sum(outcomes))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(outcome: JobOutcome) -> Sequence[str]:
    figures = outcome.figures
    return (
        outcome.job.name,
        f"{outcome.tests}",
        f"{figures.processes}",
        f"{len(figures.functions)}",
        f"{figures.analyses}",
        f"{figures.refused}",
        f"{figures.calls + figures.below:,}",
        f"{outcome.analysed_seconds / outcome.alone_seconds:.1f} ×",
        _verdict(outcome),
    )


def _verdict(outcome: JobOutcome) -> str:
    if outcome.failed:
        return "**1**"
    return f"0 ({outcome.blame.value})" if outcome.blame is not None else "0"


def _sum(outcomes: Sequence[JobOutcome]) -> Sequence[str]:
    figures = [outcome.figures for outcome in outcomes]
    return (
        "all",
        f"{sum(outcome.tests for outcome in outcomes)}",
        f"{sum(one.processes for one in figures)}",
        f"{len(set().union(*(one.functions for one in figures)))}",
        f"{sum(one.analyses for one in figures)}",
        f"{sum(one.refused for one in figures)}",
        f"{sum(one.calls + one.below for one in figures):,}",
        "",
        f"{sum(outcome.failed for outcome in outcomes)}",
    )


def page(
    outcomes: Sequence[JobOutcome], seed: int, seconds: float, left_out: Sequence[str] = ()
) -> str:
    """``docs/soak.md``. ``left_out`` are jobs for which there was no time."""
    reasons: dict[str, int] = {}
    for outcome in outcomes:
        for why, count in outcome.figures.reasons.items():
            reasons[why] = reasons.get(why, 0) + count
    refused = [
        f"- {count} × {why}"
        for why, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    ]
    return "\n".join(
        [
            _TEXT,
            "## One run",
            "",
            f"`make soak` with gdb {gdb_version()} on {os.cpu_count()} cores, seed {seed}, in "
            f"{seconds / 60:.0f} minutes:",
            "",
            table(outcomes),
            *(["", f"No time was left for {', '.join(left_out)}."] if left_out else []),
            _COLUMNS,
            "## Refused",
            "",
            *(refused or ["Nothing was."]),
            "",
        ]
    )
