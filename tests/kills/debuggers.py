"""The debuggers that are killed: with darc, and bare."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixtures.build import build_once
from tests import debugger
from tests.debugger import DARC_GDB, WATCHDOG_SECONDS, end_session, environment
from tests.lldb import runner

GDB, LLDB, SERVER = "gdb", "lldb", "lldb-server"
"""gdb; lldb, whose server lives on and sees that it is alone; lldb and its server at once."""
DEBUGGERS = (GDB, LLDB, SERVER)

ANALYSE = "darc start handle --peak last --start-ops 100 --decision-ops 3"
ROUNDS = 3
ATTACHED, DONE, REFUSED = "attached", "done", "refused"
_SOURCE = Path(__file__).with_name("killer.c")

_GDB_SCRIPT = f"""
import time
import gdb
def say(word):
    print(word, flush=True)
say("{ATTACHED}")
gdb.execute("handle all nostop noprint pass", to_string=True)
try:
    for round in range({ROUNDS}):
        gdb.execute("{ANALYSE}")
        say("started")
        gdb.execute("continue")
        say("found")
    say("{DONE}")
except Exception as error:
    print(error, flush=True)
    say("{REFUSED}")
time.sleep(1000)
"""

_BARE_GDB_SCRIPT = f"""
import threading
import gdb
rounds = 0
def say(word):
    print(word, flush=True)
def go_on():
    gdb.execute("continue&")
    threading.Timer(0.03, lambda: gdb.post_event(halt)).start()
def halt():
    gdb.execute("interrupt")
def has_stopped(event):
    global rounds
    rounds += 1
    say("stopped")
    if rounds == {2 * ROUNDS}:
        say("{DONE}")
    else:
        gdb.post_event(go_on)
say("{ATTACHED}")
gdb.execute("handle all nostop noprint pass", to_string=True)
gdb.execute("break abort")
gdb.events.stop.connect(has_stopped)
go_on()
"""

_BARE_LLDB_SCRIPT = f"""
import threading
import time
import lldb
def say(word):
    print(word, flush=True)
process = lldb.debugger.GetSelectedTarget().process
say("{ATTACHED}")
lldb.debugger.HandleCommand("breakpoint set -n abort")
for round in range({2 * ROUNDS}):
    threading.Timer(0.03, process.SendAsyncInterrupt).start()
    process.Continue()
    lldb.debugger.HandleCommand("expression -- (int) getpid()")
    say("stopped")
say("{DONE}")
time.sleep(1000)
"""

_SIGNALS = "SIGALRM SIGUSR1 SIGUSR2 SIGSEGV SIGCHLD"


@dataclass(frozen=True)
class Orders:
    """When the debugger kills itself: before or after the n-th thing it does to the program."""

    at: int = 0
    after: bool = False


class Session:
    """A debugger that is attached to a program, to be killed."""

    def __init__(self, which: str, *, bare: bool, pid: int, folder: Path, orders: Orders) -> None:
        self.which = which
        self._orders = folder / f"orders.{time.monotonic_ns()}"
        self._orders.write_bytes(bytes(mmap.PAGESIZE))
        with self._orders.open("r+b") as opened:
            self._page = mmap.mmap(opened.fileno(), mmap.PAGESIZE)
        command, variables = _command(which, pid, folder, bare=bare)
        self._pid = pid
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={
                **environment(),
                **variables,
                "LD_PRELOAD": ":".join(filter(None, [str(killer()), os.environ.get("LD_PRELOAD")])),
                "KILLER": str(self._orders),
            },
            stdin=subprocess.PIPE,  # never written to: gdb waits for commands
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: self._order(orders, os.getpid()),
        )
        self._told = b""
        self._heard: list[str] = []

    def _order(self, orders: Orders, whom: int) -> None:
        server = self.which == SERVER
        struct.pack_into("<QQqQ", self._page, 0, orders.at, orders.after, whom, server)

    @property
    def count(self) -> int:
        """How much it has done to the program."""
        return int(struct.unpack_from("<Q", self._page, 32)[0])

    @property
    def words(self) -> str:
        """All that it has said."""
        return "\n".join(self._heard)

    def hear(self, seconds: float) -> str | None:
        """Its next line; ``None``: nothing within these seconds, or it is gone."""
        assert self.process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._told:
            ready, _, _ = select.select(
                [self.process.stdout], [], [], max(0, until - time.monotonic())
            )
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                if ready:  # it is about to end
                    self.process.wait(WATCHDOG_SECONDS)
                return None
            self._told += data
        line, _, self._told = self._told.partition(b"\n")
        self._heard.append(line.decode(errors="replace").strip())
        return self._heard[-1]

    def kill(self) -> None:
        """Now."""
        if self.which == SERVER:
            with contextlib.suppress(ProcessLookupError, KeyError):
                if helper := debugger.tracer(self._pid):
                    os.kill(helper, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Whatever happened: afterwards it is gone."""
        end_session(self.process)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._page.close()
        self._orders.unlink()


def _command(
    which: str, pid: int, folder: Path, *, bare: bool
) -> tuple[Sequence[str], dict[str, str]]:
    script = folder / f"{'bare_' * bare}{which.replace('-', '_')}.py"
    if which == GDB:
        script.write_text(_BARE_GDB_SCRIPT if bare else _GDB_SCRIPT)
        start = ["gdb", "-nx", "-q"] if bare else [*DARC_GDB, "-nx", "-q", "-batch"]
        return [*start, "-p", str(pid), "-ex", f"source {script}"], {}
    if bare:
        script.write_text(_BARE_LLDB_SCRIPT)
        lldb, variables = runner.plain_lldb(runner.chosen_lldb())
        commands = [f"process handle -s false -n false -p true {_SIGNALS}"]
        commands += [f"command script import {script}"]
    else:
        lldb, variables = runner.DARC_LLDB, {}
        commands = [f"process handle -s false -n false -p true {_SIGNALS}", _say(ATTACHED)]
        commands += [ANALYSE, _say("started"), "continue", _say("found")] * ROUNDS
        commands += [_say(DONE), "script import time; time.sleep(1000)"]
    given = [part for one in commands for part in ("-o", one)]
    return [*lldb, "-x", "-b", "-p", str(pid), *given], variables


def _say(word: str) -> str:
    return f"script print('{word}', flush=True)"


def clean_up(which: str, pid: int, folder: Path, *, bare: bool) -> str:
    """``darc stop`` in another debugger, which then lets the program go; what it said. A bare one
    only lets it go."""
    variables: dict[str, str] = {}
    start: Sequence[str]
    if which == GDB:
        start = ["gdb"] if bare else DARC_GDB
        command = [*start, "-nx", "-q", "-batch", "-p", str(pid)]
        command += [] if bare else ["-ex", "darc stop"]
    else:
        start = runner.DARC_LLDB
        if bare:
            start, variables = runner.plain_lldb(runner.chosen_lldb())
        quiet = f"process handle -s false -n false -p true {_SIGNALS}"
        command = [*start, "-x", "-b", "-p", str(pid), "-o", quiet]
        command += [] if bare else ["-o", "darc stop"]
        command += ["-o", "detach"]
    _, said, *_ = debugger.watched(folder, command, variables)
    return said


@functools.cache
def killer() -> Path:
    """``killer.c``, compiled."""
    flags = ["-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-shared", "-fPIC"]
    return build_once(
        "killer.so", ["gcc", *flags, str(_SOURCE), "-o", "killer.so", "-ldl"], _SOURCE
    )
