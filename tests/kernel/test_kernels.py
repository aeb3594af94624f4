"""Other kernels than the one that all tests run on, in a plain QEMU that nobody of darc's started:
processors, addresses and devices are QEMU's and the kernel's own choice.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgdb.image import KernelImage
from kgdb.vm import disk, guest, kernels, workloads
from kgdb.vm.machine import QEMU
from tests import debugger
from tests.kernel.analyses import TROUBLE
from tests.kernel.machines import PATIENT, WATCHDOG_SECONDS

SPINS = ("rwsem_spin_on_owner", "rt_mutex_slowlock_block", "rtmutex_spin_on_owner")
"""Where a task waits for a lock that one on the other processor holds, before it sleeps."""

CALLED_TO_YIELD = ("__cond_resched", "preempt_schedule_thunk", "preempt_schedule")
"""By what they call themselves another task gets the processor, not by an interrupt."""

BARE = "mitigations=off"
"""The kernel has then written indirect calls over its compiler's calls of thunks: with a nop behind
each, or, newer ones, filled up with prefixes."""

OTHERS = sorted({*kernels.NAMES} - {"debian", "kgdb"})

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(3 * WATCHDOG_SECONDS)]

_READ_TEXT = """
import gdb
place = bytes(gdb.selected_inferior().read_memory(0xFFFF_FE00_0000_0000, 16))
bias = int.from_bytes(place[0:2] + place[6:12], "little") - {handler}
gdb.execute(f"dump binary memory {file} {{{start} + bias:#x}} {{{end} + bias:#x}}")
"""
"""As no symbols are where the kernel has put itself: by its descriptors of interrupts."""


@dataclass(frozen=True)
class Plain:
    """A QEMU with a gdbstub and serial lines, and nothing else that is asked for."""

    folder: Path
    symbols: Path
    process: subprocess.Popen[bytes]

    @property
    def messages(self) -> str:
        return (self.folder / "messages.log").read_text(errors="replace").replace("\r", "")

    @property
    def console(self) -> str:
        return (self.folder / "console.log").read_text(errors="replace")

    def wait_for(self, line: str) -> None:
        deadline = time.monotonic() + WATCHDOG_SECONDS
        while line not in self.messages.splitlines():
            assert self.process.poll() is None, self.console[-2000:]
            assert time.monotonic() < deadline, self.messages + self.console[-2000:]
            time.sleep(0.05)

    def text(self, file: str) -> str:
        """A command that writes the kernel's code into a file."""
        values = KernelImage(self.symbols).values
        names = ("asm_exc_divide_error", "_stext", "_etext")
        handler, start, end = (values[name] for name in names)
        script = self.folder / f"read-{file}.py"
        script.write_text(_READ_TEXT.format(handler=handler, start=start, end=end, file=file))
        return f"source {script}"

    def debug(self, folder: Path, *commands: str) -> debugger.Done:
        connect = f"target remote {self.folder}/gdb.sock"
        options = [*PATIENT, str(self.symbols)]
        return debugger.debug(folder, None, (), [connect, *commands], options=options)


