"""A server that runs already: darc comes to it and leaves it alive and as it was."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from darc.debuggee import procfs
from fixtures.build import build
from tests.code import altered_code
from tests.debugger import LOAD, PLAIN_GDB, REPORT, ROOT, Done, Server, debug, mark, server, tracer
from tests.waiting import wait_until

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
_SIGTIMEDWAIT = "128"
"""The number of the system call by which darc waits for what ends gdb."""

PATH = ("handle", "lookup", "burn")
ANALYSE = ["darc start handle --peak >400us", "continue"]


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("server")) as made:
        yield made


def attach(folder: Path, running: Server, commands: Sequence[str], **more: Sequence[str]) -> Done:
    return debug(folder, None, (), commands, options=["-p", str(running.pid)], **more)


@pytest.mark.parametrize("leaving", [["detach"], [], ["darc stop", "detach"]], ids=str)
@pytest.mark.parametrize("moment", ["result", "descent", "profiling", "choice"])
def test_attach_and_leave(moment: str, leaving: list[str], running: Server, tmp_path: Path) -> None:
    """Detached, or left to itself at gdb's end, at any moment: the server answers as before."""
    steps = {
        "result": [*ANALYSE, REPORT, mark("code"), "tell-code"],
        "choice": ["darc start handle", "continue", REPORT],
        "profiling": ["darc start handle", "tbreak handle", "continue", REPORT],
        "descent": ["darc start handle", "continue", "darc peak >400us", "tbreak burn", "continue"],
    }
    done = attach(tmp_path, running, [TOOLS, *steps[moment], *leaving])
    if moment == "result":
        assert done.paths == [PATH], done.gdb
        assert ", 0 altered" in done.section("code")
    assert "internal error" not in done.gdb
    again = attach(tmp_path, running, [TOOLS, mark("code"), "tell-code", mark("end")])
    assert ", 0 altered" in again.section("code"), "code was left behind"
    assert running.finish() == 0


def test_gdb_no_longer_knows_its_thread_as_it_ends(running: Server, tmp_path: Path) -> None:
    """Nor what Python calls it: 'could not find gdb thread object'. The probes are taken out."""
    (tmp_path / "forgets.py").write_text(
        "import gdb\n"
        "def forgets():\n"
        "    raise SystemError('could not find gdb thread object')\n"
        "gdb.selected_thread = forgets\n"
    )
    profiling = ["darc start handle", "tbreak handle", "continue"]
    done = attach(tmp_path, running, [*profiling, "source forgets.py"])
    assert "SystemError" not in done.gdb, done.gdb
    assert "let go of while it ran" not in done.gdb, done.gdb
    again = attach(tmp_path, running, [TOOLS, mark("code"), "tell-code", mark("end")])
    assert ", 0 altered" in again.section("code"), "code was left behind"
    assert running.finish() == 0


@pytest.mark.parametrize("when", ["before attach", "after attach"])
def test_darc_is_sourced_into_a_plain_gdb(when: str, running: Server, tmp_path: Path) -> None:
    """Once attached, gdb cannot be told any more to stop every thread at each event."""
    source = f"source {LOAD}"
    begin = (
        [f"attach {running.pid}", source]
        if when == "after attach"
        else [
            source,
            f"attach {running.pid}",
        ]
    )
    commands = [*begin, TOOLS, *ANALYSE, REPORT, mark("code"), "tell-code", mark("end"), "detach"]
    done = debug(tmp_path, None, (), commands, gdb=PLAIN_GDB)
    assert done.paths == [PATH], done.gdb
    assert ", 0 altered" in done.section("code")
    assert running.finish() == 0


def test_attached_again_and_again(running: Server, tmp_path: Path) -> None:
    for _ in range(3):
        done = attach(tmp_path, running, [*ANALYSE, REPORT, "detach"])
        assert done.paths == [PATH], done.gdb
    assert running.finish() == 0


def test_time_limit_on_a_server(running: Server, tmp_path: Path) -> None:
    commands = ["darc start handle --start-ops 1000000000 --max-time 1s", "continue", REPORT]
    done = attach(tmp_path, running, [TOOLS, *commands, mark("code"), "tell-code", mark("end")])
    assert done.report is not None, done.gdb
    assert done.report["status"] == "peak not chosen"
    assert done.report["profile"]["count"] > 0
    assert ", 0 altered" in done.section("code")
    assert running.finish() == 0


