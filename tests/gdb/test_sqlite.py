"""A real program under a real gdb: which calls make some of SQLite's steps slow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.sqlite.build import BUILT, SourceUnavailableError, build

LAUNCHER = Path(sys.executable).with_name("darc-gdb")
OPERATIONS = 30000
WATCHDOG_SECONDS = 120


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build()
    except SourceUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder(program: Path) -> Iterator[Path]:
    """Beside the program, as temporary folders are often in memory, where nothing is waited for."""
    with tempfile.TemporaryDirectory(dir=BUILT) as name:
        yield Path(name)


def run_watched(*command: str | Path) -> str:
    """What the command prints; it and all it has started are killed when it takes too long."""
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=WATCHDOG_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"not finished after {WATCHDOG_SECONDS} s:\n{output}")
    return output


@pytest.mark.parametrize(
    ("journal", "functions"),
    [("delete", {"syncJournal"}), ("wal", {"pagerWalFrames", "sqlite3WalFrames"})],
)
def test_slow_steps_are_commits_that_sync(
    program: Path, folder: Path, journal: str, functions: set[str]
) -> None:
    command = (program, str(OPERATIONS), folder, journal)
    plain = run_watched(*command)
    report = folder / "report.json"
    output = run_watched(
        LAUNCHER,
        *("-nx", "-q", "-batch"),
        *("-ex", "darc start sqlite3_step --peak last --start-ops 4000"),
        *("-ex", "run"),
        *("-ex", f"darc report -o {report}"),
        *("-ex", "continue"),
        *("--args", *command),
    )
    assert report.exists(), output
    found = json.loads(report.read_text())
    assert found["status"] == "root cause found", output
    assert found["root_cause_paths"], output
    for path in found["root_cause_paths"]:
        names = path["functions"]
        assert names[:3] == ["sqlite3_step", "sqlite3Step", "sqlite3VdbeExec"]
        assert {"sqlite3VdbeHalt", "vdbeCommit", "sqlite3PagerCommitPhaseOne"} <= set(names)
        assert functions <= set(names)
        assert names[-3:-1] == ["unixSync", "full_fsync"]
        assert names[-1] in ("fsync", "fdatasync")
        assert path["cause"] == "function"
    assert plain in output, "the program computes the same with and without probes"
