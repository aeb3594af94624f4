"""Ends of a program in lldb that are its own: crashes, exits inside timed calls, exec, forks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.debugger import undisturbed
from tests.gdb.ways import MOMENTS, compiled
from tests.lldb.runner import TOOLS, debug
from tests.pairs import by_turns


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ways"))


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("what", "signal"), [("segv", "SIGSEGV"), ("abort", "SIGABRT")])
def test_crash(what: str, signal: str, moment: str, *, program: Path, tmp_path: Path) -> None:
    """lldb stops for the crash itself, with the program's own stack and code."""
    look = ["-k", "bt", "-k", "tell-code", "-k", "quit"]
    commands = [TOOLS, MOMENTS[moment], "run"]
    done = debug(tmp_path, program, ("4000", what), commands, options=look)
    assert signal in done.gdb
    stack = [line for line in done.gdb.splitlines() if " frame #" in line]
    shown = [name for name in ("misfortune", "work", "handle", "main") if _in(name, stack)]
    assert shown == ["misfortune", "work", "handle", "main"], done.gdb
    assert ", 0 altered" in done.gdb


def _in(name: str, stack: list[str]) -> bool:
    return any(f"`{name}" in line for line in stack)


@pytest.mark.parametrize(
    ("what", "moment"),
    by_turns(["fork", "exit", "_exit", "exec", "threads", "vfork"], [*MOMENTS]),
)
def test_end_inside_a_timed_call(what: str, moment: str, program: Path, tmp_path: Path) -> None:
    """Output and status as if nobody had looked; the code is left as it was."""
    args = ("4000", what)
    stops = ["breakpoint set -o true -n tell", "run", "darc stop", "continue", "continue"]
    done = debug(tmp_path, program, args, [MOMENTS[moment], *stops, "continue"])
    status, output = undisturbed(program, args)
    # A child's code is a copy with probes in it, which pass through.
    own = [line for line in output.splitlines() if not line.startswith(b"child: code")]
    shown = [line for line in done.output.splitlines() if not line.startswith(b"child: code")]
    assert shown == own, done.gdb
    assert done.program_status == status
    assert "Traceback" not in done.gdb
