"""What goes wrong around a kernel's analysis: the user is told in a line, and nothing is harmed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgdb.vm import guest, kernels, machine, qmp
from kgdb.vm.machine import Machine
from tests import debugger
from tests.debugger import PLAIN_GDB, ROOT
from tests.kernel import machines
from tests.kernel.analyses import TEXT, assert_unharmed, at_work, connected
from tests.kernel.machines import WATCHDOG_SECONDS, runtime, typed, workload

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(2 * WATCHDOG_SECONDS)]

START = "darc start vfs_read --task piperead --start-ops 150 --peak '>10ms'"
ENDLESS = f"{START} --decision-ops 1000000"
SLEEP = ("vfs_read", "pipe_read", "schedule")


shared = machines.shared("piperead")


@pytest.mark.long
def test_nobody_makes_a_system_call(tmp_path: Path) -> None:
    """There is no task to get memory by: the user sees what darc waits for, and it goes on when one
    comes. It ends at the time limit, and as gdb is told to."""
    (tmp_path / "spin.c").write_text(
        '#include <stdio.h>\nint main(void) { puts("ready"); fflush(stdout); for (;;); }\n'
    )
    subprocess.run(["gcc", "-static", tmp_path / "spin.c", "-o", tmp_path / "spin"], check=True)
    with runtime():
        setup = machine.Setup(kernels.find("debian"), guest.GuestProgram(tmp_path / "spin"))
        started = machine.start(setup, "spin", WATCHDOG_SECONDS)
        started.wait_for(guest.READY, WATCHDOG_SECONDS)
        late = machines.debug(started, "darc start vfs_read --max-time 1500ms", "info threads")
        assert "darc: --max-time is over, and no task made a system call, in which" in late
        assert "Python Exception" not in late
        with machines.at_work(started, "darc start vfs_read", "continue", "darc status") as gdb:
            assert gdb.stdout is not None
            lines = iter(gdb.stdout.readline, "")
            assert "darc: waits until a task makes a system call\n" in lines
            gdb.send_signal(signal.SIGTERM)
            rest = "".join(lines)
            gdb.wait(WATCHDOG_SECONDS)
        assert "vfs_read: profiling" not in rest
        assert "Python Exception" not in rest
        with machines.at_work(started, "darc start vfs_read", "darc status") as gdb:
            assert gdb.stdout is not None
            lines = iter(gdb.stdout.readline, "")
            assert "darc: waits until a task makes a system call\n" in lines
            typed(started, "ls")
            rest = "".join(lines)
        assert "vfs_read: profiling" in rest
        assert_unharmed(started)


BUSY = """
import time

def on_stop(_event):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass

gdb.events.stop.connect(on_stop)
gdb.events.cont.connect(lambda _: print("goes on", flush=True))
"""
"""Another extension's handler of stops takes its time, as darc's own does on a busy machine."""


def test_what_is_known_is_told_as_gdb_is_told_to_end(shared: Machine, tmp_path: Path) -> None:
    """The stop at which that is done is not broken off, in darc nor in others."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    commands = (ENDLESS, f"source {script}", "continue")
    with machines.at_work(shared, *commands) as gdb:
        assert gdb.stdout is not None
        lines = iter(gdb.stdout.readline, "")
        assert "goes on\n" in lines
        gdb.send_signal(signal.SIGTERM)
        rest = "".join(lines)
        gdb.wait(WATCHDOG_SECONDS)
    assert "darc: vfs_read: stopped: " in rest
    assert "KeyboardInterrupt" not in rest
    assert_unharmed(shared)


INTERRUPTED = """
import itertools, os
from darc_gdb import ctrlc

runs, wanted = itertools.count(1), [1, 3]

@ctrlc.patient
def went_on(_event):
    if wanted and next(runs) == wanted[0]:
        del wanted[0]
        os.kill(os.getpid(), 2)

gdb.events.cont.connect(went_on)
"""
"""Ctrl-C comes as the machine goes on for darc: the first time, and when it has run twice more, in
the midst of what darc has to do then."""

LARGE = "pages=[0-9][0-9][0-9][0-9]"


