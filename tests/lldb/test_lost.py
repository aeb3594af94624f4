"""lldb loses a program that lives on, as its helper has ended."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest

from fixtures.build import build
from tests import debugger
from tests.code import altered_code
from tests.debugger import Server, driven_by, let_go, server, tracer
from tests.lldb.runner import debug
from tests.waiting import guardians, state, wait_for_changes, wait_until, wait_until_it_runs

ENDLESS = ["darc start handle --start-ops 1000000000", "continue"]
LOST = "the debugger has lost process {pid}, which lives: the probes in it sleep"


def altered(running: Server) -> list[str]:
    """Places in the code that differ from the file, but for lldb's own in the loader."""
    return [place for place in altered_code(running.pid)[2] if not place.startswith("ld-linux")]


@pytest.mark.parametrize("again", ["the same", "another"])
def test_its_helper_is_killed(again: str, tmp_path: Path) -> None:
    """The program goes on with sleeping probes, which this lldb or another one takes out."""
    with server(build("server")) as running:

        def kill() -> None:
            wait_for_changes(running.pid)
            wait_until_it_runs(running.pid)
            os.kill(tracer(running.pid), signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        attach = f"process attach -p {running.pid}"
        stop = [attach, "darc stop", "detach"]
        first = [*ENDLESS, "darc status", *(stop if again == "the same" else [])]
        done = debug(tmp_path, None, (), first, options=["-p", str(running.pid)])
        assert LOST.format(pid=running.pid) in done.gdb
        assert "program ended" not in done.gdb
        let_go(running.pid)
        running.operations()
        if again == "another":
            assert altered(running)
            done = debug(tmp_path, None, (), stop)
        assert "probes in the program: they were taken out" in done.gdb
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


@pytest.mark.parametrize("how", [(), ("vfork",)], ids=["fork", "vfork"])
def test_threads_that_make_children(how: tuple[str, ...], tmp_path: Path) -> None:
    """lldb goes on by itself where a child is made. lldb 14 has ways of its own now and then: it
    ends its commands at a child, loses the program, lets it go unknowingly, or leaves it stopped.
    The program does nothing wrong, and nothing is left in it, or the next debugger finds it."""
    with server(build("forking"), "1000000000", *how) as running:
        commands = ["darc start handle --peak last", "continue", "darc status", "detach"]
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), commands, options=options)
        let_go(running.pid)
        wait_until(lambda: not guardians(running.pid))
        os.kill(running.pid, signal.SIGCONT)
        if f"Process {running.pid} detached" in done.gdb:
            assert "handle: root cause found" in done.gdb
        else:
            with driven_by(debugger.GDB):
                debugger.debug(tmp_path, None, (), ["darc stop"], options=options)
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


UNTIL_IT_GOES_ON = """
stat = f"/proc/{lldb.debugger.GetSelectedTarget().GetProcess().GetProcessID()}/stat"
while (state := open(stat).read().rpartition(")")[2].split()[0]) in "tT":
    pass
print("its state:", state)
"""


def process_of(program: Path) -> int:
    """The process that runs this file, as soon as there is one."""
    while True:
        for link in Path("/proc").glob("[0-9]*/exe"):
            with contextlib.suppress(OSError):
                if link.readlink() == program:
                    return int(link.parent.name)


def test_the_helper_of_a_launched_program_is_killed(tmp_path: Path) -> None:
    """The program does not end with lldb then, and it goes on."""
    program = tmp_path / "program"
    shutil.copy(build("server"), program)

    def kill() -> None:
        pid = process_of(program)
        wait_for_changes(pid)
        wait_until_it_runs(pid)
        os.kill(tracer(pid), signal.SIGKILL)

    script = tmp_path / "lost.py"
    script.write_text(UNTIL_IT_GOES_ON)
    threading.Thread(target=kill, daemon=True).start()
    waits = f"script exec(open({str(script)!r}).read())"
    commands = [ENDLESS[0], "run", waits, "darc status"]  # lldb would end before darc has seen it
    done = debug(tmp_path, program, ("1000000000",), commands)
    found = re.search(LOST.format(pid=r"(\d+)"), done.gdb)
    assert found is not None, done.gdb
    assert f"if it stays stopped, 'kill -CONT {found[1]}' lets it go on" in done.gdb
    assert re.search("^its state: [SRD]$", done.gdb, re.M), done.gdb


@pytest.mark.parametrize("function", ["handle", "not_there"])
def test_a_program_that_its_user_has_stopped(function: str, tmp_path: Path) -> None:
    """It stays so when lldb lets it go, of which lldb says nothing at the end of its commands."""
    with server(build("server")) as running:
        os.kill(running.pid, signal.SIGSTOP)
        wait_until(lambda: state(running.pid) == "T")
        done = debug(
            tmp_path, None, (), [f"darc start {function}"], options=["-p", str(running.pid)]
        )
        assert "has lost" not in done.gdb
        assert "ended before" not in done.gdb
        let_go(running.pid)
        wait_until(lambda: not guardians(running.pid))
        assert state(running.pid) == "T"
        os.kill(running.pid, signal.SIGCONT)
        assert running.finish() == 0


def test_lldb_ends_at_a_stop(tmp_path: Path) -> None:
    """It lets the program go then, without a command: that is no loss."""
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [ENDLESS[0]], options=options)
        assert "has lost" not in done.gdb
        let_go(running.pid)
        assert running.finish() == 0
