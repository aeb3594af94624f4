"""OSprof's cases (OSDI'06) on a kernel: a lock by its profile, a journal by the time, and
acknowledgements that are put off."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import machines
from tests.kernel.analyses import assert_unharmed
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(3 * WATCHDOG_SECONDS)]


machine = machines.shared("osprof", icount=True, disk_iops=200)
"""Its clock counts instructions; each case has a disk of its own."""


def profiled(
    machine: Machine, folder: Path, *commands: str
) -> tuple[dict[str, dict[str, Any]], str]:
    """The rows of the report, by function, and what was printed."""
    file = folder / "report.json"
    output = debug(machine, *commands, "continue", f"darc report -o {file}", "darc stop")
    assert file.exists(), output
    part = json.loads(file.read_text())["set"]
    return {row["function"]: row for row in part["functions"]}, output


def test_llseek_waits_for_reads_of_who_shares_the_file(machine: Machine, tmp_path: Path) -> None:
    """OSprof 6.1: the lock, how often it is found held, and for how long, by arithmetic alone: the
    calls that wait are as slow as the reads that they wait for. The operations of a file system are
    named by the structure that has them."""
    rows, output = profiled(
        machine,
        tmp_path,
        "set darc task llseek",
        "darc profile ksys_lseek ksys_read ext4_file_operations --time 6s",
    )
    seek, read = rows["ksys_lseek"], rows["ksys_read"]
    inner = rows["ext4_file_read_iter"]
    assert abs(seek["calls"] - read["calls"]) <= 2, output
    assert abs(inner["calls"] - read["calls"]) <= 2, output
    assert not any("mmap" in name for name in rows), output  # which nobody has called
    waited = sum(count for bin_, count in seek["bins"].items() if int(bin_) >= 17)  # from 131 µs on
    assert waited >= 0.05 * seek["calls"], output
    assert waited <= 0.9 * seek["calls"], output
    held = seek["sum"] / waited
    assert inner["sum"] / inner["calls"] <= held <= inner["max"], output
    assert_unharmed(machine)


@pytest.mark.long  # its seconds are those of a clock that counts instructions
def test_a_journal_comes_back_with_the_time(machine: Machine, tmp_path: Path) -> None:
    """OSprof 6.3: reads are slow whenever the journal of their file system is written."""
    rows, output = profiled(
        machine,
        tmp_path,
        "set darc task journal",
        "darc profile ext4_file_read_iter --time 27s --every 1s",
    )
    row = rows["ext4_file_read_iter"]
    slow = [sum(n for b, n in one.items() if int(b) >= 21) for one in row["slices"]]
    assert sum(slow) >= 20, output
    often = sorted(slow)[-len(slow) // 3 :]  # in a third of the seconds at most
    assert sum(often) >= 0.8 * sum(slow), (slow, output)
    busy = [second for second, count in enumerate(slow) if 3 * count >= max(slow)]
    begins = [second for second in busy if second - 1 not in busy]
    apart = [after - before for before, after in itertools.pairwise(begins)]
    assert len(apart) >= 2, (slow, output)
    assert all(4 <= seconds <= 8 for seconds in apart), (slow, output)  # commit=5, and its writing
    assert_goes_on(machine)
    assert_unharmed(machine)


def test_acknowledgements_that_are_put_off(tmp_path: Path) -> None:
    """OSprof 6.4: some answers take 40 ms, whatever is asked, as the question's second piece waits
    for the first one to be acknowledged (Nagle's rule)."""
    file = tmp_path / "report.json"
    with workload("asker", icount=True) as machine:
        output = debug(
            machine,
            "darc start tcp_recvmsg --task asker --start-ops 400 --peak last --decision-ops 10",
            "continue",
            f"darc report -o {file}",
            "darc waits",
            "darc stop",
        )
        assert_goes_on(machine)
        assert_unharmed(machine)
    assert file.exists(), output
    report = json.loads(file.read_text())
    assert report["peaks"][-1]["first_bin"] in (24, 25, 26), output  # 17 to 134 ms
    found = report["waits"]["in_peak"]
    (waited,) = found["objects"]
    assert waited["cycles"] >= 0.9 * found["cycles"], output
    assert "sk_wait_data" in waited["path"], output
    by = waited["holders"][0]
    assert (by["role"], by["path"][0]) == ("soft interrupt", "sock_def_readable"), output
