"""``darc start`` on a kernel behind QEMU's gdbstub: the right path, and nothing left behind."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest

from kgdb.vm.machine import Machine
from tests import debugger
from tests.kernel import machines
from tests.kernel.analyses import COMMIT, START, TEXT, assert_unharmed, connected, goes_by_commit
from tests.kernel.machines import (
    WATCHDOG_SECONDS,
    assert_goes_on,
    at_patch,
    paused,
    typed,
    workload,
)

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]


DIE_AT_WORK = at_patch(3, "__import__('os').kill(__import__('os').getpid(), 9)")
"""Kills gdb when it has put in some call sites' probes."""

CTRL_C = (
    "import os, threading; gdb.events.cont.connect("
    "lambda _: threading.Timer(1, os.kill, (os.getpid(), 2)).start())"
)
"""The user's, a second after the machine goes on: before that gdb would not pass it on."""


machine = machines.shared("syncwrite", icount=True)
"""Its clock counts instructions: whatever else this machine does is no latency. Addresses are
as in the file, so that gdb's own commands know them."""


def test_the_path_to_the_slow_commit(machine: Machine, tmp_path: Path) -> None:
    """Which ends where the task gives the processor away; and the kernel's code is as it was, byte
    for byte."""
    done = connected(
        machine,
        tmp_path,
        TEXT.format("before"),
        START,
        "continue",
        debugger.REPORT,
        TEXT.format("after"),
        "darc start do_iter_write --task syncwrite --start-ops 50",
        "continue",
        "darc status",
    )
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found"
    assert done.report["probes"] == "pad"
    causes = {tuple(p["functions"]): p["cause"] for p in done.report["root_cause_paths"]}
    away = [path for path, cause in causes.items() if cause in ("blocked", "preemption")]
    assert any(path[:3] == COMMIT and "ext4_sync_file" in path for path in away), causes
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert "50 calls seen of 50" in done.gdb  # in the memory that was taken the first time
    assert_unharmed(machine)


def test_an_op_of_a_kernel_is_drawn(machine: Machine, tmp_path: Path) -> None:
    """Its calls, by task, and what the slow writes do that the fast ones do not."""
    commands = [START, "continue", debugger.REPORT, debugger.mark("one"), "darc ops 1"]
    commands += [debugger.mark("compared"), "darc compare", debugger.mark("end"), "darc stop"]
    done = connected(machine, tmp_path, *commands)
    assert done.report is not None, done.gdb
    first = done.report["ops"]["kept"][0]
    calls = [span["function"] for span in first["spans"] if span["function"] in COMMIT]
    assert calls[:2] == list(COMMIT[1:])  # others may be long enough for a span
    assert all(first["start"] <= s["start"] < s["end"] <= first["end"] for s in first["spans"])
    rows = [line.split()[0] for line in done.section("one").splitlines() if "█" in line]
    assert [row for row in rows if row in COMMIT][:3] == list(COMMIT), done.section("one")
    for path in done.report["root_cause_paths"]:
        assert path["kept_ops"] < 8 or path["share"] is None or 0 <= path["share"] <= 1
    assert "ext4_sync_file" in done.section("compared")
    assert_unharmed(machine)


@pytest.mark.long  # whether the disk answers before the call returns is the host's matter
def test_a_device_that_interrupts(machine: Machine, tmp_path: Path) -> None:
    """A function of a module that tells the disk of a request, and is interrupted as that is done:
    by the disk's own handler, also in a module. Where that comes as the call returns, it is its
    caller that is interrupted."""
    done = connected(
        machine,
        tmp_path,
        TEXT.format("before"),
        "darc start vp_notify --start-ops 100 --peak last",
        "continue",
        debugger.REPORT,
        TEXT.format("after"),
    )
    ways = [("vp_notify", "iowrite16", "vring_interrupt"), ("vp_notify", "vring_interrupt")]
    assert done.paths in ([way] for way in ways), done.gdb
    assert re.search(r"interrupted by vring_interrupt \(.*vector 0x\w\w of virtio\d-req", done.gdb)
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


