"""``darc-vm``: machines start, are listed and stop; whatever goes wrong is said in one line."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgdb.vm import kernels, machine
from tests.kernel.machines import DARC_VM, WATCHDOG_SECONDS, darc_vm, runtime

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]


@pytest.fixture
def own_runtime() -> Iterator[Path]:
    with runtime() as folder:
        yield folder


def gdb(line: str, *commands: str) -> str:
    """Runs the line that darc-vm says to type, with a plain gdb, in batch."""
    program, *arguments = shlex.split(line)
    assert program == "darc-gdb"
    more = [word for command in commands for word in ("-ex", command)]
    return subprocess.run(
        ["gdb", "-nx", "-q", "-batch", *arguments, *more],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=True,
    ).stdout


def runs(pid: int) -> bool:
    """Whether there is such a process; one that ended and that nobody waited for does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_whoever_reads_what_is_listed_has_enough() -> None:
    """As ``head`` has: no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as full:
        done = subprocess.run(
            [*DARC_VM, "workloads"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_two_machines_start_are_debugged_and_stop(own_runtime: Path) -> None:
    lines = {}
    for name in ("zeroread", "zeroread-2"):
        done = darc_vm("start", "--workload", "zeroread", "--smp", "2")
        assert done.returncode == 0, done.stderr
        title, connect, stop = done.stdout.splitlines()
        assert title.startswith(f"{name}: ")
        assert stop.strip() == f"darc-vm stop {name}"
        lines[name] = connect.strip()

    listed = darc_vm("list").stdout
    assert re.findall(r"^(\S+): .* runs$", listed, re.M) == list(lines)
    for line in lines.values():
        assert line in listed
        seen = gdb(line, "hbreak vfs_read", "continue", "x/i $pc", "info threads")
        assert re.search(r"=> 0x\w+ <vfs_read>:\s+nopl", seen), seen
        assert "CPU#1" in seen

    which = darc_vm("stop")
    assert which.returncode == 1
    assert which.stderr == "darc-vm: which one? zeroread, zeroread-2\n"
    pids = [one.pid for one in machine.machines()]
    assert darc_vm("stop", "zeroread").returncode == 0
    assert re.findall(r"^(\S+):", darc_vm("list").stdout, re.M) == ["zeroread-2"]
    assert darc_vm("stop").returncode == 0
    assert darc_vm("list").stdout == ""
    assert not list((own_runtime / "darc").iterdir())
    assert not any(runs(pid) for pid in pids)


def test_a_machine_that_died_is_noticed_and_its_name_is_free_again(own_runtime: Path) -> None:
    def start() -> machine.Machine:
        done = darc_vm("start", "--name", "mine")
        assert done.returncode == 0, done.stderr
        (one,) = machine.machines()
        assert one.name == "mine"
        return one

    first = start()
    os.kill(first.pid, signal.SIGKILL)
    while first.alive:
        time.sleep(0.01)
    assert darc_vm("list").stdout.startswith(f"mine: {first.release}, no program; is dead: ")
    second = start()
    assert second.pid != first.pid
    assert second.alive


def test_a_program_of_ones_own(own_runtime: Path, tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text(
        "#include <stdio.h>\nint main(int n, char **a) { puts(a[n - 1]); return 3; }\n"
    )
    subprocess.run(["gcc", source, "-o", tmp_path / "dynamic"], check=True)
    refused = darc_vm("start", "--run", str(tmp_path / "dynamic"))
    assert refused.returncode == 1
    assert re.fullmatch(r"darc-vm: \S+ must be a static program, .*\n", refused.stderr)

    subprocess.run(["gcc", "-static", source, "-o", tmp_path / "mine"], check=True)
    done = darc_vm("start", "--run", f"{tmp_path / 'mine'} 'two words'")
    assert done.returncode == 0, done.stderr
    (one,) = machine.machines()
    one.wait_for("darc-vm: the program ended with status 3", WATCHDOG_SECONDS)
    assert "two words" in one.messages.splitlines()


def test_a_guest_that_panics_is_told_with_its_last_words(own_runtime: Path) -> None:
    done = darc_vm("start", "--append", "rdinit=/nothing")
    assert done.returncode == 1
    assert "the machine died" in done.stderr
    assert "Kernel panic" in done.stderr
    assert not list((own_runtime / "darc").iterdir())


@pytest.mark.parametrize(("by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_start_leaves_nothing(
    own_runtime: Path, by: signal.Signals, status: int
) -> None:
    kernels.find("debian")
    process = subprocess.Popen([*DARC_VM, "start"], stderr=subprocess.PIPE, start_new_session=True)
    try:
        # Whatever it is doing when the machine is there, it is not done yet.
        while not machine.machines():
            assert process.poll() is None
            time.sleep(0.01)
        (one,) = machine.machines()
        process.send_signal(by)
        assert process.wait(WATCHDOG_SECONDS) == status
    finally:
        process.kill()
        process.communicate()
    assert not one.alive
    assert not list((own_runtime / "darc").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("start", "--workload", "nothing"),
            "no workload is called nothing; there are: .*zeroread",
        ),
        (("start", "--run", "/nothing"), "/nothing is not a program"),
        (("start", "--icount", "--accel", "kvm"), "--icount needs --accel tcg"),
        (("start", "--smp", "0"), "a machine needs --smp 1"),
        (("stop",), "which one\\? there is none"),
        (("stop", "nothing"), "no machine is called nothing"),
    ],
    ids=str,
)
def test_refused_in_words(own_runtime: Path, arguments: tuple[str, ...], says: str) -> None:
    done = darc_vm(*arguments)
    assert done.returncode == 1
    assert re.fullmatch(f"darc-vm: {says}.*\n", done.stderr), done.stderr


def test_without_qemu_it_says_what_to_install(own_runtime: Path, tmp_path: Path) -> None:
    kernels.find("debian")
    done = darc_vm("start", PATH=str(tmp_path))
    assert done.returncode == 1
    advice = "qemu-system-x86_64 is not installed: apt-get install qemu-system-x86"
    assert done.stderr == f"darc-vm: {advice}\n"
