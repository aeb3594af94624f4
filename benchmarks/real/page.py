"""``docs/benchmarks-real.md``, from what was measured."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence

from benchmarks.measure import ROOT, gdb_version
from benchmarks.real.evidence import ms
from benchmarks.real.subjects import RealProgram
from benchmarks.real.trial import Measured
from darc.debuggee.clock import tsc_hz

PAGE = ROOT / "docs" / "benchmarks-real.md"

_HEAD = """# Real programs

`make bench-real` measures all of this and writes this page: each program alone, looked at by
another tool (*evidence*), with a bare gdb that is attached and lets it run (*gdb*), and while darc
analyses it in gdb (*darc*). Servers get as much load as clients make that ask as fast as they are
answered, and whose latencies are told; of the others it is how long they take. What makes some
calls slow is put in by the workload.

- {cores} processors, shared by program, clients and debugger; time-stamp counter at {ghz:.2f} GHz
- kernel: {kernel}; gdb: {gdb}; load when each began: {loads}

The clients' *longest* request is that which met the attach (of gdb, darc or not) or the start of
the analysis; *start* is how long `darc start` took, with the program standing still; *stops* are
those of darc's decisions, *in all* has the end of the search as well.
"""


def page(found: Sequence[tuple[RealProgram, Measured]]) -> str:
    """The whole page."""
    loads = [one.load for _, one in found]
    head = _HEAD.format(
        cores=os.cpu_count(), ghz=tsc_hz() / 1e9, kernel=f"Linux {os.uname().release}",
        gdb=gdb_version(), loads=f"{min(loads):.1f} to {max(loads):.1f}",
    )  # fmt: skip
    lines = [
        *head.splitlines(),
        "",
        "| program | right | start | stops | median | longest | in all | p99 alone | gdb | darc |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for subject, one in found:
        trials = (one.alone, one.attached, one.analysed)
        p99 = [ms(trial.p99) if subject.connect else "" for trial in trials]
        cells = [one.name, "yes" if one.is_right else "**no**", ms(one.setup), str(len(one.stops))]
        lines.append(f"| {' | '.join([*cells, *_stops(one), ms(one.stopped), *p99])} |")
    for subject, one in found:
        lines += ["", *section(subject, one)]
    return "\n".join(lines).rstrip() + "\n"


def _stops(one: Measured) -> tuple[str, str]:
    return ms(statistics.median(one.stops or [0.0])), ms(max(one.stops, default=0.0))


def section(subject: RealProgram, one: Measured) -> list[str]:
    """What is told of one program."""
    middle, longest = _stops(one)
    own = one.own or (0.0,)
    goes = "goes" if one.is_right else "does **not** go"
    lines = [
        f"## {one.name}",
        "",
        f"`darc start {subject.function} {subject.options}`; {subject.why}.",
        "",
        f"> {one.path}",
        "",
        f"Evidence: {one.evidence}.",
        "",
        f"The path {goes} through `{subject.truth[0]}`, as it must. Answer after {ms(one.answer)}, "
        f"gdb's start and attach with it; decisions stopped it {len(one.stops)} times: median "
        f"{middle}, longest {longest}; of that darc was on a processor for "
        f"{ms(statistics.median(own))}, at most {ms(max(own))}. {ms(one.stopped)} in all, with the "
        f"end of the search; before, `darc start` took {ms(one.setup)}.",
        "",
    ]
    trials = (("alone", one.alone), ("gdb", one.attached), ("darc", one.analysed))
    if subject.connect is None:
        lines += ["|  | took |", "| --- | ---: |"]
        lines += [f"| {name} | {ms(trial.longest)} |" for name, trial in trials]
        return lines
    lines += [
        "| requests | number | median | p99 | longest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, trial in trials:
        figures = " | ".join(ms(one) for one in (trial.median, trial.p99, trial.longest))
        lines.append(f"| {name} | {trial.count} | {figures} |")
    return lines
