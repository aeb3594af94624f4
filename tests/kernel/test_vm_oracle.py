"""The oracle of the kernel tests is right by itself: known numbers of calls, and a known wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from darc.clock import tsc_hz
from darc.profile import bin_of
from kgdb.vm import guest, kernels
from tests.kernel import oracle
from tests.kernel.machines import WATCHDOG_SECONDS, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]

READS = 30000


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
