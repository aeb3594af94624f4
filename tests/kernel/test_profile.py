"""``darc profile`` on a kernel: many functions at once, and nothing of it left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug, workload
from tests.kernel.test_analysis import TEXT, TROUBLE

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with workload("piperead", cpus=2) as started:
        yield started


def profiled(machine: Machine, folder: Path, *commands: str) -> dict[str, dict[str, Any]]:
    """The rows of the report, by function; the kernel's code is as it was, and it goes on."""
    file = folder / "report.json"
    before, after = folder / "before", folder / "after"
    output = debug(
        machine,
        TEXT.format(before),
        *commands,
        f"darc report -o {file}",
        TEXT.format(after),
    )
    assert file.exists(), output
    assert before.read_bytes() == after.read_bytes()
    assert_goes_on(machine)
    assert not TROUBLE.search(machine.console), machine.last_words(60)
    part = json.loads(file.read_text())["set"]
    return {row["function"]: row for row in part["functions"]}


def test_functions_of_a_task_on_two_processors(machine: Machine, tmp_path: Path) -> None:
    """One within the other: as many calls, and none that is shorter. Twice, in the same memory."""
    profile = "darc profile vfs_* pipe_read __x64_sys_read --time 3s"
    for _ in range(2):
        rows = profiled(machine, tmp_path, "set darc task piperead", profile, "continue")
        calls = [rows[one]["calls"] for one in ("__x64_sys_read", "vfs_read", "pipe_read")]
        assert calls[0] > 100
        assert max(calls) - min(calls) <= 1, calls  # one may be under way at the begin and the end
        sums = [rows[one]["sum"] for one in ("__x64_sys_read", "vfs_read", "pipe_read")]
        assert sums[0] >= 0.9 * sums[1] >= 0.8 * sums[2] > 0, sums


def test_interrupts_are_told_apart(machine: Machine, tmp_path: Path) -> None:
    rows = profiled(machine, tmp_path, "darc profile tick_* hrtimer_* --time 2s", "continue")
    assert any(name.endswith(" (interrupt)") for name in rows), rows.keys()
    assert any(not name.endswith(" (interrupt)") for name in rows), rows.keys()
