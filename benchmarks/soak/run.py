"""Runs a job undisturbed and under continuous analysis, and compares."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from benchmarks.soak.events import Event
from darc.app import launching
from darc_gdb import launcher

HERE = Path(__file__).resolve().parent
GDB = ("gdb", "-iex", f"source {launcher.LOAD}")
_SLOWEST = 30
_GRACE_SECONDS = 300


class JobError(Exception):
    """A job cannot be run at all, also without darc; the message says why."""


@dataclass(frozen=True)
class Workplace:
    """Where a job runs: an empty folder, and the stand-in for the program that is analysed."""

    folder: Path
    program: Path


@dataclass(frozen=True)
class Job:
    """Something that a program does to test itself.

    ``command`` gets the place and returns what to run in its folder; it may put files there first.
    ``clean`` takes out of the output what differs from run to run (times, process ids).
    ``count`` tells how many tests passed, seen from the cleaned output. ``keep`` are files of the
    folder that are results too. ``share`` is how many of the program's processes are analysed, in
    [0, 1], ``at_once`` how many at a time.
    """

    program: str
    what: str
    binary: Path
    command: Callable[[Workplace], Sequence[str]]
    clean: Callable[[str], str] = str
    count: Callable[[str], int] = lambda _text: 1
    keep: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    at_once: int = 2

    @property
    def name(self) -> str:
        """For people, and for the choice of jobs to run."""
        return f"{self.program}: {self.what}"


@dataclass(frozen=True)
class Result:
    """What a run of a job came to, apart from how long it took."""

    status: int | None
    """``None``: it did not end in time and was killed."""
    output: str
    kept: Mapping[str, bytes]

    def difference(self, other: Result) -> str:
        """In what this result differs from ``other``, in some lines; empty when it does not."""
        if self.status != other.status:
            ends = [_last_lines(self.output), _last_lines(other.output)]
            return f"status {self.status}, not {other.status}\n{ends[0]}\n--- not\n{ends[1]}"
        mine, others = self.output.splitlines(), other.output.splitlines()
        lines = list(
            difflib.unified_diff(others, mine, "undisturbed", "analysed", lineterm="", n=1)
        )
        files = [name for name, data in self.kept.items() if other.kept[name] != data]
        return "\n".join(lines[:60] + [f"{name} differs" for name in files])


@dataclass
class LogFigures:
    """What the log of a run tells."""

    processes: int = 0
    analyses: int = 0
    refused: int = 0
    functions: set[str] = field(default_factory=set)
    calls: int = 0
    below: int = 0
    sites: int = 0
    trouble: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)


class Blame(str, Enum):
    """Who makes a difference, in the words of the table."""

    DARC = "darc"
    GDB = "gdb alone does it, too"
    JOB = "it differs undisturbed, too"


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """A job's row in the table. ``blame`` says who makes the difference, if there is one."""

    job: Job
    tests: int
    figures: LogFigures
    alone_seconds: float
    analysed_seconds: float
    difference: str
    blame: Blame | None

    @property
    def failed(self) -> bool:
        """Whether darc did anything that it must not."""
        return bool(self.figures.trouble) or self.blame is Blame.DARC


def run(job: Job, work: Path, seed: int, say: Callable[[str], None]) -> JobOutcome:
    """Both runs, and what tells a difference's origin when there is one.

    Raises:
        JobError: the job has no result that stays the same, or fails by itself.
    """
    begin = time.monotonic()
    plain = _once(job, work / "undisturbed", seed, share=0)
    alone = time.monotonic() - begin
    if plain.status != 0:
        how = "did not end" if plain.status is None else f"ends with status {plain.status}"
        raise JobError(f"{job.name} {how} by itself\n{_last_lines(plain.output)}")
    say(f"  undisturbed: {alone:.1f} s, {job.count(plain.output)} tests, status {plain.status}")
    limit = _SLOWEST * alone + _GRACE_SECONDS
    folder = work / "analysed"
    begin = time.monotonic()
    result = _once(job, folder, seed, share=job.share, limit=limit)
    took = time.monotonic() - begin
    figures = read_log(folder / "log")
    say(
        f"  analysed: {took:.1f} s, {figures.analyses} analyses of {len(figures.functions)} "
        f"functions in {figures.processes} processes, {figures.refused} refused, "
        f"{figures.calls} calls and {figures.below} below them"
    )
    difference, blame = result.difference(plain), None
    if difference:
        say("  a difference: looking where it comes from")
        again = _once(job, work / "again", seed, share=0, limit=limit)
        stops = _once(job, work / "gdb", seed, share=job.share, limit=limit, analyses=False)
        blame = Blame.DARC
        if stops.difference(plain):
            blame = Blame.GDB
        if again.difference(plain):
            blame = Blame.JOB
    return JobOutcome(
        job=job,
        tests=job.count(result.output),
        figures=figures,
        alone_seconds=alone,
        analysed_seconds=took,
        difference=difference,
        blame=blame,
    )


