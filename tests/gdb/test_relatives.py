"""Programs that confine themselves, or fork in the middle of what darc does, and debuggers that
have little: nobody is hurt."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from fixtures.build import build
from tests.code import altered_code
from tests.debugger import (
    DARC_GDB,
    GDB,
    IN_BOTH,
    NEWEST,
    REPORT,
    Server,
    attempt,
    debug,
    server,
    tracer,
)
from tests.waiting import wait_for_changes

START = "darc start handle --peak >400us"
PATH = ("handle", "lookup", "burn")
MIB = 1 << 20


def has_landlock() -> bool:
    """Whether this kernel has it (landlock_create_ruleset tells its version)."""
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1)) > 0


@IN_BOTH
def test_a_program_that_opens_no_file(tmp_path: Path) -> None:
    """It has restricted itself by landlock: darc has it open nothing."""
    if not has_landlock():
        pytest.skip("this kernel has no landlock")
    with server(build("limited"), "files-away", str(64 << 10)) as running:
        commands = [f"{START} --probes pad", "continue", REPORT, "darc stop", "detach"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert done.paths == [PATH], done.gdb
        assert running.finish() == 0


@pytest.mark.debuggers(GDB, NEWEST)  # lldb 14 loses such a program by itself
def test_children_of_another_thread(tmp_path: Path) -> None:
    """A thread forks all the time, also while memory is mapped and code is patched: its children
    compute what is right, and inherit no descriptor."""
    with server(build("forking")) as running:
        round_ = [f"{START} --probes pad", "continue", "darc stop"]
        commands = [*round_, *round_, START, "continue", REPORT, "darc stop", "detach"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert done.report is not None, done.gdb
        assert running.operations()
        assert running.finish() == 0


@pytest.mark.parametrize("last", ["darc stop", "detach"])
def test_a_child_that_keeps_copies_is_told(last: str, tmp_path: Path) -> None:
    """It was made while probes were in; 'darc stop' takes them out there."""
    with server(build("forking"), "4000000000", "kept") as running:

        def have_a_child_made() -> None:
            wait_for_changes(running.pid)
            running.operations()
            os.kill(tracer(running.pid), signal.SIGINT)

        threading.Thread(target=have_a_child_made, daemon=True).start()
        commands = ["darc start handle --peak last --start-ops 1000000000", "continue", last]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        (child,) = procfs.children(running.pid)
        line = f"a child of the program's has copies of what darc had put into the program ({child}"
        assert done.gdb.count(line) == 1, done.gdb
        assert altered_code(child)[2]
        for said in (True, False):
            taken = [attempt("darc stop")]
            done = debug(tmp_path, None, (), taken, options=["-p", str(child)])
            assert ("they were taken out" in done.gdb) == said, done.gdb
        assert not altered_code(child)[2]
        commands = ["darc start handle --peak >400us", "continue", "darc stop"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert "has copies" not in done.gdb
        assert running.finish() == 0


@pytest.mark.parametrize("most", [10, 14, 18, 24])
def test_a_debugger_with_few_descriptors(most: int, tmp_path: Path) -> None:
    """It begins, or says in a line why not; the program goes on."""
    with server(build("server")) as running:
        size = procfs.mapping_count(running.pid)
        few = ["prlimit", f"--nofile={most}:{most}", *DARC_GDB]
        commands = [START, "darc stop", "detach"]
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), commands, options=options, gdb=few)
        assert "Traceback" not in done.gdb
        assert "internal error" not in done.gdb
        assert running.operations()
        if "Too many open files" in done.gdb:
            assert procfs.mapping_count(running.pid) == size, done.gdb
        assert running.finish() == 0


@contextlib.contextmanager
def cgroup(running: Server, room: int) -> Iterator[Path]:
    """The program is in a cgroup of its own that may take ``room`` bytes more than it has; where
    that cannot be made, the test is skipped."""
    place = made = None
    try:
        for line in Path(f"/proc/{running.pid}/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            for mount, _root in procfs.cgroup_mounts(kinds and "memory"):
                if kinds in ("", "memory"):
                    place = mount / path.lstrip("/")
                    limit = "memory.max" if not kinds else "memory.limit_in_bytes"
                    used = "memory.current" if not kinds else "memory.usage_in_bytes"
                    if (place / used).exists() or kinds == "memory":
                        made = place / f"darc-test-{running.pid}"
                        made.mkdir()
                        (made / "cgroup.procs").write_text(str(running.pid))
                        now = int((made / used).read_text())
                        (made / limit).write_text(str(now + room))
                        break
            if made is not None:
                break
    except OSError as error:
        if made is not None and made.exists():
            with contextlib.suppress(OSError):
                made.rmdir()
        pytest.skip(f"no cgroup can be made here: {error.strerror}")
    if made is None or place is None:
        pytest.skip("there is no memory controller")
    try:
        yield made
    finally:
        if Path(f"/proc/{running.pid}").exists():
            with contextlib.suppress(OSError):
                (place / "cgroup.procs").write_text(str(running.pid))
        with contextlib.suppress(OSError):
            made.rmdir()


@pytest.mark.parametrize("room", [MIB // 2, 64 * MIB])
def test_a_cgroup_at_its_limit(room: int, tmp_path: Path) -> None:
    """Where the program's cgroup has no room for what darc takes, it is not begun: the kernel
    would kill the program."""
    with server(build("server")) as running, cgroup(running, room):
        commands = [f"{START} --probes pad", "continue", REPORT, "darc stop", "detach"]
        if room < MIB:
            commands = [f"{START} --probes pad", "detach"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        if room < MIB:
            assert "cgroup" in done.gdb
        else:
            assert done.paths == [PATH], done.gdb
        assert running.operations()
        assert running.finish() == 0
