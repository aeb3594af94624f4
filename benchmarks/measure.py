"""Runs the programs that measure, alone and under each tool."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.build import build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILT = ROOT / "build" / "benchmarks"
BIN = Path(sys.executable).parent
GDB, LLDB = "gdb", "lldb"

THREADS = (1, 2, 4)
REPEATS = 3
BLOCKS = 200
START_OPS = 1_000_000
DECISION_OPS = 16
DEEP_LEVELS = 8
DEEP_RUNS = 5
_TIMEOUT = 300
KEEP_ALL = "python import darc.analyses.searchphase as r; r._SPANS_IN_PEAK = 1 << 60"
"""A call is else kept one by one where it takes a 256th of the peak's fastest op."""


class MeasurementError(Exception):
    """A run did not end as it must for its figures to mean anything."""


@dataclass(frozen=True)
class CallCost:
    """Cycles per call: the median over the blocks of all repetitions' medians, and the least."""

    median: float
    least: float

    def over(self, plain: CallCost) -> float:
        """What it adds to the plain call."""
        return self.median - plain.median


Costs = dict[str, CallCost]


@dataclass(frozen=True)
class Peer:
    """A tool that times the same calls. ``absent`` says why it could not be measured."""

    name: str
    version: str
    costs: Costs
    absent: str | None = None


@dataclass(frozen=True)
class Descent:
    """Stops of the search for deep's root cause; ``stops`` are those of each run, in seconds."""

    debugger: str
    lookahead: str
    stops: tuple[tuple[float, ...], ...]

    @property
    def count(self) -> int:
        """The most stops of any run."""
        return max(map(len, self.stops))

    @property
    def all(self) -> list[float]:
        """Every stop of every run."""
        return [second for run in self.stops for second in run]


def run(*command: str | Path) -> str:
    """What a command writes.

    Raises:
        MeasurementError: it failed.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env=environment,
        check=False,
    )
    if done.returncode:
        said = done.stderr or done.stdout or "without a word"
        raise MeasurementError(f"{command[0]} ended with {done.returncode}: {said}")
    return done.stdout


def run_darc(
    debugger: str, commands: Sequence[str], program: Path, arguments: Sequence[str]
) -> str:
    """What a debugger with darc, and the program in it, write in a batch run."""
    words, ending = (["-nx", "-q", "-batch"], "--args") if debugger == GDB else (["-x", "-b"], "--")
    for command in commands:
        words += ["-ex" if debugger == GDB else "-o", command]
    return run(BIN / f"darc-{debugger}", *words, ending, program, *arguments)


def built(source: str, *flags: str, name: str | None = None) -> Path:
    """``SOURCE.c`` of this folder, compiled as ``name`` (else that of the source). Its functions
    must stay functions of their own."""
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / (name or source)
    options = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-ipa-icf", "-pthread", *flags)
    run("gcc", *options, HERE / f"{source}.c", "-o", program)
    return program


def costs(output: str, known: str = "timed") -> Costs:
    """Cycles that a program has printed, ``known`` among them.

    Raises:
        MeasurementError: it has not.
    """
    # What gdb says of threads may stand on the same line.
    found = re.findall(r"([a-z-]+) ([0-9]+\.[0-9]+) ([0-9]+\.[0-9]+)$", output, re.M)
    if known not in {name for name, _, _ in found}:
        raise MeasurementError(f"the program printed no figures:\n{output}")
    return {name: CallCost(float(median), float(least)) for name, median, least in found}


def together(runs: list[Costs]) -> Costs:
    """Those of several runs as one."""
    return {
        name: CallCost(
            statistics.median(run[name].median for run in runs),
            min(run[name].least for run in runs),
        )
        for name in runs[0]
    }


def without_darc(program: Path, threads: int) -> Costs:
    """The same loops where nothing is patched: how far twins differ by chance."""
    arguments = (threads, BLOCKS, 0, 0)
    return together([costs(run(program, *map(str, arguments))) for _ in range(REPEATS)])


def with_darc(program: Path, threads: int, debugger: str = GDB) -> Costs:
    """Every kind of probe, in its place."""
    return together([_with_darc(program, threads, debugger) for _ in range(REPEATS)])


def with_spans(program: Path) -> Costs:
    """The same, with every call kept one by one, however short it is, until its op ends."""
    return together([_with_darc(program, 1, GDB, KEEP_ALL) for _ in range(REPEATS)])


def _with_darc(program: Path, threads: int, debugger: str, *before: str) -> Costs:
    start = (
        f"darc start operation --peak 28-40 --start-ops {START_OPS} "
        f"--decision-ops {DECISION_OPS} --lookahead 2"
    )
    # One decision leads to inner; one more would end the search.
    arguments = map(str, (threads, BLOCKS, START_OPS, DECISION_OPS))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        commands = (*before, start, "run", f"darc report -o {report}")
        output = run_darc(debugger, commands, program, tuple(arguments))
        figures = json.loads(report.read_text())["program"]
    # A thread that had to wait may add an op to the peak.
    if not DECISION_OPS <= figures["in_peak_calls"] < 2 * DECISION_OPS or figures["probes"] != 3:
        raise MeasurementError(f"the probes did not stand where they must: {figures}")
    return costs(output)


def uftrace() -> Peer:
    """uftrace, which patches the one function's entry and hooks its return."""
    name = "uftrace record -P leaf"
    # One that may be loaded anywhere ended at once under uftrace 0.13.
    flags = ("-fpatchable-function-entry=5", "-fno-pie", "-no-pie")
    if shutil.which("uftrace") is None:
        return Peer(name, "", {}, "not installed: tools/benchmarks.sh installs it")
    version = run("uftrace", "--version").split()[1]
    program = built("cost", *flags, name="cost-uftrace")
    try:
        runs = [_uftrace_run(program) for _ in range(REPEATS)]
    except MeasurementError as error:  # of another's tool: the figures of darc stay
        return Peer(name, version, {}, " ".join(str(error).split()))
    return Peer(name, version, together(runs))


