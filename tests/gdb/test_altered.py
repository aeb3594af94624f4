"""Programs whose code is not what their files say, or not what the processor executes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fixtures.build import build_hazard
from tests.debugger import IN_LLDB_AT_NIGHT, attempt, debug
from tests.kills import programs as hazards
from tests.waiting import wait_until

WAYS = ("start", "profile", "walk", "why")


@IN_LLDB_AT_NIGHT
def test_function_that_is_encrypted(tmp_path: Path) -> None:
    """Its bytes are no code: nothing is told of what that would do."""
    with hazards.running("encrypted", tmp_path) as program:
        options = ["-p", str(program.pid)]
        done = debug(tmp_path, None, (), [attempt("darc start sealed")], options=options)
        hazards.wait_until_let_go(program.pid)
        program.check()
        program.finish()
    assert "cannot time sealed: the program has changed its first bytes" in done.gdb


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_program_in_valgrind(tmp_path: Path) -> None:
    """It has begun, and to wait never helps. (lldb itself ends as it attaches to such a one.)"""
    counters = tmp_path / "counters"
    counters.write_bytes(bytes(4096))
    command = ["valgrind", "-q", "--tool=none", str(build_hazard("encrypted")), str(counters)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as made:
        try:
            wait_until(lambda: counters.read_bytes()[24] != 0)
            attempts = [attempt(f"darc {one}{' handle' * (one in WAYS[:2])}") for one in WAYS]
            done = debug(tmp_path, None, (), attempts, options=["-p", str(made.pid)])
        finally:
            made.kill()
    told = "darc: the program runs in Valgrind, which makes other code of it"
    assert done.gdb.count(told) == len(WAYS), done.gdb