@pytest.mark.long
def test_ctrl_c_while_darc_gets_its_memory(tmp_path: Path) -> None:
    """It ends the command, in a line, whether a task is waited for or makes a call; the kernel is
    as it was, and what it has given is used the next time."""
    with workload("piperead") as started:

        def given() -> int:
            counted = typed(started, f"grep -c '{LARGE}' /proc/vmallocinfo")
            return int(re.findall(r"^(\d+)$", counted, re.M)[-1])

        before = given()
        script = tmp_path / "interrupted.py"
        script.write_text(INTERRUPTED)
        done = connected(
            started,
            tmp_path,
            TEXT.format("before"),
            f"source {script}",
            *(START, "darc status", TEXT.format("first")),
            *(START, "darc status", TEXT.format("second")),
            *(START, "darc stop", TEXT.format("after")),
        )
        assert len(re.findall(r"^darc: interrupted: ", done.gdb, re.M)) == 2, done.gdb
        assert done.gdb.count("nothing is being analysed") == 2, done.gdb
        assert done.gdb.count("darc: analyses vfs_read") == 1, done.gdb
        for text in ("first", "second", "after"):
            assert (tmp_path / "before").read_bytes() == (tmp_path / text).read_bytes()
        assert given() == before + 1
        assert_unharmed(started)


REMOVED = """
import os, socket, time
from pathlib import Path
from darc.target.ownthread import begin_thread

def remove():
    with socket.socket(socket.AF_UNIX) as console:
        console.connect('{console}')
        before = len(Path('{log}').read_text(errors="replace"))
        console.sendall(b"rmmod virtio_pci; echo is gon''e\\n")
        while "is gone" not in Path('{log}').read_text(errors="replace")[before:]:
            time.sleep(0.02)
    {then}

def went_on(_event):
    gdb.events.cont.disconnect(went_on)
    begin_thread(remove, "user")

gdb.events.cont.connect(went_on)
"""
"""The user removes a module."""

STOPS = "os.kill(os.getpid(), 2)"
"""And stops the machine then."""


@pytest.fixture
def with_module(shared: Machine) -> Iterator[Machine]:
    """What is removed comes back, also where the test fails: other tests share the machine."""
    yield shared
    typed(shared, "grep -q ^virtio_pci /proc/modules || insmod /modules/virtio_pci.ko")


@pytest.mark.parametrize(
    ("start", "spec", "then"),
    [
        ("darc start vp_notify", "vp_notify", STOPS),
        ("darc start vp_notify --max-time 20s", "vp_notify", "pass"),
        ("darc profile 'virtio_pci!*' --time 60s", "virtio_pci!*", STOPS),
    ],
)
def test_a_module_that_is_removed_while_its_function_is_timed(
    with_module: Machine, tmp_path: Path, start: str, *, spec: str, then: str
) -> None:
    """The user is told, at a stop or when the time is up; and the kernel gets its module back, and
    an analysis there, as well."""
    shared = with_module
    script = tmp_path / "removed.py"
    log = shared.folder / "console.log"
    script.write_text(REMOVED.format(console=shared.console_socket, log=log, then=then))
    done = connected(
        shared,
        tmp_path,
        TEXT.format("before"),
        start,
        f"source {script}",
        "continue",
        "darc status",
        TEXT.format("after"),
    )
    assert "virtio_pci was unloaded: its functions are not timed any more" in done.gdb
    assert f"{spec}: stopped" in done.gdb, done.gdb
    assert "give a longer" not in done.gdb, done.gdb
    assert "Cannot access memory" not in done.gdb, done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    typed(shared, "insmod /modules/virtio_pci.ko")
    again = connected(shared, tmp_path, "darc start vp_notify", "darc stop")
    assert "darc: every probe is out" in again.gdb
    assert_unharmed(shared)


PROBES = "/sys/kernel/tracing/kprobe_events"
ENABLE = "/sys/kernel/tracing/events/kprobes/enable"


@pytest.fixture
def probe(shared: Machine) -> Iterator[Callable[[str], None]]:
    """Sets a kprobe in the guest."""

    def add(place: str) -> None:
        typed(shared, f"echo p {place} > {PROBES}; echo 1 > {ENABLE}")

    yield add
    typed(shared, f"echo 0 > {ENABLE}; echo > {PROBES}")


