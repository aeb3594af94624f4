"""lldb loses a program that lives on, as its helper has ended."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from fixtures.build import build
from tests import debugger
from tests.code import altered_code
from tests.debugger import Server, driven_by, let_go, server, tracer
from tests.gdb.test_terminal import wait_for_changes, wait_until_it_runs
from tests.lldb.runner import debug

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


def test_children_of_vfork_in_a_thread(tmp_path: Path) -> None:
    """lldb 14 loses such a program, and leaves it stopped."""
    with server(build("forking"), "1000000000", "vfork") as running:
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [*ENDLESS, "darc status"], options=options)
        let_go(running.pid)
        assert LOST.format(pid=running.pid) in done.gdb
        running.operations()
        with driven_by(debugger.GDB):
            stopped = debugger.debug(tmp_path, None, (), ["darc stop"], options=options)
        assert "probes in the program: they were taken out" in stopped.gdb
        assert altered(running) == []
        assert running.finish() == 0


def test_lldb_ends_at_a_stop(tmp_path: Path) -> None:
    """It lets the program go then, without a command: that is no loss."""
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [ENDLESS[0]], options=options)
        assert "has lost" not in done.gdb
        let_go(running.pid)
        assert running.finish() == 0
