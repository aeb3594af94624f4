"""lldb is told to end by a signal just when darc and lldb are easily in each other's way."""

from __future__ import annotations

from pathlib import Path

from fixtures.build import build
from tests.code import altered_code
from tests.debugger import let_go, server
from tests.lldb.runner import debug

AS_IT_GOES_ON = """
import os
import signal
import threading
import time
import lldb
from darc.target.target import State
from darc_lldb import commands, hook

number = lldb.debugger.GetID()
app, target = commands.APPS[number], hook.TARGETS[number]
before_continue, on_leave = app.before_continue, app.on_leave
PATIENCE = time.monotonic() + 60

def tell():
    before_continue()
    os.kill(os.getpid(), signal.SIGTERM)
    while not target.stopping.leaving.is_wanted and time.monotonic() < PATIENCE:
        time.sleep(0.01)

def leave():
    own = threading.current_thread().name == "darc-leave"
    while own and target.inferior.watcher.program_stands() and time.monotonic() < PATIENCE:
        time.sleep(0.01)
    on_leave()

app.before_continue, app.on_leave = tell, leave
"""
"""The signal comes when the probes are in and lldb has not let the program go on yet. darc's own
thread is so slow in taking them out that lldb lets it go on meanwhile, unless darc waits."""


def test_signal_as_the_program_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(AS_IT_GOES_ON)
    commands = [f"command script import {script}", "darc start handle --start-ops 1000000000"]
    with server(build("server")) as running:
        options = ["-p", str(running.pid)]
        done = debug(tmp_path, None, (), [*commands, "continue"], options=options)
        let_go(running.pid)
        _, breakpoints, altered = altered_code(running.pid)
        assert len(altered) == breakpoints == 0, done.gdb
        running.operations()
        assert running.finish() == 0