def test_a_kprobe_at_f0s_entry(
    shared: Machine, probe: Callable[[str], None], tmp_path: Path
) -> None:
    """The kernel lets ftrace call it."""
    probe("vfs_read")
    done = connected(shared, tmp_path, START)
    last = [line for line in done.gdb.splitlines() if line.startswith("darc: ")][-1]
    assert (
        last == "darc: cannot time vfs_read: a tracer of the kernel's own (ftrace) is active on it"
    )
    assert_unharmed(shared)


def call_site(started: Machine, folder: Path, function: str, callee: str) -> int:
    """How many bytes behind the begin of a function one of its calls stands."""
    done = debugger.debug(
        folder,
        None,
        (),
        [f"target remote {started.target}", f"disassemble {function}"],
        options=[str(started.symbols)],
        gdb=PLAIN_GDB,
    )
    found = re.search(rf"<\+(\d+)>:\s+call .*<{callee}>", done.gdb)
    assert found, done.gdb
    return int(found[1])


def test_a_kprobe_at_a_call_site(
    shared: Machine, probe: Callable[[str], None], tmp_path: Path
) -> None:
    """Its trap stands for the call: what is behind it is read right, it is left alone, and is still
    there in the end."""
    at = call_site(shared, tmp_path, "pipe_read", "schedule")
    probe(f"pipe_read+{at}")
    byte = f"x/xb (char *) &pipe_read + {at}"
    done = connected(shared, tmp_path, byte, START, "continue", debugger.REPORT, byte)
    assert len(re.findall(r":\s+0xcc$", done.gdb, re.M)) == 2, done.gdb
    assert done.paths == [SLEEP[:2]], done.gdb
    assert done.report is not None
    reasons = [
        site["why"] for site in done.report["program"]["sites"] if site["function"] == "pipe_read"
    ]
    assert reasons.count("a kprobe or another debugger is active on it") == 1, reasons
    assert_unharmed(shared)


def test_ftrace_on_a_callee(shared: Machine, probe: Callable[[str], None], tmp_path: Path) -> None:
    """Where its tracer is called is no call site of the function."""
    probe("pipe_read")
    done = connected(shared, tmp_path, START, "continue", debugger.REPORT)
    assert done.paths == [SLEEP], done.gdb
    assert_unharmed(shared)


def test_a_machine_that_is_paused(shared: Machine, tmp_path: Path) -> None:
    """In the middle of a search it is a stop for the user, and the search goes on afterwards. One
    that stands still before is let go on."""
    qmp.execute(shared.monitor_socket, "stop")
    pause = f"qmp.execute(Path('{shared.monitor_socket}'), 'stop')"
    done = connected(
        shared,
        tmp_path,
        TEXT.format("before"),
        f"{START} --decision-ops 60",
        at_work(shared, tmp_path, pause),
        "continue",
        TEXT.format("within"),
        "darc status",
        "continue",
        debugger.REPORT,
        TEXT.format("after"),
    )
    assert "Program received signal SIGINT, Interrupt." in done.gdb
    assert "darc: vfs_read: in progress" in done.gdb
    assert done.paths == [SLEEP], done.gdb
    before = (tmp_path / "before").read_bytes()
    assert (tmp_path / "within").read_bytes() == before
    assert (tmp_path / "after").read_bytes() == before
    assert_unharmed(shared)


LET_GO_ON = "darc: somebody else let the machine go on"
SOON = 30
"""Seconds: gdb waits a minute for an answer that does not come."""


