"""What it costs to look where the time goes; writes ``docs/benchmarks-where.md``.

Everything is measured in turns in one run: probes of a set beside two reads of the counter; run
times of SQLite's own benchmark beside those of the same program alone, and under others' tools.
"""

from __future__ import annotations

import os
import platform
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure, speedtest
from benchmarks.measure import ROOT, MeasurementError
from darc.debuggee.clock import tsc_hz

PAGE = ROOT / "docs" / "benchmarks-where.md"
LONE_GOAL, NESTED_GOAL = 1.9, 2.2
"""× two reads: a call of one function in a loop, and each of eight that call one another."""

SET_GOAL, WALK_GOAL, RECORD_GOAL = 1.3, 1.02, 1.10
"""× the run time alone."""

LIGHT_BLOCKS, LIGHT_RUNS = 400, 3
FUNCTIONS, SEED = 500, 1
ROUNDS = 5
SIZE = 200
"""What SQLite's benchmark takes for ``--size``: some six seconds."""

CALLS_A_SECOND = 5_000
"""Each is two events: it enters the kernel and comes back."""

ALONE, GDB, PROFILE, WALK, UFTRACE = "alone", "gdb", "profile", "walk", "uftrace"
_TOLD = {
    ALONE: "alone",
    GDB: "in gdb, without darc",
    PROFILE: f"`darc profile` of {FUNCTIONS} functions",
    WALK: "`darc walk` from `main`",
    UFTRACE: f"`uftrace record -P` of {FUNCTIONS} functions",
}


@dataclass(frozen=True)
class Goal:
    """What a figure is to be at most."""

    text: str
    figure: float
    most: float

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.figure <= self.most


@dataclass(frozen=True)
class Figures:
    """All that was measured."""

    alone: measure.Costs
    """Cycles a call of the light program by itself,"""
    light: measure.Costs
    """and with probes in its functions."""
    seconds: Mapping[str, float]
    """What SQLite's benchmark takes, each way."""
    missing: Mapping[str, str]
    """Ways that could not be measured, and why."""
    calls: Mapping[str, int]
    """Calls that were timed, or written down."""
    recording: tuple[float, float, float] | str
    """Seconds of the load alone, and recorded; events a second. Or why there is none."""


def main() -> None:
    """All of it; ends with status 1 where a measurement failed."""
    try:
        figures = _measure()
    except MeasurementError as error:
        sys.exit(f"benchmarks: {error}")
    PAGE.write_text(_page(figures))
    for goal in _goals(figures):
        print(f"{'met' if goal.met else 'NOT MET':>7}  {goal.figure:>8.2f}  {goal.text}")
    print(f"benchmarks: all figures are in {PAGE.relative_to(ROOT)}")


def _measure() -> Figures:
    light = measure.built("light")
    alone = measure.costs(measure.run(light, "0"), "lone")
    probed = measure.together(
        [
            measure.costs(_in_gdb(light, (str(LIGHT_BLOCKS),), _of("lone nest*")), "lone")
            for _ in range(LIGHT_RUNS)
        ]
    )
    seconds, missing, calls = _sqlite()
    return Figures(
        alone=alone,
        light=probed,
        seconds=seconds,
        missing=missing,
        calls=calls,
        recording=_recording(),
    )


def _of(pattern: str) -> str:
    return f"darc profile {pattern} --time 600s --top 1"


_TO_ITS_END = "python gdb.selected_inferior().pid and gdb.execute('continue')"
"""On a slow machine an analysis is over before the program is."""


def _in_gdb(program: Path, arguments: tuple[str, ...], *commands: str) -> str:
    return measure.run_darc(measure.GDB, (*commands, "run", _TO_ITS_END), program, arguments)


# ------------------------------------------------------------------------ SQLite


def _sqlite() -> tuple[dict[str, float], dict[str, str], dict[str, int]]:
    program, traced = speedtest.build(), speedtest.build(for_uftrace=True)
    arguments = ("--size", str(SIZE), "--memdb")
    names = random.Random(SEED).sample(speedtest.functions(program), FUNCTIONS)
    found: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    calls: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "names"
        listed.write_text("\n".join(names))
        only = [word for name in names for word in ("-P", f"^{name}$")]

        def once(way: str) -> str:
            if way == ALONE:
                return measure.run(program, *arguments)
            if way == GDB:
                command = ("gdb", "-nx", "-q", "-batch", "-ex", "run", "--args")
                return measure.run(*command, program, *arguments)
            if way == PROFILE:
                told = _in_gdb(program, arguments, _of(f"@{listed}"))
                if of := re.search(r"^  (\d+) calls of (\d+) functions", told, re.M):
                    calls[PROFILE] = int(of[1])
                return told
            if way == WALK:
                return _in_gdb(program, arguments, "darc walk")
            shutil.rmtree(f"{folder}/data", ignore_errors=True)
            record = ("uftrace", "record", "--no-libcall", "-d", f"{folder}/data", *only)
            return measure.run(*record, traced, *arguments)

        for number in range(ROUNDS):
            for way in _TOLD:
                if way in missing or (way == UFTRACE and number):  # it takes as long as all others
                    continue
                try:
                    found.setdefault(way, []).append(speedtest.seconds(once(way)))
                except (MeasurementError, OSError) as error:  # of another's tool: darc's stay
                    if way != UFTRACE:
                        raise
                    missing[way] = " ".join(str(error).split())[:200]
    return {way: min(all_) for way, all_ in found.items() if all_}, missing, calls


