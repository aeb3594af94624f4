"""What an analysis costs a workload in a kernel, from its start to its end: the DARC paper's
figures 10 to 12, with its two workloads.

A run is a fixed number of operations, and its time is the guest's own. Each run with an analysis is
compared with the runs without one before and behind it, as what else the host does comes and goes.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import kernel_debugger as debugger
from benchmarks.measure import BIN, MeasurementError
from kgdb.vm import guest, kernels, machine, workloads

_SECONDS = 600
_POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A program of ``fixtures/kernel``, which prints the mean time of each ``block`` operations,
    and how it is analysed."""

    name: str
    function: str
    block: int
    operations: int
    """In a run."""
    start_ops: int
    decision_ops: tuple[int, ...]
    rounds: int


STAT = Workload(
    name="stat",
    function="vfs_statx",
    block=10_000,
    operations=300_000,
    start_ops=1_000,
    decision_ops=(20, 60, 600, 6_000, 60_000, 100_000),
    rounds=5,
)
"""A run is a thousandth of the paper's, as are ``decision_ops`` but for the first and the last."""

READ = Workload(
    name="randomread",
    function="vfs_read",
    block=100,
    operations=5_100,
    start_ops=1_000,
    decision_ops=(20, 650),
    rounds=15,
)
"""A run is a tenth of the paper's, and so is the second ``decision_ops``."""

_PAPER_STAT = {60: "1.0", 600: "1.03", 6_000: "1.29", 60_000: "4.9"}
_PAPER_READ = {650: "1.0"}
"""The paper's run times for a thousand times the ``decision_ops``, and for ten times."""

_INTRODUCTION = """\
## An analysis, from its start to its end

The DARC paper's figures 10 to 12 (SIGMETRICS'08, section 9) on today's kernel: `vfs_statx` in a
loop of `stat`, and `vfs_read` in random reads with direct I/O. The programs are those of
`fixtures/kernel`. A run is 300,000 calls of `stat`, a thousandth of the paper's, or 5,100 reads, a
tenth; `decision_ops` are scaled likewise. The analysis begins with the run, with
`--start-ops 1000`.

*Run time* is that of a run on the guest's clock, as a multiple of the runs before and behind it
without an analysis: the median over {rounds} rounds with `stat` and {read_rounds} with reads. *By
instructions* is one more run in a guest whose clock counts instructions (`--icount`). *With stops*
adds the time that the guest stood still for decisions. *Analysed* is the part of the run's calls
before the root cause was found.
"""


@dataclass(frozen=True)
class Run:
    """One run with an analysis in it."""

    ratio: float
    """Its time, as a multiple of that without an analysis."""
    analysed: float
    """The part of its operations during which the analysis was on, from 0 to 1."""
    stops: int
    stopped_seconds: float
    """On the host's clock: the guest's stands still."""
    stopped_share: float
    """The same, as a multiple of the run's time without an analysis."""
    paths: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Overhead:
    """Of analyses with one ``decision_ops``: the medians of their runs."""

    decision_ops: int
    runs: tuple[Run, ...]

    @property
    def ratio(self) -> float:
        """See :class:`Run`, as the others."""
        return statistics.median(run.ratio for run in self.runs)

    @property
    def with_stops(self) -> float:
        """The ratio, with the time that the guest stood still for decisions."""
        return statistics.median(run.ratio + run.stopped_share for run in self.runs)

    @property
    def analysed(self) -> float:
        return statistics.median(run.analysed for run in self.runs)

    @property
    def stops(self) -> float:
        return statistics.median(run.stops for run in self.runs)

    @property
    def stopped_seconds(self) -> float:
        return statistics.median(run.stopped_seconds for run in self.runs)


@dataclass(frozen=True)
class OverheadFigures:
    """Of each workload, a row for each ``decision_ops``."""

    stat: tuple[Overhead, ...]
    stat_instructions: tuple[Overhead, ...]
    """By a clock that counts the guest's instructions."""
    read: tuple[Overhead, ...]


def measure_all(kernel: kernels.CachedKernel) -> OverheadFigures:
    """All of it: some ten minutes."""
    return OverheadFigures(
        measure(kernel, STAT), measure(kernel, STAT, icount=True), measure(kernel, READ)
    )


def measure(
    kernel: kernels.CachedKernel, workload: Workload, icount: bool = False
) -> tuple[Overhead, ...]:
    """All of it in one guest. With ``icount`` its clock counts instructions: one round will do."""
    setup = machine.Setup(kernel, workloads.built(workload.name), icount=icount)
    started = machine.start(setup, "benchmark", _SECONDS)
    guest_runs = _Guest(started, workload)
    runs: dict[int, list[Run]] = {ops: [] for ops in workload.decision_ops}
    try:
        started.wait_for(guest.READY, _SECONDS)
        before = guest_runs.undisturbed()
        for _ in range(1 if icount else workload.rounds):
            for ops, found in runs.items():
                seconds, report = guest_runs.analysed(ops)
                after = guest_runs.undisturbed()
                found.append(_compared(seconds, (before + after) / 2, report, workload))
                before = after
    finally:
        started.stop()
    return tuple(Overhead(ops, tuple(found)) for ops, found in runs.items())


