"""lldb is told to end by a signal just when darc and lldb are easily in each other's way."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from darc.debuggee import procfs
from darc_lldb.farewell import Farewell
from fixtures.build import build
from tests.code import altered_code
from tests.debugger import WATCHDOG_SECONDS, end_session, last_words, let_go, server, tracer
from tests.lldb.runner import debug, on_terminal

AS_IT_GOES_ON = """
import os
import signal
import threading
import time
import lldb
from darc.target.target import State
from darc_lldb.debuggers import DEBUGGERS

known = DEBUGGERS[lldb.debugger.GetID()]
app, target = known.app, known.target
before_continue, on_leave = app.observer.goes_on, app.observer.on_leave
PATIENCE = time.monotonic() + 60

def tell():
    before_continue()
    os.kill(os.getpid(), signal.SIGTERM)
    while not target.stopping.departure.is_wanted and time.monotonic() < PATIENCE:
        time.sleep(0.01)

def leave():
    own = threading.current_thread().name == "darc-leave"
    while own and target.inferior.watcher.program_stands() and time.monotonic() < PATIENCE:
        time.sleep(0.01)
    on_leave()

app.observer.goes_on, app.observer.on_leave = tell, leave
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


def test_detach_while_the_program_runs(tmp_path: Path) -> None:
    """lldb takes commands meanwhile where it reads them from a pipe."""
    with server(build("server")) as running:
        command, variables = on_terminal()
        lldb = subprocess.Popen(
            [*command, "-p", str(running.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        try:
            assert lldb.stdin is not None
            lldb.stdin.write(b"darc start handle --start-ops 1000000000\nprocess continue\n")
            lldb.stdin.flush()
            wait_until(lambda: bool(altered_code(running.pid)[2]), lldb)
            running.operations()  # it runs with the probes in
            lldb.stdin.write(b"process detach\n")
            lldb.stdin.flush()
            wait_until(lambda: tracer(running.pid) == 0, lldb)
            _, breakpoints, altered = altered_code(running.pid)
            assert len(altered) == breakpoints == 0
            said, _ = lldb.communicate(b"quit\n", WATCHDOG_SECONDS)
            assert b"Traceback" not in said
        finally:
            end_session(lldb)
            lldb.wait()
        running.operations()
        assert running.finish() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_lldb_has_launched_lives_on(number: signal.Signals) -> None:
    """As it does without darc; there is nothing of darc's in its code then."""
    command, variables = on_terminal()
    program = build("mixture")
    commands = ["-b", "-o", "darc start handle --start-ops 1000000000", "-o", "run"]
    lldb = subprocess.Popen(
        [*command, *commands, "--", str(program), "1000000000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
        start_new_session=True,
    )
    launched: list[int] = []

    def is_analysed() -> bool:
        below = [pid for server in procfs.children(lldb.pid) for pid in procfs.children(server)]
        launched[:] = [pid for pid in below if is_of(pid, program)]
        return bool(launched and altered_code(launched[0])[2])

    try:
        wait_until(is_analysed, lldb)
        lldb.send_signal(number)
        assert lldb.wait(WATCHDOG_SECONDS) == -number
        _, _, altered = altered_code(launched[0])
        assert not altered
    finally:
        end_session(lldb)
        lldb.wait()
        for pid in launched:
            os.kill(pid, signal.SIGKILL)


def is_of(pid: int, program: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").samefile(program)
    except OSError:  # a server of lldb's that has ended
        return False


def wait_until(condition: Callable[[], bool], lldb: subprocess.Popen[bytes]) -> None:
    """Looks again and again."""
    deadline = time.monotonic() + WATCHDOG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, last_words(lldb.pid)
        time.sleep(0.05)


@pytest.fixture
def ending() -> tuple[Farewell, list[float]]:
    """One that listens, and how long it has waited for."""
    made = Farewell(lambda _: False, lambda: True)
    waits: list[float] = []

    def wait(timeout: float | None = None) -> bool:
        waits.append(timeout or 0.0)
        return True

    made._is_over.wait = wait  # type: ignore[method-assign]
    made._reader = 0
    return made, waits


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = os.openpty()
    yield master, slave
    os.close(slave)


def test_in_a_script_it_ends_at_once(ending: tuple[Farewell, list[float]]) -> None:
    """Its input is no terminal, and lldb has closed it by then."""
    made, waits = ending
    kept = os.dup(0)
    os.close(0)
    try:
        made.before_end()
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert not waits


def test_at_a_terminal_it_waits_where_that_is_gone(
    ending: tuple[Farewell, list[float]], terminal: tuple[int, int]
) -> None:
    made, waits = ending
    master, made._terminal = terminal
    made.before_end()
    assert not waits
    os.close(master)
    made.before_end()
    assert len(waits) == 1