def test_calls_that_a_tick_always_interrupts_in_darcs_own_time(
    machine: Machine, tmp_path: Path
) -> None:
    """They take longer than a tick, and where a clock counts instructions that comes as a clock is
    read: they decide as all others, as what the ticks took is known. Nobody else wants the
    processor meanwhile, or it would be the waits for it that make these calls long."""
    read = "dd if=/proc/kpageflags of=/dev/null bs=1M count=1 2>/dev/null"
    with paused(machine, "syncwrite"):
        typed(machine, f"rm -f /tmp/enough; (while [ ! -e /tmp/enough ]; do {read}; done) & true")
        done = connected(
            machine,
            tmp_path,
            "darc start kpageflags_read --task dd --start-ops 10 --peak '>1ms' --decision-ops 5 "
            "--max-time 300",
            "continue",
            debugger.REPORT,
        )
        typed(machine, "touch /tmp/enough")
    assert done.report is not None, done.gdb
    assert done.report["status"] == "root cause found", done.gdb
    assert_unharmed(machine)


def test_a_debugger_that_is_killed_and_the_next_one(machine: Machine, tmp_path: Path) -> None:
    """In the middle of putting probes in; 'darc stop' in the next one takes them out."""
    connected(machine, tmp_path, TEXT.format("before"))
    killed = connected(
        machine, tmp_path, f"{START} --decision-ops 1000000", f"python {DIE_AT_WORK}", "continue"
    )
    assert killed.status == -signal.SIGKILL, killed.gdb
    done = connected(machine, tmp_path, "darc stop", TEXT.format("after"), "darc stop")
    assert re.search(r"an earlier debugger had left [1-9]\d* probes? in the kernel", done.gdb), (
        done.gdb
    )
    assert "nothing is being analysed" in done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


@pytest.mark.long
def test_indirect_calls_in_a_kernel_without_retpolines(tmp_path: Path) -> None:
    """They have two bytes, to which tasks come back that slept meanwhile: while the patch is there,
    and when it is no more. The next debugger goes on in the memory of the first one."""
    with workload("piperead", icount=True, parameters="mitigations=off") as machine:
        connected(machine, tmp_path, TEXT.format("before"))
        for text in ("after", "at_last"):
            done = connected(
                machine,
                tmp_path,
                "darc start vfs_read --task piperead --start-ops 300 --peak last",
                "continue",
                debugger.REPORT,
                TEXT.format(text),
            )
            assert done.paths == [("vfs_read", "pipe_read", "schedule")], done.gdb
            assert (tmp_path / "before").read_bytes() == (tmp_path / text).read_bytes()
        assert done.report is not None
        call = done.report["root_cause_paths"][0]["calls"][0]
        shown = connected(machine, tmp_path, f"x/i {call['offset']:#x}")
        assert re.search(r"call +\*%r", shown.gdb), shown.gdb
        assert_unharmed(machine)


DIE_WHILE_IT_RUNS = """
import os, threading, time, gdb

def die_when_it_has_gone_on():
    before = told()
    while told() <= before + 1:
        time.sleep(0.05)
    os.kill(os.getpid(), 9)

def told():
    with open("{messages}") as messages:
        return messages.read().count("mean ")

def written(event):
    if event.address <= {site} < event.address + event.length:
        gdb.events.memory_changed.disconnect(written)
        threading.Thread(target=die_when_it_has_gone_on).start()

gdb.events.memory_changed.connect(written)
"""
"""Kills gdb while the machine runs, when it has done so with a patch at that place."""


@pytest.mark.long
def test_a_debugger_that_is_killed_while_short_calls_are_timed(tmp_path: Path) -> None:
    """In a kernel without retpolines, while two processors run: the next debugger takes out what
    leads to pads by way of landings."""
    start = "darc start vfs_read --task piperead --start-ops 300 --peak last"
    with workload("piperead", cpus=2, parameters="mitigations=off") as machine:
        found = connected(machine, tmp_path, start, "continue", debugger.REPORT)
        assert found.report is not None, found.gdb
        site = found.report["root_cause_paths"][0]["calls"][0]["offset"]
        script = tmp_path / "die.py"
        messages = machine.folder / "messages.log"
        script.write_text(DIE_WHILE_IT_RUNS.format(messages=messages, site=site))
        connected(machine, tmp_path, TEXT.format("before"))
        more = f"{start} --decision-ops 1000000"
        killed = connected(machine, tmp_path, f"source {script}", more, "continue")
        assert killed.status == -signal.SIGKILL, killed.gdb
        show = f"x/i {site:#x}"
        done = connected(machine, tmp_path, show, "darc stop", show, TEXT.format("after"))
        shown = re.findall(r"^ .*:\t(\w+) ", done.gdb, re.M)
        assert shown == ["jmp", "call"], done.gdb
        assert re.search(r"left [1-9]\d* probes? in the kernel", done.gdb), done.gdb
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert_goes_on(machine)
        assert_unharmed(machine)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("do_syscall_64", "it stands in code of the kernel's entries"),
        ("__schedule", "it has no room for a probe at its entry"),
        ("sched_clock", "it has no room for a probe at its entry"),  # which is a jump of its own
        ("vfs_raed", "no function is called vfs_raed (near names: vfs_read"),
        ("__switch_to_asm", "it returns in another task"),
        ("rcu_read_lock", "has no debugging information, which tells what was inlined"),
        (
            "fs/read_write.c:vfs_read",
            "no debugging information, which tells source files: take vfs_read",
        ),
    ],
)
def test_what_cannot_be_timed_is_told_in_a_line(
    machine: Machine, tmp_path: Path, function: str, why: str
) -> None:
    done = connected(machine, tmp_path, f"darc start {function}")
    last = [line for line in done.gdb.splitlines() if line.startswith("darc: ")][-1]
    assert why in last
    assert "waits for" not in done.gdb
    assert_unharmed(machine)


