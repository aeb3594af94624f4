"""Coroutines that share one stack: return addresses of pads are copied out of it, and come back
over frames of others, after the analysis, after the debugger's end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from fixtures.build import SOURCES, build
from tests.debugger import (
    DARC_GDB,
    EXIT,
    IN_BOTH,
    IN_LLDB_AT_NIGHT,
    REPORT,
    ROOT,
    Server,
    debug,
    gdb_alone,
    let_go,
    mark,
    server,
    undisturbed,
    watched,
)

pytestmark = IN_LLDB_AT_NIGHT

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
ENDLESS = "darc start handle --start-ops 1000000000"
ANALYSE = ["darc start handle --peak >150us --start-ops 200", "continue"]

KILLED = """
import os, signal, threading
import darc_gdb
from darc_gdb import APP

def end():
    while APP.session is None or APP.session.collector.counting.seen < 200:
        moment.wait(0.001)
    os.kill(os.getpid(), signal.SIGKILL)

moment = threading.Event()
threading.Thread(target=end, daemon=True).start()
"""
"""gdb dies once it has seen some calls, while the program runs."""


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("sharedstack")) as made:
        yield made


def goes_on(running: Server) -> None:
    before = running.operations()
    while running.operations() < before + 200:
        pass
    assert running.finish() == 0


@pytest.mark.parametrize("coroutines", ["2", "40"])
def test_returns_to_its_own_caller(coroutines: str, tmp_path: Path) -> None:
    program, args = build("sharedstack"), ("20000", coroutines)
    done = debug(tmp_path, program, args, [ENDLESS, "run", REPORT, EXIT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert done.report is not None
    assert done.report["profile"]["count"] > 5000
    assert any("frames were not in their place" in note for note in done.report["notes"])


@pytest.mark.parametrize("leaving", [["detach"], [], ["darc stop", "detach"]], ids=str)
def test_goes_on_when_darc_has_left(leaving: list[str], running: Server, tmp_path: Path) -> None:
    """One of them is in handle, and its stack is copied out."""
    commands = [*ANALYSE, REPORT, *leaving]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert done.paths == [("handle", "lookup", "burn")], done.gdb
    let_go(running.pid)
    goes_on(running)


@IN_BOTH
def test_needs_nothing_but_landings_in_the_end(running: Server, tmp_path: Path) -> None:
    """All else is unmapped, with frames of handle's in stacks that are copied out."""
    before = set(procfs.regions(running.pid))
    commands = [*ANALYSE, "darc stop", "detach"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert "root cause" in done.gdb
    let_go(running.pid)
    own = {region.start for region in before}
    more = [one for one in procfs.regions(running.pid) if one.start not in own]
    assert sum(one.end - one.start for one in more) <= 65536, more
    goes_on(running)


@IN_BOTH
def test_many_analyses_use_the_same_landings(running: Server, tmp_path: Path) -> None:
    """Also of another function, and of another debugger."""
    for commands in (ANALYSE * 3, ["darc start lookup --start-ops 200 --peak >150us", "continue"]):
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [*commands, "darc stop", "detach"], options=options)
        assert "root cause" in done.gdb
        let_go(running.pid)
        assert running.operations() > 0
    goes_on(running)


@gdb_alone("gdb is killed")
def test_debugger_is_killed(running: Server, tmp_path: Path) -> None:
    """It goes on without one, with the next one, and when that has taken out what was left."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    options = ["-nx", "-q", "-batch", "-p", str(running.pid)]
    commands = ["-ex", ENDLESS, "-ex", f"source {script}", "-ex", "continue"]
    status, shown, *_ = watched(tmp_path, [*DARC_GDB, *options, *commands])
    assert status == -signal.SIGKILL, shown
    let_go(running.pid)
    before = running.operations()
    while running.operations() < before + 100:
        pass
    again = ["darc start handle", "darc stop", TOOLS, mark("code"), "tell-code", "detach"]
    done = debug(tmp_path, None, (), again, options=["-p", str(running.pid)])
    own = {"ld-linux-x86-64.so.2"}  # gdb's own breakpoint
    assert set(re.findall(r"(\S+)\+0x", done.section("code"))) <= own
    goes_on(running)


@gdb_alone("frames of lldb's are those of the program when it stops")
def test_frames_at_a_prompt(running: Server, tmp_path: Path) -> None:
    """Also those that come back after a stop, or after the end."""
    steps = ["tbreak burn", "continue", "bt"] * 4
    commands = [ENDLESS, *steps, "darc stop", *steps, "detach"]
    done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
    assert done.gdb.count("run () at") == 8, done.gdb
    assert "??" not in done.gdb.replace("0x0000000000000000 in ?? ()", "")
    goes_on(running)


def test_more_callers_than_there_are_landings(tmp_path: Path) -> None:
    """Those that get none are not timed, and darc says so."""
    program, args = build("manycallers"), ("39000",)
    done = debug(tmp_path, program, args, [ENDLESS, "run", REPORT, "darc report", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.gdb
    assert done.report is not None
    assert 29000 < done.report["profile"]["count"] <= 1024 * 30
    assert "there was no landing left for their caller" in " ".join(done.gdb.split())


def test_greenlets(tmp_path: Path) -> None:
    """f0 is a function of the interpreter, and called from several places of it."""
    program, args = Path(sys.executable), (str(SOURCES / "greenlets.py"), "300")
    expected = subprocess.run([program, *args], capture_output=True, check=True, timeout=60).stdout
    start = "darc start PyObject_RichCompare --start-ops 1000000000"
    done = debug(tmp_path, program, args, [start, "tbreak exit", "run", REPORT, "continue", EXIT])
    assert (done.program_status, done.output) == (0, expected), done.gdb
    assert done.report is not None
    assert done.report["profile"]["count"] > 1000
