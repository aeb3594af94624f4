"""A shell that lets a program go on when its debugger was killed, and does nothing else."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.system_calls import SystemCall
from darc.debuggee import journal
from darc.debuggee.guardian import Guardian
from darc.debuggee.procfs import children
from fixtures.build import build
from tests.debugger import ROOT, WATCHDOG_SECONDS
from tests.waiting import guardians, state, wait_until

DEBUGGER = """
import sys
from darc.debuggee.guardian import Guardian
guardian = Guardian(int(sys.argv[1]))
print("watches", flush=True)
sys.stdin.read()
"""


MAKERS = {
    "fork": "import os, sys; os.read(0, 1); os.fork() or os._exit(0); os.wait(); os.write(1, b'x')",
    "vfork": "import os, subprocess; os.read(0, 1); subprocess.run(['true']); os.write(1, b'x')",
}
"""Programs that make a child, wait for its end, and say so."""


@pytest.fixture
def program() -> Iterator[int]:
    """A process that waits."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state(pid) == "T")


@pytest.fixture
def oddly_named(tmp_path: Path) -> Iterator[int]:
    """A process that waits, and whose name is of several lines."""
    file = tmp_path / "a) R\nb (c"
    shutil.copy("/bin/sleep", file)
    process = subprocess.Popen([file, "1000"])
    yield process.pid
    process.kill()
    process.wait()


def test_a_name_of_several_lines(oddly_named: int) -> None:
    test_the_debugger_is_killed(oddly_named)


def test_the_debugger_is_killed(program: int) -> None:
    command = [sys.executable, "-c", DEBUGGER, str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as debugger:
        assert debugger.stdout is not None
        assert debugger.stdout.readline() == b"watches\n"
        assert len(guardians(program)) == 1
        stop(program)
        debugger.kill()
        wait_until(lambda: state(program) == "S")
    wait_until(lambda: not guardians(program))


def test_the_debugger_lets_it_go(program: int) -> None:
    """Whoever stops it then means it."""
    guardian = Guardian(program)
    stop(program)
    guardian.leave()
    guardian.leave()
    wait_until(lambda: not guardians(program))
    assert state(program) == "T"


def test_another_process_has_its_number(program: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of one that began at another time."""
    monkeypatch.setattr("darc.debuggee.journal.name_of", lambda pid: "boot-1-2-3")
    guardian = Guardian(program)
    stop(program)
    os.close(guardian._pipe)  # as the kernel does at the debugger's end
    wait_until(lambda: not guardians(program))
    assert state(program) == "T"


def end(program: subprocess.Popen[bytes]) -> None:
    """Whatever happened: afterwards it is gone, with its children."""
    for child in children(program.pid):
        os.kill(child, signal.SIGKILL)
    program.kill()


def abandon(program: subprocess.Popen[bytes], *options: str) -> None:
    """Kills a debugger as the program makes its child."""
    command = [sys.executable, "-m", "tests.abandons", str(program.pid), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as debugger:
        assert debugger.stdout is not None
        assert program.stdin is not None
        assert debugger.stdout.readline() == b"traces\n"
        program.stdin.write(b"x")
        program.stdin.flush()
        assert debugger.wait(WATCHDOG_SECONDS) == -signal.SIGKILL


@pytest.mark.parametrize("how", MAKERS)
def test_a_child_that_has_just_been_made(how: str) -> None:
    """It goes on, and the program that waits for it."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", MAKERS[how]], stdin=pipe, stdout=pipe) as program:
        try:
            abandon(program, "guarded")
            assert program.wait(WATCHDOG_SECONDS) == 0
        finally:
            end(program)


def test_a_thread_that_has_not_taken_its_stop_yet(tmp_path: Path) -> None:
    """Here it waits for its child of a vfork; on a busy machine one that has not run since."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([build("childwait"), "1", fifo], stdout=subprocess.PIPE) as program:
        try:
            wait_until(lambda: state(program.pid) == "D")
            guardian = Guardian(program.pid)
            ctypes.CDLL(None).syscall(
                SystemCall.TGKILL, program.pid, program.pid, int(signal.SIGSTOP)
            )
            os.close(guardian._pipe)
            wait_until(lambda: not guardians(program.pid))
            fifo.open("w").close()
            assert program.wait(WATCHDOG_SECONDS) == 0
        finally:
            end(program)


def test_that_the_program_goes_on_is_noted(program: int) -> None:
    """In the journal that there is; the next darc is not to take a later stop for the debugger's.
    None is made where there is none."""
    noted = journal.ProcessJournal(program, required=True)
    noted.open()
    try:
        guardian = Guardian(program)
        os.close(guardian._pipe)
        wait_until(lambda: not guardians(program))
        seen = journal.left(program)
        assert seen is not None
        assert seen.stood
        assert seen.went_on
    finally:
        noted.close(lambda _: False)
    guardian = Guardian(program)
    os.close(guardian._pipe)
    wait_until(lambda: not guardians(program))
    assert journal.left(program) is None


def test_a_child_that_was_made_when_the_debugger_was_gone() -> None:
    """It was not that one's: here another debugger's, which nobody watches."""
    command = [sys.executable, "-c", MAKERS["fork"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as program:
        try:
            guardian = Guardian(program.pid)
            (watching,) = guardians(program.pid)
            os.close(guardian._pipe)
            wait_until(lambda: children(watching))  # it has seen that, and looks again and again
            abandon(program)
            wait_until(lambda: not guardians(program.pid))
            (child,) = children(program.pid)
            assert state(child) == "T"
        finally:
            end(program)


def test_a_child_that_somebody_has_stopped() -> None:
    """That stays as it is."""
    script = "import subprocess; subprocess.run(['sleep', '1000'])"
    with subprocess.Popen([sys.executable, "-c", script]) as program:
        try:
            wait_until(lambda: children(program.pid))
            (child,) = children(program.pid)
            begun = b"sleep\0" + b"1000\0"
            wait_until(lambda: Path(f"/proc/{child}/cmdline").read_bytes() == begun)
            guardian = Guardian(program.pid)
            stop(child)
            os.close(guardian._pipe)
            wait_until(lambda: not guardians(program.pid))
            assert state(child) == "T"
        finally:
            end(program)