def _compared(seconds: float, plain: float, report: dict[str, Any], workload: Workload) -> Run:
    """A run beside its neighbours without an analysis."""
    program = report["program"]
    seen = report["profile"]["count"] + program["in_peak_calls"]
    return Run(
        ratio=seconds / plain,
        analysed=min(1.0, seen / workload.operations),
        stops=program["stops"],
        stopped_share=program["stopped_seconds"] / plain,
        stopped_seconds=program["stopped_seconds"],
        paths=tuple(tuple(path["functions"]) for path in report["root_cause_paths"]),
    )


@dataclass(frozen=True)
class _Guest:
    """A machine that runs a workload without end."""

    machine: machine.Machine
    workload: Workload

    def undisturbed(self) -> float:
        """Seconds that a run takes by itself. The block that has begun may not have been alone."""
        return self._run(len(self._blocks()) + 1)

    def analysed(self, decision_ops: int) -> tuple[float, dict[str, Any]]:
        """The same, with an analysis that begins in the first block; and what that reports, when
        both are over."""
        workload = self.workload
        begun = "the workload has printed"
        count = f"shell echo {begun} $(grep -c ^mean {self.machine.folder}/messages.log)"
        options = f"--task {workload.name} --peak 1 --start-ops {workload.start_ops}"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "report.json"
            output = debugger.run(
                BIN / "darc-gdb",
                self.machine,
                f"darc start {workload.function} {options} --decision-ops {decision_ops}",
                count,
                "continue",
                f"darc report --format json --require root-cause -o {file}",
            )
            first = re.search(rf"^{begun} (\d+)$", output, re.M)
            if first is None or not file.exists():
                raise MeasurementError(f"darc found no root cause:\n{output}")
            report = json.loads(file.read_text())
        return self._run(int(first[1])), report

    def _run(self, first: int) -> float:
        """Seconds that the blocks of a run took, the first of which has this number."""
        end = first + self.workload.operations // self.workload.block
        deadline = time.monotonic() + _SECONDS
        while len(blocks := self._blocks()) < end:
            if time.monotonic() > deadline or not self.machine.alive:
                raise MeasurementError(f"the guest prints no more:\n{self.machine.last_words()}")
            time.sleep(_POLL_SECONDS)
        return sum(blocks[first:end]) * self.workload.block

    def _blocks(self) -> list[float]:
        """Mean seconds of an operation, for each block that is over."""
        found = re.findall(r"^mean ([0-9.]+) us$", self.machine.messages, re.M)
        return [float(mean) / 1e6 for mean in found]


def section(figures: OverheadFigures) -> list[str]:
    """Of the page of figures."""
    introduction = _INTRODUCTION.format(rounds=STAT.rounds, read_rounds=READ.rounds)
    return [*introduction.splitlines(), "", *tables(figures)]


def tables(figures: OverheadFigures) -> list[str]:
    """What was measured, beside the paper's figures."""
    return [
        "| `stat`, `decision_ops` | analysed | run time | by instructions | with stops | stops "
        "| paper |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {_row_begin(one)} | {counted.ratio:.2f} | {_row_end(one, _PAPER_STAT)} |"
            for one, counted in zip(figures.stat, figures.stat_instructions, strict=True)
        ),
        "",
        *_paths(figures.stat),
        "",
        "| random read, `decision_ops` | analysed | run time | with stops | stops | paper |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {_row_begin(one)} | {_row_end(one, _PAPER_READ)} |" for one in figures.read),
        "",
        *_paths(figures.read),
    ]


def _row_begin(one: Overhead) -> str:
    return f"{one.decision_ops:,} | {one.analysed:.0%} | {one.ratio:.2f}"


def _row_end(one: Overhead, paper: dict[int, str]) -> str:
    stops = f"{one.stops:.0f}, {one.stopped_seconds * 1000:.0f} ms"
    return f"{one.with_stops:.2f} | {stops} | {paper.get(one.decision_ops, '')}"


def _paths(rows: tuple[Overhead, ...]) -> list[str]:
    """What was found, and by how many of the analyses."""
    found = Counter(run.paths for row in rows for run in row.runs)
    return [
        f"{count} of {found.total()} analyses: " + "; ".join(" → ".join(path) for path in paths)
        for paths, count in found.most_common()
    ]
