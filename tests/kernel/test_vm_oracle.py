"""The oracle of the kernel tests is right by itself: known numbers of calls, and a known wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darc.debuggee.clock import tsc_hz
from darc.model.comparison import emd
from darc.model.profile import Profile, bin_of
from kgdb.vm import guest, kernels
from tests.kernel import oracle
from tests.kernel.machines import WATCHDOG_SECONDS, debug, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]

READS = 30000
FTRACE_NOP_BYTES = 5


def test_every_call_is_counted_once(tmp_path: Path) -> None:
    """Also with two processors, between which the task may migrate."""
    kernel = kernels.find("debian")
    judge = oracle.make(kernel, "vfs_read", tmp_path)
    with workload("zeroread", str(READS), plugin=judge.plugin, cpus=2) as started:
        started.wait_for(f"{guest.ENDED}0", WATCHDOG_SECONDS)
        profile = judge.busiest()
    profile.check()
    assert profile.count == READS


def test_a_wait_is_as_long_as_it_is(tmp_path: Path) -> None:
    """One read of 50 waits for 30 ms, which another task sleeps."""
    kernel = kernels.find("debian")
    judge = oracle.make(kernel, "vfs_read", tmp_path)
    with workload("piperead", "2000", plugin=judge.plugin) as started:
        started.wait_for(f"{guest.ENDED}0", WATCHDOG_SECONDS)
        profile = judge.busiest()
    profile.check()
    assert profile.count == 2000
    # The writer may be late by itself; it is early never, and the reader has then read all.
    shortest = bin_of(int(0.030 * tsc_hz()), 1) - 1
    waited = sum(calls for b, calls in profile.bins.items() if b >= shortest)
    assert 30 <= waited <= 60, profile.bins


@pytest.mark.long
def test_the_pads_profile_is_the_oracles(tmp_path: Path) -> None:
    """The same calls, timed from inside and from outside: as many, and as long.

    The oracle begins where the entry's pad comes back to, so that it does not time the pad.
    """
    kernel = kernels.find("debian")
    judge = oracle.make(kernel, "vfs_read", tmp_path, behind=FTRACE_NOP_BYTES)
    copy = f"shell cp {judge.file} {tmp_path}"
    commands = [f"{copy}/before", f"darc start vfs_read --start-ops {READS}", "continue"]
    commands += [f"{copy}/after", f"darc report --format json -o {tmp_path}/report.json"]
    with workload("zeroread", plugin=judge.plugin) as started:
        output = debug(started, *commands)
    assert (tmp_path / "report.json").exists(), output
    report = json.loads((tmp_path / "report.json").read_text())["profile"]
    bins = {int(b): calls for b, calls in report["bins"].items()}
    pads = Profile(resolution=1, hz=1, bins=bins, count=report["count"], total=report["sum"])
    pads.check()
    outside = oracle.busiest(oracle.read(tmp_path / "after"), oracle.read(tmp_path / "before"))
    outside.check()
    assert abs(pads.count - outside.count) <= 0.01 * outside.count, (pads, outside)
    assert emd(pads, outside) < 1, (pads, outside)
