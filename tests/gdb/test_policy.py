"""What darc does not do by itself in programs that it was attached to, as they would not outlive a
debugger that is killed: breakpoints."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from darc.code.system_calls import SystemCall
from darc.debuggee import procfs
from fixtures.build import build, build_filtered
from tests.code import altered_code
from tests.debugger import IN_BOTH, IN_LLDB_AT_NIGHT, REPORT, attempt, debug, server

pytestmark = IN_LLDB_AT_NIGHT

FOREVER = "1000000000"
DANGER = "the program was attached to: if the debugger is killed, breakpoints are its end"


@contextlib.contextmanager
def running(program: Path, *args: str) -> Iterator[int]:
    """The program's process, which is there at the end, and gone then."""
    made = subprocess.Popen([program, *args], stdout=subprocess.DEVNULL)
    try:
        yield made.pid
        assert made.poll() is None
    finally:
        made.kill()
        made.wait()


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("limit", "pads would take"),
        ("sandbox", "the program is in a seccomp sandbox"),
        ("clock", "the program has made reading the time-stamp counter its end"),
    ],
)
def test_program_that_takes_no_pads(mode: str, why: str, tmp_path: Path) -> None:
    """Refused, in one line, which says what the user may choose and what that would mean."""
    program = build("nomap")
    with running(program, FOREVER, mode) as pid:
        commands = [f"attach {pid}", attempt("darc start handle"), "detach"]
        done = debug(tmp_path, program, (), commands)
        assert altered_code(pid)[2] == []
        assert int(procfs.status(pid)["SigBlk"], 16) == 0
    (line,) = [line for line in done.gdb.splitlines() if "with pads" in line]
    assert f"cannot time handle with pads: {why}" in line
    assert line.endswith(f"; '--probes breakpoint' can, but {DANGER}")
    assert "is timed by breakpoints" not in done.gdb


@contextlib.contextmanager
def filtered(call: SystemCall, action: str, *launcher: str) -> Iterator[int]:
    """The server under a seccomp filter that was there before it was executed, by its parent's
    ``launcher`` too if there is one. It is there at the end, and does what it did."""
    with server(build_filtered(), str(int(call)), action, *launcher, str(build("server"))) as made:
        found = procfs.children(made.pid) if launcher else [made.pid]
        yield found[0]
        os.kill(found[0], signal.SIGTERM)
        assert made.read_line() == b"stopped, 0 wrong\n"


SEARCH = ["darc start handle --peak last --start-ops 1000", "continue", REPORT, "detach"]


@IN_BOTH
@pytest.mark.parametrize("action", ["kill", "fail"])
@pytest.mark.parametrize("call", [SystemCall.TGKILL, SystemCall.PPOLL])
def test_filter_from_before_that_forbids_what_darc_does(
    call: SystemCall, action: str, tmp_path: Path
) -> None:
    """It is not tried out: the program would end, or a thread go by where it was to stop."""
    launcher = ["/bin/sh", "-c", '"$0" & wait'] if call is SystemCall.TGKILL else []
    with filtered(call, action, *launcher) as pid:
        done = debug(tmp_path, None, (), [attempt(SEARCH[0]), "detach"], options=["-p", str(pid)])
        assert "the program is in a seccomp sandbox, which may kill it" in done.gdb, done.gdb
        assert altered_code(pid)[2] == []


@pytest.mark.parametrize("launcher", [[], ["/bin/sh", "-c", '"$0" & wait']], ids=["alone", "shell"])
def test_filter_from_before_that_is_read(launcher: list[str], tmp_path: Path) -> None:
    """As a service manager's: root's gdb sees that it is none of darc's business."""
    if os.geteuid() != 0 or procfs.in_sandbox(os.getpid()):
        pytest.skip("filters are told to root alone, outside of any")
    with filtered(SystemCall.PERF_EVENT_OPEN, "kill", *launcher) as pid:
        done = debug(tmp_path, None, (), SEARCH, options=["-p", str(pid)])
        assert done.paths == [("handle", "lookup", "burn")], done.gdb
        assert altered_code(pid)[2] == []


@IN_BOTH
def test_breakpoints_that_were_asked_for(tmp_path: Path) -> None:
    """They are taken, and darc says what that means."""
    program = build("nomap")
    with running(program, FOREVER, "limit") as pid:
        commands = [f"attach {pid}", "darc start handle --probes breakpoint", "darc stop", "detach"]
        done = debug(tmp_path, program, (), commands)
    assert "handle is timed by breakpoints: each of its calls stops" in done.gdb
    assert f"cannot be told apart; {DANGER}" in done.gdb


def test_function_that_begins_with_what_may_fault(tmp_path: Path) -> None:
    """Refused: no pad can stand there, and breakpoints are for the user to choose."""
    program = build("fixups")
    with running(program, FOREVER, "flags") as pid:
        quiet = "handle SIGSEGV SIGFPE nostop noprint pass"
        commands = [f"attach {pid}", quiet, attempt("darc start flags_handle"), "detach"]
        done = debug(tmp_path, program, (), commands)
    assert "cannot time flags_handle: " in done.gdb
    assert f"stops the program at every call, and {DANGER}" in done.gdb


@pytest.mark.parametrize("when", ["before", "after"])
def test_function_that_is_not_there_yet(when: str, tmp_path: Path) -> None:
    """No breakpoint waits for it."""
    program = build("server")
    pending = "set breakpoint pending on"
    with server(program) as served:
        attach = f"attach {served.pid}"
        if when == "before":  # the file has it, and gdb tells of it when it has attached
            commands = ["darc start handle", attach, attempt("darc status"), "detach"]
        else:
            commands = [attach, attempt("darc start nowhere"), attempt("darc status"), "detach"]
        done = debug(tmp_path, program, (), [pending, *commands])
        if when == "before":
            assert "in a program that was attached to darc waits for no function" in done.gdb
        else:
            assert "no function is called nowhere; no file that is loaded has it" in done.gdb
        assert "waits for a library" not in done.gdb
        assert served.finish() == 0
