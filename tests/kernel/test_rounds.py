"""One analysis many times over, on two processors: right each time, by as many votes as were asked
for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgdb.vm.machine import Machine
from tests.kernel.analyses import TEXT, assert_unharmed, connected
from tests.kernel.machines import WATCHDOG_SECONDS, workload

pytestmark = [pytest.mark.kernel]

START = "darc start vfs_read --task piperead --start-ops 150 --peak '>10ms'"
SLEEP = ["vfs_read", "pipe_read", "schedule"]
VOTES = 20
AT_ONCE = 5


@pytest.fixture
def machine() -> Iterator[Machine]:
    with workload("piperead", cpus=2) as started:
        yield started


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(20, marks=pytest.mark.timeout(2 * WATCHDOG_SECONDS)),
        pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(20 * WATCHDOG_SECONDS)]),
    ],
)
def test_rounds_of_one_analysis(machine: Machine, tmp_path: Path, rounds: int) -> None:
    """Every debugger makes some, and leaves the code as it was."""
    for first in range(0, rounds, AT_ONCE):
        files = [tmp_path / f"{first + number}.json" for number in range(AT_ONCE)]
        commands = [
            command
            for file in files
            for command in (START, "continue", f"darc report --format json -o {file}")
        ]
        done = connected(machine, tmp_path, TEXT.format("before"), *commands, TEXT.format("after"))
        for file in files:
            assert file.exists(), done.gdb
            report = json.loads(file.read_text())
            paths = [path["functions"] for path in report["root_cause_paths"]]
            assert paths == [SLEEP], done.gdb
            assert report["profile"]["count"] >= 150
            votes = [decision["ops"] for decision in report["decisions"]]
            assert votes, report
            assert all(ops >= VOTES for ops in votes), report["decisions"]
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)