def _uftrace_run(program: Path) -> Costs:
    with tempfile.TemporaryDirectory() as folder:
        output = run(
            *("uftrace", "record", "-P", "^leaf$", "--no-libcall", "-d", f"{folder}/data"),
            *(program, "peer", "50", "1000"),
        )
        counted = run("uftrace", "report", "-d", f"{folder}/data")
    if not re.search(r"\s50000\s+leaf$", counted, re.M):
        raise MeasurementError(f"uftrace did not see every call:\n{counted}")
    return costs(output)


def gdb_breakpoints(program: Path) -> Peer:
    """Two breakpoints with a Python ``stop`` each."""
    runs = []
    for _ in range(REPEATS):
        output = run(
            *("gdb", "-nx", "-q", "-batch", "-x", HERE / "gdb_breakpoints.py"),
            *("--args", program, "peer", "10", "40"),
        )
        if "calls 400\n" not in output:
            raise MeasurementError(f"gdb did not see every call:\n{output}")
        runs.append(costs(output))
    return Peer("gdb, a pair of breakpoints with a Python stop", gdb_version(), together(runs))


def gdb_version() -> str:
    """What gdb calls itself."""
    return run("gdb", "--version").splitlines()[0].split()[-1]


def lldb_version() -> str:
    """What lldb calls itself."""
    return run(BIN / "darc-lldb", "--version").split()[-1]


def deep(debugger: str, lookahead: str, hz: int) -> Descent:
    """The descent to a cause DEEP_LEVELS calls below f0."""
    program = build("deep")
    runs = []
    start = f"darc start handle --peak 19-24 --start-ops 1000 --lookahead {lookahead}"
    observer = HERE / "stops.py"
    if debugger == GDB:
        commands = (f"source {observer}", start, "run", "python report()")
    else:
        commands = (f"command script import {observer}", start, "run", "script stops.report()")
    for _ in range(DEEP_RUNS):
        output = run_darc(debugger, commands, program, ("60000",))
        if "level_7 → level_8\n" not in output:
            raise MeasurementError(f"the cause was not found:\n{output}")
        runs.append(stops_in(output, hz))
    return Descent(debugger, lookahead, tuple(runs))


def stops_in(output: str, hz: int, what: str = "stops") -> tuple[float, ...]:
    """What ``stops.py`` has printed of a search, in seconds: how long the program stood still, or
    for how long of that darc was on a ``processor``.

    Raises:
        MeasurementError: nothing.
    """
    for line in output.splitlines():
        name, *cycles = line.split() or [""]
        if name == what:
            return tuple(int(one) / hz for one in cycles)
    raise MeasurementError(f"nothing tells how long the stops were:\n{output[-1000:]}")
