"""What it costs to know what calls wait for; writes ``docs/benchmarks-waits.md``.

Everything is measured in turns in one run, and told as what it adds to the same work alone.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from benchmarks import measure
from benchmarks.catch_words import LateCall
from benchmarks.measure import BUILT, HERE, ROOT, MeasurementError
from darc.debuggee import switches
from darc.debuggee.clock import tsc_hz
from darc.debuggee.switches import Switches

PAGE = ROOT / "docs" / "benchmarks-waits.md"
UNLOCK_GOAL = 0.15
START_OPS = 300
ROUNDS = 9
WATCH = "python import darc.analyses.searchphase as r; r.is_frequent = lambda rate: False"
"""Of calls that are frequent waits are else watched only when the search is over."""

_SWITCHES = "switches"
LOADS = {"processor": 250, "disk": 1500, "mixed": 200, _SWITCHES: 60_000}
DEPGRAPH = {"processor": "0.7 %", "disk": "10.1 %", "mixed": "8.5 %"}
"""What DepGraph's tracing added to sysbench's loads of the kind (its section IV-C)."""

THREADS = (1, 100, 500)
CATCHES = 41
ABOVE = "5ms"
LATE_MS = 1.0
STOPPED_MS, A_THREAD_MS = 3.0, 0.1
"""How late a call may be found, and after that for how long the program may run on, and so much
longer for each of its threads: 95 in 100."""

_TICK_SECONDS = 0.1


def main() -> None:
    """All of it."""
    unlocks = [_unlock(), _unlock(), _unlock()]
    loads = _loads()
    catches = {threads: _catches(threads) for threads in THREADS}
    PAGE.write_text(_page(unlocks, loads, catches))
    added = statistics.median(map(_filter, unlocks))
    met = "met" if added <= UNLOCK_GOAL else "NOT MET"
    print(f"{met:>7}  {added:>8.2f}  an unlock that nobody waits for, at most {UNLOCK_GOAL}")
    for threads, caught in catches.items():
        found, stood = _most(caught.late), _most(caught.stopped)
        goal = STOPPED_MS + A_THREAD_MS * threads
        for value, most, what in ((found, LATE_MS, "found late"), (stood, goal, "running on")):
            met = "met" if value <= most else "NOT MET"
            told = f"ms {what} (95 in 100) among {threads} threads, at most {most:g}"
            print(f"{met:>7}  {value:>8.2f}  {told}")
    print(f"benchmarks: all figures are in {PAGE.relative_to(ROOT)}")


# ------------------------------------------------------------------------ unlock

Figures = Mapping[str, float]


def _unlock() -> Figures:
    """Cycles, alone and (``with-…``) while ops are kept in a search that does not end."""
    program = measure.built("unlock")
    start = (
        f"darc start operation --peak last --start-ops {START_OPS} "
        "--decision-ops 1000000 --lookahead 1"
    )
    quiet = ("set print thread-events off", "set print inferior-events off")
    told = measure.run_darc(measure.GDB, (*quiet, WATCH, start, "run"), program, (str(START_OPS),))
    told += measure.run(program, "0")
    found = {
        name: float(median) for name, median in re.findall(r"^([a-z0-9-]+) ([0-9.]+) ", told, re.M)
    }
    if not {"unlock", "with-unlock", "unlock-16", "with-unlock-16"} <= found.keys():
        raise MeasurementError(f"the program printed no figures:\n{told}")
    return found


def _filter(figures: Figures) -> float:
    return (figures["with-unlock"] - figures["unlock"]) / figures["reads"]


# ----------------------------------------------------------------------- switches


@dataclass(frozen=True)
class Load:
    """One load under one way to watch it: what each round took, in seconds, and its switches."""

    seconds: tuple[float, ...]
    switches: tuple[int, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@contextmanager
def _watched(pid: int) -> Iterator[Callable[[], None]]:
    with Switches(pid) as watch:
        watch.goes_on()
        yield watch.drain
        watch.stands()


@contextmanager
def _by_anybody(pid: int) -> Iterator[Callable[[], None]]:
    """As one who may not ask who wakes threads."""
    refused = mock.Mock(side_effect=PermissionError)
    denied = mock.patch.multiple(switches, Wakers=refused, WhoRan=refused)
    with denied, _watched(pid) as drain:
        yield drain


@contextmanager
def _by_perf(_pid: int) -> Iterator[Callable[[], None]]:
    """``perf sched record``, which is of the whole machine."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("perf", "sched", "record", "-q", "-o", f"{folder}/data")
        perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(50):  # it has begun when its file has a head
                if (file := Path(folder) / "data").exists() and file.stat().st_size:
                    break
                if perf.poll() is not None:
                    raise MeasurementError(f"perf sched record ended with {perf.returncode}")
                os.sched_yield()
                subprocess.run(("sleep", "0.05"), check=True)
            yield lambda: None
        finally:
            perf.send_signal(signal.SIGINT)
            perf.wait()


Way = Callable[[int], AbstractContextManager[Callable[[], None]]]

_ALONE = "alone"
_WAYS: Mapping[str, Way] = {
    _ALONE: lambda _: nullcontext(lambda: None),
    "darc": _by_anybody,
    "darc, as root": _watched,
    "`perf sched record`": _by_perf,
}


def _loads() -> dict[tuple[str, str], Load]:
    program = measure.built("loads")
    ways = dict(_WAYS)
    if shutil.which("perf") is None:
        del ways["`perf sched record`"]
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for load, times in LOADS.items():
        for _ in range(ROUNDS):
            for name, way in ways.items():
                found.setdefault((load, name), []).append(_one(program, load, times, way))
    return {
        key: Load(tuple(s for s, _ in rounds), tuple(n for _, n in rounds))
        for key, rounds in found.items()
    }


