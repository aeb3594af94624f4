"""``darc start`` through kgdb: the same path as behind QEMU's gdbstub, and nothing left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kgdb.vm.machine import Machine
from tests import debugger
from tests.debugger import PLAIN_GDB
from tests.kernel import machines
from tests.kernel.analyses import assert_unharmed
from tests.kernel.machines import WATCHDOG_SECONDS, at_work, typed, wait_until, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(4 * WATCHDOG_SECONDS)]

START = "darc start vfs_read --task piperead --start-ops 150 --peak '>10ms'"
SLEEP = ["vfs_read", "pipe_read", "schedule"]


machine = machines.shared("piperead", kernel="kgdb")


LIMIT_SECONDS = 20
"""Within which a search begins on a busy machine: what is looked for before is limited as well."""

GOES_ON = "python print('goes on', flush=True)"

NOTE_WRITES = (
    "import itertools, pathlib; written = itertools.count(); gdb.events.memory_changed.connect("
    "lambda _: pathlib.Path('{}').touch() if next(written) == 12 else None)"
)
"""Tells by a file when gdb has written so often that it puts in call sites' probes."""


def text(machine: Machine, file: Path) -> bytes:
    """The kernel's code, as QEMU's gdbstub has it: kgdb's line is slow."""
    dump = f"dump binary memory {file} &_stext &_etext"
    machines.debug(machine, dump, gdb=PLAIN_GDB, target=machine.gdb_socket)
    return file.read_bytes()


def writable(machine: Machine) -> int:
    """How many pages of the kernel's code it could write to itself."""
    script = Path(__file__).parent / "writable_text.py"
    said = machines.debug(machine, f"source {script}", target=machine.gdb_socket)
    found = re.search(r"^(\d+) pages of the code are writable$", said, re.M)
    assert found is not None, said
    return int(found[1])


def test_pads_find_where_a_read_sleeps(machine: Machine, tmp_path: Path) -> None:
    """Code that kgdb may not write to is written, and is as it was in the end, and protected."""
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
    assert writable(machine) == 0
    assert_unharmed(machine)


def test_two_processors(tmp_path: Path) -> None:
    """The task and the one that writes to its pipe run at once; kgdb stops both."""
    with workload("piperead", kernel="kgdb", cpus=2) as machine:
        before = text(machine, tmp_path / "before")
        machine.break_in()
        said = machines.debug(machine, START, "continue", "detach")
        assert "root cause of bins" in said
        assert " → ".join(SLEEP) in said, said
        assert text(machine, tmp_path / "after") == before
        assert writable(machine) == 0
        assert_unharmed(machine)


def until_it_runs(machine: Machine, gdb: subprocess.Popen[str]) -> str:
    """What gdb has said until it lets the kernel run for the user, behind :data:`GOES_ON`."""
    assert gdb.stdout is not None
    lines = []
    for line in gdb.stdout:
        lines.append(line)
        if line == "goes on\n":
            typed(machine, "echo")
            return "".join(lines)
    raise AssertionError("".join(lines))


def rest(gdb: subprocess.Popen[str]) -> str:
    """What gdb says from now on, until it ends."""
    assert gdb.stdout is not None
    return gdb.stdout.read()


def test_ctrl_c_is_not_heard_but_the_magic_key_is(machine: Machine) -> None:
    machine.break_in()
    endless = "darc start vfs_read --start-ops 1000000"
    with at_work(machine, endless, GOES_ON, "continue", "darc status", "detach") as gdb:
        said = until_it_runs(machine, gdb)
        gdb.send_signal(signal.SIGINT)
        typed(machine, "echo")
        machine.break_in()
        said += rest(gdb)
    lines = said.splitlines()
    told = "a kernel in kgdb hears no Ctrl-C: 'darc-vm break', or its magic key (g), stops it"
    assert f"darc: {told}" in lines
    assert " received signal SIGTRAP" in said
    assert "darc: vfs_read: profiling" in lines, said
    assert_unharmed(machine)


@pytest.mark.parametrize("probes", ["pad", pytest.param("breakpoint", marks=pytest.mark.long)])
def test_the_time_limit_where_nothing_can_interrupt_it(machine: Machine, probes: str) -> None:
    """It is looked at at the next stop, whatever that is for."""
    machine.break_in()
    limited = f"darc start kernel_halt --probes {probes} --max-time {LIMIT_SECONDS}"
    with at_work(machine, limited, GOES_ON, "continue", "detach") as gdb:
        said = until_it_runs(machine, gdb)
        over = time.monotonic() + LIMIT_SECONDS
        wait_until(machine, lambda: time.monotonic() > over)
        machine.break_in()
        said += rest(gdb)
    assert "darc: a kernel in kgdb hears neither Ctrl-C nor --max-time: 'darc-vm break'" in said
    assert "the time is up: this is what was known by then" in said
    assert_unharmed(machine)


def test_a_debugger_that_is_killed_while_the_kernel_runs(machine: Machine, tmp_path: Path) -> None:
    """It goes on with the probes, and the next debugger takes them out."""
    before = text(machine, tmp_path / "before")
    machine.break_in()
    endless, mark = f"{START} --decision-ops 1000000", tmp_path / "written"
    with at_work(machine, endless, f"python {NOTE_WRITES.format(mark)}", "continue") as gdb:
        wait_until(machine, mark.exists)
        typed(machine, "echo")  # it runs again, with probes at call sites
        gdb.kill()
    typed(machine, "echo")
    assert text(machine, tmp_path / "left") != before
    machine.break_in()
    assert writable(machine) > 0
    said = machines.debug(machine, "darc stop", "detach")
    assert re.search(r"an earlier debugger had left [1-9]\d* probes? in the kernel", said), said
    assert text(machine, tmp_path / "after") == before
    assert writable(machine) == 0
    assert_unharmed(machine)


def test_a_kernel_without_its_machine(tmp_path: Path) -> None:
    """A vmlinux cannot be run."""
    from kgdb.vm import kernels

    options = [str(kernels.find("debian").symbols)]
    done = debugger.debug(tmp_path, None, (), ["darc start vfs_read"], options=options)
    assert re.search(r"^darc: vmlinux is a kernel, .*'target remote' first", done.gdb, re.M)