@pytest.mark.parametrize("after", ["at once", "at the prompt"])
def test_a_machine_that_is_paused_and_let_go_on(
    shared: Machine, tmp_path: Path, after: str
) -> None:
    """By others, as snapshot tools do: QEMU throws the question away that gdb asks a machine which
    runs. What gdb asks is answered, and the search goes on. The user is told where that is seen:
    always where a question of gdb's own was lost."""
    monitor = f"Path('{shared.monitor_socket}')"
    again = f"qmp.execute({monitor}, 'cont')"
    tool = tmp_path / "tool.py"
    at_once = f"; {again}" if after == "at once" else ""
    tool.write_text(
        "from pathlib import Path; from kgdb.vm import qmp; "
        f"qmp.execute({monitor}, 'stop'){at_once}"
    )
    happens = (
        f"import subprocess; subprocess.run(['{sys.executable}', '{tool}'], "
        f"env={{'PYTHONPATH': '{ROOT}'}}, check=True)"
    )
    waits = [f"python {again}"] if after == "at the prompt" else []
    done = connected(
        shared,
        tmp_path,
        TEXT.format("before"),
        f"{START} --decision-ops 60",
        at_work(shared, tmp_path, happens),
        "continue",
        "python begun = time.monotonic()",
        *waits,
        "x/2xg &jiffies",
        *waits,
        "bt 1",
        *waits,
        "darc status",
        *waits,
        "info registers rip",
        "python print('took', int(time.monotonic() - begun))",
        *waits,
        "continue",
        debugger.REPORT,
        TEXT.format("after"),
    )
    assert "Program received signal SIGINT, Interrupt." in done.gdb
    took = re.search(r"^took (\d+)$", done.gdb, re.M)
    assert took is not None, done.gdb
    assert int(took[1]) < SOON, done.gdb
    assert after == "at once" or LET_GO_ON in done.gdb
    assert done.paths == [SLEEP], done.gdb
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    assert_unharmed(shared)


def test_a_host_that_is_busy_for_seconds(shared: Machine, tmp_path: Path) -> None:
    """gdb by itself would ask again after two, and take each answer for another from then on."""
    hold = (
        "import itertools, subprocess; written = itertools.count(); pid = {pid}; "
        "stop = f'kill -STOP {{pid}}; sleep 5; kill -CONT {{pid}}'; "
        "hold = lambda: subprocess.Popen(stop, shell=True); "
        "gdb.events.memory_changed.connect(lambda _: hold() if next(written) == 30 else None)"
    )
    connected(shared, tmp_path, TEXT.format("before"))
    done = debugger.debug(
        tmp_path,
        None,
        (),
        [
            f"target remote {shared.target}",
            START,
            f"python {hold.format(pid=shared.pid)}",
            "continue",
            debugger.REPORT,
            TEXT.format("after"),
        ],
        options=[str(shared.symbols)],
    )
    assert done.paths == [SLEEP], done.gdb
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert_unharmed(shared)


@pytest.mark.parametrize("next_command", ["darc stop", START])
def test_a_debugger_that_is_killed_while_the_machine_runs(
    shared: Machine, tmp_path: Path, next_command: str
) -> None:
    """The kernel goes on with the probes. The next debugger takes them out, and does not take them
    for somebody else's."""
    connected(shared, tmp_path, TEXT.format("before"))
    kill = at_work(shared, tmp_path, "os.kill(os.getpid(), 9)")
    killed = connected(shared, tmp_path, ENDLESS, kill, "continue")
    assert killed.status == -signal.SIGKILL, killed.gdb
    assert typed(shared, "cat /proc/uptime /proc/uptime").count("\n") >= 3
    plain = debugger.debug(
        tmp_path,
        None,
        (),
        [f"target remote {shared.target}", TEXT.format("left")],
        options=[str(shared.symbols)],
        gdb=PLAIN_GDB,
    )
    before = (tmp_path / "before").read_bytes()
    assert (tmp_path / "left").read_bytes() != before, plain.gdb
    commands = [next_command, "continue", debugger.REPORT]
    done = connected(
        shared,
        tmp_path,
        *commands[: 1 if next_command == "darc stop" else 3],
        "darc status",
        TEXT.format("after"),
    )
    assert re.search(r"an earlier debugger had left [1-9]\d* probes? in the kernel", done.gdb)
    assert (tmp_path / "after").read_bytes() == before
    if next_command == START:
        assert done.paths == [SLEEP], done.gdb
    assert_unharmed(shared)


@pytest.mark.parametrize("how", ["killed", pytest.param("panic", marks=pytest.mark.long)])
def test_a_machine_that_dies(tmp_path: Path, how: str) -> None:
    """In the middle of a descent: gdb and darc say so, and what was known stays."""
    with workload("piperead") as started:
        what = f"os.kill({started.pid}, 9)"
        if how == "panic":
            what = (
                "global console; console = socket.socket(socket.AF_UNIX); "
                f"console.connect('{started.console_socket}'); "
                r"console.sendall(b'echo c > /proc/sysrq-trigger\n')"
            )
        done = connected(
            started,
            tmp_path,
            ENDLESS,
            at_work(started, tmp_path, what),
            "continue",
            debugger.REPORT,
            "darc status",
        )
    assert "darc: vfs_read: program ended" in done.gdb
    assert done.report is not None, done.gdb
    assert done.report["profile"]["count"] >= 150
    assert "Traceback" not in done.gdb