def _one(program: Path, load: str, times: int, way: Way) -> tuple[float, int]:
    with subprocess.Popen(
        (program, load, str(times)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=BUILT,
    ) as child:
        with way(child.pid) as drain:
            assert child.stdin is not None
            child.stdin.write("x")
            child.stdin.close()
            while True:
                try:
                    child.wait(_TICK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    drain()
        assert child.stdout is not None
        seconds, count = child.stdout.read().split()
    return float(seconds), int(count)


# ------------------------------------------------------------------------ catches


@dataclass(frozen=True)
class Catches:
    """Late calls of one run, in ms."""

    late: tuple[float, ...]
    """How late they were found."""
    stopped: tuple[float, ...]
    """How long after that darc had the program, with all threads stopped."""
    missed: int


def _catches(threads: int) -> Catches:
    program = measure.built("horde")
    quiet = ("set print thread-events off", f"source {HERE / 'catch_clock.py'}")
    commands = (*quiet, f"darc catch handle --above {ABOVE}", "run", *["continue"] * (CATCHES - 1))
    told = measure.run_darc(measure.GDB, (*commands, "kill"), program, (str(threads), "1000"))
    words = "|".join(one.value for one in LateCall)
    found = re.findall(rf"^({words}) (-?\d+) (\d+)$", told, re.M)
    caught = [
        (int(late) / 1e3, int(stood) / 1e3)
        for what, late, stood in found
        if LateCall(what) is LateCall.CAUGHT
    ]
    if len(caught) < CATCHES // 2:
        raise MeasurementError(f"{len(caught)} calls were caught:\n{told}")
    late, stopped = zip(*caught, strict=True)
    return Catches(late, stopped, len(found) - len(caught))


def _most(values: Sequence[float]) -> float:
    """Of 95 in 100."""
    return sorted(values)[int(0.95 * len(values))]


def _catch_lines(catches: Mapping[int, Catches]) -> list[str]:
    lines = [
        "",
        "## Catches",
        "",
        f"How late `darc catch --above {ABOVE}` finds a call that sleeps (`benchmarks/horde.c`),",
        "and how long after that darc has the program, with all threads stopped; its other threads",
        f"wait. Goals: {LATE_MS:g} ms; {STOPPED_MS:g} ms, and {A_THREAD_MS:g} ms a thread.",
        "",
        "| threads | caught | missed | late, median | 95 in 100 | then, median | 95 in 100 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for threads, one in catches.items():
        figures = (
            statistics.median(one.late),
            _most(one.late),
            statistics.median(one.stopped),
            _most(one.stopped),
        )
        cells = " | ".join(f"{figure:.2f} ms" for figure in figures)
        lines.append(f"| {threads} | {len(one.late)} | {one.missed} | {cells} |")
    return lines


# --------------------------------------------------------------------------- page


def _page(
    unlocks: list[Figures],
    loads: Mapping[tuple[str, str], Load],
    catches: Mapping[int, Catches],
) -> str:
    hz = tsc_hz()
    median = {
        name: statistics.median(one[name] for one in unlocks)
        for name in unlocks[0]
        if all(name in one for one in unlocks)
    }
    lines = [
        "# Benchmarks: what calls wait for",
        "",
        "`make bench` measures this, too, and writes this page ([waits.md](waits.md) tells what is",
        "measured). All of it lasts only while darc searches, or catches.",
        "",
        f"- {platform.system()} {platform.release()}, {os.cpu_count()} cores, time-stamp counter "
        f"at {hz / 1e9:.2f} GHz; load when it ended: {os.getloadavg()[0]:.1f}",
        "",
        "## Releases",
        "",
        f"An unlock that nobody waits for takes {median['with-unlock'] - median['unlock']:.1f}",
        f"cycles more, {statistics.median(map(_filter, unlocks)):.2f} × two reads of the",
        f"time-stamp counter (goal: {UNLOCK_GOAL}). One that calls wait for which may be kept",
        "writes down who it is for each of them, up to 128 (`benchmarks/unlock.c`: the call of",
        "`pthread_mutex_unlock` alone, median of 60, µs; three runs):",
        "",
        "| threads that wait | alone | with darc |",
        "| --- | --- | --- |",
    ]
    for count in (1, 4, 16, 64):
        pair = (median[f"unlock-{count}"], median[f"with-unlock-{count}"])
        lines.append(f"| {count} | {' | '.join(f'{c / hz * 1e6:.1f}' for c in pair)} |")
    ways = [way for way in _WAYS if way != _ALONE and ("processor", way) in loads]
    lines += [
        "",
        "## Switches",
        "",
        f"What watching adds to a load (`benchmarks/loads.c`; median of {ROUNDS} rounds, each way",
        "in turns), and to a switch. DepGraph's own figures are of sysbench's loads. Other",
        "processes notice darc's watch not at all; perf's is of the whole machine.",
        "",
        f"| load | switches | alone | {' | '.join(ways)} | DepGraph |",
        f"| --- | --- | --- | {' | '.join('---' for _ in ways)} | --- |",
    ]
    for load in LOADS:
        alone = loads[load, _ALONE]
        cells = [f"{statistics.median(alone.switches):,.0f}", f"{alone.median * 1e3:.0f} ms"]
        for way in ways:
            one = loads[load, way]
            more = one.median - alone.median
            text = f"{100 * more / alone.median:+.1f} %"
            if load == _SWITCHES:
                text += f", {more / statistics.median(one.switches) * 1e6:+.2f} µs each"
            cells.append(text)
        lines.append(f"| {load} | {' | '.join(cells)} | {DEPGRAPH.get(load, '')} |")
    return "\n".join([*lines, *_catch_lines(catches), ""])


if __name__ == "__main__":
    main()
