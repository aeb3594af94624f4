"""Two ways to a kernel, QEMU's gdbstub and kgdb, and two ways to time its calls: the same path."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import machines
from tests.kernel.analyses import assert_unharmed
from tests.kernel.machines import WATCHDOG_SECONDS, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(4 * WATCHDOG_SECONDS)]

START = "darc start hrtimer_nanosleep --task naps --start-ops 12 --peak '>400ms' --decision-ops 3"
SLEEP = ["hrtimer_nanosleep", "do_nanosleep", "schedule"]


@pytest.fixture(params=["debian", "kgdb"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """One for each test: where a debugger was killed that hung, its breakpoints stay."""
    with workload("naps", kernel=request.param) as started:
        yield started


def assert_finds_the_sleep(
    machine: Machine, folder: Path, start: str, *, probes: str, symbols: Path | None = None
) -> str:
    """What gdb has said meanwhile."""
    file = folder / "report.json"
    if machine.kernel == "kgdb":
        machine.break_in()
    commands = (start, "continue", f"darc report -o {file}", "detach")
    said = machines.debug(machine, *commands, symbols=symbols)
    assert file.exists(), said
    report = json.loads(file.read_text())
    assert report["probes"] == probes
    paths = [path["functions"] for path in report["root_cause_paths"]]
    if probes == "pad":
        assert paths == [SLEEP], said
    else:  # on a busy host the stops are no less than the sleep, and count for who is stopped
        assert SLEEP in paths, said
    assert "blocked in schedule (do_nanosleep slept)" in said
    assert_unharmed(machine)
    return said


@pytest.mark.parametrize("probes", ["pad", "breakpoint"])
def test_where_a_task_sleeps(machine: Machine, tmp_path: Path, probes: str) -> None:
    start = f"{START} --probes {probes}"
    said = assert_finds_the_sleep(machine, tmp_path, start, probes=probes)
    assert ("hrtimer_nanosleep is timed by breakpoints: each" in said) == (probes == "breakpoint")


@pytest.mark.parametrize("machine", ["kgdb"], indirect=True)
def test_breakpoints_where_kgdb_can_write_no_pads(machine: Machine, tmp_path: Path) -> None:
    """darc takes them by itself, and says so: nothing tells where the page tables are."""
    symbols = tmp_path / "vmlinux"
    strip = ["objcopy", "--strip-symbol=level3_kernel_pgt", str(machine.symbols), str(symbols)]
    subprocess.run(strip, check=True)
    said = assert_finds_the_sleep(
        machine, tmp_path, start=START, probes="breakpoint", symbols=symbols
    )
    why = "no pads, but breakpoints: kgdb cannot write to the kernel's code"
    assert f"hrtimer_nanosleep is timed by breakpoints ({why}" in said


@pytest.mark.parametrize("machine", ["debian"], indirect=True)
def test_a_thread_of_gdbs_is_none(machine: Machine) -> None:
    """A task is told by ``--task``."""
    for probes in ("pad", "breakpoint"):
        said = machines.debug(machine, f"{START} --probes {probes} --thread 1", "detach")
        assert "--thread is for processes: take --task here" in said, said
    assert_unharmed(machine)
