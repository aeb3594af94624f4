"""``darc start`` through kgdb: the same path as behind QEMU's gdbstub, and nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgdb.vm.machine import Machine
from tests import debugger
from tests.debugger import PLAIN_GDB
from tests.kernel import machines
from tests.kernel.machines import WATCHDOG_SECONDS, workload
from tests.kernel.test_analysis import assert_unharmed

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(4 * WATCHDOG_SECONDS)]

START = "darc start vfs_read --task piperead --start-ops 150 --peak '>10ms'"
SLEEP = ["vfs_read", "pipe_read", "schedule"]


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with workload("piperead", kernel="kgdb") as started:
        yield started


def text(machine: Machine, file: Path) -> bytes:
    """The kernel's code, as QEMU's gdbstub has it: kgdb's line is slow."""
    dump = f"dump binary memory {file} &_stext &_etext"
    machines.debug(machine, dump, gdb=PLAIN_GDB, target=machine.gdb_socket)
    return file.read_bytes()


def test_pads_find_where_a_read_sleeps(machine: Machine, tmp_path: Path) -> None:
    """Code that kgdb may not write to is written, and is as it was in the end."""
    before = text(machine, tmp_path / "before")
    file = tmp_path / "report.json"
    machine.break_in()
    said = machines.debug(machine, START, "continue", f"darc report -o {file}", "detach")
    assert file.exists(), said
    report = json.loads(file.read_text())
    assert report["probes"] == "pad"
    assert [path["functions"] for path in report["root_cause_paths"]] == [SLEEP], said
    assert "blocked in schedule (pipe_read slept)" in said
    assert text(machine, tmp_path / "after") == before
    assert_unharmed(machine)


def test_a_kernel_without_its_machine(tmp_path: Path) -> None:
    """A vmlinux cannot be run."""
    from kgdb.vm import kernels

    options = [str(kernels.find("debian").symbols)]
    done = debugger.debug(tmp_path, None, (), ["darc start vfs_read"], options=options)
    assert re.search(r"^darc: vmlinux is a kernel, .*'target remote' first", done.gdb, re.M)
