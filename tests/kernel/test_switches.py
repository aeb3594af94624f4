"""Kept ops of a kernel: where their task was off the processor, why, and who woke it; nothing of
that stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import machines, tracing
from tests.kernel.analyses import TEXT, assert_unharmed
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(3 * WATCHDOG_SECONDS)]

START = "darc start fcntl_setlk --task filelock --start-ops 2000 --peak '>1ms'"

DIE_IN_SWITCHES = (
    "python import os; place = gdb.parse_and_eval(\"(long)&'finish_task_switch.isra.0'\");"
    "place = int(place) & (1 << 64) - 1; gdb.events.memory_changed.connect("
    "lambda e: os.kill(os.getpid(), 9) if e.address == place else None)"
)
"""Kills gdb as soon as the probe of the scheduler has been written."""


machine = machines.shared("filelock", cpus=2)
"""With two processors: who holds the lock runs on another one."""


def reported(machine: Machine, folder: Path, start: str, *before: str) -> dict[str, Any]:
    file = folder / "report.json"
    command = f"darc report --format json -o {file}"
    output = debug(machine, *before, start, "continue", command, "darc waits", "darc stop")
    assert file.exists(), output
    report: dict[str, Any] = json.loads(file.read_text())
    assert report["status"] == "root cause found", output
    return {**report, "output": output}


def in_peak(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [op for op in report["ops"]["kept"] if op["class"] == "in peak"]


def off(op: dict[str, Any], *reasons: str) -> int:
    """Cycles that its task was off the processor for these reasons."""
    return sum(o["end"] - o["start"] for o in op["off"] if o["reason"] in reasons)


def slept(op: dict[str, Any]) -> int:
    """Cycles that it was in the scheduler, where nothing else is to be done."""
    return sum(s["end"] - s["start"] for s in op["spans"] if s["function"] == "schedule")


def holders(report: dict[str, Any]) -> dict[tuple[str, str, str], int]:
    """Cycles of the waits of the peak's ops, by what was waited for, who ended that and how."""
    found: dict[tuple[str, str, str], int] = {}
    for waited in report["waits"]["in_peak"]["objects"]:
        for one in waited["holders"]:
            key = waited["kind"], one["role"], one["thread"]
            found[key] = found.get(key, 0) + one["cycles"]
    return found


def test_a_lock_of_a_file_is_waited_for(machine: Machine, tmp_path: Path) -> None:
    """DepGraph V-A: the requests that are slow wait in fcntl for who makes the cache anew."""
    dump = (TEXT.format(tmp_path / "before"), TEXT.format(tmp_path / "after"))
    report = reported(machine, tmp_path, START, dump[0])
    ops = in_peak(report)
    assert len(ops) >= 8
    for op in ops:
        assert op["thread"] > 0
        assert 0 <= off(op, "blocked", "ready") <= op["end"] - op["start"]
    in_scheduler = sum(map(slept, ops))
    assert in_scheduler
    assert 0.8 * in_scheduler <= sum(off(op, "blocked") for op in ops) <= in_scheduler
    found = holders(report)
    assert max(found, key=lambda key: found[key]) == ("wake-up", "woke", "rebuild"), found
    first = report["waits"]["in_peak"]["objects"][0]
    assert first["path"][-1] == "fcntl_setlk"
    assert first["path"][0] == "schedule"
    assert any("posix_lock_inode" in one["path"] for one in first["holders"]), first
    assert "woken by task" in report["output"]
    debug(machine, dump[1])
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_goes_on(machine)
    assert_unharmed(machine)


def test_a_debugger_that_is_killed_while_switches_are_seen(
    machine: Machine, tmp_path: Path
) -> None:
    """The kernel goes on, and the next debugger takes everything out."""
    before, after = tmp_path / "before", tmp_path / "after"
    debug(machine, TEXT.format(before), DIE_IN_SWITCHES, START, "continue")
    debug(machine, TEXT.format(after))
    assert before.read_bytes() != after.read_bytes()  # it has died in the middle
    assert_goes_on(machine)
    output = debug(machine, "darc stop", TEXT.format(after))
    assert before.read_bytes() == after.read_bytes(), output
    assert_goes_on(machine)
    assert_unharmed(machine)


def test_a_timer_that_wakes(machine: Machine, tmp_path: Path) -> None:
    """The interrupt of a timer, whatever task it comes to."""
    start = "darc start hrtimer_nanosleep --task filelock --start-ops 300 --peak '>100us'"
    report = reported(machine, tmp_path, start)
    found = holders(report)
    assert max(found, key=lambda key: found[key])[:2] == ("wake-up", "interrupt"), found
    paths = [one["path"] for one in report["waits"]["in_peak"]["objects"][0]["holders"]]
    assert any("hrtimer_wakeup" in path for path in paths), paths
    assert_unharmed(machine)


def test_a_task_that_is_preempted_could_run(tmp_path: Path) -> None:
    """When, as the kernel's own trace has it; and it is told which task ran."""
    with workload("preempted", icount=True) as machine:
        tracing.begin(machine, "preempted")
        start = "darc start vfs_read --task preempted --peak last --start-ops 1000"
        report = reported(machine, tmp_path, start)
        ops = in_peak(report)
        assert len(ops) >= 8
        tracing.assert_as_traced(machine, ops[:8])
    for op in ops:
        assert off(op, "ready") >= 0.5 * op["latency"], op
        assert not off(op, "blocked"), op
    found = holders(report)
    assert max(found, key=lambda key: found[key]) == ("processor", "ran", "spin"), found
