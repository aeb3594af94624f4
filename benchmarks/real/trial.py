"""One program, measured: alone, looked at by another tool, beside a bare gdb, and analysed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.measure import BIN, MeasurementError, stops_in
from benchmarks.real.clients import Load
from benchmarks.real.evidence import ms
from benchmarks.real.subjects import RealProgram, popen
from darc.debuggee.clock import tsc_hz

_SECONDS = 10.0
"""For how long a server is loaded alone and beside a bare gdb."""
_PATIENCE = 240.0
_OBSERVER = Path(__file__).parent.with_name("stops.py")


@dataclass(frozen=True)
class Latencies:
    """Of the clients' requests, in seconds; of a program without clients how long it took."""

    count: int
    median: float
    p99: float
    longest: float
    slow: float
    """The median of the requests that are to be slow; 0: there are no requests."""

    @classmethod
    def of(cls, load: Load) -> Self:
        ordered = sorted(load.latencies)

        def at(share: float) -> float:
            return ordered[min(int(len(ordered) * share), len(ordered) - 1)]

        slow = statistics.median(load.slow) if load.slow else 0.0
        return cls(len(ordered), at(0.5), at(0.99), ordered[-1], slow)


@dataclass(frozen=True)
class Measured:
    """One program. ``stops`` are the decisions' (seconds each, but for the last), ``own`` for how
    long of these darc was on a processor, ``stopped`` all the time that the report tells,
    ``setup`` that before the first probe was ready, ``answer`` that from gdb's start to its end,
    all in seconds; ``load`` the machine's when it began."""

    name: str
    evidence: str
    path: str
    is_right: bool
    stops: tuple[float, ...]
    own: tuple[float, ...]
    stopped: float
    setup: float
    answer: float
    load: float
    alone: Latencies
    attached: Latencies
    analysed: Latencies

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        found: dict[str, Any] = json.loads(text)
        for name in ("alone", "attached", "analysed"):
            found[name] = Latencies(**found[name])
        return cls(**found)


def measure(subject: RealProgram) -> Measured:
    """All of it; raises MeasurementError."""
    load = os.getloadavg()[0]
    alone, said = _trial(subject, None)
    evidence = _evidence(subject, said)
    attached, _ = _trial(subject, lambda folder, pid: _attach(subject, folder, pid))
    took: list[float] = []
    told: list[str] = []

    def beside(folder: Path, pid: int) -> None:
        begin = time.monotonic()
        told.extend(_analyse(subject, folder, pid))
        took.append(time.monotonic() - begin)

    analysed, _ = _trial(subject, beside)
    said, written = told
    report = json.loads(written)
    paths = [path["functions"] for path in report["root_cause_paths"]]
    shown = "; ".join(" → ".join(path) for path in paths) or report["status"]
    # The last one lasts until the user lets the program go on.
    both = zip(stops_in(said, tsc_hz()), stops_in(said, tsc_hz(), "processor"), strict=True)
    known = [(stop, on) for stop, on in both if stop > 0]
    return Measured(
        name=subject.name,
        evidence=evidence,
        path=shown,
        is_right=any(set(subject.truth) & set(path) for path in paths),
        stops=tuple(stop for stop, _ in known),
        own=tuple(on for _, on in known),
        stopped=report["program"]["stopped_seconds"],
        setup=report["program"]["setup_seconds"],
        answer=took[0],
        load=load,
        alone=alone,
        attached=attached,
        analysed=analysed,
    )


def _evidence(subject: RealProgram, said: str) -> str:
    """What another tool sees, and the slow requests beside it."""
    if subject.says is not None:
        return subject.says(said)
    assert subject.look is not None
    look, seen = subject.look, []
    latencies, _ = _trial(subject, lambda folder, pid: seen.append(look(folder, pid)), to_end=False)
    if latencies.slow:
        seen.append(f"the requests that are to be slow take {ms(latencies.slow)} then (median)")
    return "; ".join(seen)


def _trial(
    subject: RealProgram, beside: Callable[[Path, int], None] | None, *, to_end: bool = True
) -> tuple[Latencies, str]:
    """The program under load, and what is done ``beside`` it; with what it wrote. ``to_end``: a
    program without clients is waited for."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "program"
        folder.mkdir()
        begin = time.monotonic()
        process = subject.start(folder)
        load = Load(subject.connect, subject.clients, folder)
        try:
            with load.running():
                pid = subject.process(folder, process.pid)
                if beside is not None:
                    beside(folder, pid)
                elif subject.connect is not None:
                    time.sleep(_SECONDS)
            if subject.connect is None and to_end:
                _finish(process, subject.name)
            if subject.connect is None:
                load.latencies.append(time.monotonic() - begin)
            said = (folder / "output").read_text(errors="replace")
            if process.poll():
                raise MeasurementError(f"{subject.name}: {said[-400:]}")
            return Latencies.of(load), said
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and what it has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids: list[str] = []
    with contextlib.suppress(OSError):
        pids = children.read_text().split()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    process.wait()


def _finish(process: subprocess.Popen[bytes], what: str) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"{what} takes longer than {_PATIENCE:.0f} s") from None


def _gdb(
    subject: RealProgram, folder: Path, pid: int, *, commands: Sequence[str], program: str
) -> subprocess.Popen[bytes]:
    words = [item for command in (*subject.before, *commands) for item in ("-ex", command)]
    return popen(folder, program, "-nx", "-q", "-batch", "-p", str(pid), *words)


def _attach(subject: RealProgram, folder: Path, pid: int) -> None:
    """A bare gdb is there, and lets it go."""
    own = folder.parent / "gdb"
    own.mkdir()
    gdb = _gdb(subject, own, pid=pid, commands=["continue", "detach"], program="gdb")
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            gdb.wait(_SECONDS if subject.connect else _PATIENCE)
        if gdb.poll() is None:
            os.kill(pid, signal.SIGINT)  # gdb stops it, and goes on to its next command
            _finish(gdb, "gdb")
    finally:
        _end(gdb)


def _analyse(subject: RealProgram, folder: Path, pid: int) -> tuple[str, str]:
    """What gdb with darc says, and its report."""
    own = folder.parent / "darc"
    own.mkdir()
    report = own / "report.json"
    commands = [
        f"source {_OBSERVER}",
        f"darc start {subject.function} --peak last --max-time 60s {subject.options}",
        "continue",
        f"darc report --format json -o {report}",
        "python report()",
        "detach",
    ]
    gdb = _gdb(subject, own, pid=pid, commands=commands, program=str(BIN / "darc-gdb"))
    try:
        _finish(gdb, "darc")
    finally:
        _end(gdb)
    said = (own / "output").read_text(errors="replace")
    try:
        return said, report.read_text()
    except OSError:
        raise MeasurementError(f"{subject.name}: {said[-1000:]}") from None
