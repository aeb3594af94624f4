"""Whoever is waited for in a kernel had waited himself: DepGraph's cases, to their ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import machines
from tests.kernel.analyses import assert_unharmed
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(3 * WATCHDOG_SECONDS)]

Holder = dict[str, Any]


machine = machines.shared("behind", icount=True, disk_iops=200)
"""Its clock counts instructions: nothing that the host does is a wait."""


def waits(machine: Machine, folder: Path, start: str) -> tuple[dict[str, Any], str]:
    """The waits of the peak's ops, as JSON, and what was printed."""
    file = folder / "report.json"
    output = debug(
        machine,
        start,
        "continue",
        f"darc report --format json -o {file}",
        "darc waits",
        "darc stop",
    )
    assert file.exists(), output
    report = json.loads(file.read_text())
    assert report["waits"] is not None, output
    found: dict[str, Any] = report["waits"]["in_peak"]
    assert found["ops"] >= 8, output
    return found, output


def longest(found: dict[str, Any]) -> list[Holder]:
    """The holders of what was waited for longest."""
    holders: list[Holder] = found["objects"][0]["holders"]
    return holders


def chains(holders: list[Holder], above: tuple[Holder, ...] = ()) -> Iterator[tuple[Holder, ...]]:
    """Every one with those that it is behind."""
    for one in holders:
        yield (*above, one)
        yield from chains(one.get("behind", []), (*above, one))


def test_a_real_time_task_has_the_processor(machine: Machine, tmp_path: Path) -> None:
    """DepGraph V-B."""
    start = "darc start vfs_read --task realtime --start-ops 500 --peak '>1ms'"
    found, output = waits(machine, tmp_path, start)
    assert found["objects"][0]["kind"] == "processor", output
    first = longest(found)[0]
    assert (first["role"], first["thread"]) == ("ran", "urgent"), output
    assert "meanwhile ran task" in output


def test_a_disk_that_others_keep_busy(machine: Machine, tmp_path: Path) -> None:
    """DepGraph V-C: whose requests the disk served while facts were waited for."""
    start = "darc start vfs_statx --task coldstat --start-ops 100 --peak '>3ms'"
    found, output = waits(machine, tmp_path, start)
    served: dict[str, int] = {}
    for chain in chains(longest(found)):
        if chain[-1]["role"] == "disk":
            assert chain[-2]["role"] in ("interrupt", "soft interrupt"), output
            served[chain[-1]["thread"]] = served.get(chain[-1]["thread"], 0) + chain[-1]["cycles"]
    assert {"reader", "coldstat"} <= served.keys(), output
    whole = sum(one["cycles"] for one in longest(found))
    assert served["reader"] >= 0.1 * whole, output  # a third, where that was tried by hand
    assert 0.3 * whole <= sum(served.values()) <= whole, output
    assert "the disk served" in output


def test_flushed_work_that_waits_for_a_processor(machine: Machine, tmp_path: Path) -> None:
    """Who did the work that flush_work waited for, and why it could not."""
    start = "darc start vmstat_refresh --task work --start-ops 300 --peak '>1ms'"
    found, output = waits(machine, tmp_path, start)
    first = longest(found)[0]
    assert first["role"] == "woke", output
    assert first["thread"].startswith("kworker/"), output
    assert "process_one_work" in first["path"], output
    assert "thunk" not in output  # what leads where a register says is no function of its own
    behind = list(chains(first["behind"]))
    did = [one[-1] for one in behind if one[-1]["role"] == "did"]
    assert any(one["path"] == ["refresh_vm_stats"] for one in did), output
    ran = [c[-1] for c in behind if c[-1]["role"] == "ran" and c[-2]["role"] == "ready"]
    # Others that compute may have had the processor after it.
    assert "urgent" in {one["thread"] for one in ran}, output
    assert_goes_on(machine)
    assert_unharmed(machine)


@pytest.mark.long
def test_a_mutex_that_a_thread_of_the_kernel_has(tmp_path: Path) -> None:
    """It waits itself, for all processors to have passed a point (RCU), while it has the mutex."""
    with workload("behind", "mutex", cpus=2) as machine:
        start = "darc start devinet_ioctl --task mutex --start-ops 300 --peak '>2ms'"
        found, output = waits(machine, tmp_path, start)
        holders = [
            one
            for waited in found["objects"]
            for one in waited["holders"]
            if "__mutex_lock" in waited["path"] and "__rtnl_unlock" in one["path"]
        ]
        assert holders, output
        first = max(holders, key=lambda one: one["cycles"])
        assert first["thread"].startswith("kworker/"), output
        slept = [c for c in chains(first["behind"]) if c[-1]["role"] == "slept"]
        assert any("synchronize_rcu_expedited" in c[-1]["path"] for c in slept), output
        assert max(map(len, chains(first["behind"]))) >= 3, output
        assert_goes_on(machine)
        assert_unharmed(machine)
