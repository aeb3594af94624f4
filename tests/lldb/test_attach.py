"""A server that runs already: darc comes to it in lldb and leaves it alive and as it was."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import LLDB, REPORT, ROOT, Server, driven_by, let_go, server, terminal, tracer
from tests.lldb.runner import LOAD, Done, debug, mark

TOOLS = f"command script import {ROOT / 'tests' / 'lldb' / 'inside_lldb.py'}"
PATH = ("handle", "lookup", "burn")
ANALYSE = ["darc start handle --peak >400us", "continue"]


@pytest.fixture
def running() -> Iterator[Server]:
    with server(build("server")) as made:
        yield made


def attach(folder: Path, running: Server, commands: Sequence[str]) -> Done:
    return debug(folder, None, (), commands, options=["-p", str(running.pid)])


@pytest.mark.parametrize("leaving", [["detach"], ["quit"], [], ["darc stop", "detach"]], ids=str)
@pytest.mark.parametrize("moment", ["result", "descent", "profiling", "choice"])
def test_attach_and_leave(moment: str, leaving: list[str], running: Server, tmp_path: Path) -> None:
    """Detached, or left to itself at lldb's end, at any moment: the server answers as before."""
    once = "breakpoint set -o true -n"
    steps = {
        "result": [*ANALYSE, REPORT, mark("code"), "tell-code"],
        "choice": ["darc start handle", "continue", REPORT],
        "profiling": ["darc start handle", f"{once} handle", "continue", REPORT],
        "descent": [
            *("darc start handle", "continue", "darc peak >400us"),
            *(f"{once} burn", "continue"),
        ],
    }
    done = attach(tmp_path, running, [TOOLS, *steps[moment], *leaving])
    if moment == "result":
        assert done.paths == [PATH], done.gdb
        assert ", 0 altered" in done.section("code")
    assert "internal error" not in done.gdb
    again = attach(tmp_path, running, [TOOLS, mark("code"), "tell-code", mark("end")])
    assert ", 0 altered" in again.section("code"), "code was left behind"
    assert running.finish() == 0


def test_let_go_while_it_runs(running: Server, tmp_path: Path) -> None:
    """At a terminal, where lldb takes commands meanwhile: nothing is shown of the stop in which the
    probes come out, and it is let go at once, as in lldb alone. A stop that was left to lldb it
    showed, as the user's, with a frame at no address at times."""
    with driven_by(LLDB), terminal(tmp_path, "-p", str(running.pid)) as shown:
        shown.command("darc start handle --start-ops 1000000000")
        begin = len(shown.seen)
        shown.enter("continue")
        shown.wait_for(r"Process \d+ resuming")
        while not altered_code(running.pid)[2]:
            time.sleep(0.01)
        shown.enter("detach")
        shown.wait_for(r"Process \d+ detached")
        assert tracer(running.pid) == 0
        shown.enter("script print('over', 'now')")
        shown.wait_for("over now")
        shown.quit()
        told = shown.seen[begin:]
    assert "stopped" not in told, told
    assert "SIG" not in told, told
    again = attach(tmp_path, running, [TOOLS, mark("code"), "tell-code", mark("end")])
    assert ", 0 altered" in again.section("code"), "code was left behind"
    assert running.finish() == 0


def test_killed_at_the_result(running: Server, tmp_path: Path) -> None:
    """lldb, while the user looks at what was found: the server goes on, and has its own code."""
    killed = "script import os; os.kill(os.getpid(), 9)"
    done = attach(tmp_path, running, [*ANALYSE, REPORT, killed])
    assert done.status == -signal.SIGKILL, done.gdb
    assert done.paths == [PATH], done.gdb
    let_go(running.pid)
    running.operations()
    _, _, altered = altered_code(running.pid)
    assert [place for place in altered if not place.startswith("ld-linux")] == []  # lldb's own
    assert running.finish() == 0


@pytest.mark.parametrize("when", ["before attach", "after attach"])
def test_darc_is_imported_into_a_plain_lldb(when: str, running: Server, tmp_path: Path) -> None:
    begin = [f"process attach -p {running.pid}", f"command script import {LOAD}"]
    if when == "before attach":
        begin.reverse()
    commands = [*begin, TOOLS, *ANALYSE, REPORT, mark("code"), "tell-code", mark("end"), "detach"]
    done = debug(tmp_path, None, (), commands, plain=True)
    assert done.paths == [PATH], done.gdb
    assert ", 0 altered" in done.section("code")
    assert running.finish() == 0


LATE = """
import lldb
from darc_lldb.debuggers import DEBUGGERS
(target,) = (one.target for one in DEBUGGERS.values())
lldb.debugger.SetAsync(True)
target.catch_up()
app.observer.goes_on()
print("told:", target.stopping.hears_stand(), "- probes are out:", app.session.pauses.are_out)
lldb.debugger.SetAsync(False)
"""
"""The watcher has seen a stop that was told meanwhile, as it had to wait for its turn: 'continue'
has put the probes back, and lldb is about to let the program go on."""


def test_a_stop_that_is_told_too_late(running: Server, tmp_path: Path) -> None:
    """The probes would be taken out as the program goes on."""
    (tmp_path / "late.py").write_text(LATE)
    commands = [TOOLS, "darc catch handle --above 1h", f"with-app {tmp_path / 'late.py'}", "detach"]
    done = attach(tmp_path, running, commands)
    assert "told: True - probes are out: False" in done.gdb, done.gdb
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


def test_a_process_that_shares_the_programs_memory_lives(tmp_path: Path) -> None:
    """Nobody traces it: a breakpoint of lldb's where both come would end it."""
    with server(build("untraced")) as running:
        for _ in range(2):
            done = attach(tmp_path, running, [*ANALYSE, REPORT, "detach"])
            assert done.paths == [PATH], done.gdb
            let_go(running.pid)
            running.operations()
        assert running.finish() == 0