PANIC = (
    "console = socket.socket(socket.AF_UNIX); console.connect('{console}'); "
    r"console.sendall(b'echo c > /proc/sysrq-trigger\n')"
    "\n    while b'Kernel panic' not in Path('{log}').read_bytes(): time.sleep(0.05)"
    "\n    console.close()"  # unread, it would hold up the kernel's last words
)


@pytest.mark.parametrize("how", ["interrupted", "late"])
def test_a_kernel_that_panics_and_halts(tmp_path: Path, how: str) -> None:
    """QEMU goes on with it (``panic=0``), so gdb has no stop. At the next the user is told, what
    was known stays, and no analysis begins there."""
    with workload("piperead", parameters="panic=0") as started:
        what = PANIC.format(console=started.console_socket, log=started.folder / "console.log")
        if how == "interrupted":
            what += "\n    os.kill(os.getpid(), 2)"
        done = connected(
            started,
            tmp_path,
            TEXT.format("before"),
            ENDLESS + (" --max-time 40s" if how == "late" else ""),
            at_work(started, tmp_path, what),
            "continue",
            debugger.REPORT,
            "darc status",
            TEXT.format("after"),
            START,
        )
    assert "darc: vfs_read: program ended" in done.gdb
    assert "\n  the kernel has panicked\n" in done.gdb
    assert "longer --max-time" not in done.gdb
    assert done.gdb.count("the kernel has panicked: no function of it is called until") == 1
    assert "system call" not in done.gdb
    assert done.report is not None, done.gdb
    assert done.report["profile"]["count"] >= 150
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.parametrize("kaslr", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_machine_that_boots_anew(tmp_path: Path, kaslr: bool) -> None:
    """Nothing is written into the new kernel, and the user is told at the next stop."""
    with workload("piperead", kaslr=kaslr) as started:
        qmp.execute(started.monitor_socket, "set-action", reboot="reset")
        what = (
            f"qmp.execute(Path('{started.monitor_socket}'), 'system_reset')\n"
            f"    log = Path('{started.folder}/messages.log')\n"
            f"    while log.read_text().count('{guest.BOOTED}') < 2: time.sleep(0.05)\n"
            "    os.kill(os.getpid(), 2)"
        )
        done = connected(
            started,
            tmp_path,
            *([] if kaslr else [TEXT.format("before")]),
            ENDLESS,
            at_work(started, tmp_path, what),
            "continue",
            "darc status",
            *([] if kaslr else [TEXT.format("after")]),
            START,
            "continue",
            debugger.REPORT,
        )
        assert "the machine was booted anew, and the probes are gone" in done.gdb
        if not kaslr:
            assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert done.paths == [SLEEP], done.gdb
        assert_unharmed(started)


RESET = """
import os
from pathlib import Path
from darc.target.ownthread import begin_thread
from kgdb.vm import qmp

def reset():
    qmp.execute(Path('{monitor}'), 'system_reset')
    os.kill(os.getpid(), 2)

def went_on(_event):
    gdb.events.cont.disconnect(went_on)
    begin_thread(reset, "user")

gdb.events.cont.connect(went_on)
"""


@pytest.mark.long
@pytest.mark.parametrize("kaslr", [False, True])
def test_a_machine_that_boots_anew_is_told_from_the_one_before(tmp_path: Path, kaslr: bool) -> None:
    """At once, where the new kernel has not even begun."""
    with workload("piperead", kaslr=kaslr) as started:
        qmp.execute(started.monitor_socket, "set-action", reboot="reset")
        script = tmp_path / "reset.py"
        script.write_text(RESET.format(monitor=started.monitor_socket))
        start = "darc start vfs_read --task nobody"
        done = connected(started, tmp_path, start, f"source {script}", "continue", "darc status")
        assert "the machine was booted anew, and the probes are gone" in done.gdb
        assert "Cannot access memory" not in done.gdb