@contextlib.contextmanager
def plain(name: str, workload: str, parameters: str = "") -> Iterator[Plain]:
    kernel, program = kernels.find(name), workloads.built(workload)
    with tempfile.TemporaryDirectory(prefix="vm") as path:
        folder = Path(path)
        (folder / "initramfs").write_bytes(guest.initial_files(kernel, program))
        command = [QEMU, "-nodefaults", "-display", "none", "-no-reboot", "-smp", "2"]
        command += ["-m", "1G", "-kernel", str(kernel.image), "-initrd", "initramfs"]
        command += ["-append", f"console=ttyS0 quiet panic=-1 {parameters}"]
        for log in ("console", "none", "messages"):
            command += ["-serial", "null" if log == "none" else f"file:{log}.log"]
        command += ["-gdb", "unix:gdb.sock,server=on,wait=off"]
        for image in disk.images():
            command += ["-drive", f"file={image},format=raw,if=virtio,snapshot=on"]
        with (folder / "qemu.log").open("wb") as log_file:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file
            )
        try:
            for log in ("console", "messages"):
                (folder / f"{log}.log").touch()
            started = Plain(folder, kernel.symbols, process)
            started.wait_for(guest.READY)
            yield started
            assert process.poll() is None
            assert not TROUBLE.search(started.console), started.console[-4000:]
            assert guest.ENDED not in started.messages, started.messages
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    "name", ["debian", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
def test_a_sleep_and_a_time_limit(name: str, tmp_path: Path) -> None:
    """The path to it, and from where the interrupt came that ended it; an analysis that ends as its
    time is up; and code that is as it was."""
    with plain(name, "naps") as started:
        done = started.debug(
            tmp_path,
            started.text("before"),
            "darc start hrtimer_nanosleep --task naps --start-ops 12 --peak '>400ms' "
            "--decision-ops 3",
            "continue",
            debugger.REPORT,
            "darc waits",
            started.text("after"),
            "darc start vfs_read --task nobody --max-time 2",
            "continue",
            started.text("at_last"),
        )
        assert done.paths == [("hrtimer_nanosleep", "do_nanosleep", "schedule")], done.gdb
        assert "cause: blocked in schedule (do_nanosleep slept)" in done.gdb
        assert "a wake-up in schedule ← do_nanosleep ← hrtimer_nanosleep: " in done.gdb
        assert re.search(
            r"woken by an interrupt in hrtimer_wakeup ← __hrtimer_run_queues ←", done.gdb
        )
        assert "the time is up: this is what was known by then" in done.gdb
        before = (tmp_path / "before").read_bytes()
        assert before == (tmp_path / "after").read_bytes()
        assert before == (tmp_path / "at_last").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((name, "") for name in ("debian", *OTHERS)),
        *((name, BARE) for name in ("debian", "newest")),
    ],
)
def test_a_lock_that_another_task_holds(name: str, parameters: str, tmp_path: Path) -> None:
    """Where the write waits for it: asleep, or spinning while its owner runs."""
    with plain(name, "contention", parameters) as started:
        done = started.debug(
            tmp_path,
            started.text("before"),
            "darc start vfs_write --task contention --start-ops 300 --peak '>5ms' "
            "--decision-ops 10 --max-time 60",
            "continue",
            debugger.REPORT,
            started.text("after"),
        )
        assert done.report is not None, done.gdb
        causes = {tuple(p["functions"]): p["cause"] for p in done.report["root_cause_paths"]}
        locked = {path: cause for path, cause in causes.items() if "down_write" in path}
        assert locked, done.gdb
        for path, cause in locked.items():
            assert path[:2] == ("vfs_write", "ext4_file_write_iter"), done.gdb
            assert cause == "blocked" or path[-1] in SPINS, (causes, done.gdb)
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_a_processor_that_another_task_takes(name: str, tmp_path: Path) -> None:
    """At the end of an interrupt: where the processor says whose stack that is on is not the same
    in all of them. With PREEMPT_RT most others wait for the read's end, threads of interrupts do
    not."""
    with plain(name, "preempted", "maxcpus=1 preempt=full") as started:
        done = started.debug(
            tmp_path,
            "darc start vfs_read --task preempted --peak last --start-ops 1000 --max-time 60",
            "continue",
            debugger.REPORT,
            "darc waits",
        )
        assert done.report is not None, done.gdb
        causes = {tuple(p["functions"]): p["cause"] for p in done.report["root_cause_paths"]}
        told = {cause for path, cause in causes.items() if path[-1] not in CALLED_TO_YIELD}
        wanted = {"preemption", "interrupt"} if name.endswith("rt") else {"preemption"}
        assert wanted & told, (causes, done.gdb)
        assert "meanwhile ran task" in done.gdb


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_who_is_waited_for(name: str, tmp_path: Path) -> None:
    """A task that sleeps may stay on its queue from 6.12 on (``sched_delayed``): it is blocked, not
    one that could have run, and whoever wakes it is told."""
    with plain(name, "filelock") as started:
        done = started.debug(
            tmp_path,
            "darc start fcntl_setlk --task filelock --start-ops 1000 --peak '>1ms'",
            "continue",
            debugger.REPORT,
            "darc waits",
            "darc stop",
        )
        assert done.report is not None, done.gdb
        in_peak = [op for op in done.report["ops"]["kept"] if op["class"] == "in peak"]
        assert len(in_peak) >= 8, done.gdb
        for op in in_peak:
            slept = sum(s["end"] - s["start"] for s in op["spans"] if s["function"] == "schedule")
            blocked = sum(
                off["end"] - off["start"] for off in op["off"] if off["reason"] == "blocked"
            )
            assert 0.5 * slept <= blocked <= op["end"] - op["start"], (op, done.gdb)
        woke: dict[str, int] = {}
        for waited in done.report["waits"]["in_peak"]["objects"]:
            for one in waited["holders"]:
                if waited["kind"] == "wake-up" and one["role"] == "woke":
                    woke[one["thread"]] = woke.get(one["thread"], 0) + one["cycles"]
        assert max(woke, key=lambda thread: woke[thread]) == "rebuild", done.gdb
