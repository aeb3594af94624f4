"""``darc profile`` on a kernel: many functions at once, and nothing of it left behind."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from kgdb.vm.machine import Machine
from tests.kernel import machines
from tests.kernel.analyses import TEXT, TROUBLE, assert_unharmed, at_work, connected
from tests.kernel.machines import WATCHDOG_SECONDS, assert_goes_on, debug

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]


machine = machines.shared("piperead", cpus=2)


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


PROFILE = "darc profile vfs_* pipe_* __x64_sys_read --time {}"


def test_ctrl_c_shows_what_is_known(machine: Machine, tmp_path: Path) -> None:
    """And the user may go on, or end it."""
    done = connected(
        machine,
        tmp_path,
        TEXT.format("before"),
        PROFILE.format("1000s"),
        at_work(machine, tmp_path, "time.sleep(1)\n    os.kill(os.getpid(), 2)"),
        "continue",
        "darc status",
        "darc stop",
        TEXT.format("after"),
        "darc start 1 --start-ops 20",
        "darc stop",
    )
    assert "Program received signal SIGINT, Interrupt." in done.gdb
    assert re.search(r"darc: profiles", done.gdb), done.gdb
    assert re.search(r"^\W*1\W+\w+", done.gdb, re.M), done.gdb
    assert re.search(r"darc: analyses \w+: 'continue'", done.gdb), done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


@pytest.mark.parametrize("next_command", ["darc stop", PROFILE.format("2s")])
def test_a_debugger_that_is_killed(machine: Machine, tmp_path: Path, next_command: str) -> None:
    """The next one takes the probes out, also where it makes a set of its own."""
    connected(machine, tmp_path, TEXT.format("before"))
    killed = connected(
        machine,
        tmp_path,
        PROFILE.format("1000s"),
        at_work(machine, tmp_path, "os.kill(os.getpid(), 9)"),
        "continue",
    )
    assert killed.status == -signal.SIGKILL, killed.gdb
    assert_goes_on(machine)
    done = connected(
        machine,
        tmp_path,
        *([next_command] if next_command == "darc stop" else [next_command, "continue"]),
        TEXT.format("after"),
    )
    assert re.search(r"an earlier debugger had left [1-9]\d* probes? in the kernel", done.gdb)
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


def test_intervals_of_the_time(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    debug(
        machine,
        "set darc task piperead",
        "darc profile vfs_read --time 6s --every 2s",
        "continue",
        f"darc report -o {file}",
    )
    part = json.loads(file.read_text())["set"]
    (row,) = (row for row in part["functions"] if row["function"] == "vfs_read")
    assert part["every"] == 2
    calls = [sum(interval.values()) for interval in row["slices"]]
    assert len(calls) == 3, part
    assert min(calls) > 0, calls


def test_functions_that_the_kernel_has_given_back(machine: Machine) -> None:
    """They are told as not timed, and do not stand for those of modules of that name."""
    done = debug(machine, "darc profile kernel_init_freeable virtqueue_* --time 1s", "continue")
    assert re.search(r"not timed: .*its code is not there any more", done), done
    alone = debug(machine, "darc profile kernel_init_freeable")
    assert "darc: kernel_init_freeable: its code is not there any more" in alone