@pytest.mark.long
def test_what_debugging_information_tells(machine: Machine, tmp_path: Path) -> None:
    """Into what a function was inlined, source files, and lines. gdb takes its time to read it."""
    done = connected(
        machine,
        tmp_path,
        "darc start rcu_read_lock",
        "darc start kmalloc",
        "darc start fs/read_write.c:do_iter_write --task syncwrite --start-ops 300 --peak last",
        "continue",
        "darc tree",
        symbols=machine.debug,
    )
    for name in ("rcu_read_lock", "kmalloc"):
        told = rf"^darc: {name} was inlined into \w+, .* and \d+ more: analyse these$"
        assert re.search(told, done.gdb, re.M), done.gdb
    assert "darc: analyses fs/read_write.c:do_iter_write: 'continue'" in done.gdb
    assert re.search(r"do_iter_readv_writev .* read_write\.c:\d+ ", done.gdb), done.gdb
    assert "waits for" not in done.gdb
    assert_unharmed(machine)


def test_symbols_of_another_kernel_are_refused(machine: Machine, tmp_path: Path) -> None:
    other = tmp_path / "vmlinux"
    shutil.copy(machine.symbols, other)
    data = other.read_bytes()
    assert b"Linux version 6." in data
    other.write_bytes(data.replace(b"Linux version 6.", b"Linux version 7."))
    done = connected(machine, tmp_path, START, symbols=other)
    assert re.search(r"^darc: .*is not the running kernel's", done.gdb, re.M), done.gdb
    assert_unharmed(machine)


@pytest.mark.parametrize("probes", ["pad", pytest.param("breakpoint", marks=pytest.mark.long)])
def test_the_time_limit_where_the_function_is_never_called(
    machine: Machine, tmp_path: Path, probes: str
) -> None:
    """The agent never rings: darc stops the machine itself. What the user interrupts stops as
    always, also while a limit is set."""
    connected(machine, tmp_path, TEXT.format("before"))
    limited = f"darc start kernel_halt --probes {probes} --max-time"
    done = connected(machine, tmp_path, f"{limited} 2", "continue", TEXT.format("after"))
    assert "the time is up: this is what was known by then" in done.gdb
    assert "SIGINT" not in done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    done = connected(
        machine, tmp_path, f"{limited} 1h", f"python {CTRL_C}", "continue", "darc status"
    )
    assert "Program received signal SIGINT, Interrupt." in done.gdb
    assert "kernel_halt: profiling" in done.gdb
    assert_unharmed(machine)


LIMIT = 10
CLOCK = "python import time; print('at', time.monotonic())"


def test_the_time_limit_of_a_search_that_goes_on(machine: Machine, tmp_path: Path) -> None:
    """It is the user's own time, from 'darc start' on: with all stops, and until every probe is
    out."""
    done = connected(
        machine,
        tmp_path,
        TEXT.format("before"),
        CLOCK,
        f"{START} --decision-ops 1000000 --max-time {LIMIT}",
        "continue",
        CLOCK,
        TEXT.format("after"),
    )
    assert "the time is up: this is what was known by then" in done.gdb
    begin, end = (float(at) for at in re.findall(r"^at (\S+)$", done.gdb, re.M))
    assert LIMIT <= end - begin < 2 * LIMIT, done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(machine)


def test_two_processors_and_addresses_that_the_kernel_has_chosen(tmp_path: Path) -> None:
    with workload("syncwrite", kaslr=True, cpus=2) as machine:
        done = connected(machine, tmp_path, START, "continue", debugger.REPORT)
        assert goes_by_commit(done), done.gdb
        assert_unharmed(machine)
