"""The bell: who is called, how, and that the program never hears it."""

from __future__ import annotations

import os
import re
import resource
import signal
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import (
    EXIT,
    IN_BOTH,
    REPORT,
    ROOT,
    debug,
    gdb_alone,
    let_go,
    server,
    undisturbed,
)
from tests.gdb.programs import compiled

pytestmark = IN_BOTH

TOOLS = f"source {ROOT / 'tests' / 'inside_gdb.py'}"
PATH = ("handle", "lookup", "burn")

WITHOUT_A_MONITOR = """
from darc.app.monitor import Monitor
Monitor._run = lambda self: None
"""
"""As where the debugger's Python is busy all the time."""

IMPATIENT = """
from darc.debuggee import process_pads
process_pads._SIGN_SECONDS = 0.05
"""
"""The pads look for the debugger much sooner."""


def with_app(folder: Path, *scripts: str) -> str:
    (folder / "with_app.py").write_text("\n".join(scripts))
    return f"with-app {folder / 'with_app.py'}"


@pytest.mark.parametrize("kinds", ["1", "2", "3"])
def test_handlers_that_come_late(kinds: str, tmp_path: Path) -> None:
    """The program begins to listen to the bell's signal while it is analysed: it hears its own ones
    alone, each once. With one, and with all signals that could be a bell."""
    args = ("120000", "2000", kinds)
    commands = ["tbreak main", "run"]
    commands += [f"handle {name} nostop noprint pass" for name in ("SIGURG", "SIGWINCH", "SIGCONT")]
    commands += ["darc start handle --start-ops 1000 --peak >150us --decision-ops 20", "continue"]
    done = debug(tmp_path, build("urgent"), args, [*commands, REPORT, "continue", EXIT])
    assert done.report is not None, done.gdb
    assert done.paths == [PATH], done.gdb
    assert (done.program_status, done.output) == undisturbed(build("urgent"), args), done.output


