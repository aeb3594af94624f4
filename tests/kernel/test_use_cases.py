"""The paper's use cases on today's kernel: for each reason to be slow, the path that leads to it.

The guests' clocks count instructions, so that nothing the host does can make a call slow. A machine
that is stopped takes no time either.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import tracing
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(3 * WATCHDOG_SECONDS)]

Causes = dict[tuple[str, ...], str]


def analyse(machine: Machine, folder: Path, start: str) -> Causes:
    """The cause at the end of each root cause path."""
    report = analysis(machine, folder, start)
    return {tuple(path["functions"]): path["cause"] for path in report["root_cause_paths"]}


def analysis(machine: Machine, folder: Path, start: str) -> dict[str, Any]:
    """The report of one that has found a root cause."""
    file = folder / "report.json"
    output = debug(machine, start, "continue", f"darc report --format json -o {file}")
    assert file.exists(), output
    report: dict[str, Any] = json.loads(file.read_text())
    assert report["status"] == "root cause found", output
    assert machine.alive, machine.last_words()
    return report


def test_a_read_of_nothing_is_slow_when_the_timer_interrupts_it(tmp_path: Path) -> None:
    """Wherever in the read it comes: it is the only path."""
    with workload("zeroread", icount=True) as machine:
        start = "darc start vfs_read --task zeroread --peak last --start-ops 600000"
        causes = analyse(machine, tmp_path, start)
    assert causes == {("vfs_read", "__sysvec_apic_timer_interrupt"): "interrupt"}


def test_a_lock_that_another_task_holds(tmp_path: Path) -> None:
    """The write waits for the lock of the file, to which the other task writes: when it does, as
    the kernel's own trace has it."""
    with workload("contention", icount=True) as machine:
        tracing.begin(machine, "contention")
        start = "darc start vfs_write --task contention --peak last --start-ops 1000"
        report = analysis(machine, tmp_path, start)
        waited = [op for op in report["ops"]["kept"] if op["class"] == "in peak"]
        tracing.assert_as_traced(machine, waited[:8])
    causes = {tuple(path["functions"]): path["cause"] for path in report["root_cause_paths"]}
    assert causes.keys() == {
        (
            *("vfs_write", "ext4_file_write_iter", "ext4_buffered_write_iter"),
            *("down_write", "rwsem_down_write_slowpath", "schedule"),
        )
    }
    assert set(causes.values()) == {"blocked"}


def test_a_processor_that_another_task_takes(tmp_path: Path) -> None:
    with workload("preempted", icount=True) as machine:
        start = "darc start vfs_read --task preempted --peak last --start-ops 1000"
        causes = analyse(machine, tmp_path, start)
    assert "preemption" in causes.values(), causes
    for path, cause in causes.items():
        assert (path[:2], cause) == (("vfs_read", "ext4_file_read_iter"), "preemption")


