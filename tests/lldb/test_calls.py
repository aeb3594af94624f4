"""What darc has a program do for it in lldb: signals do it no harm, nor does the end of lldb."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import REPORT, Server, let_go, server
from tests.lldb.runner import debug

ANALYSE = [
    "darc start handle --peak >400us --start-ops 200 --decision-ops 2 --lookahead 1",
    "continue",
]

KILL = """
import os
import signal
from darc.debuggee import procfs
from darc_lldb.server import Server

send = Server._send
sent = []

def dying(server, packet):
    pid = int(server._process.GetProcessID())
    if packet.startswith("vCont"):
        sent.append(packet)
    if len(sent) == {after}:
        os.kill(int(procfs.status(pid)["TracerPid"]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    return send(server, packet)

Server._send = dying
"""
"""lldb and its server, which traces the program, die where a thread is about to go for darc."""


@pytest.mark.parametrize("mode", ["plain", "jump", "suspend", "threads"])
def test_signals_that_come_all_the_time(mode: str, tmp_path: Path) -> None:
    with server(build("alarms"), mode) as running:
        quiet = "process handle SIGALRM -s false -n false"
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [quiet, *ANALYSE, REPORT, "detach"], options=options)
        assert ("handle", "lookup", "burn") in done.paths, done.gdb
        let_go(running.pid)
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


def gives_back(running: Server, folder: Path, options: list[str]) -> None:
    """The program goes on with what a killed lldb has borrowed of it, and the next darc takes that
    out."""
    let_go(running.pid)
    running.operations()
    assert altered(running)
    done = debug(folder, None, (), ["darc stop", "detach"], options=options)
    assert "taken out" in done.gdb
    let_go(running.pid)
    running.operations()
    assert altered(running) == []
    assert running.finish() == 0


@pytest.mark.parametrize("after", [1, 2, 6])
def test_kill_in_a_call(after: int, tmp_path: Path) -> None:
    """The thread comes back by itself, and the next darc gives back what was borrowed."""
    script = tmp_path / "dying.py"
    script.write_text(KILL.format(after=after))
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        debug(tmp_path, None, (), [f"command script import {script}", *ANALYSE], options=options)
        gives_back(running, tmp_path, options)


ROUND = """
import os
import signal
from darc.debuggee import procfs
from darc_lldb.threadcall import ThreadCall

run_to = ThreadCall._run_to

def die(call, address):
    pid = int(call._process.GetProcessID())
    if "{who}" == "server":
        os.kill(pid, signal.SIGSTOP)
    if "{who}" != "lldb":
        os.kill(int(procfs.status(pid)["TracerPid"]), signal.SIGKILL)
    if "{who}" != "server":
        os.kill(os.getpid(), signal.SIGKILL)
    return run_to(call, address)

ThreadCall._run_to = die
"""
"""Where a thread is about to go round, lldb dies, alone or with its server; or its server alone,
and the thread gets no processor until lldb has seen that. (With its breakpoint in the thread's way
the program ends: docs/safety.md.)"""


@pytest.mark.parametrize("who", ["both", "lldb"])
def test_kill_as_a_thread_goes_round(who: str, tmp_path: Path) -> None:
    """It comes back by itself, and the next darc gives back what was borrowed."""
    script = tmp_path / "dying.py"
    script.write_text(ROUND.format(who=who))
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        commands = [f"command script import {script}", *ANALYSE]
        killed = debug(tmp_path, None, (), commands, options=options)
        assert killed.status == -signal.SIGKILL, killed.gdb
        gives_back(running, tmp_path, options)


def test_kill_of_the_server_as_a_thread_goes_round(tmp_path: Path) -> None:
    """What the thread still has to run through is not taken from it."""
    script = tmp_path / "dying.py"
    script.write_text(ROUND.format(who="server"))
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        commands = [f"command script import {script}", *ANALYSE]
        debug(tmp_path, None, (), commands, options=options)
        os.kill(running.pid, signal.SIGCONT)
        gives_back(running, tmp_path, options)


LEFT_STOPPED = """
import os
import signal
from darc.debuggee import procfs
from darc.collectors.pad_collector import PadCollector

def die(collector):
    pid = collector._target.pid
    os.kill(pid, signal.SIGSTOP)
    os.kill(int(procfs.status(pid)["TracerPid"]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

PadCollector.on_bell = die
"""
"""lldb and its server die at the first bell. A SIGSTOP is on its way to the program, as from a
server that has asked a thread to stop and was killed before that had."""


def test_a_program_that_is_left_stopped_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "dying.py"
    script.write_text(LEFT_STOPPED)
    with server(build("alarms"), "threads") as running:
        options = ["-p", str(running.pid)]
        quiet = "process handle SIGALRM -s false -n false"
        commands = [quiet, f"command script import {script}", *ANALYSE]
        debug(tmp_path, None, (), commands, options=options)
        let_go(running.pid)
        running.operations()
        done = debug(tmp_path, None, (), [quiet, "darc stop", "detach"], options=options)
        assert "taken out" in done.gdb
        let_go(running.pid)
        assert altered(running) == []


def altered(running: Server) -> list[str]:
    """Places in the code that differ from the file, but for lldb's own in the loader."""
    _, _, places = altered_code(running.pid)
    return [place for place in places if not place.startswith("ld-linux")]
