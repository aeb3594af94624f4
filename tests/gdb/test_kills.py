"""gdb is killed: at a few of the random moments that ``make kills`` tries, and where it counts."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fixtures.build import build
from tests.debugger import DARC_GDB, let_go, server, watched
from tests.kills import ANALYSES, CLEAN_EVERY, kills

AT_A_WRITE = """
import os
import signal
from darc import process_ground
from darc_gdb.target import TARGET

lead_home, write_register = process_ground.lead_home, TARGET.write_register
writes = []

def write(*arguments):
    if len(writes) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    writes.append(arguments)
    write_register(*arguments)

def lead(*arguments):
    TARGET.write_register = write
    assert lead_home(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

process_ground.lead_home = lead
"""
"""gdb dies when it has set so many of the registers of the thread that is to stop for the user."""

IN_A_CALL = """
import os
import signal
from darc_gdb import detours
from darc_gdb.target import TARGET

go, write_register = detours._go, TARGET.write_register
writes = []

def write(*arguments):
    if len(writes) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    writes.append(arguments)
    write_register(*arguments)

def gone(*arguments):
    go(*arguments)
    if len(writes) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)

detours._go, TARGET.write_register = gone, write
"""
"""The same for a thread that makes a call for darc, and that has rung after the first."""


def test_some_kills(tmp_path: Path) -> None:
    for kill in kills(CLEAN_EVERY, 20, tmp_path):
        assert kill.wrong is None, kill


@pytest.mark.parametrize("after", [0, 1, 5, 9, 10, 11, 12])
def test_kill_where_the_search_ends(after: int, tmp_path: Path) -> None:
    """The program goes on, and has its registers."""
    assert "started" in killed(tmp_path, AT_A_WRITE.format(after=after))


@pytest.mark.parametrize("after", [0, 1, 2, 6, 11, 12, 13, 25])
def test_kill_in_a_call(after: int, tmp_path: Path) -> None:
    """The call comes back by itself, and the program goes on where it was."""
    assert "started" not in killed(tmp_path, IN_A_CALL.format(after=after))


def killed(folder: Path, how: str) -> str:
    """What gdb said before it was killed; the server has gone on."""
    script = folder / "analyses.py"
    script.write_text(how + ANALYSES)
    with server(build("server")) as running:
        command = [*DARC_GDB, "-nx", "-q", "-batch", "-p", str(running.pid)]
        status, shown, _, _, _ = watched(folder, [*command, "-ex", f"source {script}"])
        assert status == -signal.SIGKILL, shown
        let_go(running.pid)
        before = running.operations()
        while running.operations() < before + 100:
            pass
        assert running.finish() == 0
    return shown