# ------------------------------------------------------------------------ recording


def _recording() -> tuple[float, float, float] | str:
    if shutil.which("perf") is None:
        return "perf is not installed: tools/benchmarks.sh installs it"
    program = measure.built("calls")
    alone, recorded, rates = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        record = (
            *("perf", "record", "-q", "-m", "128M", "-o", f"{folder}/data"),
            *("-e", "raw_syscalls:sys_enter", "-e", "raw_syscalls:sys_exit"),
            *("-e", "context-switches", "-c", "1", "--switch-events"),
            *("-k", "CLOCK_MONOTONIC_RAW", "--call-graph", "dwarf,16384"),
        )
        for _ in range(ROUNDS):
            alone.append(float(measure.run(program, str(CALLS_A_SECOND)).split()[0]))
            try:
                told = measure.run(*record, program, str(CALLS_A_SECOND))
            except MeasurementError as error:
                return " ".join(str(error).split())[:200]
            seconds, count = told.split()[:2]
            recorded.append(float(seconds))
            rates.append(2 * int(count) / float(seconds))
    return min(alone), min(recorded), max(rates)


# ------------------------------------------------------------------------ page


def _goals(figures: Figures) -> list[Goal]:
    reads = figures.light["reads"].median
    goals = [
        Goal(f"{text}, at most {most} × two reads", figures.light[name].median / reads, most)
        for name, text, most in (
            ("lone", "a call of one function of a set, in a loop", LONE_GOAL),
            ("nest", "each of eight that call one another", NESTED_GOAL),
        )
    ]
    for way, most in ((PROFILE, SET_GOAL), (WALK, WALK_GOAL)):
        ratio = figures.seconds[way] / figures.seconds[ALONE]
        goals.append(Goal(f"SQLite's benchmark, {_TOLD[way]}, at most {most} × alone", ratio, most))
    if not isinstance(figures.recording, str):
        alone, recorded, rate = figures.recording
        text = f"recording for `darc contexts` at {rate:,.0f} events a second, at most"
        goals.append(Goal(f"{text} {RECORD_GOAL} × alone", recorded / alone, RECORD_GOAL))
    return goals


def _page(figures: Figures) -> str:
    hz = tsc_hz()
    lines = [
        "# Benchmarks: where to look",
        "",
        "`make bench` measures this, too, and writes this page. What is measured is told in",
        "[where-to-look.md](where-to-look.md). All of it lasts only while darc profiles, or walks.",
        "",
        f"- {platform.system()} {platform.release()}, {os.cpu_count()} cores, time-stamp counter "
        f"at {hz / 1e9:.2f} GHz; load when it ended: {os.getloadavg()[0]:.1f}",
        "",
        "|  | measured | met |",
        "| --- | ---: | ---: |",
    ]
    for goal in _goals(figures):
        lines.append(f"| {goal.text} | {goal.figure:.2f} | {'yes' if goal.met else '**no**'} |")
    lines += [
        "",
        "## A call",
        "",
        "`benchmarks/light.c` times loops of 1000 calls itself, with the probes of `darc profile`",
        "in its functions, and rests between them, as what is called too often is taken out.",
        f"Cycles a call are the median over {LIGHT_BLOCKS} loops and {LIGHT_RUNS} runs. Where a",
        "function's call is among the instructions that its probe displaces (its first five",
        "bytes), some 25 cycles come on top: a processor does not foresee where it returns.",
        "",
        "|  | cycles | ns | × two reads | without darc |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    reads = figures.light["reads"].median
    for name, text in (
        ("reads", "two reads of the counter"),
        ("lone", "a function alone"),
        ("nest", "each of eight, one in another"),
    ):
        cost = figures.light[name].median
        cells = f"{cost:.1f} | {cost / hz * 1e9:.1f} | {cost / reads:.2f}"
        lines.append(f"| {text} | {cells} | {figures.alone[name].median:.1f} |")
    lines += [
        "",
        "## A program",
        "",
        f"SQLite's own benchmark (`speedtest1 --size {SIZE} --memdb`, at -O2), by its own clock;",
        f"the least of {ROUNDS} rounds, each way in turns. The {FUNCTIONS} functions are drawn at",
        "random from all that it has. What darc plans and writes is in the time, but for what it",
        "does before `main`. Functions whose calls are many and short go out while it runs, as for",
        "everybody.",
        "",
        "|  | seconds | × alone | calls timed |",
        "| --- | ---: | ---: | ---: |",
    ]
    for way, text in _TOLD.items():
        if way in figures.missing:
            lines.append(f"| {text} | {figures.missing[way]} |  |  |")
            continue
        seconds = figures.seconds[way]
        count = f"{figures.calls[way]:,}" if way in figures.calls else ""
        ratio = seconds / figures.seconds[ALONE]
        lines.append(f"| {text} | {seconds:.2f} | {ratio:.2f} | {count} |")
    lines += ["", "## Recording for contexts", ""]
    if isinstance(figures.recording, str):
        lines.append(f"Not measured: {figures.recording}")
    else:
        alone, recorded, rate = figures.recording
        lines += [
            "What `perf record` with the options of",
            "[where-to-look.md](where-to-look.md#in-which-context) adds to a program that computes",
            f"and makes {CALLS_A_SECOND:,} system calls a second",
            f"(`benchmarks/calls.c`): {alone:.2f} s alone, {recorded:.2f} s with it,",
            f"{100 * (recorded / alone - 1):+.1f} % at {rate:,.0f} events a second.",
        ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
