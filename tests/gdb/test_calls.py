"""What darc has a program do for it, in programs whose signals come all the time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import REPORT, Done, debug, let_go, server

MODES = ("plain", "stack", "jump", "suspend", "ppoll", "epoll", "sleep", "futex", "pause", "fault")
ANALYSE = [
    "darc start handle --peak >400us --start-ops 200 --decision-ops 2 --lookahead 1",
    "continue",
]


@pytest.mark.parametrize("mode", [*MODES, "threads"])
def test_signals_that_come_all_the_time(mode: str, tmp_path: Path) -> None:
    """No handler runs while a thread makes a call for darc, and none is lost by it."""
    with server(build("alarms"), mode) as running:
        options = ["-p", str(running.pid), "-ex", "handle SIGALRM SIGSEGV nostop noprint"]
        done: Done = debug(tmp_path, None, (), [*ANALYSE, REPORT], options=options)
        assert ("handle", "lookup", "burn") in done.paths, done.gdb
        let_go(running.pid)
        running.operations()
        _, _, altered = altered_code(running.pid)
        assert [place for place in altered if not place.startswith("ld-linux")] == []
        assert running.finish() == 0


STOPS = {
    "checkpoint": ["checkpoint", "restart 1"],
    "SIGSTOP": ["python os.kill(gdb.selected_inferior().pid, signal.SIGSTOP)", "continue"],
    "SIGTSTP": ["python os.kill(gdb.selected_inferior().pid, signal.SIGTSTP)", "continue"],
    "SIGURG": [
        "handle SIGURG stop",
        "python os.kill(gdb.selected_inferior().pid, signal.SIGURG)",
        "continue",
    ],
    "SIGSEGV": ["python os.kill(gdb.selected_inferior().pid, signal.SIGSEGV)", "continue"],
    "SIGUSR1": ["python os.kill(gdb.selected_inferior().pid, signal.SIGUSR1)", "continue"],
}
"""How a thread comes to stop for a signal that the kernel may keep, or may not."""
NO_CALLS = "Couldn't write extended state status"
"""What gdb 13 says of processors that save more registers than it knows."""
WHERE = 'python print("stands at", gdb.selected_frame().pc(), gdb.parse_and_eval("$_siginfo"))'


@pytest.mark.parametrize("what", STOPS)
def test_the_thread_stands_where_it_stood_after_a_call(what: str, tmp_path: Path) -> None:
    """Whatever it was stopped for: it never runs off through the program meanwhile, and the signal
    is as it was."""
    commands = ["python import os, signal", "break handle", "run", "delete", *STOPS[what], WHERE]
    commands += ["darc start handle", WHERE, "kill"]
    done = debug(tmp_path, build("mixture"), ("2000",), commands)
    if NO_CALLS in done.gdb and "darc" not in done.gdb.partition(NO_CALLS)[0]:
        pytest.skip("gdb itself makes no call in a program on this processor")
    assert "darc: analyses handle: 'continue'" in done.gdb, done.gdb
    before, after = re.findall(r"^stands at .*$", done.gdb, re.M)
    assert after == before
    assert done.output == b"", "it has not run"
