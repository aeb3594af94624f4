"""What darc has a program do for it in lldb: signals do it no harm, nor does the end of lldb."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import LLDB, NEWEST, REPORT, Server, let_go, server, undisturbed
from tests.lldb.runner import debug, mark

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


REFUSED = """
import os
import signal
import time
import lldb
from darc_lldb.server import Server

send = Server._send

def is_refused(debugger):
    result = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand("version", result)
    return not result.Succeeded()

def refused(server, packet):
    if packet.startswith("vCont"):
        Server._send = send
        os.kill(os.getpid(), signal.SIGINT)
        while not is_refused(server._process.GetTarget().GetDebugger()):
            time.sleep(0.01)
    return send(server, packet)

Server._send = refused
"""
"""Ctrl-C as a thread is about to go for darc: lldb refuses all commands behind that until the one
is over that the user has typed."""


@pytest.mark.debuggers(LLDB, NEWEST)
def test_ctrl_c_in_a_call(tmp_path: Path) -> None:
    """The call is made all the same, the program stays as it is, and darc goes on with it; the
    program was taken for ended."""
    script = tmp_path / "refused.py"
    script.write_text(REFUSED)
    program, args = build("mixture"), ("20000",)
    start = "darc start handle --peak >1ms --start-ops 1000"
    commands = [f"command script import {script}", start, "run", mark("stays"), "continue"]
    done = debug(tmp_path, program, args, [*commands, mark("found"), REPORT, "continue"])
    assert "Ctrl-C came while darc was at work" in done.gdb.split("<stays>")[0], done.gdb
    assert "root cause of" in done.section("stays"), done.gdb
    slow = ("handle", "flush", "write_out", "usleep", "nanosleep", "clock_nanosleep")
    assert done.paths == [slow], done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args)


ANEW = """
import os
import signal
from darc.debuggee import bell, procfs
from darc_lldb.standing import StoppedByDarc
from darc_lldb.threadcall import ThreadCall

def kill(pid):
    if "{who}" != "lldb":
        os.kill(int(procfs.status(pid)["TracerPid"]), signal.SIGKILL)
    if "{who}" != "server":
        os.kill(os.getpid(), signal.SIGKILL)

send, stand, explains = bell.send, ThreadCall.stand_anew, StoppedByDarc.explains_stop

def sent(pid, thread, number):
    send(pid, thread, number)
    kill(pid)

def dying(call, number):
    if "{moment}" == "sent":
        bell.send = sent
    stand(call, number)
    if "{moment}" == "stood":
        kill(int(call._process.GetProcessID()))

def explained(plan, event):
    if "{moment}" == "stopped":
        kill(int(plan._plan.GetThread().GetProcess().GetProcessID()))
    return explains(plan, event)

ThreadCall.stand_anew, StoppedByDarc.explains_stop = dying, explained
"""
"""Where a thread stops anew at the end of a search, lldb dies, alone or with its server, or that
alone."""


@pytest.mark.debuggers(LLDB, NEWEST)
@pytest.mark.parametrize("moment", ["sent", "stopped", "stood"])
@pytest.mark.parametrize("who", ["both", "lldb", "server"])
def test_kill_as_a_thread_stops_anew(who: str, moment: str, tmp_path: Path) -> None:
    """The program goes on as if nothing had been."""
    script = tmp_path / "dying.py"
    script.write_text(ANEW.format(who=who, moment=moment))
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        commands = [f"command script import {script}", *ANALYSE]
        killed = debug(tmp_path, None, (), commands, options=options)
        if who != "server":
            assert killed.status == -signal.SIGKILL, killed.gdb
        let_go(running.pid)
        running.operations()
        debug(tmp_path, None, (), ["darc stop", "detach"], options=options)
        let_go(running.pid)
        running.operations()
        assert altered(running) == []
        assert running.finish() == 0


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