def _once(
    job: Job,
    work: Path,
    seed: int,
    *,
    share: float,
    limit: float = 1800.0,
    analyses: bool = True,
) -> Result:
    """One run in an empty folder. It is always the same folder's name that the program sees."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    scene = work.parent / "scene"
    shutil.rmtree(scene, ignore_errors=True)
    scene.mkdir()
    place = Workplace(
        scene, _stand_in(job, work, scene=scene, seed=seed, share=share, analyses=analyses)
    )
    command = list(map(str, job.command(place)))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(scene),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        **job.environment,
    }
    status, output = _run(
        command, scene, environment=environment, file=work / "output", limit=limit
    )
    _wait_for_gdbs(work)
    kept = {name: (scene / name).read_bytes() for name in job.keep if (scene / name).exists()}
    if set(kept) != set(job.keep):
        output += "".join(f"\nmissing: {name}" for name in job.keep if name not in kept)
        kept = {name: kept.get(name, b"") for name in job.keep}
    return Result(status, job.clean(output), kept)


def _stand_in(
    job: Job, work: Path, scene: Path, *, seed: int, share: float, analyses: bool
) -> Path:
    """A shell script that waits for gdb and becomes the program: its process is the program's, so
    nobody notices. It is the same file for both runs."""
    state = work / "gdb"
    state.mkdir()
    settings = work / "job.json"
    settings.write_text(
        json.dumps(
            {
                "folder": str(state),
                "log": str(work / "log"),
                "hot": str(work / "hot.json"),
                "seed": seed,
                "share": share,
                "at_once": job.at_once,
                "analyses": analyses,
                "gdb": GDB,
                "driver": str(HERE / "inside_gdb.py"),
                "loop": str(HERE / "inside_gdb.gdb"),
                "environment": _gdb_environment(),
            }
        )
    )
    (work.parent / "job.json").unlink(missing_ok=True)
    (work.parent / "job.json").symlink_to(settings)
    folder = work.parent / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / job.binary.name
    program.write_text(
        "#!/bin/sh\n"
        f"soak_gate=$('{sys.executable}' -I -S '{HERE / 'attend.py'}' "
        f"'{work.parent / 'job.json'}' $$ </dev/null 2>>'{work.parent / 'attend.err'}')\n"
        '[ -z "$soak_gate" ] || read -r soak_gate <"$soak_gate"\n'
        "unset soak_gate\n"
        f"exec '{job.binary}' \"$@\"\n"
    )
    program.chmod(0o755)
    return program


def _gdb_environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DARC_", "PYTHON"))}
    folders = os.pathsep.join(launching.package_folders())
    return {**kept, "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8", launcher.PYTHONPATH: folders}


def _run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    file: Path,
    limit: float,
) -> tuple[int | None, str]:
    with file.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            words = _states(process.pid)
        finally:
            _end_session(process)
    text = file.read_text(errors="replace")
    return status, text if status is not None else f"{text}\nkilled after {limit:.0f} s:\n{words}"


def _session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def _states(leader: int) -> str:
    """What each process of a session is doing."""
    lines = []
    for pid in _session(leader):
        folder = Path(f"/proc/{pid}")
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            status = (folder / "status").read_text()
            state = next(line for line in status.splitlines() if line.startswith("State"))
            lines.append(f"{pid} {state} {(folder / 'wchan').read_text()} {words[:200]}")
    return "\n".join(lines)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    for pid in _session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _wait_for_gdbs(work: Path) -> None:
    """Every gdb of the run ends by itself once its process is gone; else it is killed."""
    deadline = time.monotonic() + _GRACE_SECONDS
    attending = str(work.parent / "job.json").encode()
    while _processes("cmdline", attending):
        if time.monotonic() > deadline:
            for pid in _processes("environ", f"DARC_SOAK_PROCESS={work}/".encode()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _processes(file: str, mark: bytes) -> list[int]:
    """The processes that have ``mark`` in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / file).read_bytes():
                    found.append(int(entry.name))
    return found


def read_log(file: Path) -> LogFigures:
    """Adds up what the gdbs of a run have noted."""
    figures = LogFigures()
    if not file.exists():
        return figures
    for line in file.read_text().splitlines():
        _add(figures, json.loads(line))
    return figures


def _add(figures: LogFigures, entry: dict[str, Any]) -> None:
    event = Event(entry["event"])
    if event is Event.BEGIN:
        figures.processes += 1
    elif event is Event.ANALYSIS:
        figures.analyses += 1
        figures.functions.add(entry["f0"])
        figures.calls += entry["calls"]
        figures.below += entry["below"]
        figures.sites += entry["sites"]
    elif event is Event.REFUSED:
        figures.refused += 1
        reason = re.sub(r"^darc: (cannot time .*?: )?", "", entry["why"])
        figures.reasons[reason] = figures.reasons.get(reason, 0) + 1
        if "internal error" in entry["why"]:
            figures.trouble.append(f"{entry['f0']}: {entry['why']}")
    elif event is Event.ALTERED:
        figures.trouble.append(f"code is not restored ({entry['f0']}): {entry['places']}")
    elif event is Event.TROUBLE or (event is Event.GDB and entry["status"]):
        figures.trouble.append(entry.get("error") or entry["words"])
    elif event is Event.FAULT:
        figures.faults.append(f"{entry['signal']}\n{entry['where']}{entry['code']}")


def _last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-25:])


def random_seed() -> int:
    """For a run that nobody gave a seed."""
    return random.SystemRandom().randrange(1 << 30)