def test_ctrl_c_in_the_middle(running: Server, tmp_path: Path) -> None:
    """Ctrl-C stops the program, not the analysis: it goes on with 'continue'."""
    commands = [TOOLS, "darc start handle --peak >400us --start-ops 3000", "interrupt-at 500"]
    commands += ["continue", mark("bt"), "bt", "darc status", mark("go"), "continue", REPORT]
    done = attach(tmp_path, running, [*commands, "detach"])
    assert "SIGINT" in done.gdb
    assert "main (" in done.section("bt")
    assert "??" not in done.section("bt")
    assert "profiling" in done.section("bt")
    assert done.paths == [PATH], done.gdb
    assert running.finish() == 0


def test_a_debugger_that_stood_still_for_a_while(running: Server, tmp_path: Path) -> None:
    """As behind Ctrl-Z and fg: it goes on where it was, for longer than it waits for anything."""

    def stand_still() -> None:
        wait_until(lambda: tracer(running.pid) and awaits_signal(tracer(running.pid)))
        gdb = tracer(running.pid)
        for _ in range(3):
            os.kill(gdb, signal.SIGSTOP)
            wait_until(lambda: procfs.is_held(gdb))
            time.sleep(0.5)
            os.kill(gdb, signal.SIGCONT)
            wait_until(lambda: awaits_signal(gdb))

    def awaits_signal(gdb: int) -> bool:
        return any(procfs.system_call(gdb, one) == _SIGTIMEDWAIT for one in procfs.threads(gdb))

    holder = threading.Thread(target=stand_still, daemon=True)
    holder.start()
    start = "darc start handle --start-ops 100000000 --max-time 5s"
    done = attach(tmp_path, running, [start, "continue", REPORT, "darc stop", "detach"])
    holder.join()
    assert done.report is not None, done.gdb
    assert done.report["status"] == "peak not chosen", done.gdb
    assert "Traceback" not in done.gdb
    assert running.finish() == 0


def test_kill_takes_the_program_and_nothing_else(running: Server, tmp_path: Path) -> None:
    done = attach(
        tmp_path, running, [*ANALYSE[:1], "tbreak burn", "continue", "kill", "darc status"]
    )
    assert "darc: handle: program ended" in done.gdb
    assert "Traceback" not in done.gdb
    assert running.read_line() == b""


def test_looking_at_what_is_known_is_nothing_to_gdbs_threads(
    running: Server, tmp_path: Path
) -> None:
    """gdb's worker threads are ended, and begun anew, where darc is about to change the
    program: not by commands that only show something."""
    tell = "python import os; print('threads', sorted(map(int, os.listdir('/proc/self/task'))))"
    begin = ["maint set worker-threads 3", "darc start handle --start-ops 100000", "tbreak burn"]
    look = ["darc status", "darc histogram", "darc report", f"darc save {tmp_path / 'saved.json'}"]
    done = attach(tmp_path, running, [*begin, "continue", tell, *look, tell, "detach"])
    before, after = re.findall(r"^threads \[(.*)\]$", done.gdb, re.M)
    assert before.count(",") >= 3
    assert before == after
    assert running.finish() == 0


def test_gdbs_threads_are_there_while_probes_are_in(running: Server, tmp_path: Path) -> None:
    """They read symbols for gdb: without them it takes longer over each file that a program loads
    or executes, and leaves its own breakpoint there when it is killed meanwhile. They are not to
    take the signals that wait for the probes."""
    seen: list[tuple[str, bool]] = []

    def look() -> None:
        while all(place.startswith("ld-") for place in altered_code(running.pid)[2]):
            time.sleep(0.01)
        gdb = tracer(running.pid)
        for thread in procfs.threads(gdb):
            name = procfs.status(gdb, thread)["Name"]
            seen.append((name, procfs.blocks(gdb, thread, signal.SIGHUP)))

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    start = "darc start handle --start-ops 100000000"
    begin = ["maint set worker-threads 3", f"{start} --max-time 3s", "continue"]
    shown = [mark("shown"), "maint show worker-threads", mark("end"), "darc stop", "detach"]
    done = attach(tmp_path, running, [*begin, *shown])
    workers = [blocks for name, blocks in seen if name.startswith("gdb worker")]
    assert workers == [True] * 3, done.gdb
    assert "is 3" in done.section("shown")
    assert running.finish() == 0