@pytest.mark.parametrize("how", ["change", "arm"])
def test_the_bell_changes_as_darcs_signal_is_kept(how: str, tmp_path: Path) -> None:
    """The program's next signals of the kind that was the bell reach it, and darc's next, which is
    under way by then, does not."""
    program, args = build("urgent"), ("400", "100", "1")
    commands = [TOOLS, "tbreak main", "run", "tbreak urge", "continue"]
    commands += ["handle SIGURG nostop noprint pass", with_app(tmp_path, RING_AND_CHANGE[how])]
    done = debug(tmp_path, program, args, [*commands, "continue", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.output


_RING = """
from darc.debuggee import bell
from darc.target.outcome import Outcome
target = app._target
rings = iter([True])
def answer():
    if next(rings, False):
        bell.send(target.pid, target.pid, 23)
        {}
    return Outcome.CONTINUE
target.bell.arm(23, answer)
bell.send(target.pid, target.pid, 23)
"""

RING_AND_CHANGE = {
    "change": _RING.format("target.bell.change(28)"),
    "arm": _RING.format("target.bell.disarm(); target.bell.arm(28, answer)"),
}
"""With the same analysis, and as the next one begins at that stop."""


def test_a_handler_that_comes_behind_darcs_signal(tmp_path: Path) -> None:
    """The program had none when darc's signal came, and has one before the thread that got that
    goes on."""
    program, args = build("urgent"), ("400", "100", "1")
    commands = [TOOLS, "tbreak main", "run", "tbreak lookup", "continue"]
    commands += ["handle SIGURG nostop noprint pass", with_app(tmp_path, RING_AND_STOP)]
    done = debug(tmp_path, program, args, [*commands, "continue", LISTEN, "continue", EXIT])
    assert (done.program_status, done.output) == undisturbed(program, args), done.output


RING_AND_STOP = """
from darc.debuggee import bell
from darc.target.outcome import Outcome
target = app._target
target.bell.arm(23, lambda: Outcome.STOP)
bell.send(target.pid, target.pid, 23)
"""

LISTEN = "print ((void (*)(unsigned)) listen_to)(1)"


def test_the_debugger_is_dead(tmp_path: Path) -> None:
    """It is killed, the program begins to listen to the signal, and then enough calls were seen."""
    program = build("urgent")
    with server(program, "6000", "0", "1") as running:
        killed = "with-app " + str(tmp_path / "kill.py")
        (tmp_path / "kill.py").write_text(KILL_AT_300_CALLS)
        commands = [TOOLS, "darc start handle --start-ops 3000", killed, "continue"]
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert done.status == -signal.SIGKILL, done.gdb
        let_go(running.pid)
        os.kill(running.pid, signal.SIGUSR2)
        assert running.read_line() == b"urgent: 6000 operations, 0 sent, 0 heard\n"


KILL_AT_300_CALLS = """
import os, signal, threading
def kill():
    moment = threading.Event()
    while app.session.collector.counting.seen < 300:
        moment.wait(0.001)
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=kill, daemon=True).start()
"""


def test_as_many_signals_wait_as_may(tmp_path: Path) -> None:
    """The kernel forgets what further ones say: darc's would pass for the program's own."""
    with server(build("urgent"), "100000000", "1", "2") as running:
        resource.prlimit(running.pid, resource.RLIMIT_SIGPENDING, (0, 0))
        commands = [f"handle {name} nostop noprint pass" for name in ("SIGURG", "SIGWINCH")]
        commands.append("darc start handle --peak last --start-ops 400")
        done = debug(tmp_path, None, (), commands, options=["-p", str(running.pid)])
        assert "as many signals wait for its user's processes as may" in done.gdb, done.gdb
        let_go(running.pid)
        os.kill(running.pid, signal.SIGTERM)
        _, sent, heard = re.findall(rb"\d+", running.read_line())
        assert sent == heard, done.gdb


SHORT_THREADS = """
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static volatile unsigned long sum;
static void hear(int number) { (void)number; }
NOINLINE void rest(uintptr_t op) { if (op % 37 == 5) usleep(2500); sum++; }
NOINLINE void handle(uintptr_t op) { for (int i = 0; i < 100; i++) sum += i; rest(op); }
static void *of_one(void *op) { handle((uintptr_t)op); return op; }
static void *of_many(void *unused)
{
    pthread_t made[4];
    for (uintptr_t op = 0;; op++) {
        handle(op);
        if (op % 20)
            continue;
        for (uintptr_t i = 0; i < 4; i++)
            if (pthread_create(&made[i], 0, of_one, (void *)(op + i)))
                abort();
        for (int i = 0; i < 4; i++)
            pthread_join(made[i], 0);
        if (op % 100 == 0)
            pclose(popen("true", "r"));
    }
    return unused;
}
int main(void)
{
    pthread_t thread;
    signal(SIGURG, hear);
    signal(SIGWINCH, hear);
    signal(SIGCHLD, hear);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, 0, of_many, 0);
    pthread_join(thread, 0);
}
"""
"""Hears all but one of the signals that the kernel drops else, and waits for children."""


@gdb_alone("lldb 14 stops by itself where a vfork is done")
def test_the_last_signal_takes_no_stop_back_that_gdb_waits_for(tmp_path: Path) -> None:
    """SIGCONT is left; threads that make others stop for that before they take a SIGSTOP."""
    search = "darc start handle --peak last --start-ops 400 --decision-ops 8 --max-time 20s"
    commands = [search, "run", *["darc stop", search, "continue"] * 3, REPORT, "kill"]
    done = debug(tmp_path, compiled(tmp_path, SHORT_THREADS), (), commands)
    assert done.paths, done.gdb
    assert done.paths[0][:2] == ("handle", "rest"), done.gdb


@pytest.mark.parametrize("has_monitor", [True, False])
def test_a_debugger_that_gives_no_sign(has_monitor: bool, tmp_path: Path) -> None:
    """It lives, and the pads stay awake: they have looked for it, as no monitor gave a sign."""
    scripts = [IMPATIENT] if has_monitor else [IMPATIENT, WITHOUT_A_MONITOR]
    program, args = build("urgent"), ("12000", "20000", "1")
    commands = [TOOLS, with_app(tmp_path, *scripts)]
    commands += [
        "darc start handle --peak >150us --start-ops 4000",
        "run",
        REPORT,
        "continue",
        EXIT,
    ]
    done = debug(tmp_path, program, args, commands)
    assert done.paths == [PATH], done.gdb
    assert (done.program_status, done.output) == undisturbed(program, args)


def test_time_is_up_without_a_monitor(tmp_path: Path) -> None:
    """The agent rings by itself when f0 returns behind the limit."""
    program, args = build("server"), ()
    commands = [TOOLS, with_app(tmp_path, WITHOUT_A_MONITOR)]
    commands += ["darc start handle --start-ops 1000000000 --max-time 1s", "run", REPORT, "kill"]
    done = debug(tmp_path, program, args, commands)
    assert done.report is not None, done.gdb
    assert done.report["status"] == "peak not chosen"
    assert done.report["profile"]["count"] > 0
