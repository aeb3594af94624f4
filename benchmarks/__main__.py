"""Measures everything, writes ``docs/benchmarks.md`` and tells which goals are not met."""

from __future__ import annotations

import os
import sys

from benchmarks import measure, report
from darc.debuggee.clock import tsc_hz

PAGE = measure.ROOT / "docs" / "benchmarks.md"


def main() -> None:
    """All of it; ends with status 1 where a measurement failed."""
    try:
        figures = _measure()
    except measure.MeasurementError as error:
        sys.exit(f"benchmarks: {error}")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(report.page(figures))
    for goal in report.goals(figures):
        print(f"{'met' if goal.met else 'NOT MET':>7}  {goal.value:>8}  {goal.text}")
    print(f"benchmarks: all figures are in {PAGE.relative_to(measure.ROOT)}")


def _measure() -> report.BenchmarkFigures:
    load = os.getloadavg()[0]
    hz = tsc_hz()
    program = measure.built("cost")
    return report.BenchmarkFigures(
        hz=hz,
        load=load,
        gdb=measure.gdb_version(),
        lldb=measure.lldb_version(),
        alone=measure.without_darc(program, 1),
        darc={threads: measure.with_darc(program, threads) for threads in measure.THREADS},
        spans=measure.with_spans(program),
        in_lldb=measure.with_darc(program, 1, measure.LLDB),
        peers=(measure.uftrace(), measure.gdb_breakpoints(program)),
        descents=tuple(
            measure.deep(debugger, lookahead, hz)
            for debugger in (measure.GDB, measure.LLDB)
            for lookahead in ("1", "auto")
        ),
    )


if __name__ == "__main__":
    main()
