"""Calls that a stop interrupts: none is that the debugger's own stops leave alone, and none more
often than there are stops."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from darc.debuggee import procfs
from fixtures.build import build
from tests.debugger import EVERYWHERE, EXIT, IN_BOTH, PLAIN_GDB, REPORT, Done, Server, debug, server

START = "darc start handle --peak >400us"
PATH = ("handle", "lookup", "burn")

NOT_RESTARTED = {"epoll_wait", "recv-limit", "accept-limit", "semtimedop", "sigtimedwait"}
"""What docs/safety.md names."""


def counts(running: Server) -> dict[str, int]:
    """How often each call came back with EINTR, when the program has ended."""
    os.kill(running.pid, signal.SIGTERM)
    found = {}
    while (line := running.read_line()) != b"stopped, 0 wrong\n":
        name, count = re.fullmatch(rb"(\S+) (\d+)\n", line).groups()  # type: ignore[union-attr]
        found[name.decode()] = int(count)
    return found


def interrupted(
    folder: Path, commands: Sequence[str], gdb: Sequence[str] | None = None
) -> tuple[dict[str, int], Done]:
    """The same of a program that a debugger attaches to, and lets go."""
    with server(build("interrupted")) as running:
        options = ["-p", str(running.pid)]
        if gdb is None:
            done = debug(folder, None, (), commands, options=options)
        else:
            done = debug(folder, None, (), commands, options=options, gdb=gdb)
        found = counts(running)
        return {name: count for name, count in found.items() if count}, done


@EVERYWHERE
def test_calls_that_a_stop_interrupts(tmp_path: Path) -> None:
    """The same ones as without darc, and once at each stop that the report counts, and when the
    debugger attaches."""
    stops = ["tbreak lookup", "continue"] * 4
    bare, done = interrupted(tmp_path, [*stops, "detach"], PLAIN_GDB)
    assert set(bare) <= NOT_RESTARTED, done.gdb
    found, done = interrupted(tmp_path, [START, "continue", REPORT, "detach"])
    assert done.paths == [PATH], done.gdb
    assert set(found) <= set(bare), done.gdb
    assert done.report is not None
    assert max(found.values(), default=0) <= done.report["program"]["stops"] + 1, found


def release(output: Path, fifo: Path) -> None:
    """Lets the child of the vfork end once the monitor has sent its signal, which the program
    cannot hear before."""
    while not output.exists() or not (pid := output.read_bytes()).endswith(b"\n"):
        time.sleep(0.01)
    while found := procfs.status(int(pid)):
        if int(found.get("SigPnd", "0"), 16) & 1 << (signal.SIGURG - 1):
            break
        time.sleep(0.01)
    fifo.open("w").close()


@IN_BOTH
def test_a_wait_that_no_signal_ends(tmp_path: Path) -> None:
    """A stop that darc begins at the time limit is put off, and darc says so in the end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    threading.Thread(target=release, args=(tmp_path / "program.out", fifo), daemon=True).start()
    commands = ["darc start handle --start-ops 1000000 --max-time 6", "run", "darc report"]
    done = debug(tmp_path, build("childwait"), ("200", str(fifo)), [*commands, "continue", EXIT])
    assert done.program_status == 0
    assert "for a child of its vfork" in done.gdb