@pytest.fixture(scope="module", params=[pytest.param("ext2", marks=pytest.mark.long), "ext4"])
def listing(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The disk is slow, as no host's page cache is. Debian's kernel has one driver for both."""
    arguments = ("1000000", f"/{request.param}/tree")
    with workload("readdir", *arguments, icount=True, disk_iops=50) as machine:
        yield machine


LISTING = "darc start ext4_readdir --task readdir --start-ops 200 --peak {}"


def test_a_listing_past_its_end(listing: Machine, tmp_path: Path) -> None:
    """There is nothing to do: no names, no disk."""
    causes = analyse(listing, tmp_path, LISTING.format(1))
    assert causes.get(("ext4_readdir",)) == "function", causes
    assert not {"filldir64", "ext4_bread"} & {name for path in causes for name in path}


def test_a_listing_from_memory(listing: Machine, tmp_path: Path) -> None:
    """It is the names themselves that take the time: a loop, that goes on into its callee."""
    causes = analyse(listing, tmp_path, LISTING.format(2))
    assert causes.pop(("ext4_readdir",), "function") == "function"
    assert causes
    assert {path[:2] for path in causes} == {("ext4_readdir", "filldir64")}
    causes = analyse(listing, tmp_path, f"{LISTING.format(2)} --loops paper")
    assert causes == {("ext4_readdir",): "loop"}


def test_a_listing_from_the_disk(listing: Machine, tmp_path: Path) -> None:
    """The task sleeps; where a folder's two blocks are waited for, the wait is a loop as well."""
    causes = analyse(listing, tmp_path, LISTING.format("last"))
    assert causes.pop(("ext4_readdir",), "loop") == "loop"
    assert set(causes.values()) == {"blocked"}
    for path in causes:
        assert path[:2] == ("ext4_readdir", "ext4_bread")
        assert path[-2:] == ("io_schedule", "schedule")


STAT = ("vfs_statx", "filename_lookup", "path_lookupat", "link_path_walk")


@pytest.mark.parametrize("decision_ops", [20, 10_000])
def test_the_facts_of_a_file(decision_ops: int, tmp_path: Path) -> None:
    """The paper's first benchmark; as there, it is the walk along the file's name, however many
    calls are wanted for it."""
    with workload("stat", icount=True) as machine:
        options = f"--peak 1 --start-ops 1000 --decision-ops {decision_ops}"
        causes = analyse(machine, tmp_path, f"darc start vfs_statx --task stat {options}")
        assert_goes_on(machine)
    assert causes == {STAT: "function"}


def test_the_guest_stops_no_more_than_it_has_to(tmp_path: Path) -> None:
    """Once for each decision, which is about as many levels as are timed at once; and for the
    profile. What ``auto`` times ahead is what can be made ready in a few milliseconds of a stop: on
    a busy machine less, but some."""
    start = "darc start vfs_statx --task stat --peak 1 --start-ops 1000"
    one_by_one = 0
    with workload("stat", icount=True) as machine:
        for lookahead, levels in (("1", 1), ("2", 2), ("3", 3), ("auto", None)):
            report = analysis(machine, tmp_path, f"{start} --lookahead {lookahead}")
            deepest = max(len(path["functions"]) for path in report["root_cause_paths"])
            stops = report["program"]["stops"]
            assert deepest > 2
            if levels is None:
                assert stops < one_by_one, report
            else:
                assert stops <= math.ceil(deepest / levels) + 2, (lookahead, report)
            one_by_one = max(one_by_one, stops)


def latencies(node: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    """What calls took in the mean, by the path that leads to them."""
    path = (*above, node["function"])
    found = {path: node["mean_cycles"]} if node["mean_cycles"] else {}
    for child in node["children"]:
        found |= latencies(child, path)
    return found


def test_a_call_takes_as_long_whatever_is_timed_in_it(tmp_path: Path) -> None:
    """Short calls with callees that take turns, and tail calls: what all of their probes cost, some
    times what the calls take, is nobody's time."""
    start = "darc start vfs_statx --task stat --peak 1 --start-ops 1000 --decision-ops 2000"
    with workload("stat", icount=True) as machine:
        alone, within = (
            latencies(analysis(machine, tmp_path, f"{start} --lookahead {levels}")["ftree"])
            for levels in (1, 3)
        )
    for path in (STAT[:2], STAT[:3], STAT, (*STAT, "inode_permission")):
        # The shortest takes a hundred cycles, and what probes cost is known to some of them.
        assert within[path] == pytest.approx(alone[path], rel=0.07, abs=16), (alone, within)


def test_a_read_past_the_page_cache(tmp_path: Path) -> None:
    """The paper's second benchmark: it sleeps until the disk has read. The disk is slow, as no
    host's page cache is."""
    with workload("randomread", icount=True, disk_iops=200) as machine:
        start = "darc start vfs_read --task randomread --peak last --start-ops 100"
        causes = analyse(machine, tmp_path, start)
        assert_goes_on(machine)
    assert causes == {
        (
            *("vfs_read", "ext4_file_read_iter", "iomap_dio_rw", "__iomap_dio_rw"),
            *("blk_io_schedule", "io_schedule_timeout", "schedule_timeout", "schedule"),
        ): "blocked"
    }
