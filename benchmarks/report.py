"""The figures as a page of documentation."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import (
    BLOCKS,
    DEEP_LEVELS,
    DEEP_RUNS,
    GDB,
    LLDB,
    REPEATS,
    CallCost,
    Costs,
    Descent,
    Peer,
)

TIMED_GOAL = 1.5
SPANS_GOAL = 1.7
PASS_GOAL = 0.1
STOP_GOAL_SECONDS = {GDB: 0.020, LLDB: 0.050}
STOPS_GOAL = DEEP_LEVELS + 2


@dataclass(frozen=True)
class BenchmarkFigures:
    """Everything that one run of the benchmarks produced; costs by number of threads."""

    hz: int
    load: float
    gdb: str
    lldb: str
    alone: Costs
    darc: dict[int, Costs]
    spans: Costs
    """With every call kept one by one."""
    in_lldb: Costs
    peers: Sequence[Peer]
    descents: Sequence[Descent]


@dataclass(frozen=True)
class Goal:
    """What was wanted, what came out, and whether that will do."""

    text: str
    value: str
    met: bool


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    marks = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, marks, *rows)]


def _machine(figures: BenchmarkFigures) -> list[str]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return [
        f"- CPU: {models[0] if models else platform.machine()}, {os.cpu_count()} cores, "
        f"time-stamp counter at {figures.hz / 1e9:.2f} GHz",
        f"- kernel: {platform.system()} {platform.release()}",
        f"- gdb: {figures.gdb}; lldb: {figures.lldb}",
        f"- load when it began: {figures.load:.1f}; stops last longer on a busy machine",
    ]


def _row(
    costs: Costs, hz: int, name: str, *, cost: str, plain: str | None, reads: str
) -> list[str]:
    measured, two_reads = costs[cost], costs[reads]
    added = measured.over(costs[plain]) if plain else None
    return [
        name,
        f"{measured.median:.1f}",
        f"{measured.least:.1f}",
        f"{measured.median / hz * 1e9:.1f}",
        f"{measured.median / two_reads.median:.2f}",
        "" if added is None else f"{added / two_reads.median:.2f}",
    ]


_KINDS = (
    ("two reads of the TSC", "reads", None, "reads"),
    ("a plain call", "plain-pass", None, "reads"),
    ("a filtered pass-through", "pass", "plain-pass", "reads"),
    ("a call on the path, not timed", "path", "plain-path", "reads"),
    ("a timed call", "timed", "plain-timed", "reads"),
    ("f0's entry", "entry", "plain-entry", "reads-while-profiling"),
)


def _cost_tables(figures: BenchmarkFigures) -> list[str]:
    lines = []
    for name, costs in _measured(figures):
        lines += ["", f"### {name[0].upper()}{name[1:]}", ""]
        lines += _table(
            ("", "cycles", "least", "ns", "× two reads", "added, × two reads"),
            (
                _row(costs, figures.hz, name, cost=cost, plain=plain, reads=reads)
                for name, cost, plain, reads in _KINDS
            ),
        )
    return lines


def _measured(figures: BenchmarkFigures) -> Iterator[tuple[str, Costs]]:
    """The costs with darc, and what to call them."""
    cores = os.cpu_count() or 1
    for threads, costs in figures.darc.items():
        note = f" (on {cores} cores)" if threads > cores else ""
        yield f"{threads} thread{'s' if threads > 1 else ''}{note}", costs
    yield "1 thread, in lldb", figures.in_lldb


def _peers(figures: BenchmarkFigures) -> list[str]:
    costs = figures.darc[1]
    reads = costs["reads"]
    own = costs["timed"].over(costs["plain-timed"])
    rows = [("darc, a timed call", *_added(own, reads, own, figures.hz))]
    for peer in figures.peers:
        if peer.absent:
            rows.append((peer.name, peer.absent, "", "", ""))
            continue
        added = peer.costs["timed"].over(peer.costs["plain-timed"])
        rows.append((f"{peer.name} ({peer.version})", *_added(added, reads, own, figures.hz)))
    return _table(("", "added cycles", "ns", "× two reads", "× darc"), rows)


def _added(added: float, reads: CallCost, own: float, hz: int) -> tuple[str, str, str, str]:
    return (
        f"{added:,.0f}",
        f"{added / hz * 1e9:,.0f}",
        f"{added / reads.median:,.1f}",
        f"{added / own:,.1f}",
    )


def _descents(figures: BenchmarkFigures) -> list[str]:
    rows = []
    for descent in figures.descents:
        seconds = descent.all
        rows.append(
            (
                f"{descent.debugger}, `--lookahead {descent.lookahead}`",
                str(descent.count),
                f"{statistics.median(seconds) * 1e3:.1f} ms",
                f"{max(seconds) * 1e3:.1f} ms",
            )
        )
    return _table(("", "stops", "median stop", "longest stop"), rows)


def goals(figures: BenchmarkFigures) -> list[Goal]:
    """Every goal, in the order of the page."""
    found = []
    for name, costs in _measured(figures):
        reads = costs["reads"].median
        ratio = costs["timed"].median / reads
        suffix = f", {name}"
        text = f"a timed call, at most {TIMED_GOAL} × two reads{suffix}"
        found.append(Goal(text, f"{ratio:.2f}", ratio <= TIMED_GOAL))
        ratio = costs["pass"].over(costs["plain-pass"]) / reads
        text = f"what a pass-through adds, at most {PASS_GOAL} × two reads{suffix}"
        found.append(Goal(text, f"{ratio:.2f}", ratio <= PASS_GOAL))
    ratio = figures.spans["timed-in-spans"].median / figures.spans["reads"].median
    text = f"a timed call with its span kept, at most {SPANS_GOAL} × two reads, 1 thread"
    found.append(Goal(text, f"{ratio:.2f}", ratio <= SPANS_GOAL))
    for descent in figures.descents:
        suffix = f", {descent.debugger}, `--lookahead {descent.lookahead}`"
        limit = STOP_GOAL_SECONDS[descent.debugger]
        text = f"stops of a descent {DEEP_LEVELS} levels deep, at most {STOPS_GOAL}{suffix}"
        found.append(Goal(text, str(descent.count), descent.count <= STOPS_GOAL))
        median = statistics.median(descent.all)
        text = f"median stop, at most {limit * 1e3:.0f} ms{suffix}"
        found.append(Goal(text, f"{median * 1e3:.1f} ms", median <= limit))
    return found


def page(figures: BenchmarkFigures) -> str:
    """The whole page."""
    cores = os.cpu_count() or 1
    chance = max(
        abs(figures.alone[probed].median / figures.alone[plain].median - 1)
        for probed, plain in (("timed", "plain-timed"), ("path", "plain-path"))
    )
    lines = [
        "# Benchmarks",
        "",
        "`make bench` measures all of this in one run and writes this page. Compare ratios, not",
        "cycles: machines differ, and two reads of the time-stamp counter (TSC) are the floor of",
        "whoever wants to know how long a call took. The same for a kernel's function is in",
        "[benchmarks-kernel.md](benchmarks-kernel.md).",
        "",
        *_machine(figures),
        "",
        "## Goals",
        "",
        *_table(
            ("", "measured", "met"),
            ((g.text, g.value, "yes" if g.met else "**no**") for g in goals(figures)),
        ),
        "",
        "## What a probe costs",
        "",
        "A program times loops of 1000 calls itself (`benchmarks/cost.c`), with darc's probes put",
        "in by a real descent in gdb, and once in lldb. Cycles per call are the median over the",
        f"blocks of 1000 calls ({BLOCKS} for each thread) and over {REPEATS} such runs; *least* is",
        "the smallest block.",
        "*Added* leaves out the same call of functions without probes, which the same program",
        "measures in turns with those that have them. Without darc the two differ by "
        f"{chance * 100:.1f} %.",
        f"This machine has {cores} cores: with more threads than that, they take turns.",
        *_cost_tables(figures),
        "",
        "## Other tools",
        "",
        "The same loop, one thread; what each tool adds to one call of one function.",
        "",
        *_peers(figures),
        "",
        "## Stops",
        "",
        f"A cause {DEEP_LEVELS} calls below f0 (`fixtures/deep.c`), {DEEP_RUNS} runs each. A stop",
        "lasts from the ringing of the bell in the program until that thread goes on, by its own",
        "TSC; the one at which darc begins is not among them. *Stops* are the most of any run.",
        "",
        *_descents(figures),
        "",
    ]
    return "\n".join(lines)
